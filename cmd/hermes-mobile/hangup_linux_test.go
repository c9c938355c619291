package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// The window in which the server runs is closed: it ends, as SIGTERM would end it. SIGHUP alone only reads the settings
// again (testdata/token.txtar).
func TestClosedWindow(t *testing.T) {
	if os.Getenv("TEST_SERVE_IN_WINDOW") != "" {
		os.Exit(run([]string{"serve", "--agent", "demo", "--port", "0"}))
	}
	if signal.Ignored(syscall.SIGHUP) { // these tests run under nohup: what is caught here is not ignored by the server
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	var number, unlock uint32
	for request, value := range map[uintptr]*uint32{syscall.TIOCGPTN: &number, syscall.TIOCSPTLCK: &unlock} {
		if _, _, e := syscall.Syscall(syscall.SYS_IOCTL, master.Fd(), request, uintptr(unsafe.Pointer(value))); e != 0 {
			t.Fatal(e)
		}
	}
	window, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(os.Args[0], "-test.run=^TestClosedWindow$")
	cmd.Env = append(os.Environ(), "TEST_SERVE_IN_WINDOW=1", "MOBILE_DATA="+filepath.Join(dir, "data"), "HERMES_HOME="+filepath.Join(dir, "none"))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = window, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = window.Close()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(2 * time.Millisecond) { // another process writes it
		if text, _ := os.ReadFile(log.Name()); strings.Contains(string(text), "listening") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the server does not start")
		}
	}
	_ = master.Close()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the server ended with %v", err)
		}
	case <-time.After(20 * time.Second):
		_ = cmd.Process.Kill()
		<-ended
		t.Error("the server goes on without its window")
	}
}
