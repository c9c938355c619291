package chaos

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"hermes-mobile/test/chaos/seam"
	"hermes-mobile/test/port"
)

const (
	appToken = "crash-test-app-token-0123456789"

	metricsToken = "crash-test-metrics-token-0123456789"

	relayID     = "gw:crash"
	relaySecret = "crash-test-relay-secret-0123456789"

	otherRelayID     = "gw:other"
	otherRelaySecret = "crash-test-other-secret-0123456789"
)

// otherChats are the conversations that the second gateway serves, where there are two.
var otherChats = []string{"phone-0", "phone-1"}

// server is the process under test. Port and data folder stay the same over all of its lives.
type server struct {
	t    *testing.T
	port int
	dir  string
	sync string // MOBILE_SYNC
	// gateways is how many may dial in: one, or two.
	gateways int
	log      *os.File

	controls *seam.Controls // of its clock and its disk
	filled   atomic.Bool    // its disk was full for a time

	mu    sync.Mutex
	cmd   *exec.Cmd
	done  chan struct{} // of this life: it was waited for
	meant bool          // its end was meant
	lives int
	ended bool
}

func startServer(t *testing.T) *server {
	t.Helper()
	s := newServer(t)
	s.start()
	return s
}

// newServer prepares a server that does not run yet.
func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{t: t, port: port.Free(t), dir: t.TempDir(), sync: "always", gateways: 1}
	var err error
	if s.log, err = os.Create(filepath.Join(s.dir, "server.log")); err != nil {
		t.Fatal(err)
	}
	if s.controls, err = seam.Open(s.seam()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.controls.Close() })
	t.Cleanup(s.close)
	return s
}

// seam is the file of its controls.
func (s *server) seam() string { return filepath.Join(s.dir, "seam") }

// settings is the file of the settings, where there are two gateways.
func (s *server) settings() string { return filepath.Join(s.dir, "settings.yaml") }

// serveTwo makes it a server for two gateways.
func (s *server) serveTwo() error {
	s.gateways = 2
	text := fmt.Sprintf("gateways:\n  - {id: %q, secret: %q, devices: \"*\"}\n  - {id: %q, secret: %q, devices: [%s]}\n", relayID, relaySecret, otherRelayID,
		otherRelaySecret, strings.Join(otherChats, ", "))
	return os.WriteFile(s.settings(), []byte(text), 0o600)
}

// data is the folder of its data.
func (s *server) data() string { return filepath.Join(s.dir, "data") }

func (s *server) addr() string { return "127.0.0.1:" + strconv.Itoa(s.port) }

// start begins a new life.
func (s *server) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin()
}

// command is the program with the settings of this server.
func (s *server) command(args ...string) *exec.Cmd {
	if s.gateways > 1 {
		args = append(args, "--config", s.settings())
	}
	cmd := exec.Command(binary, args...)
	cmd.Dir = s.dir
	cmd.Env = []string{
		"HOME=" + s.dir, "PATH=" + os.Getenv("PATH"), "HERMES_HOME=" + filepath.Join(s.dir, "no-hermes"),
		"MOBILE_DATA=" + s.data(), "MOBILE_SYNC=" + s.sync, "MOBILE_HOST=127.0.0.1", "MOBILE_PORT=" + strconv.Itoa(s.port),
		"MOBILE_AGENT=relay", "MOBILE_TOKEN=" + appToken, "MOBILE_METRICS_TOKEN=" + metricsToken, "MOBILE_ALLOW_ALL_USERS=1",
		"GOTRACEBACK=all", seam.Variable + "=" + s.seam(),
	}
	if s.gateways == 1 {
		cmd.Env = append(cmd.Env, "MOBILE_RELAY_ID="+relayID, "MOBILE_RELAY_SECRET="+relaySecret)
	}
	return cmd
}

// run runs a command of the owner's.
func (s *server) run(args ...string) error {
	if out, err := s.command(args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w\n%s", args, err, out)
	}
	return nil
}

