package hub

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/rivo/uniseg"
	"pgregory.net/rapid"
)

const (
	family = "👩‍👩‍👧‍👦" // seven code points, one cluster
	flag   = "🇩🇪"
	thumb  = "👍🏿"
)

// clusters is the slow and exact reference: every boundary of the text, mapped to the code points
// of the cluster it ends.
func clusters(text string) map[int]int {
	ends := map[int]int{0: 0}
	at, state := 0, -1
	for rest := text; rest != ""; {
		var c string
		c, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		at += len(c)
		ends[at] = utf8.RuneCountInString(c)
	}
	return ends
}

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// checkChunks holds what is true of every text and every limit.
func checkChunks(t fataler, text string, limit int) []string {
	t.Helper()
	pieces := chunks(text, limit)
	if got := strings.Join(pieces, ""); got != text {
		t.Fatalf("limit %d: joined %+q, want %+q", limit, got, text)
	}
	if len(pieces) > 1 && slices.Contains(pieces, "") {
		t.Fatalf("limit %d: an empty piece among %d of %+q", limit, len(pieces), text)
	}
	ends := clusters(text)
	bounds := make([]int, 0, len(ends))
	for at := range ends {
		bounds = append(bounds, at)
	}
	slices.Sort(bounds)
	at := 0
	for i, piece := range pieces {
		n := utf8.RuneCountInString(piece)
		if n > limit {
			t.Fatalf("limit %d: piece %d has %d code points", limit, i, n)
		}
		begin := at
		at += len(piece)
		if _, ok := ends[at]; ok {
			continue
		}
		// A cut inside a cluster: only where that cluster could not have been kept whole, and with
		// nothing else in the piece than that cluster, or its tail.
		next, _ := slices.BinarySearch(bounds, at)
		if long := ends[bounds[next]]; long <= limit {
			t.Fatalf("limit %d: the cut after %+q is inside a cluster of %d", limit, tail(text[:at]), long)
		}
		if n != limit || bounds[next-1] > begin {
			t.Fatalf("limit %d: piece %d of %d code points ends inside a cluster too early", limit, i, n)
		}
	}
	return pieces
}

func tail(s string) string { return s[max(0, len(s)-40):] }

func TestChunksOfRealTexts(t *testing.T) {
	for _, c := range []struct {
		name, text string
		lengths    []int // code points of each piece
	}{
		{"empty", "", []int{0}},
		{"short", "hello", []int{5}},
		{"exactly the limit", strings.Repeat("x", 4000), []int{4000}},
		{"one more", strings.Repeat("x", 4001), []int{4000, 1}},
		{"no place to cut", strings.Repeat("x", 9001), []int{4000, 4000, 1001}},
		{"families", strings.Repeat(family, 900), []int{3997, 2303}},
		{"flags", strings.Repeat(flag, 2500), []int{4000, 1000}},
		{"flags after one letter", "x" + strings.Repeat(flag, 2500), []int{3999, 1002}},
		{"combining marks", strings.Repeat("e\u0301", 3001), []int{4000, 2002}},
		{"combining marks after one letter", "x" + strings.Repeat("e\u0301", 3001), []int{3999, 2004}},
		{"skin tones", strings.Repeat(thumb, 2200), []int{4000, 400}},
		{"CRLF", strings.Repeat("line of words\r\n", 700), []int{3990, 3990, 2520}},
		{"nothing but CRLF", "x" + strings.Repeat("\r\n", 2500), []int{3999, 1002}},
		{"code fences", strings.Repeat("```go\nfunc f() {}\n```\n", 400), []int{4000, 3992, 808}},
		{"blanks around", "  leading and trailing  " + strings.Repeat("\n", 4100) + "\t", []int{4000, 125}},
		{"only spaces", strings.Repeat(" ", 4001), []int{4000, 1}},
		{"words", strings.Repeat("word ", 1000), []int{4000, 1000}},
		{"a word over the edge", strings.Repeat("x", 3995) + " longer", []int{3996, 6}},
		{"a word up to the edge", strings.Repeat("x", 3000) + " " + strings.Repeat("y", 999) + " z", []int{4000, 2}},
		{"a space just before the last fifth", strings.Repeat("x", 3198) + " " + strings.Repeat("y", 2000), []int{4000, 1199}},
		{"a space at the last fifth", strings.Repeat("x", 3199) + " " + strings.Repeat("y", 2000), []int{3200, 2000}},
		{"a line end before a later word", strings.Repeat("x", 3300) + "\n" + strings.Repeat("y ", 1000), []int{3301, 2000}},
		{"a line end before the last fifth", strings.Repeat("x", 100) + "\n" + strings.Repeat("y ", 3000), []int{4000, 2101}},
		{"no cut at a space that holds together", strings.Repeat("x", 3900) + "\u00a0" + strings.Repeat("y", 300), []int{4000, 201}},
		{"no cut before a mark on a space", strings.Repeat("x", 3500) + "  \u0301" + strings.Repeat("y", 1000), []int{3501, 1002}},
		{"wide spaces", strings.Repeat("日", 3900) + "\u3000" + strings.Repeat("本", 300), []int{3901, 300}},
		{"Cyrillic", strings.Repeat("слово ", 1000), []int{3996, 2004}},
		{"one hostile cluster", "a" + strings.Repeat("\u0301", 9000), []int{4000, 4000, 1001}},
		{"a hostile cluster after words", "some words a" + strings.Repeat("\u0301", 4500) + " end", []int{11, 4000, 505}},
		{"a hostile emoji", "👩" + strings.Repeat("\u0301", 5000) + "\u200d👩x", []int{4000, 1004}},
		{"flags behind a hostile prefix", strings.Repeat("\u0600", 7999) + strings.Repeat(flag, 3000), []int{4000, 4000, 3999, 2000}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var lengths []int
			for _, piece := range checkChunks(t, c.text, 4000) {
				lengths = append(lengths, utf8.RuneCountInString(piece))
			}
			if !slices.Equal(lengths, c.lengths) {
				t.Errorf("pieces of %v code points, want %v", lengths, c.lengths)
			}
		})
	}
}

