package internal_test

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// partPackages are the packages whose files have an order. doc/architecture.md lists it under
// "Parts of PACKAGE": each file refers to files above it in the list. maxBackward is the share of
// references that may run the other way.
var partPackages = []struct {
	pkg         string
	maxBackward float64
}{
	{"internal/agent/relay", 0.10},
	{"internal/hub", 0.10},
	{"internal/server", 0.10},
}

// maxMethods bounds the methods of one type.
const maxMethods = 60

// TestParts keeps the order of files that doc/architecture.md draws, and the number of methods of
// each type.
func TestParts(t *testing.T) {
	text, err := os.ReadFile(filepath.FromSlash("../doc/architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range partPackages {
		t.Run(strings.TrimPrefix(p.pkg, "internal/"), func(t *testing.T) {
			order := fileOrder(string(text), p.pkg)
			if len(order) == 0 {
				t.Fatalf("doc/architecture.md has no list of files under \"Parts of `%s`\"", p.pkg)
			}
			pkg := parsePackage(t, filepath.FromSlash("../"+p.pkg))
			for _, complaint := range pkg.checkOrder(order, p.maxBackward) {
				t.Error(complaint)
			}
		})
	}
	for pkg := range ranks {
		for _, complaint := range parsePackage(t, filepath.FromSlash("../"+pkg)).checkMethods(maxMethods) {
			t.Errorf("%s: %s", pkg, complaint)
		}
	}
}

// fileOrder returns the files that the section of a package lists, each as `name.go` at the start
// of a list item or table row.
func fileOrder(doc, pkg string) (order []string) {
	_, section, found := strings.Cut(doc, "Parts of `"+pkg+"`\n")
	if !found {
		return nil
	}
	if i := strings.Index(section, "\n#"); i >= 0 {
		section = section[:i]
	}
	for _, line := range strings.Split(section, "\n") {
		if strings.HasPrefix(line, "| `") {
			cell, _, _ := strings.Cut(line[1:], "|")
			for _, m := range regexp.MustCompile("`([a-z0-9_]+\\.go)`").FindAllStringSubmatch(cell, -1) {
				order = append(order, m[1])
			}
		}
	}
	return order
}

// parsed is the files of one package without its tests.
type parsed struct {
	files map[string]*ast.File
	fset  *token.FileSet
	info  *types.Info
}

// parsePackage parses a package and resolves the identifiers that it declares. Imports need not
// resolve: a reference counts if its declaration is in the package.
func parsePackage(t *testing.T, dir string) *parsed {
	t.Helper()
	p := &parsed{files: map[string]*ast.File{}, fset: token.NewFileSet(), info: &types.Info{Uses: map[*ast.Ident]types.Object{}}}
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(p.fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		p.files[filepath.Base(name)] = f
		files = append(files, f)
	}
	conf := types.Config{Importer: noImports{importer.Default()}, Error: func(error) {}, FakeImportC: true}
	_, _ = conf.Check(dir, p.fset, files, p.info) // errors: types of imports are unknown
	return p
}

// noImports gives every import an empty package, so that nothing outside of the package is read.
type noImports struct{ types.Importer }

func (noImports) Import(path string) (*types.Package, error) {
	pkg := types.NewPackage(path, path[strings.LastIndexByte(path, '/')+1:])
	pkg.MarkComplete()
	return pkg, nil
}

// reference is a use of a declaration in another file.
type reference struct{ from, to string }

// references counts the references between files. Each pair of a file and a declaration counts
// once.
func (p *parsed) references() map[reference]int {
	type use struct {
		file string
		of   types.Object
	}
	seen, count := map[use]bool{}, map[reference]int{}
	for id, obj := range p.info.Uses {
		if obj == nil || !obj.Pos().IsValid() || local(obj) {
			continue
		}
		from, to := filepath.Base(p.fset.Position(id.Pos()).Filename), filepath.Base(p.fset.Position(obj.Pos()).Filename)
		if u := (use{from, obj}); from != to && !seen[u] {
			seen[u] = true
			count[reference{from, to}]++
		}
	}
	return count
}

// local reports whether an object is declared within a function.
func local(obj types.Object) bool {
	switch o := obj.(type) {
	case *types.Var:
		return !o.IsField() && (o.Parent() == nil || o.Parent() != o.Pkg().Scope())
	case *types.Func:
		return false
	}
	return obj.Parent() == nil || obj.Pkg() == nil || obj.Parent() != obj.Pkg().Scope()
}

// checkOrder returns what is against the order of files.
func (p *parsed) checkOrder(order []string, most float64) (bad []string) {
	for name := range p.files {
		if !slices.Contains(order, name) {
			bad = append(bad, fmt.Sprintf("%s is not listed: add it to the list in doc/architecture.md, below the files it refers to", name))
		}
	}
	for _, name := range order {
		if p.files[name] == nil {
			bad = append(bad, fmt.Sprintf("%s is listed in doc/architecture.md and does not exist", name))
		}
	}
	all, backward := 0, 0
	var worst []string
	for r, n := range p.references() {
		all += n
		if slices.Index(order, r.from) < slices.Index(order, r.to) {
			backward += n
			worst = append(worst, fmt.Sprintf("%s -> %s (%d)", r.from, r.to, n))
		}
	}
	if share := float64(backward) / float64(max(all, 1)); all < 10 || share > most {
		slices.Sort(worst)
		bad = append(bad, fmt.Sprintf("%d of %d references between files run backwards, at most %.0f%% may: %s", backward, all, most*100, strings.Join(worst, ", ")))
	}
	slices.Sort(bad)
	return bad
}

// checkMethods returns the types with too many methods.
func (p *parsed) checkMethods(most int) (bad []string) {
	count := map[string]int{}
	for _, f := range p.files {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv == nil {
				continue
			}
			recv := fn.Recv.List[0].Type
			if star, ok := recv.(*ast.StarExpr); ok {
				recv = star.X
			}
			if id, ok := recv.(*ast.Ident); ok {
				count[id.Name]++
			}
		}
	}
	for name, n := range count {
		if n > most {
			bad = append(bad, fmt.Sprintf("type %s has %d methods, at most %d may be: split it", name, n, most))
		}
	}
	slices.Sort(bad)
	return bad
}

