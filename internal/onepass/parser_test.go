package onepass

import (
	"encoding/json"
	"testing"
)

// What the parser accepts, it reads as encoding/json does.
func TestStr(t *testing.T) {
	for text, ok := range map[string]bool{
		`""`: true, `"plain"`: true, ` "blanks before"`: true, `"é ✅"`: true, `"a\n\t\r\b\f\/\\\"b"`: true,
		`"\u00e9"`: true, `"\ud83d\ude00"`: true, `"before\u0041 after"`: true,
		`"open`: false, `"open\`: false, `"\x"`: false, `"\u12"`: false, `"\ud83d"`: false, `"\ud83d\u0041"`: false,
		"\"a\nb\"": false, "\"\xff\"": false, "\"\\n\xff\"": false, `plain`: false, ``: false,
	} {
		var p Parser
		p.Reset([]byte(text))
		got, read := p.Str()
		if read != ok {
			t.Errorf("%s: read %v, want %v", text, read, ok)
			continue
		}
		var want string
		if err := json.Unmarshal([]byte(text), &want); ok && (err != nil || string(got) != want || !p.Over()) {
			t.Errorf("%s: %q, want %q, %v", text, got, want, err)
		}
	}
}

func TestNumber(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "-0": "-0", " 12 ": "12", "-3.25": "-3.25", "337961842679854": "337961842679854",
		"01": "", "-": "", "1.": "", ".5": "", "1e3": "", "1E3": "", "+1": "", "x": "", "": "",
	} {
		var p Parser
		p.Reset([]byte(text))
		if got, ok := p.Number(); string(got) != want || ok != (want != "") {
			t.Errorf("%q: %q %v", text, got, ok)
		}
	}
	var p Parser
	p.Reset([]byte("-3.25"))
	if n, ok := p.Num(); n != -3.25 || !ok {
		t.Errorf("%v %v", n, ok)
	}
}

func TestObject(t *testing.T) {
	for text, ok := range map[string]bool{
		`{}`: true, ` { "a" : 1 , "b" : "x" } `: true, `{"a":null,"c":true}`: true, `{"a":false}`: true,
		`{"a":1,}`: false, `{"a" 1}`: false, `{"a":1`: false, `{a:1}`: false, `{"a":{}}`: false, `{"a":[]}`: false,
		`{"unknown":1}`: false, `[]`: false, `{"a":1}x`: false, `{"a":nul}`: false, `{"a":tru}`: false,
	} {
		var p Parser
		p.Reset([]byte(text))
		got := p.Object(func(name []byte) bool { return len(name) == 1 && p.Scalar() }) && p.Over()
		if got != ok {
			t.Errorf("%s: %v, want %v", text, got, ok)
		}
	}
}

func TestKeep(t *testing.T) {
	var p Parser
	p.Reset([]byte(`"a\u0062" "c\u0064"`))
	kept, ok := p.Keep()
	if _, ok2 := p.Str(); !ok || !ok2 || string(kept) != "ab" {
		t.Errorf("kept %q", kept)
	}
	if p.At() != len(`"a\u0062" "c\u0064"`) {
		t.Errorf("at %d", p.At())
	}
}
