package term

import "strings"

const (
	// deepest is the number of quotes and list items that may begin in one line.
	deepest = 100
	// readCost limits the work of the parser, in steps of some nanoseconds.
	readCost = 50_000_000
	// cellCost is the cost of a table cell.
	cellCost = 30
)

// heavy reports whether parsing a text as Markdown would take too long. The time of the parser
// grows with the square of the marks in a paragraph, with the rows of a table times its columns,
// and with the square of the depth of a line. Such texts are attacks or data, and are shown as
// plain text.
func heavy(source string) bool {
	cost, marks, bars, lines := 0, 0, 0, 0
	end := func() {
		cost += marks*marks + cellCost*bars*lines
		marks, bars, lines = 0, 0, 0
	}
	for l := range strings.SplitSeq(source, "\n") {
		depth := depthOf(l)
		if depth > deepest {
			return true
		}
		// A paragraph ends at an empty line, and at the start of a list item, which may be part of
		// the paragraph if it is indented more.
		if strings.TrimSpace(l) == "" || depth > 0 && startsItem(l) {
			end()
		}
		inLine := 0
		for i := range len(l) {
			switch l[i] {
			case '*', '_', '~', '`', '[', ']', '<', '(':
				marks++
			case '|':
				inLine++
			}
		}
		bars = max(bars, inLine)
		lines++
		if cost+marks*marks+cellCost*bars*lines > readCost {
			return true
		}
	}
	return false
}

// depthOf counts the quotes and list items that may begin in a line, and those that its indentation
// may continue.
func depthOf(l string) int {
	rest := strings.TrimLeft(l, " ")
	around := (len(l) - len(rest)) / 2
	depth := 0
	for i := 0; i < len(rest) && strings.IndexByte(" 0123456789>-*+.)", rest[i]) >= 0; i++ {
		ends := i+1 == len(rest) || rest[i+1] == ' '
		if rest[i] == '>' || ends && strings.IndexByte("-*+.)", rest[i]) >= 0 {
			depth++
		}
	}
	if depth == 0 { // for example indented code
		return 0
	}
	return around + depth
}

// startsItem reports whether a line begins a list item in any context.
func startsItem(l string) bool {
	rest := strings.TrimLeft(l, " ")
	return len(l)-len(rest) <= 3 && len(rest) > 2 && strings.IndexByte("-*+", rest[0]) >= 0 && rest[1] == ' ' && strings.TrimSpace(rest[2:]) != ""
}
