// Package e2e tests the built server with the real Hermes gateway of both versions, as its users run it.
package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"hermes-mobile/test/port"
)

// patience is how long a test waits for what should come soon, on a machine that is busy with other tests.
const patience = 90 * time.Second

var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "hermes-mobile-e2e-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "hermes-mobile")
	cmd := exec.Command("go", "build", "-o", path, "hermes-mobile/cmd/hermes-mobile")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		_ = os.RemoveAll(dir)
		return "", fmt.Errorf("build the server: %w\n%s", err, out)
	}
	return path, nil
})

// Tidy removes the program that was built; call it when all tests are over.
func Tidy() {
	if path, err := build(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path))
	}
}

// Server is a server process with folders of its own.
type Server struct {
	t      testing.TB
	Binary string
	Agent  string // relay, unless set before the start
	Data   string
	Port   int
	Token  string
	ID     string // the gateway's id and secret
	Secret string
	Env    []string

	mu   sync.Mutex
	cmd  *exec.Cmd
	done chan struct{}
	log  *os.File
}

// NewServer prepares a server; Start starts it. Settings replace the harness's own, and NAME= takes one
// away.
func NewServer(t testing.TB, env ...string) *Server {
	t.Helper()
	binary, err := build()
	if err != nil {
		t.Fatal(err)
	}
	// Not t.TempDir: a test's name would make the path of the admin socket too long.
	dir, err := os.MkdirTemp("", "hm-e2e-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	log, err := os.Create(filepath.Join(dir, "server.log"))
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{t: t, Binary: binary, Agent: "relay", Data: filepath.Join(dir, "data"), Port: port.Free(t), Token: secret(), ID: "gw-e2e", Secret: secret(), log: log}
	s.Env = append([]string{"MOBILE_HOST=127.0.0.1", "MOBILE_PORT=" + strconv.Itoa(s.Port), "MOBILE_TOKEN=" + s.Token, "MOBILE_DATA=" + s.Data,
		"MOBILE_ALLOW_ALL_USERS=1", "MOBILE_RELAY_ID=" + s.ID, "MOBILE_RELAY_SECRET=" + s.Secret, "HERMES_HOME=" + filepath.Join(dir, "no-hermes"),
		"HOME=" + dir, "MOBILE_LOG_LEVEL=debug", "MOBILE_PUSH=off", "MOBILE_STEER=on", "PATH=" + os.Getenv("PATH")}, env...)
	s.Env = slices.DeleteFunc(s.Env, func(line string) bool {
		name, value, _ := strings.Cut(line, "=")
		return value == "" || !slices.Contains(env, line) && slices.ContainsFunc(env, func(l string) bool { return strings.HasPrefix(l, name+"=") })
	})
	t.Cleanup(func() {
		s.Kill()
		if t.Failed() {
			t.Logf("the server's log ends with:\n%s", s.LogTail(60))
		}
		_ = log.Close()
	})
	return s
}

func secret() string {
	var b [32]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// Start starts the process and waits until it answers.
func (s *Server) Start() *Server {
	s.t.Helper()
	cmd := exec.Command(s.Binary, "serve", "--agent", s.Agent)
	cmd.Env, cmd.Stdout, cmd.Stderr = s.Env, s.log, s.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
	done, started := make(chan struct{}), make(chan error, 1)
	go func() {
		// "Parent" means the thread that forked, so that thread must live as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(done)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		s.t.Fatal(err)
	}
	s.mu.Lock()
	s.cmd, s.done = cmd, done
	s.mu.Unlock()
	deadline := time.Now().Add(patience)
	for {
		c, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(s.Port))
		if err == nil {
			_ = c.Close()
			return s
		}
		select {
		case <-done:
			s.t.Fatalf("the server ended at its start:\n%s", s.LogTail(20))
		default:
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("the server does not listen: %v", err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// signal ends the process with a signal and waits for it.
func (s *Server) signal(sig syscall.Signal) {
	s.mu.Lock()
	cmd, done := s.cmd, s.done
	s.cmd = nil
	s.mu.Unlock()
	if cmd == nil {
		return
	}
	_ = syscall.Kill(-cmd.Process.Pid, sig)
	select {
	case <-done:
	case <-time.After(15 * time.Second):
		s.t.Errorf("the server did not end within 15 s of %v", sig)
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-done
	}
}

// Kill ends the process as a power cut would.
func (s *Server) Kill() { s.signal(syscall.SIGKILL) }

// Stop ends the process politely.
func (s *Server) Stop() { s.signal(syscall.SIGTERM) }

// URL is where devices connect.
func (s *Server) URL() string { return fmt.Sprintf("ws://127.0.0.1:%d/ws", s.Port) }

// Base is what a gateway is told.
func (s *Server) Base() string { return fmt.Sprintf("http://127.0.0.1:%d", s.Port) }

// CLI runs another subcommand on the same settings.
func (s *Server) CLI(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, s.Binary, args...)
	cmd.Env = s.Env
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// JSON runs a subcommand that prints JSON and reads what it prints.
func (s *Server) JSON(t testing.TB, to any, args ...string) {
	t.Helper()
	out, err := s.CLI(t.Context(), append(args, "--json")...)
	if err == nil {
		err = json.Unmarshal([]byte(out), to)
	}
	if err != nil {
		t.Fatalf("hermes-mobile %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// LogTail is the end of the server's log.
func (s *Server) LogTail(lines int) string {
	text, err := os.ReadFile(s.log.Name())
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