func TestChunksOfLinesAreCutAtWhiteSpace(t *testing.T) {
	line := "12 " + strings.Repeat("the quick brown fox ", 3) + family + flag + " end\n"
	for _, text := range []string{strings.Repeat(line, 300), strings.Repeat("w\n", 9000), strings.Repeat("0123456789 ", 3000)} {
		pieces := checkChunks(t, text, 4000)
		for i := range len(pieces) - 1 {
			a, _ := utf8.DecodeLastRuneInString(pieces[i])
			b, _ := utf8.DecodeRuneInString(pieces[i+1])
			if !breaks(a) && !breaks(b) {
				t.Errorf("the cut %+q | %+q has no white space", tail(pieces[i]), pieces[i+1][:10])
			}
		}
	}
}

func TestChunksRefusesASillyLimit(t *testing.T) {
	for _, limit := range []int{0, -1} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("limit %d was taken", limit)
				}
			}()
			chunks("text", limit)
		}()
	}
}

// Every text made of the material that the rules are about, at limits small enough that cuts fall
// everywhere.
func TestChunksKeepClusters(t *testing.T) {
	material := []string{
		"a", "b", " ", "\n", "\r", "\r\n", "\t", "é", "e\u0301", "\u0301", "\u200d", "\ufe0f", "👩", family, thumb, "🏿", "🇩", flag,
		"\u0600", "한", "ᄀ", "ᅡ", "ᆨ", "क्षि", "ำ", "日", "\u00a0", "\u2028", "\u0085", "\u3000", "\u00ad", "\xff", "\xe2\x82", "1\ufe0f⃣", "©",
	}
	piece := rapid.OneOf(
		rapid.SampledFrom(material),
		rapid.Custom(func(t *rapid.T) string {
			return strings.Repeat(rapid.SampledFrom(material).Draw(t, "unit"), rapid.IntRange(1, 60).Draw(t, "times"))
		}),
		rapid.StringN(0, 5, -1),
	)
	text := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(piece, 0, 30).Draw(t, "pieces"), "")
	})
	rapid.Check(t, func(t *rapid.T) {
		checkChunks(t, text.Draw(t, "text"), rapid.IntRange(1, 70).Draw(t, "limit"))
	})
}

// Hostile input must cost no more than a pass over it: no rule may look at one cluster again for
// each piece.
func TestChunksEndSoon(t *testing.T) {
	for name, text := range map[string]string{
		"marks":    strings.Repeat("\u0301", 1<<19),
		"families": "👩" + strings.Repeat("\u200d👩", 1<<17),
		"prefixes": strings.Repeat("\u0600", 1<<19),
		"flags":    strings.Repeat("🇩", 1<<18),
		"garbage":  strings.Repeat("\xff", 1<<20),
	} {
		// Work that grew with the square of the length would run into the time limit of all tests.
		if got := strings.Join(chunks(text, 4000), ""); got != text {
			t.Errorf("%s: the pieces do not join to the text", name)
		}
	}
}

func TestUTF16Len(t *testing.T) {
	for s, want := range map[string]int{"": 0, "abc": 3, "é": 1, "e\u0301": 2, "日本": 2, "😀": 2, flag: 4, family: 11, "\u2028": 1} {
		if got := utf16Len(s); got != want {
			t.Errorf("utf16Len(%+q) = %d, want %d", s, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		if got, want := utf16Len(s), len(utf16.Encode([]rune(s))); got != want {
			t.Fatalf("utf16Len(%+q) = %d, want %d", s, got, want)
		}
	})
}

func BenchmarkChunks(b *testing.B) {
	for _, c := range []struct{ name, unit string }{
		{"ascii", "The quick brown fox jumps over the lazy dog. "}, {"cyrillic", "Съешь ещё этих мягких булок, да выпей чаю. "},
		{"chinese", "床前明月光疑是地上霜"}, {"families", family}, {"marks", "\u0301"},
	} {
		text := strings.Repeat(c.unit, (1<<20)/len(c.unit))
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				chunks(text, 4000)
			}
		})
	}
}
