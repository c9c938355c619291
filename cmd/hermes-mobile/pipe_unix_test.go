//go:build unix

package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A server outlives whoever reads its log and its banner.
func TestServerOutlivesItsLog(t *testing.T) {
	dir := t.TempDir()
	env := append(os.Environ(), "MOBILE_DATA="+filepath.Join(dir, "d"), "HERMES_HOME="+filepath.Join(dir, "none"), "MOBILE_LOG_LEVEL=debug")
	self := func(args ...string) *exec.Cmd {
		cmd := exec.Command("hermes-mobile", args...)
		cmd.Env = env
		return cmd
	}
	server := self("serve", "--agent", "demo", "--port", "0")
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	log, err := server.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	defer func() { _ = server.Process.Kill() }()
	for lines := bufio.NewScanner(out); ; {
		if !lines.Scan() {
			t.Fatal("the server ends without a banner")
		}
		if strings.Contains(lines.Text(), "Chat from here") {
			break
		}
	}
	_ = out.Close()
	_ = log.Close()
	go func() { ended <- server.Wait() }()
	for range 3 { // each connection is a line in the log
		chat := self("chat")
		chat.Stdin = strings.NewReader("hello\n")
		if reply, err := chat.CombinedOutput(); err != nil || !strings.Contains(string(reply), "You said: hello") {
			t.Fatalf("%v: %s", err, reply)
		}
	}
	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the server ended with %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("the server goes on after SIGTERM")
	}
}
