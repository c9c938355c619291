package neighbor

import (
	"bufio"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"hermes-mobile/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// caller starts a program that connects to a listener, or listens itself and says where.
func caller(t *testing.T, code string, args ...string) *exec.Cmd {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3 to play a gateway")
	}
	cmd := exec.Command(python, append([]string{"-c", code}, args...)...)
	t.Cleanup(func() {
		if cmd.Process != nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	return cmd
}

const dials = `
import socket, sys
s = socket.create_connection((sys.argv[1], int(sys.argv[2])))
s.recv(1)`

func TestConnected(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, network := range []string{"127.0.0.1:0", "[::1]:0", ":0"} {
		for _, c := range []struct {
			args    []string
			gateway bool
		}{
			{[]string{"/opt/venv/bin/hermes", "gateway", "run"}, true},
			{[]string{"hermes_cli.main", "gateway", "run"}, true},
			{[]string{"/opt/venv/bin/hermes", "dashboard"}, false},
			{[]string{"forwarder", "gateway"}, false}, // a tunnel
		} {
			l, err := net.Listen("tcp", network)
			if err != nil {
				t.Logf("%s: %v", network, err)
				break
			}
			host, port, _ := net.SplitHostPort(l.Addr().String())
			if host == "::" {
				host = "127.0.0.1" // which such a listener sees as ::ffff:127.0.0.1
			}
			cmd := caller(t, dials, append([]string{host, port}, c.args...)...)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			conn, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			local, remote := netip.MustParseAddrPort(conn.LocalAddr().String()), netip.MustParseAddrPort(conn.RemoteAddr().String())
			p, found := Connected(local, remote)
			if found != c.gateway || found && p.pid != cmd.Process.Pid {
				t.Errorf("%s %v: %+v %v", network, c.args, p, found)
			}
			if found && (!p.Sees(file) || p.Sees(file+" that is not there")) {
				t.Errorf("%v: it does not see what we see", c.args)
			}
			if _, found := Connected(remote, local); found {
				t.Error("our own end is taken for a gateway")
			}
			_ = conn.Close()
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			if p.Sees(file) {
				t.Error("a program that has ended sees a file")
			}
			_ = l.Close()
		}
	}
	if (Process{}).Sees(file) {
		t.Error("nobody sees a file")
	}
}

const listens = `
import socket, sys, time
s = socket.socket()
s.bind(("127.0.0.1", 0))
s.listen()
print(s.getsockname()[1], flush=True)
sys.stdin.read()`

func TestListening(t *testing.T) {
	cmd := caller(t, listens, "hermes", "gateway", "run")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	port, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	at := netip.MustParseAddrPort("127.0.0.1:" + strings.TrimSpace(port))
	if p, ok := Listening(at); !ok || p.pid != cmd.Process.Pid {
		t.Errorf("%s: %+v %v", at, p, ok)
	}
	for _, other := range []netip.AddrPort{netip.AddrPortFrom(at.Addr(), at.Port()^1), netip.AddrPortFrom(netip.MustParseAddr("192.0.2.1"), at.Port()), {}} {
		if p, ok := Listening(other); ok {
			t.Errorf("%s: %+v", other, p)
		}
	}
}

// Another process with the number of one that has ended is not taken for it.
func TestNumbersAreUsedAgain(t *testing.T) {
	since, ok := begun("/proc/self")
	if !ok || since == 0 {
		t.Fatal("when this process began is not known")
	}
	if _, ok := (Process{os.Getpid(), since}).root(); !ok {
		t.Error("this process is not itself")
	}
	if _, ok := (Process{os.Getpid(), since + 1}).root(); ok {
		t.Error("it is taken for another one")
	}
	if _, ok := begun("/proc/none"); ok {
		t.Error("a process that is not there has begun")
	}
}

func FuzzParse(f *testing.F) {
	f.Add("   0: 0100007F:2253 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 12345 1 0 100 0 0 10 0")
	f.Add("   1: 00000000000000000000000001000000:2253 0000000000000000FFFF00000100007F:0001 01 0 0 0 0 0 7")
	f.Add("  sl  local_address rem_address   st tx_queue")
	f.Fuzz(func(t *testing.T, line string) {
		if s, ok := parse(line); ok && (!s.local.IsValid() || !s.remote.IsValid() || s.inode == "") {
			t.Fatalf("%+v", s)
		}
	})
}
