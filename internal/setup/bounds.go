package setup

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// A config.yaml is not under our control, and the running server reads it for the doctor. So its
// size limits are checked before parsing.
const (
	maxNodes = 100_000 // with every alias expanded
	maxMarks = 100_000 // colons, commas, brackets, and dashes: every key or value has at least one
	maxOpen  = 1000    // nested brackets, braces, and dashes
	// maxTogether is the maximum number of lines of one top-level key. The parser's time is
	// quadratic in the number of keys of a map, and every key adds a level of recursion.
	maxTogether = 5000
	// fewLines is the maximum number of lines of a text that is parsed as a whole.
	fewLines = 500
)

// tooMuch returns the error for a file that is too large to parse.
func tooMuch(line int, format string, args ...any) *Broken {
	return &Broken{Line: line, Problem: fmt.Sprintf(format, args...) + ": too large to edit", Huge: true}
}

// bounded rejects a text that is too large to parse.
func bounded(text string) error {
	marks, line, open := 0, 1, 0
	for l := range strings.Lines(text) {
		nested := 0 // indicators on this line that may each begin a nested node
		for i := range len(l) {
			switch l[i] {
			case ',', ':':
				marks++
			case '[', '{':
				marks++
				open++
			case ']', '}':
				marks++
				open = max(0, open-1)
			case '-', '?', '!', '&':
				if i == 0 || l[i-1] == ' ' || l[i-1] == '\t' || l[i-1] == l[i] {
					nested++
					marks++
				}
			}
		}
		switch {
		case marks > maxMarks:
			return tooMuch(line, "more than %d keys and values", maxMarks)
		case open > maxOpen || nested > maxOpen:
			return tooMuch(line, "lists more than %d deep", maxOpen)
		}
		line++
	}
	return nil
}

// parseTokens parses a text. It parses a long one in parts, so that the time grows with its length
// and not with the square of it.
func parseTokens(text string) (*ast.File, error) {
	if err := bounded(text); err != nil {
		return nil, err
	}
	tokens := lexer.Tokenize(text)
	if strings.Count(text, "\n") <= fewLines {
		return parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	}
	parts := topLevel(tokens)
	var values []*ast.MappingValueNode
	var whole *ast.File
	for _, part := range parts {
		first, last, begin := part[0], part[len(part)-1], part[0]
		for _, t := range part {
			if begin = t; t.Type != token.CommentType {
				break
			}
		}
		if last.Position.Line-begin.Position.Line > maxTogether && last.Type != token.CommentType {
			return nil, tooMuch(first.Position.Line, "more than %d lines in one part", maxTogether)
		}
		first.Prev, last.Next = nil, nil
		file, err := parser.Parse(part, 0, parser.AllowDuplicateMapKey())
		if err != nil {
			return nil, err
		}
		if len(parts) == 1 {
			return file, nil
		}
		for _, doc := range file.Docs {
			switch n := doc.Body.(type) {
			case nil, *ast.CommentGroupNode:
			case *ast.MappingNode:
				values = append(values, n.Values...)
			case *ast.MappingValueNode:
				values = append(values, n)
			default:
				return nil, &Broken{Line: first.Position.Line, Problem: "the top level is not a map of keys"}
			}
		}
		if whole == nil {
			whole = file
		}
	}
	if whole == nil {
		return &ast.File{}, nil
	}
	if len(values) == 0 {
		return whole, nil
	}
	return &ast.File{Docs: []*ast.DocumentNode{{BaseNode: &ast.BaseNode{}, Body: ast.Mapping(values[0].GetToken(), false, values...)}}}, nil
}

// topLevel splits tokens before each top-level key. It doesn't split a text that is more than one
// block map.
func topLevel(tokens token.Tokens) []token.Tokens {
	var parts []token.Tokens
	column, begin, flow, lastLine := 0, 0, 0, 0
	for i, t := range tokens {
		switch t.Type {
		case token.DirectiveType, token.DocumentHeaderType, token.DocumentEndType:
			return []token.Tokens{tokens}
		case token.CommentType:
			continue
		}
		if flow == 0 && t.Position.Line > lastLine && (column == 0 || t.Position.Column == column) && t.Type != token.SequenceEntryType && t.Type != token.MappingValueType {
			switch {
			case column > 0:
				parts = append(parts, tokens[begin:i])
				begin = i
			case t.Type == token.MappingStartType || t.Type == token.SequenceStartType || t.Type == token.TagType || t.Type == token.AnchorType:
				return []token.Tokens{tokens} // in braces, or with a tag or an anchor for the whole text
			default:
				column = t.Position.Column
			}
		}
		lastLine = t.Position.Line
		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			flow++
		case token.MappingEndType, token.SequenceEndType:
			flow--
		}
	}
	if begin < len(tokens) {
		parts = append(parts, tokens[begin:])
	}
	return parts
}
