package term

import (
	"slices"
	"strings"

	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	source "github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// markdown renders final messages. It holds what all of them share.
type markdown struct {
	parser parser.Parser
	inks   map[paint]inks
}

// margin indents a message below its headline.
const margin = 2

// render lays out a clean text. No line is wider than width, which must be at least 4.
func (m *markdown) render(s string, width int, on paint) []string {
	width = max(width, 4)
	inner := width - margin
	var lines []string
	if !heavy(s) {
		if m.parser == nil {
			m.parser, m.inks = newParser(), map[paint]inks{}
		}
		if m.inks[on] == nil {
			m.inks[on] = inks{}
		}
		p := &page{source: []byte(s), paint: on, inks: m.inks[on]}
		lines = p.blocks(m.parser.Parse(source.NewReader(p.source)), inner, false)
	}
	if !slices.ContainsFunc(lines, func(l string) bool { return l != "" }) { // only link definitions, which show nothing
		lines = wrap(strings.Trim(s, "\n"), inner)
	}
	return indent(lines, strings.Repeat(" ", margin), strings.Repeat(" ", margin))
}

// newParser returns a parser for GitHub's Markdown: CommonMark with tables, strikethrough, task
// lists and bare addresses.
func newParser() parser.Parser {
	return parser.NewParser(
		parser.WithBlockParsers(parser.DefaultBlockParsers()...),
		parser.WithInlineParsers(parser.DefaultInlineParsers()...),
		parser.WithInlineParsers(
			util.Prioritized(extension.NewTaskCheckBoxParser(), 0),
			util.Prioritized(extension.NewStrikethroughParser(), 500),
			util.Prioritized(extension.NewLinkifyParser(), 999),
		),
		parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...),
		parser.WithParagraphTransformers(util.Prioritized(extension.NewTableParagraphTransformer(), 200)),
		parser.WithASTTransformers(util.Prioritized(extension.NewTableASTTransformer(), 0)),
	)
}
