package media

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCleanName(t *testing.T) {
	for name, want := range map[string]string{
		"photo.jpg":                          "photo.jpg",
		"../../etc/passwd":                   "passwd",
		`C:\Users\a\photo.jpg`:               "photo.jpg",
		`a/b\c.txt`:                          "c.txt",
		".bashrc":                            "bashrc",
		"...a":                               "a",
		"\x00.\u202e.a":                      "a",
		" . a b ":                            "a b",
		"a\nb\u0000c.txt":                    "abc.txt",
		"a\x7f\u0085b":                       "ab",
		"a\u2028b\ufeff":                     "ab",
		"photo\u202egpj.exe":                 "photogpj.exe",
		"a\u2066b\u2069\u200f\u061c":         "ab",
		"отчёт.pdf":                          "отчёт.pdf",
		"👩\u200d🚀.png":                       "👩\u200d🚀.png",
		"a\xffb\xc3.txt":                     "ab.txt",
		"..":                                 "file",
		"/":                                  "file",
		"":                                   "file",
		"a/":                                 "file",
		"\xff":                               "file",
		strings.Repeat("x", 300) + ".txt":    strings.Repeat("x", 251) + ".txt",
		strings.Repeat("x", 255):             strings.Repeat("x", 255),
		strings.Repeat("ü", 200):             strings.Repeat("ü", 127),
		strings.Repeat("ü", 200) + ".jpeg":   strings.Repeat("ü", 125) + ".jpeg",
		"a." + strings.Repeat("x", 300):      "a." + strings.Repeat("x", 253),
		strings.Repeat("x", 300) + ".":       strings.Repeat("x", 255),
		strings.Repeat("x", 250) + "   .txt": strings.Repeat("x", 250) + ".txt",
	} {
		if got := CleanName(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

func FuzzCleanName(f *testing.F) {
	for _, s := range []string{"", "a.txt", "../x", "\xff/\xfe", strings.Repeat("ü", 300) + ".a b", "\u202e. .\u2028a", strings.Repeat(" ", 300) + ".x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := CleanName(s)
		if got == "" || len(got) > maxName || !utf8.ValidString(got) || got[0] == '.' || strings.ContainsAny(got, "/\\\x00\n\r\x7f\u202e") {
			t.Fatalf("%q became %q", s, got)
		}
		if again := CleanName(got); again != got {
			t.Fatalf("%q became %q and then %q", s, got, again)
		}
	})
}
