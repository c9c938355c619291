package term

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the rendered documents")

var paints = map[paint]string{unpainted: "none", onDark: "dark", onLight: "light"}

// TestMarkdownDocuments compares rendered documents with versions that a person approved.
func TestMarkdownDocuments(t *testing.T) {
	documents, err := filepath.Glob("testdata/markdown/*.md")
	if err != nil || len(documents) < 7 {
		t.Fatalf("%d documents, %v", len(documents), err)
	}
	for _, path := range documents {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".md"), func(t *testing.T) {
			source, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var md markdown
			var b strings.Builder
			for _, on := range []paint{unpainted, onDark, onLight} {
				for _, width := range []int{20, 40, 80} {
					lines := md.render(clean(string(source)), width, on)
					fits(t, lines, width)
					fmt.Fprintf(&b, "═══ %s %d\n%s\n", paints[on], width, strings.ReplaceAll(strings.Join(lines, "\n"), "\x1b", "␛"))
				}
			}
			golden := strings.TrimSuffix(path, ".md") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			got, expected := strings.Split(b.String(), "\n"), strings.Split(string(want), "\n")
			for i := range max(len(got), len(expected)) {
				if i >= len(got) || i >= len(expected) || got[i] != expected[i] {
					t.Fatalf("line %d of %s differs (-update writes it):\n%s", i+1, golden, strings.Join(got[i:min(i+5, len(got))], "\n"))
				}
			}
		})
	}
}

// fits fails when a line is wider than the terminal.
func fits(t interface{ Fatalf(string, ...any) }, lines []string, width int) {
	for _, l := range lines {
		if w := ansi.StringWidth(l); w > width || strings.Contains(l, "\n") {
			t.Fatalf("%d columns in a width of %d: %q", w, width, l)
		}
	}
}

// pieces are the building blocks of random documents.
var pieces = []string{"# ", "## ", "> ", "- ", "* ", "1. ", "12) ", "  ", "    ", "\n", "\n\n", "---\n", "===\n", "```go\n", "```\n", "~~~\n", "`", "``", "*", "**", "***",
	"_", "~~", "[", "](", ")", "[a](http://example.org/x)", "![alt](b.png)", "<https://example.org>", "http://example.org/long/path ", "<b>", "<div>\n", "<!--", "-->",
	"|", "| a | b |\n|---|:-:|\n| c | d |\n", "| 漢字 | 👨‍👩‍👧 | c | d | e | f |\n|---|---|---|---|---|---|\n| 1 | 2 |\n", "- [ ] ", "- [x] ", "word ", "verylongwordwithoutanyspace",
	"漢字", "👍🏽", "👨‍👩‍👧", "🇩", "🇪", "e\u0301", "\u0301", "\ufe0f", "☺", "\u200d", "\u200b", "\u093e", "\u0600", "\u20e3", "1", "&amp;", "&#27;", "&#x200d;", "&#xfe0f;", "&NewLine;", "&nbsp;", "\\", "\\|", "\xff",
	"\u00ad", "\u115f", "\u1160", "&zwj;", "&lrm;", "[r]: x\n", "[r]"}

func document() *rapid.Generator[string] {
	return rapid.Map(rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(pieces), rapid.StringN(0, 12, -1)), 6, 60), func(p []string) string { return strings.Join(p, "") })
}

func TestMarkdownFitsAndIsSafe(t *testing.T) {
	var md markdown
	rapid.Check(t, func(rt *rapid.T) {
		s, width := clean(document().Draw(rt, "text")), rapid.IntRange(4, 60).Draw(rt, "width")
		for on := range paints {
			lines := md.render(s, width, on)
			fits(rt, lines, width)
			safe(rt, strings.Join(lines, "\n"))
			if on == unpainted && strings.Contains(strings.Join(lines, ""), "\x1b") {
				rt.Fatalf("a sequence where there are no colours: %q", lines)
			}
		}
		fits(rt, wrap(s, width), width)
	})
}

