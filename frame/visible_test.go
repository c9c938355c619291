package frame

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write testdata/visible/table.json anew")

var visibleFolder = filepath.Join("..", "testdata", "visible")

// shownVector is one text of testdata/visible/texts.json. The README.md there describes the format.
type shownVector struct {
	About  string   `json:"about"`
	Kind   string   `json:"kind"` // text or command
	Text   longText `json:"text"`
	Shown  longText `json:"shown"`  // absent: the same as Text
	Folded longText `json:"folded"` // absent: the same as Shown
	Hidden bool     `json:"hidden"`
	Blank  bool     `json:"blank"`
	Long   bool     `json:"long"`
}

// longText is a string, or {"repeat":[…]} where the string is too long to write out.
type longText string

func (l *longText) UnmarshalJSON(data []byte) error {
	var parts struct {
		Repeat []repeat `json:"repeat"`
	}
	if json.Unmarshal(data, &parts) == nil {
		*l = longText(spellOut(parts.Repeat))
		return nil
	}
	return json.Unmarshal(data, (*string)(l))
}

// readVisible reads a file of testdata/visible. It fails when the file has fewer than least
// vectors.
func readVisible[T any](t testing.TB, name string, least int) []T {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(visibleFolder, name))
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(bytes.NewReader(content))
	dec.DisallowUnknownFields()
	var list []T
	if err := dec.Decode(&list); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if len(list) < least {
		t.Fatalf("%s has %d vectors, want %d at least", name, len(list), least)
	}
	return list
}

func TestVisible(t *testing.T) {
	for _, v := range readVisible[shownVector](t, "texts.json", 80) {
		see := map[string]func(string) Shown{"text": Visible, "command": VisibleCommand}[v.Kind]
		if see == nil {
			t.Fatalf("%s: kind %q", v.About, v.Kind)
		}
		if v.Shown == "" {
			v.Shown = v.Text
		}
		if v.Folded == "" {
			v.Folded = v.Shown
		}
		got := see(string(v.Text))
		if got.String() != string(v.Shown) {
			t.Errorf("%s: shown %.200q, not %.200q", v.About, got.String(), v.Shown)
		}
		if got.Folded() != string(v.Folded) {
			t.Errorf("%s: folded %.200q, not %.200q", v.About, got.Folded(), v.Folded)
		}
		if got.Hidden != v.Hidden || got.Blank != v.Blank || got.Long != v.Long || got.Odd() != (v.Hidden || v.Blank || v.Long) {
			t.Errorf("%s: hidden %v, blank %v, long %v", v.About, got.Hidden, got.Blank, got.Long)
		}
	}
}

func TestOdd(t *testing.T) {
	for _, v := range readVisible[struct {
		About string `json:"about"`
		Card  Prompt `json:"card"`
		Odd   bool   `json:"odd"`
	}](t, "cards.json", 15) {
		if got := Odd(&v.Card); got != v.Odd {
			t.Errorf("%s: odd %v", v.About, got)
		}
	}
}

func TestGrants(t *testing.T) {
	for _, v := range readVisible[struct {
		Kind   string `json:"kind"`
		Option string `json:"option"`
		Grants bool   `json:"grants"`
	}](t, "grants.json", 10) {
		if got := Grants(v.Kind, v.Option); got != v.Grants {
			t.Errorf("%q of %q: %v", v.Option, v.Kind, got)
		}
	}
}

// charTable is testdata/visible/table.json: the character classes, for other languages.
type charTable struct {
	Unicode string             `json:"unicode"`
	Classes map[string][]bound `json:"classes"`
	Sets    map[string][]bound `json:"sets"`
}

var classNames = map[charClass]string{hiddenClass: "hidden", unassignedClass: "unassigned", blankClass: "blank", combiningClass: "combining",
	joinerClass: "joiner", selectorClass: "selector", rtlClass: "rtl", jamoClass: "jamo"}

// The table for other languages must equal this package's. The flag -update writes it.
func TestVisibleTable(t *testing.T) {
	table := charTable{unicode.Version, map[string][]bound{}, map[string][]bound{"pictographs": pictographs, "scripts": scripts, "ideographs": ideographs, "hangul": hangul}}
	for r, before := rune(0), plainClass; r <= unicode.MaxRune; r++ {
		class := lookUp(r)
		if quick := classOf(r); quick != class {
			t.Fatalf("U+%04X: class %d on the fast path, and %d by the tables", r, quick, class)
		}
		if name := classNames[class]; name != "" {
			if class != before {
				table.Classes[name] = append(table.Classes[name], bound{r, r})
			}
			table.Classes[name][len(table.Classes[name])-1][1] = r
		}
		before = class
	}
	want, err := json.Marshal(table)
	if err != nil {
		t.Fatal(err)
	}
	want = append(bytes.ReplaceAll(want, []byte(`],"`), []byte("],\n\"")), '\n')
	path := filepath.Join(visibleFolder, "table.json")
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs from this package's tables for Unicode %s; write it and its copy in the TypeScript SDK with: go test ./frame -run TestVisibleTable -update && go run ./sdk/ts/generate", path, unicode.Version)
	}
}

