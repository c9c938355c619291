package config

import (
	"reflect"
	"testing"
)

// The expected values are what python-dotenv 1.2.4 returns for the same text.
func TestParseDotenv(t *testing.T) {
	tests := []struct {
		text string
		want []binding
	}{
		{"", nil},
		{"# only\n  # comments\n\n", nil},
		{"\ufeffA=1", []binding{{key: "A", value: "1", line: 1}}},
		{"A=1\r\nB=2\rC=3", []binding{{key: "A", value: "1", line: 1}, {key: "B", value: "2", line: 2}, {key: "C", value: "3", line: 3}}},
		{"export  A = b c # d", []binding{{key: "A", value: "b c", line: 1}}},
		{"A=b#c", []binding{{key: "A", value: "b#c", line: 1}}},
		{"A=#c\nB= #c", []binding{{key: "A", value: "#c", line: 1}, {key: "B", line: 2}}},
		{"A='b # c' # d", []binding{{key: "A", value: "b # c", line: 1}}},
		{`A="b\n\"c\\d\q"`, []binding{{key: "A", value: "b\n\"c\\d\\q", line: 1}}},
		{`A='b\n\'c'`, []binding{{key: "A", value: `b\n'c`, line: 1}}},
		{"A=\"b\nc\"\nB=1", []binding{{key: "A", value: "b\nc", line: 1}, {key: "B", value: "1", line: 3}}},
		{"'A B'=1", []binding{{key: "A B", value: "1", line: 1}}},
		{"A", []binding{{key: "A", bare: true, line: 1}}},
		{"A=", []binding{{key: "A", line: 1}}},
		{"A='b\nB=1", []binding{{bad: true, value: "A='b\n", line: 1}, {key: "B", value: "1", line: 2}}},
		{"A=\"b\" c\nB=1", []binding{{bad: true, value: "A=\"b\" c\n", line: 1}, {key: "B", value: "1", line: 2}}},
		{"A B=1\n=2", []binding{{bad: true, value: "A B=1\n", line: 1}, {bad: true, value: "=2", line: 2}}},
	}
	for _, tt := range tests {
		if got := parseDotenv(tt.text); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%q:\n got %+v\nwant %+v", tt.text, got, tt.want)
		}
	}
}

func TestDotenvThroughLoad(t *testing.T) {
	c := mustLoad(t, fixture{
		environ: []string{"MOBILE_AGENT=demo", "OUTER=o"},
		dotenv:  "BASE=https://a.example\nMOBILE_PUBLIC_URL=\"${BASE}/${OUTER}/${NONE:-d}${NONE}\"\nMOBILE_PORT=1\nMOBILE_PORT=2\nMOBILE_HOST\nMOBILE_PATH='/x\n",
	}.sources(t),
		"MOBILE_HOST (in ~/.hermes/.env, line 5) is ignored: it has no = and no value",
		"a line is skipped (in ~/.hermes/.env, line 6): it is not NAME=value, or a quote is not closed")
	if c.PublicURL != "https://a.example/o/d" || c.Port != 2 {
		t.Errorf("%q, %d", c.PublicURL, c.Port)
	}
}

func FuzzParseDotenv(f *testing.F) {
	f.Add("export A='b' # c\r\nB=\"\\n\"\n")
	f.Fuzz(func(t *testing.T, text string) {
		line := 0
		for _, b := range parseDotenv(text) {
			if b.line < max(line, 1) || b.bad == (b.key != "") {
				t.Fatalf("%q: %+v", text, b)
			}
			line = b.line
		}
	})
}
