package hub

import (
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// chunks cuts a reply into pieces of at most limit code points whose concatenation is byte for byte
// the text (doc/protocol.md §4). A cut falls between grapheme clusters; in the last fifth of a
// piece it prefers a line end, then the end of a word. Only a cluster that is itself longer than
// limit (nothing a person writes) is cut between code points. The empty text is one empty piece, so
// that there is always one to mark as final. A limit below 1 is a mistake of the program and
// panics: configuration is checked where it is read.
func chunks(text string, limit int) []string {
	if limit < 1 {
		panic("hub: the limit of a chunk must be at least one code point")
	}
	var pieces []string
	// start is where the present piece begins. boundary is the first place from there on that is
	// known to lie between two clusters: start itself, except after a cut through a cluster that is
	// longer than a piece.
	start, boundary := 0, 0
	for {
		fifth, end := window(text, start, limit)
		if end == len(text) {
			return append(pieces, text[start:])
		}
		var cut int
		cut, boundary = cutBefore(text, start, boundary, fifth, end)
		pieces = append(pieces, text[start:cut])
		start = cut
	}
}

// window returns where the last fifth of the longest piece from start begins, and where that piece
// ends.
func window(text string, start, limit int) (fifth, end int) {
	fifth = skip(text, start, limit-limit/5)
	return fifth, skip(text, fifth, limit/5)
}

// skip returns the place n code points after i, or the end of the text.
func skip(text string, i, n int) int {
	for ; n > 0 && i < len(text); n-- {
		if text[i] < utf8.RuneSelf {
			i++
			continue
		}
		_, size := utf8.DecodeRuneInString(text[i:])
		i += size
	}
	return i
}

// cutBefore chooses the end of a piece that begins at start and may reach to end, and returns it
// with the first place from there on that is known to lie between two clusters.
func cutBefore(text string, start, boundary, fifth, end int) (cut, next int) {
	if boundary > end { // still inside a cluster longer than a piece
		return end, boundary
	}
	last, word, line := 0, 0, 0
	at := safeStart(text, boundary, fifth)
	for ; at <= end; at = nextBoundary(text, at) {
		last = at
		if at < fifth || at == start {
			continue
		}
		before, _ := utf8.DecodeLastRuneInString(text[:at])
		after, _ := utf8.DecodeRuneInString(text[at:])
		if endsLine(before) {
			line = at
		} else if breaks(before) || breaks(after) {
			word = at
		}
	}
	switch {
	case line > 0:
		return line, line
	case word > 0:
		return word, word
	case last > start:
		return last, last
	}
	// One cluster fills more than the piece, and its end was just found.
	return end, at
}

// safeStart returns a place at or before fifth, but not before boundary, that lies between two
// clusters whatever came before it. Running the rules over everything would cost a hundred times
// more than this for most texts, and starting them in the middle would tear flags, whose pairs are
// counted from the first one. Always safe are: after a line feed, and between two ASCII characters
// other than CR LF, for none of them joins with anything but what follows (UAX #29, GB3 to GB5 and
// GB999).
func safeStart(text string, boundary, fifth int) int {
	for i := fifth; i > boundary; i-- {
		if text[i-1] == '\n' || asciiBoundary(text, i) {
			return i
		}
	}
	return boundary
}

// nextBoundary returns the end of the cluster that begins at i.
func nextBoundary(text string, i int) int {
	if i+1 < len(text) && asciiBoundary(text, i+1) {
		return i + 1
	}
	cluster, _, _, _ := uniseg.FirstGraphemeClusterInString(text[i:], -1)
	return i + len(cluster)
}

func asciiBoundary(text string, i int) bool {
	a, b := text[i-1], text[i]
	return a < utf8.RuneSelf && b < utf8.RuneSelf && (a != '\r' || b != '\n')
}

func endsLine(r rune) bool {
	return r == '\n' || r == '\r' || r == '\u0085' || r == '\u2028' || r == '\u2029'
}

// breaks reports whether a word may end at r: white space, but not the kinds made to hold words
// together.
func breaks(r rune) bool {
	return unicode.IsSpace(r) && r != '\u00a0' && r != '\u202f'
}

// utf16Len is the length of valid UTF-8 in UTF-16 code units, which is how clients count the place
// of an append.
func utf16Len(s string) int {
	n := 0
	for _, r := range s {
		n++
		if r > 0xFFFF {
			n++
		}
	}
	return n
}
