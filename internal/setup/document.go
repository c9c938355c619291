package setup

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"

	"hermes-mobile/internal/plaintext"
)

// Broken is the error for a config.yaml that setup does not touch, because Hermes can't read it.
type Broken struct {
	Line    int
	Problem string
	// Huge reports that the file is too large for setup, although Hermes may read it.
	Huge bool
}

// Error names the line, the problem, and the fix.
func (e *Broken) Error() string {
	if e.Huge {
		return fmt.Sprintf("config.yaml, line %d: %s (file unchanged): write the keys yourself", e.Line, e.Problem)
	}
	return fmt.Sprintf("config.yaml, line %d: %s (file unchanged): fix it first", e.Line, e.Problem)
}

// document is a parsed config.yaml: its lines, its tree for positions, and its values for
// comparing.
type document struct {
	bom      string
	lines    []string // each with its line end
	root     ast.Node // a map; nil if the file has at most comments
	end      int      // lines from here on are past the document
	value    any      // in the order of the file, including duplicate keys
	comments []string
	step     int // indent per level, in spaces
}

// parse reads a config.yaml.
func parse(text []byte) (d *document, err error) {
	defer func() {
		if r := recover(); r != nil { // the library panics on some files, which must not look like a bug of setup
			d, err = nil, &Broken{Line: 1, Problem: fmt.Sprintf("unreadable: %v", r)}
		}
	}()
	if i := firstInvalid(text); i >= 0 {
		return nil, &Broken{Line: 1 + bytes.Count(text[:i], []byte("\n")), Problem: "a byte that is not UTF-8, or a NUL"}
	}
	d = &document{step: 2}
	rest, marked := strings.CutPrefix(string(text), plaintext.BOM)
	if marked {
		d.bom = plaintext.BOM
	}
	d.lines = slices.Collect(strings.Lines(rest))
	d.end = len(d.lines)
	// The parser gets line breaks of the form "\n". The stored lines keep their own.
	plain := strings.ReplaceAll(rest, "\r\n", "\n")
	if i := strings.IndexByte(plain, '\r'); i >= 0 {
		return nil, &Broken{Line: 1 + strings.Count(plain[:i], "\n"), Problem: "a carriage return inside a line"}
	}
	file, err := parseTokens(plain)
	if err != nil {
		return nil, broken(err)
	}
	seen := false
	for _, doc := range file.Docs {
		switch doc.Body.(type) {
		case *ast.DirectiveNode:
			continue
		case nil, *ast.CommentGroupNode:
			if doc.Start == nil {
				continue
			}
		}
		if seen {
			return nil, &Broken{Line: docLine(doc), Problem: "a second document begins, which Hermes can't read"}
		}
		seen, d.root = true, doc.Body
		if doc.End != nil {
			d.end = doc.End.Position.Line - 1
		}
	}
	if err := d.checkRoot(); err != nil {
		return nil, err
	}
	if d.root != nil {
		v := &values{anchors: map[string]ast.Node{}}
		if d.value, err = v.of(d.root, 0); err != nil {
			return nil, broken(err)
		}
	}
	for _, t := range lexer.Tokenize(plain) {
		if t.Type == token.CommentType {
			d.comments = append(d.comments, t.Value)
		}
	}
	d.learnStep()
	return d, nil
}

func docLine(doc *ast.DocumentNode) int {
	switch {
	case doc.Start != nil:
		return doc.Start.Position.Line
	case doc.Body != nil:
		return doc.Body.GetToken().Position.Line
	}
	return 1
}

func firstInvalid(text []byte) int {
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		if r == 0 || r == utf8.RuneError && n <= 1 {
			return i
		}
		i += n
	}
	return -1
}

// broken takes the position and the reason from the library's error, whose own text quotes the
// file, including secrets.
func broken(err error) error {
	if own := (*Broken)(nil); errors.As(err, &own) {
		return own
	}
	b := &Broken{Line: 1, Problem: "invalid YAML: " + err.Error()}
	if e := yaml.Error(nil); errors.As(err, &e) {
		b.Problem = "invalid YAML: " + e.GetMessage()
		if t := e.GetToken(); t != nil && t.Position != nil {
			b.Line = t.Position.Line
		}
	}
	return b
}

// checkRoot checks that the top level is a map or empty.
func (d *document) checkRoot() error {
	switch n := bare(d.root).(type) {
	case nil:
		d.root = nil
	case *ast.MappingNode, *ast.MappingValueNode:
	case *ast.CommentGroupNode:
		d.root = nil
	case *ast.NullNode:
		if at := n.GetToken().Position; at.Line <= len(d.lines) && strings.Trim(d.lines[at.Line-1], "- \r\n\t") != "" {
			return &Broken{Line: at.Line, Problem: "the top level is no map of keys"}
		}
		d.root = nil
	default:
		return &Broken{Line: n.GetToken().Position.Line, Problem: "the top level is no map of keys"}
	}
	return nil
}

// learnStep detects the file's indentation.
func (d *document) learnStep() {
	entries, flow := entriesOf(d.root)
	if flow {
		return
	}
	for _, e := range entries {
		below, flow := entriesOf(e.Value)
		if len(below) == 0 || flow {
			continue
		}
		if step := column(below[0]) - column(e); step > 0 && step < 9 {
			d.step = step
			return
		}
	}
}

// bytes joins the lines.
func (d *document) bytes(lines []string) []byte { return []byte(d.bom + strings.Join(lines, "")) }

// eol returns the line break of the file's first line, which new lines get as well.
func (d *document) eol() string {
	if len(d.lines) > 0 && strings.HasSuffix(d.lines[0], "\r\n") {
		return "\r\n"
	}
	return "\n"
}

// bare returns a node without its anchor and tag.
func bare(n ast.Node) ast.Node {
	for {
		switch x := n.(type) {
		case *ast.AnchorNode:
			n = x.Value
		case *ast.TagNode:
			n = x.Value
		default:
			return n
		}
	}
}

// entriesOf returns the entries of a mapping, and whether it is written in braces.
func entriesOf(n ast.Node) (list []*ast.MappingValueNode, flow bool) {
	switch x := bare(n).(type) {
	case *ast.MappingNode:
		return x.Values, x.IsFlowStyle
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{x}, x.IsFlowStyle
	}
	return nil, false
}

func isMapping(n ast.Node) bool {
	switch bare(n).(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return true
	}
	return false
}

// name returns the key of an entry. It is "" for merged and explicit ("? …") keys, which are never
// ours.
func name(e *ast.MappingValueNode) string {
	if _, ok := e.Key.(*ast.StringNode); !ok {
		return ""
	}
	return e.Key.GetToken().Value
}

// find returns the effective entry of a key and its index. As in Hermes, the last of several
// duplicate keys counts.
func find(list []*ast.MappingValueNode, key string) (int, *ast.MappingValueNode) {
	for i, e := range slices.Backward(list) {
		if name(e) == key {
			return i, e
		}
	}
	return -1, nil
}

func line(e *ast.MappingValueNode) int   { return e.Key.GetToken().Position.Line }
func column(e *ast.MappingValueNode) int { return e.Key.GetToken().Position.Column }

// at returns the byte offset of a column, which counts characters from 1.
func at(text string, column int) int {
	for i := range text {
		if column--; column == 0 {
			return i
		}
	}
	return len(text)
}
