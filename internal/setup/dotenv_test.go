package setup

import (
	"strings"
	"testing"
)

func TestSetenv(t *testing.T) {
	for name, tc := range map[string]struct{ in, out string }{
		"empty":          {"", "X=new\n"},
		"added":          {"A=1\n# c\n", "A=1\n# c\nX=new\n"},
		"no end":         {"A=1", "A=1\nX=new\n"},
		"CRLF":           {"A=1\r\n", "A=1\r\nX=new\r\n"},
		"mark":           {"\ufeffX=old\n", "\ufeffX=new\n"},
		"in place":       {"A=1\n  export X = old   # why\nB=2\n", "A=1\n  export X = new   # why\nB=2\n"},
		"quoted":         {"X=\"o\\\"ld\" # c\nB=2", "X=new # c\nB=2"},
		"single":         {"X='old'\n", "X=new\n"},
		"twice":          {"X=1\nA=1\nX=2\nB=2\n", "A=1\nX=new\nB=2\n"},
		"right already":  {"X=old\nX='new'\n", "X=old\nX='new'\n"},
		"in a value":     {"A=\"a\nX=old\nb\"\nB=2\n", "A=\"a\nX=old\nb\"\nB=2\nX=new\n"},
		"empty value":    {"X=\nB=2\n", "X=new\nB=2\n"},
		"comment":        {"#X=old\n", "#X=old\nX=new\n"},
		"no value":       {"X\nB=2\n", "X\nB=2\nX=new\n"},
		"unclosed quote": {"A=\"b\nX=old\n", "A=\"b\nX=new\n"},
		"after a quote":  {"X=\"a\nb\"c\nB=2\n", "X=\"a\nb\"c\nB=2\nX=new\n"},
		"close comment":  {"X='old'# c\nB=2\n", "X=new # c\nB=2\n"},
		"taken back":     {"X=1\nA=1\nX\n", "X=new\nA=1\n"},
		"open quote":     {"A='b\n", "A='b\nX=new\n"},
		"blank":          {"X=old\u00a0# c\n", "X=new\u00a0# c\n"},
		"expanded":       {"B=1\nX=${B}\n", "B=1\nX=new\n"},
		"glued comment":  {"X= #c\n", "X= new\n"},
		"longer name":    {"XY=1\nAX=2\n", "XY=1\nAX=2\nX=new\n"},
	} {
		t.Run(name, func(t *testing.T) {
			out, _, err := setenv([]byte(tc.in), "X", "new")
			if err != nil || string(out) != tc.out {
				t.Errorf("%q, %v; want %q", out, err, tc.out)
			}
			if v, ok := getenv(out, "X"); !ok || v != "new" {
				t.Errorf("then it is %q", v)
			}
			again, c, err := setenv(out, "X", "new")
			if err != nil || c != nil || string(again) != tc.out {
				t.Errorf("the second time it is %q", again)
			}
			if v, ok := getenv(unsetenv(out, "X"), "X"); ok {
				t.Errorf("taken out it is %q", v)
			}
		})
	}
	// A quote that is not closed would end at ours.
	if out, _, err := setenv([]byte("B=1\nA='b\n"), "X", "a b"); err == nil || !strings.Contains(err.Error(), ".env, line 2") {
		t.Errorf("%q %v", out, err)
	}
	if out := unsetenv([]byte("X='a\nb'\nA=1\n"), "X"); string(out) != "A=1\n" {
		t.Errorf("%q", out)
	}
	out, _, err := setenv(nil, "X", "a b#c")
	if err != nil || string(out) != "X='a b#c'\n" {
		t.Errorf("%q %v", out, err)
	}
	for _, bad := range []string{"a'b", "a\nb", "${HOME}", `a\`} {
		if _, _, err := setenv(nil, "X", bad); err == nil {
			t.Errorf("%q is written", bad)
		}
	}
	if strings.Contains(errUnwritable.Error(), "%") {
		t.Error("a verb in the error")
	}
}
