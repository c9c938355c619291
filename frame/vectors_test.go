package frame

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// vector is one file of testdata/frames: a text message and the expected result of decoding it. The
// files serve every implementation of the protocol, so nothing in them is specific to Go. Their
// README.md describes the format.
type vector struct {
	file string

	About     string   `json:"about"`
	Section   string   `json:"section"`   // of doc/protocol.md
	Direction string   `json:"direction"` // up or down
	Raw       *string  `json:"raw"`
	RawBase64 []byte   `json:"raw_base64"` // where the message is not UTF-8
	RawParts  []repeat `json:"raw_parts"`  // where it is too long to write out
	Expect    struct {
		// With Type and Fields, the decoder accepts the frame. Fields lists all fields except those
		// that are absent, null, false, 0 or empty. A long string is {"repeat":[…]}; a cursor that
		// matches no outbox is "malformed". Type "?" is an unknown frame, which the client ignores.
		Type   string         `json:"type"`
		Fields map[string]any `json:"fields"`
		// With Error and Ref, the decoder rejects the frame with this code, and names this id or
		// none.
		Error string `json:"error"`
		Ref   string `json:"ref"`
	} `json:"expect"`
}

type repeat struct {
	Text  string `json:"text"`
	Times int    `json:"times"`
}

func (v *vector) raw() []byte {
	switch {
	case v.Raw != nil:
		return []byte(*v.Raw)
	case v.RawBase64 != nil:
		return v.RawBase64
	}
	return []byte(spellOut(v.RawParts))
}

func spellOut(parts []repeat) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(strings.Repeat(p.Text, p.Times))
	}
	return b.String()
}

const minVectors = 120

// vectors reads all vectors. It fails when it finds few: a moved folder must not make the tests
// pass.
func vectors(t testing.TB) []*vector {
	t.Helper()
	root := filepath.Join("..", "testdata", "frames")
	var all []*vector
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, _ := filepath.Rel(root, path)
		name = filepath.ToSlash(name)
		if name == "README.md" {
			return nil
		}
		if filepath.Ext(name) != ".json" || strings.Count(name, "/") != 1 {
			t.Errorf("%s is not used: a vector is <group>/<name>.json", name)
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		v := &vector{file: strings.TrimSuffix(name, ".json")}
		dec := json.NewDecoder(bytes.NewReader(content))
		dec.DisallowUnknownFields()
		dec.UseNumber()
		if err := dec.Decode(v); err != nil {
			t.Errorf("%s: %v", name, err)
			return nil
		}
		if problem := v.check(); problem != "" {
			t.Errorf("%s: %s", name, problem)
			return nil
		}
		all = append(all, v)
		return nil
	})
	if err != nil {
		t.Fatalf("read vectors: %v", err)
	}
	if len(all) < minVectors {
		t.Fatalf("%d vectors in %s, want %d at least", len(all), root, minVectors)
	}
	return all
}

func (v *vector) check() string {
	given := 0
	for _, is := range []bool{v.Raw != nil, v.RawBase64 != nil, v.RawParts != nil} {
		if is {
			given++
		}
	}
	switch {
	case given != 1:
		return "one of raw, raw_base64 and raw_parts must be there"
	case v.About == "" || !strings.HasPrefix(v.Section, "§"):
		return "about and section must say what it is for"
	case v.Direction != "up" && v.Direction != "down":
		return "direction must be up or down"
	case (v.Expect.Type == "") == (v.Expect.Error == ""):
		return "expect needs a type or an error"
	case v.Expect.Error != "" && (v.Expect.Fields != nil || v.Direction == "down"):
		return "an error has no fields, and only the server sends one"
	}
	return ""
}

func TestVectors(t *testing.T) {
	seen := map[string]bool{}
	for _, v := range vectors(t) {
		t.Run(v.file, func(t *testing.T) {
			switch {
			case v.Direction == "down":
				v.testDown(t)
			case v.Expect.Error != "":
				v.testRefused(t)
			default:
				v.testUp(t)
			}
		})
		seen[v.Direction+" "+v.Expect.Type] = true
	}
	// Every type needs a valid example, so that nobody forgets one for a new type.
	for _, f := range UpTypes() {
		if !seen["up "+UpName(f)] {
			t.Errorf("no vector of an up frame %s", UpName(f))
		}
	}
	for _, f := range append(DownTypes(), &Unknown{Type: "?"}) {
		if !seen["down "+DownName(f)] {
			t.Errorf("no vector of a down frame %s", DownName(f))
		}
	}
}

