// Package internal_test holds the test of the import rule: it has no package of its own to test.
package internal_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "hermes-mobile"

// ranks is the table of doc/architecture.md, Packages: a package may import those of ours that stand lower, never one another.
// A package that comes anew is listed here and there, with a rank that lets its imports point downward only.
var ranks = map[string]int{
	"cmd/hermes-mobile": 6,

	"internal/app": 5, // has a server within itself

	"internal/server": 4,

	"internal/doctor": 3,

	"internal/hub":          3,
	"internal/notify":       2,
	"internal/agent/demo":   2,
	"internal/agent/direct": 2,
	"internal/agent/relay":  2,
	"internal/apiproxy":     2,
	"internal/passkey":      2,
	"internal/term":         2,
	"internal/setup":        2,
	"internal/connect":      2,

	"device":            1,
	"device/devicetest": 1, // a server for tests of apps
	"internal/access":   1,
	"internal/cert":     1,
	"internal/media":    1,
	"internal/push":     1,

	"internal/push/pushtest":       1, // a push service for tests
	"internal/passkey/passkeytest": 1, // an authenticator for tests
	"internal/store":               1,
	"internal/wsconn":              1,
	"internal/config":              1,
	"internal/web":                 1,
	"internal/vault":               1,
	"internal/atomicfile":          -2,
	"internal/connect/connecttest": 1, // a gateway for tests
	"sdk/ts/generate":              1,

	"frame":              0,
	"gateway":            0,
	"internal/audit":     0,
	"internal/agent":     0,
	"internal/metrics":   0,
	"internal/quota":     0,
	"internal/loglimit":  0,
	"internal/strangers": 0,
	"internal/neighbor":  0,

	"internal/ratelimit": -1,

	"internal/onetime":  0,
	"internal/passhash": 0, // of passwords and the admin token

	"internal/backoff": -1,
	"internal/dotenv":  -1,

	"internal/asowner":    -2,
	"internal/plaintext":  -2,
	"internal/shellquote": -2,
	"internal/onepass":    -1,
	"internal/sse":        -1,
	"internal/leak":       -1, // for tests
}

// frugal packages are taken along by others, so they import the standard library and what stands here only.
var frugal = map[string][]string{
	"frame":          {"github.com/go-json-experiment/json"},
	"gateway":        {"hermes-mobile/internal/backoff", "hermes-mobile/internal/onepass", "hermes-mobile/internal/sse"},
	"internal/agent": nil,

	"internal/backoff": nil,
	"internal/onepass": nil,
	"internal/sse":     nil,
}

// single libraries are spoken to by one package only, which can then be exchanged for another. Folders of tests aside.
var single = map[string]string{
	"modernc.org/sqlite":   "internal/store",
	"golang.org/x/crypto":  "internal/passhash",
	"golang.org/x/time":    "internal/ratelimit",
	"github.com/gobwas/ws": "internal/wsconn",

	"github.com/SherClockHolmes/webpush-go": "internal/push",
	"github.com/go-webauthn/webauthn":       "internal/passkey",

	"filippo.io/age":                "internal/vault",
	"github.com/zalando/go-keyring": "internal/vault",

	"github.com/caddyserver/certmagic": "internal/cert",
	"github.com/mholt/acmez":           "internal/cert",
	"go.uber.org/zap":                  "internal/cert",
}

// testFolders hold tests of the whole, which may import anything.
var testFolders = []string{"test/"}

// imported is one import of one file of ours.
type imported struct {
	file, pkg string // of ours, by its path in the module
	path      string
	test      bool // the file is a test
}

func (i imported) ours() (pkg string, ok bool) {
	if i.path == module {
		return ".", true
	}
	return strings.CutPrefix(i.path, module+"/")
}

// within reports whether path is the package or module root, or lies below it.
func within(path, root string) bool { return path == root || strings.HasPrefix(path, root+"/") }

func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".") && !within(path, module)
}

func TestImportRule(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	packages, imports, err := scan(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(packages) < 10 || len(imports) < 100 {
		t.Fatalf("only %d packages and %d imports were found below %s: the test looks in the wrong place", len(packages), len(imports), root)
	}
	for _, complaint := range check(packages, imports) {
		t.Error(complaint)
	}
}

// scan reads the imports of all Go files of the module. It parses them itself, with every build tag: go list would answer
// for one platform, and from the test cache.
func scan(root string) (packages map[string]bool, list []imported, err error) {
	packages = map[string]bool{}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if path != root && (name == "testdata" || name == "node_modules" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")) {
				return filepath.SkipDir
			}
			if _, err := os.Stat(filepath.Join(path, "go.mod")); path != root && err == nil {
				return filepath.SkipDir // another module
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		pkg, test := filepath.ToSlash(filepath.Dir(rel)), strings.HasSuffix(name, "_test.go")
		if slices.ContainsFunc(testFolders, func(f string) bool { return strings.HasPrefix(rel, f) }) {
			return nil
		}
		if !test {
			packages[pkg] = true
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			p, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			list = append(list, imported{file: rel, pkg: pkg, path: p, test: test})
		}
		return nil
	})
	return packages, list, err
}

