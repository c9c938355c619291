package frame

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strconv"
	"testing"
)

// TestEveryFieldIsKnown: what a decoder reads is kept when a frame is parsed, and what is kept some decoder reads. A field that is only
// in one of the two would be dropped without a word.
func TestEveryFieldIsKnown(t *testing.T) {
	read := map[string]bool{}
	file, err := parser.ParseFile(token.NewFileSet(), "decode.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		call, is := n.(*ast.CallExpr)
		if !is || len(call.Args) == 0 {
			return true
		}
		if method, is := call.Fun.(*ast.SelectorExpr); is {
			if of, is := method.X.(*ast.Ident); !is || !slices.Contains([]string{"o", "device", "user", "c"}, of.Name) {
				return true
			}
			if lit, is := call.Args[0].(*ast.BasicLit); is && lit.Kind == token.STRING {
				name, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatal(err)
				}
				read[name] = true
			}
		}
		return true
	})
	if len(read) < 25 {
		t.Fatalf("only %d reads were found", len(read))
	}
	for name := range read {
		if !known[name] {
			t.Errorf("%q is read, and dropped when a frame is parsed: it needs a field in up.go", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		down := name == "final" || name == "source" || name == "url" // Media goes both ways, and these come from a server
		if !read[name] && !down {
			t.Errorf("%q is a field of up.go that no decoder reads", name)
		}
	}
}
