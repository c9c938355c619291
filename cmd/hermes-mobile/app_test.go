package main

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"hermes-mobile/internal/connect/connecttest"
)

// quietT makes a gateway for a script, which ends it.
type quietT struct {
	testing.TB
	ts *testscript.TestScript
}

func (q quietT) Helper()           {}
func (q quietT) Error(args ...any) { q.ts.Logf("%v", args) }
func (q quietT) Fatal(args ...any) { q.ts.Fatalf("%v", args) }
func (q quietT) Cleanup(f func())  { q.ts.Defer(f) }

// cmdGateway starts a Hermes gateway that wants a token, without TLS, and sets $GATEWAY to its address.
func cmdGateway(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) != 1, "gateway TOKEN")
	ts.Setenv("GATEWAY", connecttest.Start(quietT{ts: ts}, connecttest.WithToken(args[0]), connecttest.WithoutTLS()).URL)
}

var pageLine = regexp.MustCompile(`(?m)^  page  (\S+)$`)

// cmdApp starts the app; its output goes to app.out and app.err, and $PAGE is its address. `halt` ends it.
func cmdApp(ts *testscript.TestScript, neg bool, args []string) {
	s := of(ts)
	usage(ts, neg, s.server != nil, "app [ARG...], after a halt of the one before")
	out, err := os.Create(ts.MkAbs("app.out"))
	ts.Check(err)
	defer out.Close()
	errs, err := os.Create(ts.MkAbs("serve.err")) // where halt looks
	ts.Check(err)
	defer errs.Close()
	p := &process{cmd: exec.Command("hermes-mobile", append([]string{"app"}, args...)...), done: make(chan struct{})}
	p.cmd.Env, p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = environ(ts), ts.MkAbs("."), out, errs
	ts.Check(p.cmd.Start())
	go func() {
		defer close(p.done)
		p.err = p.cmd.Wait()
	}()
	s.server = p
	ts.Defer(func() {
		if s.server == p {
			_ = p.cmd.Process.Kill()
			<-p.done
		}
	})
	eventually(ts, "the page's address", func() bool {
		select {
		case <-p.done:
			ts.Fatalf("the app ended: %v\n%s", p.err, ts.ReadFile("serve.err"))
		default:
		}
		m := pageLine.FindStringSubmatch(ts.ReadFile("app.out"))
		if m != nil {
			ts.Setenv("PAGE", m[1])
		}
		return m != nil
	})
}

// cmdNowhere looks for a secret in everything that the script and its process left in plain: files of a folder, output, arguments.
func cmdNowhere(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) < 2, "nowhere SECRET PATH...")
	looked := 0
	look := func(where string, text []byte) {
		looked++
		for _, form := range []string{args[0], url.QueryEscape(args[0])} {
			if strings.Contains(string(text), form) {
				ts.Fatalf("the secret is in %s", where)
			}
		}
	}
	for _, root := range args[1:] {
		ts.Check(filepath.WalkDir(ts.MkAbs(root), func(path string, d os.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			text, err := os.ReadFile(path)
			look(path, text)
			return err
		}))
	}
	if p := of(ts).server; p != nil {
		if text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid), "cmdline")); err == nil {
			look("the process arguments", text)
		}
		if text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid), "environ")); err == nil {
			look("the process environment", text)
		}
	}
	if looked < 3 {
		ts.Fatalf("only %d places were looked at", looked)
	}
}

// cmdKeyed runs a command whose descriptor 3 has a key, as a host program would.
func cmdKeyed(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) < 2, "keyed KEY COMMAND [ARG...]")
	r, w, err := os.Pipe()
	ts.Check(err)
	defer r.Close()
	_, err = w.WriteString(args[0] + "\n")
	ts.Check(err)
	ts.Check(w.Close())
	cmd := exec.Command(args[1], args[2:]...)
	cmd.Env, cmd.Dir, cmd.ExtraFiles = environ(ts), ts.MkAbs("."), []*os.File{r}
	cmd.WaitDelay = patience
	text, err := cmd.CombinedOutput()
	ts.Check(os.WriteFile(ts.MkAbs("keyed.out"), text, 0o600))
	if err != nil {
		ts.Fatalf("%v\n%s", err, text)
	}
}