// check returns what is against the rule, each with what to do about it.
func check(packages map[string]bool, imports []imported) []string {
	var bad []string
	complain := func(format string, args ...any) { bad = append(bad, fmt.Sprintf(format, args...)) }
	for pkg := range packages {
		if _, listed := ranks[pkg]; !listed {
			complain("package %s has no rank, so nothing keeps its imports one-way: add it to ranks in internal/imports_test.go and to the table of doc/architecture.md", pkg)
		}
	}
	for pkg := range ranks {
		if !packages[pkg] {
			complain("package %s is listed and gone: take it out of ranks in internal/imports_test.go, or the rule would name what nobody checks", pkg)
		}
	}
	for _, i := range imports {
		if to, ok := i.ours(); ok {
			checkOurs(i, to, complain)
		}
		if allowed, ok := frugal[i.pkg]; ok && !i.test && !standard(i.path) && !slices.ContainsFunc(allowed, func(a string) bool { return within(i.path, a) }) {
			complain("%s imports %s: package %s is taken along by every client, so it imports the standard library only (allowed besides: %v)", i.file, i.path, i.pkg, allowed)
		}
		for library, owner := range single {
			if within(i.path, library) && i.pkg != owner {
				complain("%s imports %s: only %s speaks to it, so that it can be exchanged in one place: ask that package for what is needed", i.file, i.path, owner)
			}
		}
	}
	slices.Sort(bad)
	return slices.Compact(bad)
}

func checkOurs(i imported, to string, complain func(string, ...any)) {
	from, known := ranks[i.pkg]
	rank, listed := ranks[to]
	switch {
	case !known || to == i.pkg:
	case !listed:
		complain("%s imports %s, which has no rank", i.file, to)
	case rank < from:
	case rank == from && i.test:
		// A test may use a neighbour as a fake of the other end.
	case rank == from:
		complain("%s imports %s, a neighbour of rank %d: packages of one rank meet in one above them, as interfaces of a package below (internal/agent)", i.file, to, rank)
	default:
		complain("%s (rank %d) imports %s (rank %d): imports point downward only. Move what is shared down, or pass it in as an interface", i.file, from, to, rank)
	}
}

// The rule's own test: each kind of offence is found, and what is allowed is not.
func TestImportRuleFindsOffences(t *testing.T) {
	all := func() map[string]bool {
		m := map[string]bool{}
		for p := range ranks {
			m[p] = true
		}
		return m
	}
	for _, tc := range []struct {
		name    string
		change  func(map[string]bool)
		imports []imported
		want    string // part of the only complaint; empty: none
	}{
		{name: "down", imports: []imported{{file: "internal/hub/x.go", pkg: "internal/hub", path: module + "/internal/store"}}},
		{name: "up", imports: []imported{{file: "internal/store/x.go", pkg: "internal/store", path: module + "/internal/hub"}}, want: "downward only"},
		{name: "up in a test", imports: []imported{{file: "internal/store/x_test.go", pkg: "internal/store", path: module + "/internal/hub", test: true}}, want: "downward only"},
		{name: "sideways", imports: []imported{{file: "internal/hub/x.go", pkg: "internal/hub", path: module + "/internal/doctor"}}, want: "neighbour"},
		{name: "sideways in a test", imports: []imported{{file: "internal/hub/x_test.go", pkg: "internal/hub", path: module + "/internal/doctor", test: true}}},
		{name: "external test of itself", imports: []imported{{file: "internal/hub/x_test.go", pkg: "internal/hub", path: module + "/internal/hub", test: true}}},
		{name: "unlisted", change: func(m map[string]bool) { m["internal/new"] = true }, want: "has no rank"},
		{name: "gone", change: func(m map[string]bool) { delete(m, "internal/hub") }, want: "gone"},
		{name: "frame and JSON", imports: []imported{{file: "frame/x.go", pkg: "frame", path: "github.com/go-json-experiment/json/jsontext"}}},
		{name: "frame and another", imports: []imported{{file: "frame/x.go", pkg: "frame", path: "github.com/rivo/uniseg"}}, want: "standard library only"},
		{name: "agent and JSON", imports: []imported{{file: "internal/agent/x.go", pkg: "internal/agent", path: "github.com/go-json-experiment/json"}}, want: "standard library only"},
		{name: "SQL elsewhere", imports: []imported{{file: "internal/hub/x_test.go", pkg: "internal/hub", path: "modernc.org/sqlite", test: true}}, want: "only internal/store"},
		{name: "sockets elsewhere", imports: []imported{{file: "internal/hub/x.go", pkg: "internal/hub", path: "github.com/gobwas/ws/wsutil"}}, want: "only internal/wsconn"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			packages := all()
			if tc.change != nil {
				tc.change(packages)
			}
			got := check(packages, tc.imports)
			switch {
			case tc.want == "" && len(got) > 0:
				t.Errorf("complains about what is allowed: %q", got)
			case tc.want != "" && (len(got) != 1 || !strings.Contains(got[0], tc.want)):
				t.Errorf("complaints %q, want one with %q", got, tc.want)
			}
		})
	}
}
