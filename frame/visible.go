package frame

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"
)

// SegmentKind tells what a [Segment] holds.
type SegmentKind string

// The kinds of segments.
const (
	PlainSegment  SegmentKind = "text"   // characters that show as themselves
	MarkSegment   SegmentKind = "mark"   // visible marks for characters that do not, such as [U+202E] or ␛
	LinesSegment  SegmentKind = "lines"  // a fold: Count blank lines
	SpacesSegment SegmentKind = "spaces" // a fold: Count spaces or tabs
	MarksSegment  SegmentKind = "marks"  // a fold: the same mark, Count times
)

// Segment is a piece of a [Shown] text. Text is the text to show; of a fold, the text to show once
// the user opens it. Count is the length of a fold, and zero for every other segment.
type Segment struct {
	Kind  SegmentKind
	Text  string
	Count int
}

// Label returns the English text that replaces a fold until the user opens it, such as
// "… 60 blank lines …". It is empty for any other segment.
func (s Segment) Label() string {
	switch s.Kind {
	case LinesSegment:
		return fmt.Sprintf("… %d blank lines …", s.Count)
	case SpacesSegment:
		return fmt.Sprintf("… %d spaces …", s.Count)
	case MarksSegment:
		return fmt.Sprintf("… %d × %s …", s.Count, s.Text[:len(s.Text)/s.Count])
	}
	return ""
}

// Shown is a text the way a person must see it before deciding on it (doc/protocol.md §7). A
// visible mark replaces every character that does not show as itself, and long blank runs are
// folds.
type Shown struct {
	Segments []Segment
	Hidden   bool // some characters do not show as themselves or, in a command, reorder others
	Blank    bool // there is a long run of blank lines or spaces
	Long     bool // the text exceeds MaxShownChars or MaxShownLines
}

// Odd reports whether the text needs a closer look: it is Hidden, Blank or Long.
func (s Shown) Odd() bool { return s.Hidden || s.Blank || s.Long }

// String returns the whole text with its marks and with all folds open.
func (s Shown) String() string {
	var b strings.Builder
	for _, seg := range s.Segments {
		b.WriteString(seg.Text)
	}
	return b.String()
}

// Folded returns the text with its marks and with a label in place of each fold.
func (s Shown) Folded() string {
	var b strings.Builder
	for _, seg := range s.Segments {
		label := seg.Label()
		if label == "" {
			label = seg.Text
		} else if seg.Kind == LinesSegment && strings.HasSuffix(seg.Text, "\n") {
			label += "\n"
		}
		b.WriteString(label)
	}
	return b.String()
}

// Visible prepares a text for people: a question, a description, a label, a name. It turns Windows
// line ends into plain ones. It keeps what honest text needs: joiners within emoji and after
// letters of scripts that use them, one variation selector after a character that has variations,
// spaces of other widths, and tabs.
func Visible(text string) Shown {
	return segments(strings.ReplaceAll(text, "\r\n", "\n"), false)
}

// VisibleCommand prepares a command. It is strict: it trusts nothing that can hide, reorder or
// imitate something, so joiners, variation selectors, spaces of other widths and unassigned
// characters become marks, too. It shows a tab as ␉, which does not make the command odd.
// Right-to-left letters stay as they are and count as Hidden, because a screen may order the words
// differently than the shell reads them. Show a command from left to right, with each such word
// isolated.
func VisibleCommand(command string) Shown { return segments(command, true) }

// Odd reports whether a card needs a closer look before the user answers it (doc/protocol.md §7):
// its text, command, description or the label of an option is odd. The server sets Prompt.Odd to
// the result.
func Odd(p *Prompt) bool {
	if Visible(p.Text).Odd() || VisibleCommand(p.Command).Odd() || Visible(p.Description).Odd() {
		return true
	}
	for _, o := range p.Options {
		label := cmp.Or(o.Label, o.ID)
		if strings.Contains(label, "\n") || utf8.RuneCountInString(label) > MaxShownLabel || Visible(label).Odd() {
			return true
		}
	}
	return false
}

// Grants reports whether an option of a card lets the agent do something, so that only a user who
// saw the whole card may choose it. Of an approval and a confirmation, that is every option except
// the safe one; of a clarify card, none. Of an unknown kind, it is every option not known to be
// safe.
func Grants(kind, option string) bool {
	switch kind {
	case ExecApproval:
		return option != DenyOption
	case SlashConfirm:
		return option != CancelOption
	case Clarify:
		return false
	}
	return option != DenyOption && option != CancelOption
}

// Strip removes everything that [Visible] would show as a mark, and line ends and tabs. It is for
// names, which have one line.
func Strip(name string) string {
	if plainText(name) {
		return name
	}
	s := shower{runes: []rune(name)}
	var b strings.Builder
	for i, r := range s.runes {
		if r != '\n' && r != '\t' && s.ordinary(i) {
			b.WriteRune(r)
			s.took(r)
		}
	}
	return b.String()
}

// segments splits a text line by line.
func segments(text string, command bool) Shown {
	if plainText(text) && len(text) <= MaxBlanks { // too short for any fold
		if text == "" {
			return Shown{}
		}
		return Shown{Segments: []Segment{{Kind: PlainSegment, Text: text}}}
	}
	s := shower{command: command, runes: []rune(text)}
	s.shown.Long = len(s.runes) > MaxShownChars
	lines, blank, from := 0, 0, 0 // blank lines in a row, and where they begin
	for at := 0; at < len(s.runes); {
		end := at
		for end < len(s.runes) && s.runes[end] != '\n' {
			end++
		}
		if end < len(s.runes) {
			end++
		}
		lines++
		if s.blank(at, end) {
			if blank == 0 {
				from = at
			}
			blank++
		} else {
			s.blanks(from, at, blank)
			s.line(at, end)
			blank = 0
		}
		at = end
	}
	s.blanks(from, len(s.runes), blank)
	s.flush()
	s.shown.Long = s.shown.Long || lines > MaxShownLines
	return s.shown
}

