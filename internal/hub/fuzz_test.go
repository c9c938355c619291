package hub

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzChunks: a text is cut into pieces that are the text again, each within the limit and valid.
func FuzzChunks(f *testing.F) {
	f.Add("", 1)
	f.Add("words and words\nand lines\r\n", 7)
	f.Add("🇩🇪🇩🇪👨‍👩‍👧e\u0301", 2)
	f.Add(strings.Repeat("\u0301", 100), 10)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		if limit < 1 || limit > 1<<20 || !utf8.ValidString(text) {
			return
		}
		pieces := chunks(text, limit)
		if strings.Join(pieces, "") != text {
			t.Fatalf("%q in pieces of %d is %q", text, limit, pieces)
		}
		for _, p := range pieces {
			if utf8.RuneCountInString(p) > limit || !utf8.ValidString(p) || p == "" && text != "" {
				t.Fatalf("%q in pieces of %d: %q", text, limit, p)
			}
		}
	})
}
