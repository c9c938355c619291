package vault

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"hermes-mobile/gateway"
)

func dup(f *os.File) (int, error) { return syscall.Dup(int(f.Fd())) }

// A bus that nobody offers a keyring on: it is asked for real, in a process of its own since the
// library keeps its connection.
func TestBusWithoutKeyring(t *testing.T) {
	daemon, err := exec.LookPath("dbus-daemon")
	if err != nil {
		t.Skip("there is no dbus-daemon")
	}
	if os.Getenv("VAULT_TEST_DIR") == "" {
		cmd := exec.Command(daemon, "--session", "--nofork", "--print-address")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Skip("dbus-daemon does not start here:", err)
		}
		defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
		address, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			t.Skip("dbus-daemon does not start here:", err)
		}
		child := exec.Command(os.Args[0], "-test.run", "^TestBusWithoutKeyring$", "-test.v")
		child.Env = append(os.Environ(), "VAULT_TEST_DIR="+t.TempDir(), "DBUS_SESSION_BUS_ADDRESS="+strings.TrimSpace(address))
		text, err := child.CombinedOutput()
		if !strings.Contains(string(text), "kind: file") && !strings.Contains(string(text), "kind: keyring") {
			t.Errorf("%v\n%s", err, text)
		}
		return
	}
	v, err := Open(Options{Dir: os.Getenv("VAULT_TEST_DIR")})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("kind: %s", v.Kind())
	if v.Kind() == Keyring { // a keyring that the bus can start is used for real
		behaves(t, v, func() *Vault { return v })
		if err := v.Drop(away); err != nil {
			t.Error(err)
		}
	}
	os.Exit(0) // the library's connection has no end that could be waited for
}

func TestKeyFrom(t *testing.T) {
	t.Parallel()
	from := func(text string) (gateway.Secret, error) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.WriteString(text); err != nil {
			t.Fatal(err)
		}
		_ = w.Close()
		fd, err := dup(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Close()
		return KeyFrom(fd)
	}
	if s, err := from(token + "\nmore"); err != nil || s.Reveal() != token {
		t.Errorf("%q %v", s.Reveal(), err)
	}
	for _, text := range []string{"", "\n"} {
		if _, err := from(text); err == nil {
			t.Errorf("%q is a key", text)
		}
	}
	for _, fd := range []int{1, 2, -1, 987654} {
		if _, err := KeyFrom(fd); err == nil {
			t.Errorf("descriptor %d gave a key", fd)
		}
	}
}
