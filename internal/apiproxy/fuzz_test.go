package apiproxy

import (
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzFields: the API server sees of an object exactly what was checked here: each name once, with
// the value that was looked at.
func FuzzFields(f *testing.F) {
	for _, body := range []string{"", "null", "[]", "{}", `{"session_id":"a","session_id":"b"}`, `{"session_id":null}`, `{"session_id":7}`, `{"session_id":"a","Session_ID":"b"}`, `{"a":{"a":[1,{"b":"c"}]}}`, `{"session_id":"\ud800"}`, "{}x", "\xef\xbb\xbf{}"} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		in, ok := object(body)
		if !ok {
			return
		}
		value, set, valid := in.text("session_id")
		again, ok := object(in.body())
		if !ok {
			t.Fatalf("%q is written as %q", body, in.body())
		}
		value2, set2, valid2 := again.text("session_id")
		if value != value2 || set != set2 || valid != valid2 || len(in) != len(again) || !bytes.Equal(in.body(), again.body()) {
			t.Fatalf("%q: %q %t %t, then %q %t %t", body, value, set, valid, value2, set2, valid2)
		}
		names := json.NewDecoder(bytes.NewReader(in.body()))
		depth, key, seen := 0, true, map[string]bool{}
		for tok, err := names.Token(); err == nil; tok, err = names.Token() {
			switch d, is := tok.(json.Delim); {
			case is && (d == '{' || d == '['):
				depth++
			case is:
				depth--
			case depth == 1 && key:
				if seen[tok.(string)] {
					t.Fatalf("%q: %q twice in %q", body, tok, in.body())
				}
				seen[tok.(string)] = true
				key = false
				continue
			}
			if depth == 1 {
				key = true
			}
		}
	})
}