func (v *vector) testUp(t *testing.T) {
	raw := v.raw()
	kept := bytes.Clone(raw)
	f, err := DecodeUp(raw)
	if err != nil {
		t.Fatalf("%s: rejected with %v", v.About, err)
	}
	v.compare(t, UpName(f), meaning(f))
	if !bytes.Equal(raw, kept) {
		t.Error("the decoder changed the message")
	}
	// The server reads the next frame into the same memory.
	for i := range raw {
		raw[i] = '!'
	}
	v.compare(t, UpName(f), meaning(f))
	again, err := DecodeUp(EncodeUp(f))
	if err != nil {
		t.Fatalf("%s: written out as %.300s it is rejected with %v", v.About, EncodeUp(f), err)
	}
	v.compare(t, UpName(again), meaning(again))
}

func (v *vector) testRefused(t *testing.T) {
	f, err := DecodeUp(v.raw())
	if err == nil {
		t.Fatalf("%s: accepted as %s, want %s", v.About, show(meaning(f)), v.Expect.Error)
	}
	e := checkError(t, err)
	if string(e.Code) != v.Expect.Error || e.Ref != v.Expect.Ref {
		t.Errorf("%s: got %s with ref %q, want %s with ref %q", v.About, e.Code, e.Ref, v.Expect.Error, v.Expect.Ref)
	}
}

// checkError checks what holds for every rejection: it is the frame to answer with, and its message
// helps the author of the client.
func checkError(t testing.TB, err error) *Error {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("an error of type %T, want *Error: %v", err, err)
	}
	switch e.Code {
	case BadFrame, TooBig, Unsupported:
	default:
		t.Fatalf("code %q, want one of the codec's", e.Code)
	}
	if len(strings.Fields(e.Message)) < 3 {
		t.Fatalf("message %q, want a sentence", e.Message)
	}
	if e.Ref != "" && !ValidMessageID(e.Ref) {
		t.Fatalf("ref %.200q, want an id", e.Ref)
	}
	return e
}

func (v *vector) testDown(t *testing.T) {
	f, err := DecodeDown(v.raw())
	if err != nil {
		t.Fatalf("%s: rejected with %v", v.About, err)
	}
	unknown, ok := f.(*Unknown)
	if ok != (v.Expect.Type == "?") {
		t.Fatalf("%s: decoded as %T, want %s", v.About, f, v.Expect.Type)
	}
	written := EncodeDown(f)
	again, err := DecodeDown(written)
	if err != nil {
		t.Fatalf("%s: written out as %.300s it is rejected with %v", v.About, written, err)
	}
	if ok {
		if u, same := again.(*Unknown); !same || u.Type != unknown.Type {
			t.Errorf("%s: written out as %s it is %#v, want %#v", v.About, written, again, unknown)
		}
		return
	}
	v.compare(t, DownName(f), meaning(f))
	v.compare(t, DownName(again), meaning(again))
}

func (v *vector) compare(t *testing.T, name string, got any) {
	t.Helper()
	if name != v.Expect.Type {
		t.Fatalf("%s: type %q, want %q", v.About, name, v.Expect.Type)
	}
	want := plain(v.Expect.Fields)
	if show(got) != show(want) {
		t.Errorf("%s:\n got %.600s\nwant %.600s", v.About, show(got), show(want))
	}
}

func show(meaning any) string {
	b, err := json.Marshal(meaning) // sorts the names of a map
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// plain makes the expectation of a vector comparable: it expands long strings and drops empty
// values.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if parts, ok := v["repeat"]; ok {
			b, _ := json.Marshal(parts)
			var r []repeat
			if json.Unmarshal(b, &r) == nil {
				return spellOut(r)
			}
		}
		out := map[string]any{}
		for name, value := range v {
			if p := plain(value); says(p) {
				out[name] = p
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = plain(v[i])
		}
		return out
	}
	return v
}

func says(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		return v != ""
	case json.Number:
		return v != "0"
	case map[string]any:
		return len(v) > 0
	case []any:
		return len(v) > 0
	}
	return true
}

// meaning returns the content of a frame by its names on the wire. It uses reflection and not the
// package's own encoder, which is under test, too.
func meaning(f any) any {
	m := fieldsOf(f)
	switch f := f.(type) {
	case *Hello:
		if f.Resume != nil && f.Resume.Epoch == "" {
			m["resume"] = "malformed"
		}
	case *Call:
		addJSON(m, "params", f.Params)
	case *Result:
		addJSON(m, "result", f.Result)
	}
	return plain(m)
}

func addJSON(m map[string]any, name string, raw []byte) {
	if len(raw) == 0 {
		return
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	var v any
	if err := dec.Decode(&v); err != nil {
		v = base64.StdEncoding.EncodeToString(raw) + " is not JSON: " + err.Error()
	}
	m[name] = v
}
