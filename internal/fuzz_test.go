package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// decoders lists what reads bytes that somebody else wrote, with the fuzz target that reads anything at all with it. What is read with
// encoding/json or a library alone stands here, too, where something is made of it.
var decoders = map[string]string{
	"frames of devices":                     "frame.FuzzDecodeUp",
	"frames of the server, by devices":      "frame.FuzzDecodeDown",
	"depth of frames":                       "frame.FuzzTooDeep",
	"texts that a person decides on":        "frame.FuzzVisible",
	"WebSocket frames":                      "wsconn.FuzzFrames",
	"sockets of this machine":               "neighbor.FuzzParse",
	"WebSocket frames between rests":        "wsconn.FuzzRest",
	"lines of a relay gateway":              "relay.FuzzFrame",
	"bearers of a relay gateway":            "relay.FuzzBearer",
	"stored cards of a relay gateway":       "relay.FuzzCardState",
	"events of the API server":              "sse.FuzzReader",
	"a session's stream":                    "gateway.FuzzDecodeSession",
	"a run's stream":                        "gateway.FuzzDecodeRun",
	"pieces of text, read in one pass":      "gateway.FuzzDelta",
	"a completion's stream":                 "gateway.FuzzDecodeCompletions",
	"a response's stream":                   "gateway.FuzzDecodeResponses",
	"cookies of a gateway":                  "gateway.FuzzSetCookie",
	"profiles":                              "gateway.FuzzParseProfile",
	"messages of the kernel on addresses":   "gateway.FuzzNetlink",
	"the settings' file":                    "config.FuzzConfigFile",
	"Hermes' .env, for settings":            "dotenv.FuzzParse",
	"Hermes' .env, to be changed":           "setup.FuzzSetenv",
	"Hermes' config.yaml":                   "setup.FuzzEdit",
	"Hermes' version":                       "setup.FuzzVersion",
	"Hermes' pairing files":                 "access.FuzzPairingFile",
	"token lists and files":                 "access.FuzzTokens",
	"forwarding headers":                    "access.FuzzClient",
	"origins":                               "access.FuzzOrigins",
	"tokens of notifications' buttons":      "notify.FuzzAction",
	"texts for notifications":               "notify.FuzzText",
	"texts in pieces":                       "hub.FuzzChunks",
	"registrations for notifications":       "push.FuzzTarget",
	"addresses of push services":            "push.FuzzPublic",
	"parts of files":                        "media.FuzzAssembler",
	"kinds of files":                        "media.FuzzCorrect",
	"names of files":                        "media.FuzzCleanName",
	"names of files in headers":             "media.FuzzDisposition",
	"links to files":                        "media.FuzzVerify",
	"links that are made":                   "media.FuzzSign",
	"Markdown on a terminal":                "term.FuzzMarkdown",
	"objects for the API server":            "apiproxy.FuzzFields",
	"stored passwords":                      "passhash.FuzzParse",
	"answers of passkeys":                   "passkey.FuzzAnswer",
	"paths of the API":                      "apiproxy.FuzzPath",
	"answers of the API server":             "apiproxy.FuzzShown",
	"the vault":                             "vault.FuzzVault",
	"a device's own folder":                 "device.FuzzFileStore",
	"the kernel's list of ports, by doctor": "doctor.FuzzCollides",
}

// Every decoder has its fuzz target, every target stands in the list, and none begins with nothing: an empty corpus tests nothing where only
// the seeds are run.
func TestFuzzTargets(t *testing.T) {
	found := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && path != "..") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			f, is := decl.(*ast.FuncDecl)
			if !is || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Fuzz") {
				continue
			}
			name := strings.TrimSuffix(file.Name.Name, "_test") + "." + f.Name.Name
			found[name] = true
			if !seeded(f) {
				t.Errorf("%s has no seeds: f.Add what is right and what is nearly right", name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for what, target := range decoders {
		listed[target] = true
		if !found[target] {
			t.Errorf("%s: there is no target %s", what, target)
		}
	}
	for target := range found {
		if !listed[target] {
			t.Errorf("%s is not in the list of decoders", target)
		}
	}
}

// seeded reports whether a target adds seeds, by itself or by a function that is given the target.
func seeded(f *ast.FuncDecl) (yes bool) {
	ast.Inspect(f.Body, func(n ast.Node) bool {
		call, is := n.(*ast.CallExpr)
		if !is {
			return true
		}
		if sel, is := call.Fun.(*ast.SelectorExpr); is && sel.Sel.Name == "Add" {
			yes = true
		}
		for _, arg := range call.Args {
			if id, is := arg.(*ast.Ident); is && id.Name == f.Type.Params.List[0].Names[0].Name {
				yes = true
			}
		}
		return true
	})
	return yes
}
