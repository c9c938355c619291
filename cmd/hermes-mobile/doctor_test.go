package main

import (
	"bytes"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hermes-mobile/internal/server"
)

// A server that is there and gives no sensible answer is an issue, not an error of the command.
func TestDoctorOfASilentServer(t *testing.T) {
	dir, err := os.MkdirTemp("", "doctor") // a short path, for the socket's sake
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, server.AdminSocket))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	var out bytes.Buffer
	cmd := root()
	cmd.SetOut(&out)
	cmd.SetArgs([]string{"doctor", "--json", "--data", dir})
	err = cmd.ExecuteContext(t.Context())
	_ = l.Close()
	<-ended
	if !errors.Is(err, errUnwell) || !strings.Contains(out.String(), `"code": "server_silent"`) || !strings.Contains(out.String(), dir) {
		t.Errorf("%v\n%s", err, out.String())
	}
}