// Rendering loses nothing: the letters of a text keep their order, whatever marks are around them.
func TestMarkdownKeepsLetters(t *testing.T) {
	marks := []string{"# ", "> ", "- ", "1. ", "  ", "\n", "\n\n", "*", "**", "_", "~~", "`", "<b>", "|", "---\n", "[", "]", "(", ")", "\\"}
	var md markdown
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(0, 30).Draw(rt, "pieces")
		var b, want strings.Builder
		for i := range n {
			word := string(rune('A'+i%26)) + "ßß" // no letter of a mark, and none that begins an entity
			b.WriteString(rapid.SampledFrom(marks).Draw(rt, "mark") + word)
			want.WriteString(word)
		}
		var got strings.Builder
		for _, r := range strings.Join(md.render(b.String(), rapid.IntRange(8, 80).Draw(rt, "width"), unpainted), "") {
			if r >= 'A' && r <= 'Z' || r == 'ß' {
				got.WriteRune(r)
			}
		}
		if got.String() != want.String() {
			rt.Fatalf("%q became %q", b.String(), got.String())
		}
	})
}

func TestMarkdownCases(t *testing.T) {
	var md markdown
	for in, want := range map[string]string{
		"":              "",
		"   \n\n":       "",
		"a\nb":          "  a\n  b",
		"a\n\n\n\nb":    "  a\n\n  b",
		"a  \nb":        "  a\n  b",
		"[r]: http://x": "  [r]: http://x",
		"[t](u)":        "  t (u)",
		"[u](u)":        "  u",

		"[https://bank.example](https://evil.example)":       "  https://bank.example\n  (https://evil.example)",
		"[ba\u200bnk\u202e](https://evil.example)":           "  ba[U+200B]nk[U+202E]\n  (https://evil.example)",
		"<https://a.example@b.example>":                      "  https://a.example@b.example\n  (b.example)",
		"[https://a.example@b.org](https://a.example@b.org)": "  https://a.example@b.org (b.org)",
		"<https://a@%E2%80%AEb.org>":                         "  https://a@%E2%80%AEb.org\n  ([U+202E]b.org)",
		"<http://u.org>":                                     "  http://u.org",
		"http://u.org/a_b_c":                                 "  http://u.org/a_b_c",
		"&#27;[2J":                                           "  ␛[2J",
		"`&#27;`":                                            "  `&#27;`",
		"\\&amp; &#065; &#0;":                                "  &amp; A [U+FFFD]",
		"&nosuch; &copy &copy;":                              "  &nosuch; &copy ©",
		"a <i>b</i>":                                         "  a <i>b</i>",
		"![](p.png)":                                         "  image: p.png",
		"```\n  x\n\n\ty\n```":                               "      x\n\n        y",
		"```go\n```":                                         "  go",
		"- a\n- b":                                           "  • a\n  • b",
		"- a\n\n- b":                                         "  • a\n\n  • b",
		"8. a\n9. b\n10. c":                                  "   8. a\n   9. b\n  10. c",
		"- [ ] a\n- [x] b":                                   "  • [ ] a\n  • [✓] b",
		"> a\n> b":                                           "  │ a\n  │ b",
		"# a":                                                "  # a",
		"|a|b|\n|-|-:|\n|c|ddd|":                             "  a │   b\n  ──┼────\n  c │ ddd",
	} {
		if got := strings.Join(md.render(clean(in), 40, unpainted), "\n"); got != want {
			t.Errorf("%q became\n%s\nnot\n%s", in, got, want)
		}
	}
	for _, s := range []string{"\ufe0f" + strings.Repeat("a", 50), "- \ufe0f" + strings.Repeat("a", 50), "☺*\ufe0f*" + strings.Repeat("☺\ufe0f", 50), "```\n\ufe0f" + strings.Repeat("a", 50)} {
		fits(t, md.render(s, 40, unpainted), 40) // a mark that makes the space before it wide
	}
	if got := strings.Join(md.render("*a* **b** ~~c~~ `d`", 40, onDark), ""); strip(got) != "  a b c d" || !strings.Contains(got, "\x1b[") {
		t.Errorf("%q", got)
	}
}
