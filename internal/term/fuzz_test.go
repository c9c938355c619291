package term

import (
	"strings"
	"testing"
	"unicode/utf8"

	"hermes-mobile/frame"
)

// FuzzMarkdown checks that any text of an agent shows in lines that fit, and never reaches the
// terminal as a control sequence.
func FuzzMarkdown(f *testing.F) {
	for _, text := range []string{"", "# a\n\n- b\n  - c\n\n> d\n\n```go\nfunc\n```\n", "|a|b|\n|-|-|\n|c|d|\n", "[a](http://b) ![c](d) <e@f> ~~g~~ **h** _i_ `j`", "\x1b]0;title\x07\x1b[2J\u009b1m",
		"- [x] done\n1. one\n", "<b>html</b>\n<!-- x -->", "[a]: b\n[a]", "漢字👨‍👩‍👧e\u0301", "\u202eabc\u2066", "a\r\nb\rc\td", "\xff\xfe\xed\xa0\x80"} {
		f.Add(text, 40)
		f.Add(text, 1)
	}
	f.Fuzz(func(t *testing.T, text string, width int) {
		if width < 0 || width > 500 || len(text) > 4096 {
			return
		}
		safe := clean(text)
		if !utf8.ValidString(safe) || frame.Visible(safe).Hidden {
			t.Fatalf("%q is cleaned to %q", text, safe)
		}
		var md markdown
		for _, l := range md.render(safe, width, onDark) {
			if strings.Contains(l, "\n") {
				t.Fatalf("%q: a line in a line: %q", text, l)
			}
			if plain := strip(l); strings.ContainsRune(plain, '\x1b') || strings.ContainsFunc(plain, hides) {
				t.Fatalf("%q: controls are left in %q", text, l)
			}
		}
		if strings.Contains(line(text), "\n") {
			t.Fatalf("%q: more than a line", text)
		}
	})
}
