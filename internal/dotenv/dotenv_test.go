package dotenv

import (
	"encoding/json"
	"maps"
	"os"
	"strings"
	"testing"
)

// vectors are what python-dotenv makes of many texts; test/readers asks it.
func vectors(t testing.TB) (list []struct {
	Text    string
	Entries []struct {
		Key, Value *string
		Error      bool
		Line       int
	}
	Values map[string]*string
}) {
	t.Helper()
	data, err := os.ReadFile("testdata/python-dotenv.json")
	if err == nil {
		err = json.Unmarshal(data, &list)
	}
	if err != nil || len(list) < 200 {
		t.Fatal(len(list), err)
	}
	return list
}

// Every text has the entries that python-dotenv finds in it, and its variables the same values.
func TestAsPythonDotenv(t *testing.T) {
	environ := func(name string) (string, bool) { return "o", name == "OUTER" }
	for _, v := range vectors(t) {
		got := Parse(v.Text)
		if len(got) != len(v.Entries) {
			t.Errorf("%q has %d entries, want %d: %+v", v.Text, len(got), len(v.Entries), got)
			continue
		}
		for i, want := range v.Entries {
			g := got[i]
			if g.Bad != want.Error || !g.Bad && (g.Key != *want.Key || g.Bare != (want.Value == nil) || !g.Bare && g.Value != *want.Value) {
				t.Errorf("%q, entry %d is %+v, want %+v", v.Text, i, g, want)
			}
		}
		for name, want := range v.Values {
			if value, ok := Get(v.Text, name, environ); ok != (want != nil) || ok && value != *want {
				t.Errorf("%q: %s is %q, %v; want %v", v.Text, name, value, ok, want)
			}
		}
		check(t, v.Text, got)
	}
}

// check checks the positions of entries: what stands there is the entry, and an entry alone says the same.
func check(t *testing.T, text string, list []Entry) {
	t.Helper()
	last := 0
	for _, e := range list {
		if e.Start < last || e.End <= e.Start || e.End > len(text) || e.Bad == (e.Key != "") || e.Line != 1+lines(text[:e.Start]) {
			t.Fatalf("%q: %+v", text, e)
		}
		last = e.End
		if e.Bad || e.Bare {
			continue
		}
		if e.From < e.Start || e.To < e.From || e.To > e.End {
			t.Fatalf("%q: %+v", text, e)
		}
		if alone := Parse(text[e.Start:e.End]); len(alone) != 1 || alone[0].Key != e.Key || alone[0].Value != e.Value {
			t.Fatalf("%q: %+v is alone %+v", text, e, alone)
		}
		// Another value in its place changes this entry and no other.
		changed := Parse(text[:e.From] + "new" + strings.Repeat(" ", one(text[e.To:e.End])) + text[e.To:])
		if len(changed) != len(list) {
			t.Fatalf("%q: with a new value for %+v it is %+v", text, e, changed)
		}
		for i, c := range changed {
			want := list[i]
			if want.Start == e.Start {
				want.Value = "new"
			}
			if c.Key != want.Key || c.Value != want.Value || c.Bad != want.Bad {
				t.Fatalf("%q: with a new value for %+v, %+v is %+v", text, e, want, c)
			}
		}
	}
}

// one is the blank that a quoted value needs before a comment that was part of a plain one's end.
func one(rest string) int {
	if strings.HasPrefix(rest, "#") {
		return 1
	}
	return 0
}

func lines(s string) int { return len(reLineEnd.FindAllString(s, -1)) }

func TestMark(t *testing.T) {
	list := Parse("\ufeffA=1\nB=2\n")
	if len(list) != 2 || list[0].Key != "A" || list[0].Start != 3 || list[1].Line != 2 {
		t.Errorf("%+v", list)
	}
}

func TestGet(t *testing.T) {
	text := "A=1\nB='${A}${C:-d}${D}'\nA=2\nE\n"
	for name, want := range map[string]string{"A": "2", "B": "1d", "E": "", "F": ""} {
		if v, ok := Get(text, name, nil); v != want || ok != (want != "") {
			t.Errorf("%s is %q, %v", name, v, ok)
		}
	}
	if n := len(Lines(text, "A")); n != 2 {
		t.Errorf("%d lines", n)
	}
	if got := maps.Collect(func(yield func(string, string) bool) {
		for _, e := range Parse(text) {
			if !e.Bare && !yield(e.Key, e.Value) {
				return
			}
		}
	}); got["B"] != "${A}${C:-d}${D}" {
		t.Errorf("%v", got)
	}
}

// FuzzParse: any text has entries that stand where they say.
func FuzzParse(f *testing.F) {
	for _, v := range vectors(f) {
		f.Add(v.Text)
	}
	f.Fuzz(func(t *testing.T, text string) { check(t, text, Parse(text)) })
}
