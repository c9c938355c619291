package term

import (
	"fmt"
	"strings"
	"testing"

	"hermes-mobile/frame"
)

// Texts that attack the parser end in time, within the memory of a small machine, and show
// something.
func TestMarkdownBombsEnd(t *testing.T) {
	const size = 1 << 17
	fillUp := func(s string) string { return strings.Repeat(s, size/len(s)) }
	growing := func(line func(i int) string) string {
		var b strings.Builder
		for i := 0; b.Len() < size; i++ {
			b.WriteString(line(i))
		}
		return b.String()
	}
	row := strings.Repeat("a|", size/8)
	for name, s := range map[string]string{
		"quotes": fillUp(">"), "quotes with spaces": fillUp("> "), "deep lines": fillUp(strings.Repeat("> ", 90) + "x\n"),
		"growing quotes": growing(func(i int) string { return strings.Repeat(">", i) + "x\n" }),
		"lists":          fillUp("- "), "numbers": fillUp("1. "), "stars": fillUp("* ") + "x", "flat list": fillUp("- x\n"), "both": fillUp("> - "),
		"growing lists": growing(func(i int) string { return strings.Repeat("  ", i) + "- x\n" }),
		"emphasis":      fillUp("*a "), "closers": "a**b" + fillUp("c* "), "stars only": fillUp("**"), "nested emphasis": fillUp("*a _b "), "struck": fillUp("~~a "),
		"brackets": fillUp("["), "links": fillUp("[a]("), "images": fillUp("!["), "pairs": strings.Repeat("[", size/2) + strings.Repeat("]", size/2),
		"titles": fillUp("[a](<b"), "definitions": growing(func(i int) string { return fmt.Sprintf("[a%d]: b\n", i) }) + fillUp("[a1] "), "references": fillUp("[a]"),
		"ticks": growing(func(i int) string { return "e" + strings.Repeat("`", i) }), "html": fillUp("<a "), "comments": fillUp("a <!--"), "attributes": "a " + fillUp(`<a b="`),
		"wide table": "|" + row + "\n|" + strings.Repeat("-|", size/8) + "\n" + strings.Repeat("|\n", size/4),
		"table":      strings.Repeat("|a", size/40) + "\n" + strings.Repeat("|-", size/40) + "\n" + strings.Repeat("|a\n", size/6),
		"long table": "|a|b|\n|-|-|\n" + fillUp("|c|d|\n"), "addresses": fillUp("http://a.b "), "www": fillUp("www."), "mails": fillUp("a@"), "one address": "http://" + fillUp("a."),
		"references of characters": fillUp("&#65;"), "ampersands": fillUp("&"), "backslashes": fillUp("\\"), "hashes": fillUp("#"), "headings": fillUp("# a\n"), "fences": fillUp("```\n"),
		"setext": fillUp("a\n-\n"), "spaces": "a" + fillUp(" ") + "b", "line ends": "a" + fillUp("\n") + "b", "one word": fillUp("a"), "one paragraph": fillUp("word "), "lines": fillUp("word\n"),
		"marks": fillUp("\u0301"), "wide": fillUp("漢"), "families": fillUp("👨‍👩‍👧"), "joined": fillUp("👨‍"), "flags": fillUp("🇩🇪"), "zero": fillUp("\u200b"),
		"largest list": strings.Repeat("- x\n", frame.MaxText/4), "largest links": strings.Repeat("[a](", frame.MaxText/4), "largest quotes": strings.Repeat(">", frame.MaxText),
		"largest paragraph": strings.Repeat("*word* ", frame.MaxText/7), "largest table": "|a|b|\n|-|-|\n" + strings.Repeat("|\n", frame.MaxText/2), "largest word": strings.Repeat("漢", frame.MaxText/3),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var md markdown
			lines := md.render(s, 40, onDark)
			if len(lines) == 0 {
				t.Fatal("nothing is shown")
			}
			fits(t, lines, 40)
		})
	}
}

func TestLongHonestTextsAreMarkdown(t *testing.T) {
	paragraph := "Some **words** with `code`, a [link](https://example.org) and *more*, again and again and again.\n"
	for name, s := range map[string]string{
		"prose":     strings.Repeat(strings.Repeat(paragraph, 8)+"\n", 1200),
		"list":      strings.Repeat("- **name**: "+paragraph, 8000),
		"table":     "| a | b | c | d |\n|---|---|---|---|\n" + strings.Repeat("| one | two | three | four |\n", 5000),
		"log":       "```\n" + strings.Repeat("2026-01-02 15:04:05 [info] some_module: a thing (that) happened\n", 700) + "```\n",
		"deep list": "- a\n  - b\n    - c\n      - d\n        - e\n",
	} {
		if heavy(s) {
			t.Errorf("a %s of %d bytes is too heavy", name, len(s))
		}
	}
}

func TestHeavyTextsAreShownAsTheyAre(t *testing.T) {
	var md markdown
	s := strings.Repeat("> ", deepest+1) + "**x**"
	if got := strings.Join(md.render(s, 4*deepest, onDark), ""); strings.TrimSpace(got) != s {
		t.Errorf("%q", got)
	}
	s = strings.Repeat("> ", deepest) + "**x**"
	if got := strip(strings.Join(md.render(s, 4*deepest, onDark), "")); strings.Count(got, "│") != deepest || !strings.HasSuffix(got, " x") {
		t.Errorf("%q", got)
	}
}
