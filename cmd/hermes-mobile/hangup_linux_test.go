package main

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// newWindow makes a terminal: what a program writes to window is read from master.
func newWindow(t *testing.T) (master, window *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = master.Close() })
	var number, unlock uint32
	for request, value := range map[uintptr]*uint32{syscall.TIOCGPTN: &number, syscall.TIOCSPTLCK: &unlock} {
		if _, _, e := syscall.Syscall(syscall.SYS_IOCTL, master.Fd(), request, uintptr(unsafe.Pointer(value))); e != 0 {
			t.Fatal(e)
		}
	}
	window, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return master, window
}

// A newcomer who starts the server in a terminal gets a link to the admin UI there. Its log never has it.
func TestTerminalGetsALink(t *testing.T) {
	if os.Getenv("TEST_SERVE_IN_TERMINAL") != "" {
		os.Exit(run([]string{"serve", "--agent", "demo", "--port", "0"}))
	}
	if signal.Ignored(syscall.SIGHUP) { // these tests run under nohup: what is caught here is not ignored by the server
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	master, window := newWindow(t)
	dir := t.TempDir()
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(os.Args[0], "-test.run=^TestTerminalGetsALink$")
	cmd.Env = append(os.Environ(), "TEST_SERVE_IN_TERMINAL=1", "MOBILE_DATA="+filepath.Join(dir, "data"), "HERMES_HOME="+filepath.Join(dir, "none"))
	cmd.Stdout, cmd.Stderr = window, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = window.Close()
	ended := make(chan struct{})
	go func() { defer close(ended); _ = cmd.Wait() }()
	late := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	link := ""
	for lines := bufio.NewScanner(master); link == "" && lines.Scan(); { // the terminal ends with its program
		link = regexp.MustCompile(`http://127\.0\.0\.1:\d+/admin/enter\?key=[A-Z2-7]+`).FindString(lines.Text())
	}
	if link == "" {
		t.Error("the terminal shows no link")
	} else if resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(mustRequest(t, link)); err != nil || len(resp.Cookies()) != 1 {
		t.Errorf("the link opens nothing: %v", err)
	} else {
		_ = resp.Body.Close()
	}
	late.Stop()
	_ = cmd.Process.Signal(syscall.SIGTERM)
	<-ended
	if text, _ := os.ReadFile(log.Name()); strings.Contains(string(text), "key=") {
		t.Errorf("the log has a link:\n%s", text)
	}
}

func mustRequest(t *testing.T, address string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The window in which the server runs is closed: it ends, as SIGTERM would end it. SIGHUP alone only reads the settings
// again (testdata/token.txtar).
func TestClosedWindow(t *testing.T) {
	if os.Getenv("TEST_SERVE_IN_WINDOW") != "" {
		os.Exit(run([]string{"serve", "--agent", "demo", "--port", "0"}))
	}
	master, window := newWindow(t)
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
