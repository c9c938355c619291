package gateway

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// unproven are the paths that the client asks before it knows the capabilities.
var unproven = []string{"/health", "/v1/capabilities", "/v1/models", "/api/auth/providers", "/auth/password-login", "/auth/logout"}

// TestEveryCallIsInTheTable: everything that this package calls is an operation of the table or one
// of the few paths before the capabilities. A path or an operation anywhere else in the sources
// fails the test.
func TestEveryCallIsInTheTable(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, name := range unproven {
		used[name] = false
	}
	for _, entry := range files {
		name := entry.Name()
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || name == "operations.go" {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			lit, is := n.(*ast.BasicLit)
			if !is || lit.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := operations[text]; ok {
				used[text] = true
			}
			if !strings.HasPrefix(text, "/v1/") && !strings.HasPrefix(text, "/api/") && !strings.HasPrefix(text, "/auth/") && !strings.HasPrefix(text, "/health") {
				return true
			}
			_, before := used[text]
			if !before && name != "models.go" { // the assumed capabilities of servers that send none
				t.Errorf("%s has the path %s: an operation belongs into the table of operations.go", name, text)
			}
			if before {
				used[text] = true
			}
			return true
		})
	}
	for name := range operations {
		if !used[name] {
			t.Errorf("the operation %s is in the table and never called", name)
		}
	}
	for _, path := range unproven {
		if !used[path] {
			t.Errorf("the path %s is never asked", path)
		}
	}
}

// TestTableOfOperations: the table in doc/gateway.md matches what the recorded versions advertise,
// with their paths.
func TestTableOfOperations(t *testing.T) {
	var table strings.Builder
	fmt.Fprintf(&table, "| operation | route | feature | %s |\n|---|---|---|---|---|\n", strings.Join(versions, " | "))
	for _, name := range slices.Sorted(maps.Keys(operations)) {
		op := operations[name]
		fmt.Fprintf(&table, "| `%s` | ", name)
		if op.path == "" {
			fmt.Fprint(&table, "as advertised | ")
		} else {
			fmt.Fprintf(&table, "`%s %s` | ", op.method, op.path)
		}
		if op.feature != "" {
			fmt.Fprintf(&table, "`%s`", op.feature)
		}
		fmt.Fprint(&table, " |")
		for _, version := range versions {
			caps, err := parseCapabilities(recordedAnswers()[version]["capabilities"].Body)
			if err != nil {
				t.Fatal(err)
			}
			e, err := caps.endpoint(name)
			switch {
			case err != nil && slices.Contains(jobOperations, name):
				fmt.Fprint(&table, " there, not advertised |")
			case err != nil:
				fmt.Fprint(&table, " no |")
			case e.Method != op.method || e.Path != op.path:
				t.Errorf("%s: %s is advertised as %s %s", version, name, e.Method, e.Path)
			case op.feature != "" && !caps.Feature(op.feature):
				t.Errorf("%s: %s is advertised, and its feature %s is not", version, name, op.feature)
			default:
				fmt.Fprint(&table, " yes |")
			}
		}
		fmt.Fprintln(&table)
	}
	const path, begin, end = "../doc/gateway.md", "<!-- table: operations -->\n", "<!-- end -->"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	was, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("doc/gateway.md has no table of operations")
	}
	if *update {
		if err := os.WriteFile(path, []byte(before+begin+table.String()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if was != table.String() {
		t.Error("the table of operations in doc/gateway.md is not what is called: go test ./gateway -run TestTableOfOperations -update")
	}
}

// TestAdvertisedOtherwise: the client does not call an operation with an unexpected method, or
// whose feature is off.
func TestAdvertisedOtherwise(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(operations)) {
		op := operations[name]
		path := op.path
		if path == "" {
			path = "/x/{query}"
		}
		other := http.MethodPut
		for _, c := range []struct {
			method, features string
			there            bool
		}{
			{op.method, `{}`, true}, {op.method, `{"` + op.feature + `":true}`, true}, {op.method, `{"` + op.feature + `":{"supported":true}}`, true}, {other, `{"` + op.feature + `":true}`, false},
			{op.method, `{"` + op.feature + `":false}`, op.feature == ""}, {op.method, `{"` + op.feature + `":null}`, op.feature == ""}, {op.method, `{"` + op.feature + `":{"supported":false}}`, op.feature == ""},
		} {
			caps, err := parseCapabilities([]byte(`{"features":` + c.features + `,"endpoints":{"` + name + `":{"method":"` + c.method + `","path":"` + path + `"}}}`))
			if err != nil {
				t.Fatal(err)
			}
			if caps.Offers(name) != c.there {
				t.Errorf("%s advertised with %s and %s: offered is %t", name, c.method, c.features, !c.there)
			}
		}
	}
}
