package chaos

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const seamPackage = "hermes-mobile/test/chaos/seam"

// build builds programs of ours into a folder. They are what is delivered, but that they ask the seam for the time and flush
// through it.
func build(dir string, programs ...string) error {
	list := exec.Command("go", append([]string{"list", "-deps", "-f", `{{if .Module}}{{if .Module.Main}}{{$d := .Dir}}{{range .GoFiles}}{{$d}}/{{.}}
{{end}}{{end}}{{end}}`}, programs...)...)
	list.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := list.Output()
	if err != nil {
		return fmt.Errorf("list what the programs are made of: %w", err)
	}
	replace, commits := map[string]string{}, 0
	for _, path := range strings.Fields(string(out)) {
		changed, err := throughSeam(path)
		if err != nil {
			return err
		}
		if changed == nil {
			continue
		}
		commits += bytes.Count(changed, []byte("seam.Commit("))
		copied := filepath.Join(dir, strconv.Itoa(len(replace))+".go")
		if err := os.WriteFile(copied, changed, 0o600); err != nil {
			return err
		}
		replace[path] = copied
	}
	if commits == 0 {
		return errors.New("the store commits in a way that this does not know: the disk would never be slow")
	}
	overlay := filepath.Join(dir, "overlay.json")
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	if err := os.WriteFile(overlay, b, 0o600); err != nil {
		return err
	}
	cmd := exec.Command("go", append([]string{"build", "-overlay", overlay, "-o", dir + string(filepath.Separator)}, programs...)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %v: %w\n%s", programs, err, out)
	}
	return nil
}

// throughSeam returns a file with its calls led through the seam, nil where it has none. Its lines stay where they are.
func throughSeam(path string) ([]byte, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, src, 0)
	if err != nil {
		return nil, err
	}
	type edit struct {
		from, to int
		text     string
	}
	var edits []edit
	at := func(p token.Pos) int { return set.Position(p).Offset }
	timed := false
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if pkg, ok := n.X.(*ast.Ident); ok && pkg.Name == "time" && slices.Contains([]string{"Now", "Since", "Until"}, n.Sel.Name) {
				edits, timed = append(edits, edit{at(n.Pos()), at(n.End()), "seam." + n.Sel.Name}), true
			}
		case *ast.CallExpr:
			whole := string(src[at(n.Pos()):at(n.End())])
			switch f, ok := n.Fun.(*ast.SelectorExpr); {
			case ok && f.Sel.Name == "Sync" && len(n.Args) == 0:
				edits = append(edits, edit{at(n.Pos()), at(n.End()), "seam.Sync(" + string(src[at(f.X.Pos()):at(f.X.End())]) + ")"})
			case ok && f.Sel.Name == "must" && strings.HasSuffix(whole, `("commit")`):
				edits = append(edits, edit{at(n.Pos()), at(n.End()), "seam.Commit(" + whole + ")"})
			}
		}
		return true
	})
	if len(edits) == 0 {
		return nil, nil
	}
	edits = append(edits, edit{at(file.Name.End()), at(file.Name.End()), "; import " + strconv.Quote(seamPackage)})
	slices.SortFunc(edits, func(a, b edit) int { return a.from - b.from })
	var b bytes.Buffer
	last := 0
	for _, e := range edits {
		b.Write(src[last:e.from])
		b.WriteString(e.text)
		last = e.to
	}
	b.Write(src[last:])
	if timed {
		b.WriteString("\nvar _ time.Duration // it may be used for nothing else\n")
	}
	return b.Bytes(), nil
}