// The test's own test: a reference upwards, an unlisted file, and a type with too many methods are
// found.
func TestPartsFindsOffences(t *testing.T) {
	dir := t.TempDir()
	var methods strings.Builder
	for i := range 12 {
		fmt.Fprintf(&methods, "func (b *Bottom) M%d() {}\n", i)
	}
	for name, text := range map[string]string{
		"bottom.go": "package x\ntype Bottom struct{ t *Top }\nfunc (b *Bottom) up() { b.t.M() }\n" + methods.String(),
		"top.go":    "package x\nimport \"fmt\"\ntype Top struct{ b Bottom }\nfunc (t *Top) M() { fmt.Println(t.b); t.b.M0(); t.b.M1(); t.b.M2(); t.b.M3(); t.b.M4(); t.b.M5(); t.b.M6(); t.b.M7(); t.b.M8(); t.b.M9() }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := parsePackage(t, dir)
	if refs := p.references(); refs[reference{"top.go", "bottom.go"}] != 11 || refs[reference{"bottom.go", "top.go"}] != 2 {
		t.Errorf("references %v", refs)
	}
	if bad := p.checkOrder([]string{"bottom.go", "top.go"}, 0.2); len(bad) > 0 {
		t.Errorf("complains about what is allowed: %q", bad)
	}
	if bad := p.checkOrder([]string{"bottom.go", "top.go"}, 0.1); len(bad) != 1 || !strings.Contains(bad[0], "2 of 13") {
		t.Errorf("complaints %q", bad)
	}
	if bad := p.checkOrder([]string{"top.go", "gone.go"}, 1); len(bad) != 2 {
		t.Errorf("complaints %q", bad)
	}
	if bad := p.checkMethods(12); len(bad) != 1 || !strings.Contains(bad[0], "Bottom has 13 methods") {
		t.Errorf("complaints %q", bad)
	}
	if got := fileOrder("## Parts of `internal/x`\n\n| file | what |\n| --- | --- |\n| `a.go`, `b.go` | see `c.go` |\n| `d.go` | |\n\n## Next\n| `e.go` | |\n", "internal/x"); !slices.Equal(got, []string{"a.go", "b.go", "d.go"}) {
		t.Errorf("order %q", got)
	}
}