// nasty draws texts made to look like something else.
func nasty() *rapid.Generator[string] {
	piece := rapid.OneOf(
		rapid.SampledFrom([]string{"a", "1", "#", "/", " ", "\n", "\t", "\r", "\r\n", "\x1b", "\u202e", "\u2066", "\u200b", "\u200c", "\u200d", "\ufe0f", "\ufe0e", "\ufe00", "\U000e0100",
			"\U000e0041", "\u0301", "\u0338", "\u20e3", "👨", "🏽", "❤", "葛", "م", "क", "्", "א", "\u00a0", "\u3000", "\u2800", "\u0378", "\ue000", "\ufffd", "\xff", "\u1100", "\u1161", "\u11a8", "\u3164"}),
		rapid.Map(rapid.IntRange(0, 60), func(n int) string { return strings.Repeat("\n", n) }),
		rapid.Map(rapid.IntRange(0, 90), func(n int) string { return strings.Repeat(" ", n) }),
		rapid.Map(rapid.IntRange(0, 20), func(n int) string { return strings.Repeat("\u200b", n) }),
		rapid.String(),
	)
	return rapid.Map(rapid.SliceOfN(piece, 0, 40), func(p []string) string { return strings.Join(p, "") })
}

func TestVisibleHoldsForAnyText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkVisible(t, nasty().Draw(t, "text")) })
}

// checkVisible checks the properties that hold for every text.
func checkVisible(t interface{ Fatalf(string, ...any) }, text string) {
	for _, command := range []bool{false, true} {
		see := Visible
		if command {
			see = VisibleCommand
		}
		got := see(text)
		out := got.String()
		if !utf8.ValidString(out) {
			t.Fatalf("%q is shown as %q", text, out)
		}
		// The shown text needs no further marks.
		again := see(out)
		if again.String() != out {
			t.Fatalf("%q is shown as %q, and that as %q", text, out, again.String())
		}
		if again.Hidden && !(command && strings.ContainsFunc(out, func(r rune) bool { return classOf(r) == rtlClass })) {
			t.Fatalf("%q is shown as %q, where something is hidden", text, out)
		}
		everything(t, text, out, command)
		// A fold hides only spaces, line ends and equal marks.
		for _, s := range got.Segments {
			switch label := s.Label(); {
			case s.Text == "" || (label == "") != (s.Count == 0):
				t.Fatalf("%q: segment %+v", text, s)
			case (s.Kind == LinesSegment || s.Kind == SpacesSegment) && strings.ContainsFunc(s.Text, func(r rune) bool { return !unicode.IsSpace(r) && r != '␉' && r != 0x2800 }):
				t.Fatalf("%q: %+v hides more than spaces", text, s)
			case s.Kind == MarksSegment && s.Text != strings.Repeat(s.Text[:len(s.Text)/s.Count], s.Count):
				t.Fatalf("%q: %+v hides more than one mark", text, s)
			}
		}
		// A text that is not odd shows unchanged and unfolded.
		folded := got.Folded()
		if !got.Odd() && (folded != out || utf8.RuneCountInString(out) > MaxShownChars || strings.Count(out, "\n") > MaxShownLines) {
			t.Fatalf("%q is shown as %q and not odd", text, folded)
		}
		if strings.Contains(folded, strings.Repeat("\n", MaxBlankLines+2)) || strings.Contains(folded, strings.Repeat(" ", MaxBlanks+1)) {
			t.Fatalf("%q is folded to %q", text, folded)
		}
	}
	name := Strip(text)
	if Strip(name) != name || Visible(name).Hidden || strings.ContainsAny(name, "\n\t") {
		t.Fatalf("%q is stripped to %q", text, name)
	}
	short := CleanName(text)
	if CleanName(short) != short || utf8.RuneCountInString(short) > MaxName || Visible(short).Hidden {
		t.Fatalf("%q as a name: %q", text, short)
	}
}

// everything checks that each character of a text, or its mark, is at its place in the shown text.
func everything(t interface{ Fatalf(string, ...any) }, text, out string, command bool) {
	if !command {
		text = strings.ReplaceAll(text, "\r\n", "\n")
	}
	rest := out
	for _, r := range text {
		shown := string(r)
		if !strings.HasPrefix(rest, shown) || r == utf8.RuneError {
			shown = mark(r)
		}
		if r == '\t' && command {
			shown = "␉"
		}
		if !strings.HasPrefix(rest, shown) {
			t.Fatalf("%q is shown as %q, where %q is not in its place: %q", text, out, r, rest)
		}
		rest = rest[len(shown):]
	}
	if rest != "" {
		t.Fatalf("%q is shown as %q, which adds %q", text, out, rest)
	}
}

// Even a text of megabytes takes only a moment, whatever it holds.
func TestVisibleIsLinear(t *testing.T) {
	for _, piece := range []string{"\u200b", "\u200b\u200c", "\n", " ", "a", "a\u0301", "\x1b[", "\t", "👨\u200d"} {
		text := strings.Repeat(piece, 1<<20/len(piece))
		if s := VisibleCommand(text); len(s.String()) < len(text)/4 || !s.Long {
			t.Errorf("%q: %d bytes of %d, long %v", piece, len(s.String()), len(text), s.Long)
		}
	}
}
