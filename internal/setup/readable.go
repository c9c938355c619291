package setup

import (
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
)

// readable returns an error if Hermes rejects a config.yaml that our own parser accepts. Hermes
// then continues with its defaults, so setup must not write to such a file. Hermes reads YAML 1.1:
// 0.19 with PyYAML, 0.22 with ruamel.yaml. The two are strict in different places. If the version
// is unknown, strict applies the rules of both.
func (d *document) readable(v Version, strict bool) error {
	c := &checker{older: v.known() && v.less(newer) || !v.known() && strict, newer: v.known() && !v.less(newer) || !v.known() && strict, anchors: map[string]ast.Node{}}
	switch {
	case v.known():
		c.who = "Hermes " + v.String()
	case strict:
		c.who = "Hermes 0.19 or 0.22"
	default:
		c.who = "Hermes"
	}
	text := strings.ReplaceAll(strings.Join(d.lines, ""), "\r\n", "\n")
	c.signs(text)
	if d.root == nil && regexp.MustCompile(`(?m)^\.\.\.`).MatchString(text) && !regexp.MustCompile(`(?m)^---`).MatchString(text) {
		c.refuse(1, "an end of a document without a beginning")
	}
	if c.err == nil && d.root != nil {
		c.node(d.root, 0)
	}
	if c.err != nil {
		return c.err
	}
	return nil
}

// checker finds the first line that Hermes rejects.
type checker struct {
	who          string
	older, newer bool // the versions whose rules apply
	anchors      map[string]ast.Node
	err          *Broken
}

// refuse records a problem, unless one on an earlier line is known.
func (c *checker) refuse(line int, format string, args ...any) {
	if c.err == nil || line < c.err.Line {
		c.err = &Broken{Line: line, Problem: fmt.Sprintf(format, args...) + ", which " + c.who + " rejects"}
	}
}

// signs checks for characters that YAML 1.1 forbids or reads as a line break.
func (c *checker) signs(text string) {
	what := kinds(text)
	line, fresh := 1, true // fresh: the line has only spaces and tabs so far
	for i, r := range text {
		switch {
		case r == '\n':
			line, fresh = line+1, true
			continue
		case r == '\t' && c.older && (what[i] == structure || what[i] == inFlow):
			c.refuse(line, "a tab between words")
		case r == '\t' && fresh && what[i] == structure:
			c.refuse(line, "a tab at the beginning")
		case r == 0x85 || r == 0x2028 || r == 0x2029:
			if what[i] == commented || c.older && what[i] != quoted {
				c.refuse(line, "the character U+%04X, a line break in YAML 1.1", r)
			}
		case !printable(r):
			c.refuse(line, "the control character U+%04X", r)
		}
		if r != ' ' && r != '\t' {
			fresh = false
		}
	}
}

// printable reports whether YAML 1.1 allows a character.
func printable(r rune) bool {
	return r == '\t' || r == '\n' || r == '\r' || r >= 0x20 && r <= 0x7e || r == 0x85 || r >= 0xa0 && r <= 0xd7ff || r >= 0xe000 && r <= 0xfffd || r >= 0x10000 && r <= utf8.MaxRune
}

// node checks a tree. parse bounds its depth.
func (c *checker) node(n ast.Node, depth int) {
	if depth > 4*deepest || c.err != nil {
		return
	}
	switch x := n.(type) {
	case *ast.AnchorNode:
		name := x.Name.GetToken().Value
		if _, twice := c.anchors[name]; twice && c.older {
			c.refuse(rowOf(x), "the duplicate anchor &%s", name)
		}
		c.anchors[name] = x.Value
		c.node(x.Value, depth+1)
	case *ast.TagNode:
		c.tag(x)
		c.node(x.Value, depth+1)
	case *ast.SequenceNode:
		for _, item := range x.Values {
			c.node(item, depth+1)
		}
	case *ast.MappingNode, *ast.MappingValueNode:
		c.mapping(x, depth)
	case *ast.StringNode:
		c.plain(x)
	}
}

// rowOf returns the line of a node, or 1 if it is unknown.
func rowOf(n ast.Node) int {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 1
}

// standardTags are the tags that the safe loaders of both libraries know.
var standardTags = map[string]bool{"null": true, "bool": true, "int": true, "float": true, "str": true, "binary": true, "timestamp": true, "omap": true, "pairs": true, "set": true, "seq": true, "map": true}

// tag checks a tag, and that its value has the form that the tag requires.
func (c *checker) tag(n *ast.TagNode) {
	tag := n.GetToken().Value
	name, ok := strings.CutPrefix(tag, "!!")
	if !ok {
		name, ok = strings.CutPrefix(tag, "!<tag:yaml.org,2002:")
		name = strings.TrimSuffix(name, ">")
	}
	if tag != "!" && (!ok || !standardTags[name]) {
		c.refuse(rowOf(n), "the tag %s", tag)
		return
	}
	s, isText := n.Value.(*ast.StringNode)
	if !isText {
		return
	}
	switch name {
	case "int":
		if _, ok := yamlInt(s.Value); !ok {
			c.refuse(rowOf(n), "%q is not a valid %s", s.Value, tag)
		}
	case "float":
		if _, err := strconv.ParseFloat(strings.ReplaceAll(s.Value, "_", ""), 64); err != nil {
			c.refuse(rowOf(n), "%q is not a valid %s", s.Value, tag)
		}
	}
}