// plainText reports whether a text is one line of plain ASCII, which is what most labels and
// commands are.
func plainText(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

// shower passes over a text once.
type shower struct {
	command bool
	runes   []rune
	shown   Shown

	kind SegmentKind     // of the segment under construction
	text strings.Builder // the text of that segment

	prev  rune // the last ordinary character; 0 after a mark or a line end
	base  bool // a combining mark has a base character
	stack int  // combining marks on that character
}

// blank reports whether a line holds nothing but spaces.
func (s *shower) blank(from, to int) bool {
	for _, r := range s.runes[from:to] {
		if r != '\n' && !s.space(r) {
			return false
		}
	}
	return true
}

// space reports whether a character belongs to a run that folds when it is long. In a command, all
// spaces except the plain one and the tab are marks.
func (s *shower) space(r rune) bool {
	return r == ' ' || r == '\t' || !s.command && r >= 0x80 && classOf(r) == blankClass
}

// blanks adds blank lines, as a fold when there are many.
func (s *shower) blanks(from, to, count int) {
	if count == 0 {
		return
	}
	if count <= MaxBlankLines {
		s.line(from, to)
		return
	}
	s.shown.Blank = true
	s.fold(LinesSegment, s.spaces(from, to), count)
}

// spaces returns a run of spaces and line ends as an open fold shows it.
func (s *shower) spaces(from, to int) string {
	text := string(s.runes[from:to])
	if s.command {
		text = strings.ReplaceAll(text, "\t", "␉")
	}
	return text
}

// line adds one or more lines with their ends.
func (s *shower) line(from, to int) {
	for at := from; at < to; {
		r := s.runes[at]
		if r == '\n' {
			s.add(PlainSegment, "\n")
			s.begin()
			at++
			continue
		}
		if end := s.run(at, to, s.space); end-at > MaxBlanks {
			s.shown.Blank = true
			s.fold(SpacesSegment, s.spaces(at, end), end-at)
			at = end
			continue
		}
		switch {
		case r == '\t' && s.command:
			s.add(MarkSegment, "␉")
			s.begin()
			at++
		case s.ordinary(at):
			s.add(PlainSegment, string(r))
			s.took(r)
			s.shown.Hidden = s.shown.Hidden || s.command && classOf(r) == rtlClass
			at++
		default:
			s.shown.Hidden = true
			s.begin()
			end := s.run(at, to, func(other rune) bool { return other == r })
			if n := end - at; n > MaxSameMarks {
				s.fold(MarksSegment, strings.Repeat(mark(r), n), n)
				at = end
			} else {
				s.add(MarkSegment, mark(r))
				at++
			}
		}
	}
}

// run returns the end of the run of characters for which is returns true.
func (s *shower) run(from, to int, is func(rune) bool) int {
	for from < to && is(s.runes[from]) {
		from++
	}
	return from
}

// add appends to the segment under construction, or starts a new one. A fold is always its own
// segment.
func (s *shower) add(kind SegmentKind, text string) {
	if kind != s.kind {
		s.flush()
		s.kind = kind
	}
	s.text.WriteString(text)
}

func (s *shower) fold(kind SegmentKind, text string, count int) {
	s.flush()
	s.shown.Segments = append(s.shown.Segments, Segment{kind, text, count})
	s.begin()
}

func (s *shower) flush() {
	if s.text.Len() > 0 {
		s.shown.Segments = append(s.shown.Segments, Segment{Kind: s.kind, Text: s.text.String()})
		s.text.Reset()
	}
}

// begin forgets the preceding character, so that nothing combines with it.
func (s *shower) begin() { s.prev, s.base, s.stack = 0, false, 0 }

// took records an ordinary character.
func (s *shower) took(r rune) {
	s.prev = r
	switch classOf(r) {
	case combiningClass:
		s.stack++
	case joinerClass, selectorClass:
	case blankClass:
		s.base, s.stack = false, 0
	default:
		s.base, s.stack = r != ' ' && r != '\t', 0
		if s.command && r < 0x80 {
			s.base = alphanumeric(r)
		}
	}
}

// ordinary reports whether the character at a position shows as itself there.
func (s *shower) ordinary(at int) bool {
	r := s.runes[at]
	next := rune(0)
	if at+1 < len(s.runes) {
		next = s.runes[at+1]
	}
	switch classOf(r) {
	case hiddenClass:
		return false
	case unassignedClass, blankClass:
		return !s.command
	case combiningClass:
		return s.base && s.stack < MaxStack
	case jamoClass:
		return in(hangul, s.prev)
	case joinerClass:
		return !s.command && (in(scripts, s.prev) || (s.prev == emojiSelector || in(pictographs, s.prev)) && in(pictographs, next))
	case selectorClass:
		switch {
		case s.command:
			return false
		case r == emojiSelector || r == textSelector:
			return in(pictographs, s.prev) || keycap(s.prev) && next == enclosingKeycap
		}
		return in(ideographs, s.prev)
	}
	return true
}

// mark returns the visible mark for a character that does not show as itself.
func mark(r rune) string {
	switch {
	case r < 0x20:
		return string(0x2400 + r) // its picture, as in ␛ for escape
	case r == 0x7f:
		return "␡"
	}
	return fmt.Sprintf("[U+%04X]", r)
}
