package main

import (
	"errors"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// patience is how long a script waits for what must come.
const patience = 20 * time.Second

// process is a server that a script has started.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	err  error         // how, then
}

// listening is the banner's line with the address.
var listening = regexp.MustCompile(`(?m)^  listening  (wss?://\S+)$`)

func cmdServe(ts *testscript.TestScript, neg bool, args []string) {
	s := of(ts)
	usage(ts, neg, s.server != nil, "serve [ARG...], after a halt of the one before")
	out, err := os.Create(ts.MkAbs("serve.out"))
	ts.Check(err)
	defer out.Close()
	errs, err := os.Create(ts.MkAbs("serve.err"))
	ts.Check(err)
	defer errs.Close()
	p := &process{cmd: exec.Command("hermes-mobile", append([]string{"serve", "--port", "0"}, args...)...), done: make(chan struct{})}
	p.cmd.Env, p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = environ(ts), ts.MkAbs("."), out, errs
	ts.Check(p.cmd.Start())
	go func() {
		defer close(p.done)
		p.err = p.cmd.Wait()
	}()
	s.server = p
	ts.Defer(func() {
		if s.server == p { // the script failed, or leaves it to us
			_ = p.cmd.Process.Kill()
			<-p.done
		}
	})

	var addr string
	eventually(ts, "the banner", func() bool {
		select {
		case <-p.done:
			ts.Fatalf("the server ended: %v\n%s", p.err, ts.ReadFile("serve.err"))
		default:
		}
		if m := listening.FindStringSubmatch(ts.ReadFile("serve.out")); m != nil {
			addr = m[1]
		}
		return addr != ""
	})
	ts.Setenv("ADDR", addr)
	// It listens already, so this waits until it answers; by then the banner is whole.
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	_, host, _ := strings.Cut(addr, "://")
	resp, err := c.Get("http://" + host[:strings.Index(host, "/")] + "/healthz") // with TLS, too, from this machine
	ts.Check(err)
	ts.Check(resp.Body.Close())
}

// environ is the script's environment, which testscript gives to commands only. It goes by way of a file, since what a command prints is in
// the log of a script that fails, where its zero bytes would make it a binary file.
func environ(ts *testscript.TestScript) []string {
	const file = ".environ"
	ts.Check(ts.Exec("sh", "-c", "env -0 > "+file))
	list := strings.Split(strings.TrimSuffix(ts.ReadFile(file), "\x00"), "\x00")
	ts.Check(os.Remove(ts.MkAbs(file)))
	return list
}

func cmdHalt(ts *testscript.TestScript, neg bool, args []string) {
	s := of(ts)
	usage(ts, neg, s.server == nil || len(args) > 1, "halt [KILL], after serve")
	p := s.server
	sig := syscall.SIGTERM
	if len(args) > 0 {
		sig = syscall.SIGKILL
	}
	ts.Check(p.cmd.Process.Signal(sig))
	select {
	case <-p.done:
	case <-time.After(10 * time.Second):
		ts.Fatalf("the server has not ended within ten seconds")
	}
	s.server = nil
	if p.err != nil && sig == syscall.SIGTERM {
		ts.Fatalf("the server ended with %v\n%s", p.err, ts.ReadFile("serve.err"))
	}
}

func cmdHup(ts *testscript.TestScript, neg bool, args []string) {
	s := of(ts)
	usage(ts, neg, s.server == nil || len(args) > 0, "hup, after serve")
	ts.Check(s.server.cmd.Process.Signal(syscall.SIGHUP))
}

func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) < 2, "exits STATUS COMMAND [ARG...]")
	err := ts.Exec(args[1], args[2:]...)
	status := "0"
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		status = strings.TrimPrefix(exit.ProcessState.String(), "exit status ")
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if status != args[0] {
		ts.Fatalf("exit status %s, want %s", status, args[0])
	}
}

// eventually waits until a condition holds.
func eventually(ts *testscript.TestScript, what string, f func() bool) {
	deadline := time.Now().Add(patience)
	for !f() {
		if time.Now().After(deadline) {
			ts.Fatalf("waited for %s in vain", what)
		}
		time.Sleep(2 * time.Millisecond) // between two looks at what another process does
	}
}
