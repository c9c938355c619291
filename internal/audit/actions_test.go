package audit

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// fileName matches names of files, which look like actions.
var fileName = regexp.MustCompile(`\.(sock|html|log)$`)

var dotted = regexp.MustCompile(`^[a-z_]+\.[a-z_]+$`)

func TestActions(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range Actions() {
		if !dotted.MatchString(a.Name) || a.Meaning == "" || seen[a.Name] {
			t.Errorf("%+v is no action of its own with a dotted name and a meaning", a)
		}
		seen[a.Name] = true
		if !Known(a.Name) {
			t.Errorf("%s is not known", a.Name)
		}
	}
	if Known("") || Known("device.*") {
		t.Error("something else is known")
	}
	Actions()[0].Name = "changed"
	if !Known("pair.code") {
		t.Error("a caller can change the table")
	}
}

// Every action that the program records is in the table, and every action of the table is recorded
// somewhere.
func TestActionsAreThoseOfTheProgram(t *testing.T) {
	kinds := map[string]bool{}
	for _, a := range Actions() {
		kind, _, _ := strings.Cut(a.Name, ".")
		kinds[kind] = true
	}
	used := map[string]bool{"backup.restored": false}
	for _, root := range []string{"../../internal", "../../cmd"} {
		err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || filepath.Base(path) == "actions.go" {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			store := filepath.Base(filepath.Dir(path)) == "store" // where statements have such names
			ast.Inspect(file, func(n ast.Node) bool {
				lit, is := n.(*ast.BasicLit)
				if !is || lit.Kind != token.STRING {
					return true
				}
				name, err := strconv.Unquote(lit.Value)
				kind, _, _ := strings.Cut(name, ".")
				switch {
				case err != nil:
					t.Error(err)
				case store && strings.Contains(name, "'backup.restored'"):
					used["backup.restored"] = true
				case !store && kinds[kind] && dotted.MatchString(name) && !fileName.MatchString(name):
					used[name] = true
					if !Known(name) {
						t.Errorf("%s records %s, which is not in the table of internal/audit/actions.go", path, name)
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, a := range Actions() {
		if !used[a.Name] {
			t.Errorf("nothing records %s", a.Name)
		}
	}
}
