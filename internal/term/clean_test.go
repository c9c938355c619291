package term

import (
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"hermes-mobile/frame"
)

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain\nüber 👨‍👩‍👧 🇩🇪":        "plain\nüber 👨‍👩‍👧 🇩🇪",
		"\x1b[31mred\x1b[0m":          "␛[31mred␛[0m",
		"\x1b]0;title\x07":            "␛]0;title␇",
		"rm -rf /\rls":                "rm -rf /␍ls",
		"a\r\nb":                      "a\nb",
		"a\tb":                        "a    b",
		"\u009b31m":                   "[U+009B]31m",
		"safe\u202eexe.txt":           "safe[U+202E]exe.txt",
		"a\x00b\x7f":                  "a␀b␡",
		"bad \xff\xfe":                "bad [U+FFFD][U+FFFD]",
		"line\u2028sep\ufeff\u2066ok": "line[U+2028]sep[U+FEFF][U+2066]ok",
	} {
		if got := clean(in); got != want {
			t.Errorf("clean(%q) = %q, not %q", in, got, want)
		}
	}
	if got := line(" two\n lines\x1b "); got != "two lines␛" {
		t.Errorf("%q", got)
	}
}

// hiding caches the results of hides.
var hiding sync.Map

// hides reports whether a character never shows as itself, in any context.
func hides(r rune) bool {
	if r < 0x80 {
		return r != '\n' && (r < ' ' || r == 0x7f)
	}
	if yes, known := hiding.Load(r); known {
		return yes.(bool)
	}
	yes := true
	for _, base := range []string{"a", "👨", "葛", "م", "ᄀ"} {
		yes = yes && frame.Visible(base+string(r)+"👩").Hidden
	}
	hiding.Store(r, yes)
	return yes
}

// safe fails for anything but text, newlines and colors.
func safe(t interface{ Fatalf(string, ...any) }, s string) {
	rest := s
	for {
		i := strings.Index(rest, "\x1b")
		if i < 0 {
			break
		}
		end := strings.IndexByte(rest[i:], 'm')
		if !strings.HasPrefix(rest[i:], "\x1b[") || end < 0 || strings.Trim(rest[i+2:i+end], "0123456789;:") != "" {
			t.Fatalf("a sequence got through: %.40q", rest[i:])
		}
		rest = rest[:i] + rest[i+end+1:]
	}
	for _, r := range rest {
		if hides(r) {
			t.Fatalf("%q got through in %.200q", r, rest)
		}
	}
	if !utf8.ValidString(rest) {
		t.Fatalf("invalid UTF-8: %.200q", rest)
	}
}

func TestNothingOddReachesTheTerminal(t *testing.T) {
	var md markdown
	piece := rapid.SampledFrom([]string{"\x1b[31m", "\x1b]52;c;aGk=\x07", "\x1bP1$r\x1b\\", "\u009b2J", "\r", "\x00", "&#27;[2J", "&#x1b;]0;x&#7;", "&#x202e;",
		"&#155;", "&#0000027;[8m", "`&#27;`", "```sh\n\x1b[2J\n```\n", "[a](http://x/&#27;]8;;)", "![i](\x1b[1m)", "<b>&#27;</b>", "| a |\n|---|\n| \x1b[2J |\n", "# h\n", "👨‍👩‍👧", "\xff", "text ", "\u202e", "- x\n", "*"})
	rapid.Check(t, func(rt *rapid.T) {
		s := strings.Join(rapid.SliceOfN(rapid.OneOf(piece, rapid.String()), 0, 12).Draw(rt, "text"), "")
		safe(rt, clean(s))
		for _, on := range []paint{unpainted, onDark} {
			safe(rt, strings.Join(md.render(clean(s), 40, on), "\n"))
		}
	})
}

func TestSafeName(t *testing.T) {
	for in, want := range map[string]string{
		"../../etc/passwd": "passwd", `..\..\boot.ini`: "boot.ini", ".bashrc": "bashrc", "-rf": "rf", "": "file", "...": "file",
		"a\nb\u202etxt.exe": "a_b_txt.exe", "NUL": "NUL_", "con.txt": "con_.txt", "a:b": "a_b", "ok name.png": "ok name.png",
	} {
		if got := safeName(in); got != want {
			t.Errorf("safeName(%q) = %q, not %q", in, got, want)
		}
	}
	if got := safeName(strings.Repeat("ü", 300) + ".png"); len(got) > 120 || !strings.HasSuffix(got, ".png") || !utf8.ValidString(got) {
		t.Errorf("%q", got)
	}
}