// begin is start; s.mu is held.
func (s *server) begin() {
	cmd := s.command("serve")
	cmd.Stdout, cmd.Stderr = s.log, s.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
	done, started := make(chan struct{}), make(chan error, 1)
	s.lives++
	fmt.Fprintf(s.log, "=== life %d\n", s.lives)
	go func() {
		// The child dies with the thread that forked it, so that thread must live as long.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		err = cmd.Wait()
		s.mu.Lock()
		refused := !s.meant && s.filled.Load() && strings.Contains(s.tail(2), noRoom)
		if !s.meant && !refused {
			s.t.Errorf("the server ended by itself: %v\n%s", err, s.tail(60))
		}
		s.mu.Unlock()
		close(done)
		if refused {
			s.again(cmd)
		}
	}()
	if err := <-started; err != nil {
		s.t.Errorf("start the server: %v", err)
		close(done)
	}
	s.cmd, s.done, s.meant = cmd, done, false
}

// noRoom is what a server says that cannot start on a full disk.
const noRoom = "is the disk full?"

// again starts a server that found no room, as a service is started again.
func (s *server) again(cmd *exec.Cmd) {
	time.Sleep(300 * time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == cmd && !s.meant && !s.ended {
		s.begin()
	}
}

// pid of this life.
func (s *server) pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd.Process == nil {
		return 0
	}
	return s.cmd.Process.Pid
}

// freeze stops this life for some time in the midst of whatever it does.
func (s *server) freeze(d time.Duration) {
	pid := s.pid()
	_ = syscall.Kill(-pid, syscall.SIGSTOP)
	time.Sleep(d)
	_ = syscall.Kill(-pid, syscall.SIGCONT)
}

// signal ends this life and waits for it.
func (s *server) signal(sig syscall.Signal, patience time.Duration) {
	s.mu.Lock()
	cmd, done := s.cmd, s.done
	s.meant = true
	fmt.Fprintf(s.log, "=== %v\n", sig)
	s.mu.Unlock()
	if cmd == nil || cmd.Process == nil {
		return
	}
	_ = syscall.Kill(-cmd.Process.Pid, sig)
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
		s.t.Errorf("the server did not end within %s after %v\n%s", patience, sig, s.tail(60))
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-done
	}
}

func (s *server) close() {
	s.mu.Lock()
	ended := s.ended
	s.ended = true
	s.mu.Unlock()
	if ended {
		return
	}
	s.signal(syscall.SIGKILL, 10*time.Second)
	_ = s.log.Close()
	if *keepFlag != "" && s.t.Failed() {
		files, _ := filepath.Glob(filepath.Join(s.data(), "hermes-mobile.db*"))
		for _, file := range append(files, s.log.Name()) {
			if b, err := os.ReadFile(file); err == nil {
				_ = os.WriteFile(filepath.Join(*keepFlag, s.t.Name()+"-"+filepath.Base(file)), b, 0o600)
			}
		}
	}
}

// tail returns the last lines of the log, without those that say only that somebody came or went.
func (s *server) tail(n int) string {
	b, err := os.ReadFile(s.log.Name())
	if err != nil {
		return err.Error()
	}
	var lines []string
	for line := range bytes.Lines(b) {
		text := string(line)
		if !strings.Contains(text, "a device is ") {
			lines = append(lines, text)
		}
	}
	return strings.Join(lines[max(0, len(lines)-n):], "")
}

// lines returns the lines of the log that hold a text.
func (s *server) lines(text string) (list []string) {
	b, _ := os.ReadFile(s.log.Name())
	for line := range bytes.Lines(b) {
		if bytes.Contains(line, []byte(text)) {
			list = append(list, string(line))
		}
	}
	return list
}

// errors returns the lines of the log that tell of a fault of the server.
func (s *server) errors() []string {
	b, _ := os.ReadFile(s.log.Name())
	var list []string
	for line := range bytes.Lines(b) {
		if s.filled.Load() && (bytes.Contains(line, []byte("disk is full")) || bytes.Contains(line, []byte("no space left"))) {
			continue // the truth
		}
		if bytes.Contains(line, []byte("level=ERROR")) || bytes.HasPrefix(line, []byte("panic:")) {
			list = append(list, strings.TrimSpace(string(line)))
		}
	}
	return list
}
