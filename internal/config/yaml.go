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

// configName is the file in the data folder.
const configName = "hermes-mobile.yaml"

// readConfigFile reads the file given with --config, or the one in the data
// folder, as the other places name that. A "data" key in the file moves the
// folder and does not make Load read another file there.
func (l *loader) readConfigFile() {
	file, asked := l.path(l.src.ConfigFile), l.src.ConfigFile != ""
	if !asked {
		dir := l.dataFolder()
		if dir == "" {
			return
		}
		file = filepath.Join(dir, configName)
	}
	read := os.ReadFile // one that is asked for may be a pipe
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
		// The library's own text quotes the file around the error, secrets and all.
		line, message := 1, "cannot be read"
		if e := yaml.Error(nil); errors.As(err, &e) {
			message = e.GetMessage()
			if t := e.GetToken(); t != nil && t.Position != nil {
				line = t.Position.Line
			}
		}
		l.errs = append(l.errs, fmt.Errorf("%s, line %d: not valid YAML: %s (a value with a sign such as * or @ in front goes in quotes)", l.short(file), line, message))
		return
	}
	y := &yamlReader{loader: l, file: file}
	bodies := 0
	for _, doc := range tree.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.NullType || doc.Body.Type() == ast.CommentType {
			continue
		}
		if bodies++; bodies > 1 {
			y.wrong(doc.Body, "a second document after ---: keep all settings in one")
			continue
		}
		y.settings(doc.Body)
	}
	if y.secrets || len(l.errs) > before {
		l.checkMode(file) // a file with errors may hold secrets that were not reached
	}
}

// A yamlReader turns the tree of hermes-mobile.yaml into values.
type yamlReader struct {
	*loader
	file    string
	secrets bool // one was seen
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

// wrong notes a part of the file that has the wrong shape.
func (y *yamlReader) wrong(n ast.Node, format string, args ...any) {
	y.errs = append(y.errs, fmt.Errorf("%s, line %d: %s", y.short(y.file), lineOf(n), fmt.Sprintf(format, args...)))
}

func (y *yamlReader) settings(body ast.Node) {
	entries, ok := pairs(body)
	if !ok {
		y.wrong(body, `not a list of "key: value"`)
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

// text returns a scalar as it is written, or a list of them with commas between.
func (y *yamlReader) text(name string, n ast.Node) (string, bool) {
	if seq, ok := n.(*ast.SequenceNode); ok {
		var items []string
		for _, item := range seq.Values {
			s, ok := scalar(item)
			if !ok || strings.Contains(s, ",") {
				y.wrong(item, "%s: an item of the list is not a plain word without a comma", name)
				return "", false
			}
			items = append(items, s)
		}
		return strings.Join(items, ","), true
	}
	s, ok := scalar(n)
	if !ok {
		y.wrong(n, "%s: not a plain value: give one word or number, in quotes if need be", name)
	}
	return s, ok
}

// scalar returns a plain value as it is written: 0042 stays 0042, which matters
// for tokens that look like numbers.
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
	case *ast.MappingValueNode: // a mapping of one entry, in some versions of the library
		return []*ast.MappingValueNode{n}, true
	}
	return nil, false
}