// mapping checks the keys and values of a map.
func (c *checker) mapping(n ast.Node, depth int) {
	entries, _ := entriesOf(n)
	seen := map[string]bool{}
	for _, e := range entries {
		row := line(e)
		if _, merge := e.Key.(*ast.MergeKeyNode); merge {
			if !c.mergeable(e.Value) {
				c.refuse(row, "a << without a map")
			}
			if seen["<<"] && c.newer {
				c.refuse(row, "the duplicate key <<")
			}
			seen["<<"] = true
		} else {
			id, shown := keyID(e.Key)
			if seen[id] && c.newer {
				c.refuse(row, "the duplicate key %s", shown)
			}
			seen[id] = true
			if _, explicit := e.Key.(*ast.MappingKeyNode); !explicit && utf8.RuneCountInString(shown) > 1024 {
				c.refuse(row, "a key with more than 1024 characters")
			}
			c.node(e.Key, depth+1)
		}
		c.node(e.Value, depth+1)
	}
}

// mergeable reports whether a value is valid for the key <<: a map, or a list of maps.
func (c *checker) mergeable(n ast.Node) bool {
	for range deepest {
		switch x := bare(n).(type) {
		case *ast.AliasNode:
			n = c.anchors[x.Value.GetToken().Value]
		case *ast.MappingNode, *ast.MappingValueNode:
			return true
		case *ast.SequenceNode:
			for _, item := range x.Values {
				if _, list := bare(item).(*ast.SequenceNode); list || !c.mergeable(item) {
					return false
				}
			}
			return true
		default:
			return false
		}
	}
	return false
}

// keyID returns an id that is equal for two keys if Hermes reads them as the same key. It also
// returns the key's text for messages.
func keyID(n ast.Node) (id, shown string) {
	if k, ok := n.(*ast.MappingKeyNode); ok {
		return keyID(k.Value)
	}
	text := n
	if t, ok := n.(*ast.TagNode); ok && strings.HasSuffix(strings.TrimSuffix(t.GetToken().Value, ">"), "str") {
		text = bare(n)
		return "text " + text.GetToken().Value, text.GetToken().Value
	}
	text = bare(n)
	if text == nil || text.GetToken() == nil {
		return "null", "null"
	}
	shown = text.GetToken().Value
	if _, null := text.(*ast.NullNode); null {
		return "null", shown
	}
	if s, ok := text.(*ast.StringNode); ok {
		if q := s.GetToken().Indicator; q != 0 {
			return "text " + s.Value, s.Value
		}
		shown = s.Value
	}
	switch strings.ToLower(shown) {
	case "yes", "true", "on":
		return "number 1", shown // True equals 1 in Python
	case "no", "false", "off":
		return "number 0", shown
	case "", "~", "null":
		return "null", shown
	}
	if i, ok := yamlInt(shown); ok {
		return "number " + i.String(), shown
	}
	if f, err := strconv.ParseFloat(strings.ReplaceAll(shown, "_", ""), 64); err == nil && strings.Contains(shown, ".") {
		if i, exact := big.NewFloat(f).Int(nil); exact == big.Exact {
			return "number " + i.String(), shown
		}
		return fmt.Sprintf("number %v", f), shown
	}
	return "text " + shown, shown
}

// yamlInt parses an integer in YAML 1.1.
func yamlInt(s string) (*big.Int, bool) {
	s = strings.ReplaceAll(s, "_", "")
	if strings.HasPrefix(strings.TrimLeft(s, "+-"), "0o") {
		return nil, false
	}
	return new(big.Int).SetString(s, 0)
}

var timestampForm = regexp.MustCompile(`^(\d{4})-(\d\d?)-(\d\d?)(?:(?:[Tt]|[ \t]+)(\d\d?):(\d\d):(\d\d)(?:\.\d*)?(?:[ \t]*(?:Z|[-+]\d\d?(?::\d\d)?))?)?$`)

// plain checks an unquoted scalar. If YAML 1.1 reads it as a type other than text, it must be valid
// for that type.
func (c *checker) plain(n *ast.StringNode) {
	if t := n.GetToken(); t.Indicator != 0 {
		return
	}
	switch {
	case n.Value == "=" || n.Value == "<<":
		c.refuse(rowOf(n), "%s without quotes", n.Value)
	default:
		m := timestampForm.FindStringSubmatch(n.Value)
		if m == nil {
			return
		}
		var f [7]int
		for i := 1; i < len(m); i++ {
			f[i], _ = strconv.Atoi(m[i]) // digits, or an empty group
		}
		at := time.Date(f[1], time.Month(f[2]), f[3], f[4], f[5], f[6], 0, time.UTC)
		if f[1] == 0 || at.Month() != time.Month(f[2]) || at.Day() != f[3] || f[4] > 23 || f[5] > 59 || f[6] > 59 {
			c.refuse(rowOf(n), "%s without quotes, an invalid date", n.Value)
		}
	}
}
