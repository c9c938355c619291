package examples

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"hermes-mobile/internal/push/pushtest"
)

// Secrets of the server under test. They never reach a document: see clean.
const (
	appToken     = "app-token-of-the-examples-0123456789"
	deliverToken = "deliver-token-of-the-examples-01234"
)

// server is the built program, running with the demo agent on a data folder of its own.
type server struct {
	t       *testing.T
	program string
	env     []string
	address string // of the device endpoint
}

func startServer(t *testing.T) *server {
	t.Helper()
	dir, err := os.MkdirTemp("", "hm-examples-") // t.TempDir may be too long a path for a unix socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &server{t: t, program: filepath.Join(dir, "hermes-mobile")}
	build := exec.Command("go", "build", "-o", s.program, "./cmd/hermes-mobile")
	build.Dir = filepath.Join("..", "..")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the server: %v\n%s", err, out)
	}
	s.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "MOBILE_DATA=" + filepath.Join(dir, "data"), "MOBILE_AGENT=demo", "MOBILE_PORT=0",
		"MOBILE_TOKEN=" + appToken, "MOBILE_DELIVER_TOKENS=cron=" + deliverToken, "MOBILE_PUBLIC_URL=https://agent.example.com",
		"MOBILE_PUSH_HOSTS=" + pushtest.Host, "MOBILE_PUSH_ACTIONS=yes", "MOBILE_AVATAR_URL=https://agent.example.com/avatar.html"}
	var log bytes.Buffer
	serve := exec.Command(s.program, "serve")
	serve.Env, serve.Stderr = s.env, &log
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = serve.Process.Signal(syscall.SIGTERM)
		if err := serve.Wait(); err != nil {
			t.Errorf("the server did not end cleanly: %v\n%s", err, log.String())
		}
	})
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		out, err := s.try("status", "--json")
		if err == nil {
			var status struct{ Address string }
			if err := json.Unmarshal(out, &status); err != nil {
				t.Fatal(err)
			}
			s.address = status.Address
			return s
		}
		if time.Now().After(end) {
			t.Fatalf("the server does not answer: %v\n%s", err, log.String())
		}
	}
}

// try runs a command of the program against the running server.
func (s *server) try(args ...string) ([]byte, error) {
	cmd := exec.Command(s.program, args...)
	cmd.Env = s.env
	return cmd.Output()
}

// command is try for what must succeed.
func (s *server) command(args ...string) []byte {
	s.t.Helper()
	out, err := s.try(args...)
	if err != nil {
		s.t.Fatalf("hermes-mobile %s: %v", strings.Join(args, " "), err)
	}
	return out
}
