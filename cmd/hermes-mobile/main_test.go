package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"hermes-mobile/internal/leak"
)

// The test binary is the command itself: "hermes-mobile" in a script runs main.
func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "6") // scripts wait for servers more than they compute
	testscript.Main(m, map[string]func(){"hermes-mobile": main})
}

// TestScripts runs testdata/*.txtar. Beside what testscript has, they use
//
//	serve [ARG...]               start a server on a port of its own; its output goes to serve.out and serve.err, its address to $ADDR
//	halt [KILL]                  end it: by SIGTERM it must end with status 0 within ten seconds
//	hup                          send it SIGHUP
//	dev NAME WHAT [ARG...]       be a device (device_test.go)
//	exits STATUS COMMAND...      run a command that must end with this status
//	json FILE [PATH=VALUE...]    the file, or stdout, is one JSON value that has these values (check_test.go)
//	capture NAME FILE REGEXP     set $NAME to the expression's group
//	await REGEXP FILE            wait until the file has it
//	until REGEXP COMMAND...      run a command, which must work, until it prints this
//	mode PERM FILE               the file has this mode
//	qr FILE TEXT                 the file has a QR code of the text, drawn so that a camera reads it
//	gateway TOKEN                a Hermes gateway that wants a token; its address is $GATEWAY
//	app [ARG...]                 start the app; its output goes to app.out, the page's address to $PAGE. halt ends it
//	keyed KEY COMMAND [ARG...]   run a command whose descriptor 3 has a key; its output goes to keyed.out
//	nowhere SECRET PATH...       the secret stands in no file there, and in no argument of what runs
//	visit LINK                   open a link to the admin UI as a browser does; where it ends and how far it gets goes to stdout
//	occupy NAME                  listen on a port of this machine and set $NAME to it
//
// ("stop" is testscript's own word for the end of the script.)
func TestScripts(t *testing.T) {
	t.Cleanup(func() { leak.None(t) })
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(e *testscript.Env) error {
			// A short path, for the admin socket's sake.
			e.Setenv("DATA", filepath.Join(e.WorkDir, "d"))
			e.Setenv("MOBILE_DATA", filepath.Join(e.WorkDir, "d"))
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("MOBILE_PUSH", "off") // on without a contact, it is an issue
			s := &script{devices: map[string]*phone{}}
			e.Values[scriptKey{}] = s
			return os.MkdirAll(filepath.Join(e.WorkDir, "home"), 0o700)
		},
		Condition: func(cond string) (bool, error) { return cond == "root" && os.Geteuid() == 0, nil },
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"serve": cmdServe, "halt": cmdHalt, "hup": cmdHup, "dev": cmdDevice, "exits": cmdExits, "json": cmdJSON,
			"capture": cmdCapture, "await": cmdAwait, "until": cmdUntil, "mode": cmdMode, "qr": cmdQR, "occupy": cmdOccupy,
			"gateway": cmdGateway, "app": cmdApp, "nowhere": cmdNowhere, "visit": cmdVisit, "keyed": cmdKeyed,
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// script is what one script has running.
type script struct {
	server  *process
	devices map[string]*phone
}

type scriptKey struct{}

func of(ts *testscript.TestScript) *script { return ts.Value(scriptKey{}).(*script) }

// usage ends a script that calls a command wrongly.
func usage(ts *testscript.TestScript, neg, wrong bool, form string) {
	if neg || wrong {
		ts.Fatalf("usage: %s", strings.TrimSpace(form))
	}
}
