package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"hermes-mobile/internal/asowner"
	"hermes-mobile/internal/plaintext"
)

// configName is the name of the settings file in the data folder.
const configName = "hermes-mobile.yaml"

// readConfigFile reads the file from --config, or the one in the data folder that the other places name. A
// "data" key in the file changes the folder, but Load does not read a second file there.
func (l *loader) readConfigFile() {
	file, asked := l.path(l.src.ConfigFile), l.src.ConfigFile != ""
	if !asked {
		dir := l.dataFolder()
		if dir == "" {
			return
		}
		file = filepath.Join(dir, configName)
	}
	read := os.ReadFile // a file from --config may be a pipe
	if !asked {
		read = func(file string) ([]byte, error) {
			text, _, err := asowner.ReadFile(file, maxFile)
			return text, err
		}
	}
	text, err := read(file)
	if errors.Is(err, os.ErrNotExist) && !asked {
		return
	}
	if err != nil {
		l.unreadable(file, err)
		return
	}
	if text, err = plaintext.Trim(text); err != nil {
		l.unreadable(file, err)
		return
	}
	before := len(l.errs)
	tree, err := parser.ParseBytes(text, 0)
	if err != nil {
		// The library's own text quotes the lines around the error, including secrets.
		line, message := 1, "cannot be read"
		if e := yaml.Error(nil); errors.As(err, &e) {
			message = e.GetMessage()
			if t := e.GetToken(); t != nil && t.Position != nil {
				line = t.Position.Line
			}
		}
		l.errs = append(l.errs, fmt.Errorf("%s, line %d: invalid YAML: %s (quote a value that starts with a character such as * or @)", l.short(file), line, message))
		return
	}
	y := &yamlReader{loader: l, file: file}
	bodies := 0
	for _, doc := range tree.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.NullType || doc.Body.Type() == ast.CommentType {
			continue
		}
		if bodies++; bodies > 1 {
			y.wrong(doc.Body, "second document after ---: use one document for all settings")
			continue
		}
		y.settings(doc.Body)
	}
	if y.secrets || len(l.errs) > before {
		l.checkMode(file) // a file with errors may contain secrets that the reader did not reach
	}
}

// yamlReader converts the tree of hermes-mobile.yaml to values.
type yamlReader struct {
	*loader
	file    string
	secrets bool // found one
}

func (y *yamlReader) where(n ast.Node) string {
	return y.at(y.file, lineOf(n))
}

func lineOf(n ast.Node) int {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 1
}

// wrong records a part of the file with the wrong type.
func (y *yamlReader) wrong(n ast.Node, format string, args ...any) {
	y.errs = append(y.errs, fmt.Errorf("%s, line %d: %s", y.short(y.file), lineOf(n), fmt.Sprintf(format, args...)))
}

func (y *yamlReader) settings(body ast.Node) {
	entries, ok := pairs(body)
	if !ok {
		y.wrong(body, `expected lines of the form "key: value"`)
		return
	}
	for _, e := range entries {
		name := e.Key.GetToken().Value
		i := slices.IndexFunc(table, func(k Key) bool { return name != "" && k.YAML() == name })
		switch {
		case i < 0:
			y.unknown(quoteOdd(name), y.where(e.Key), name, names(Key.YAML), "")
		case table[i].Kind == Entries:
			y.readGateways(e.Value)
		default:
			k := table[i]
			text, ok := y.text(name, e.Value)
			if !ok {
				continue
			}
			y.secrets = y.secrets || k.Secret() && text != ""
			y.put(k.Name, value{text: text, key: name, where: y.where(e.Key), place: inYAML})
		}
	}
}

// text returns a scalar as written, or a list of scalars joined with commas.
func (y *yamlReader) text(name string, n ast.Node) (string, bool) {
	if seq, ok := n.(*ast.SequenceNode); ok {
		var items []string
		for _, item := range seq.Values {
			s, ok := scalar(item)
			if !ok || strings.Contains(s, ",") {
				y.wrong(item, "%s: list items must be plain values without commas", name)
				return "", false
			}
			items = append(items, s)
		}
		return strings.Join(items, ","), true
	}
	s, ok := scalar(n)
	if !ok {
		y.wrong(n, "%s: expected a plain value: use one word or number, in quotes if needed", name)
	}
	return s, ok
}

// scalar returns a plain value as written. 0042 stays 0042, which matters for tokens that look like
// numbers.
func scalar(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case nil:
		return "", true
	case *ast.NullNode:
		return "", true
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, true
	}
	return "", false
}

// pairs returns the entries of a mapping.
func pairs(n ast.Node) ([]*ast.MappingValueNode, bool) {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values, true
	case *ast.MappingValueNode: // some versions of the library return a mapping of one entry this way
		return []*ast.MappingValueNode{n}, true
	}
	return nil, false
}
