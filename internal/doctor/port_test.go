package doctor

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

func TestPortInUse(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "0.0.0.0", "::1"} {
		l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
		if err != nil {
			t.Logf("%s: %v", host, err) // no IPv6 here
			continue
		}
		port := l.Addr().(*net.TCPAddr).Port
		p := ProbePort(host, port)
		f := folderFacts(&Folder{Path: "/d"})
		f.Port = p
		list := Shorten(Check(f))
		says := []string{net.JoinHostPort(host, fmt.Sprint(port)), "MOBILE_PORT"}
		if runtime.GOOS == "linux" {
			says = append(says, fmt.Sprintf("the port is used by %s (process %d)", filepath.Base(os.Args[0]), os.Getpid()))
		}
		mustFind(t, list, "port_in_use", says...)
		mustNotFind(t, list, "server_not_running") // it cannot be started
		ok(t, l.Close())
		if p := ProbePort(host, port); p.Taken {
			t.Errorf("%+v: it is free again", p)
		}
	}
	if p := ProbePort("127.0.0.1", 0); p != nil {
		t.Errorf("%+v: any port", p)
	}
}

// Another process has the port, and is named by its own name.
func TestPortHolderIsAnotherProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	file, err := l.(*net.TCPListener).File()
	ok(t, err)
	sleep, err := exec.LookPath("sleep")
	ok(t, err)
	cmd := exec.Command(sleep, "60")
	cmd.ExtraFiles = []*os.File{file}
	ok(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	port := l.Addr().(*net.TCPAddr).Port
	ok(t, file.Close())
	ok(t, l.Close())
	real, err := filepath.EvalSymlinks(sleep)
	ok(t, err)
	if got, want := PortHolder("127.0.0.1", port), fmt.Sprintf("%s (process %d)", filepath.Base(real), cmd.Process.Pid); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := PortHolder("127.0.0.2", port); got != "" {
		t.Errorf("%q has the port of another address", got)
	}
}
