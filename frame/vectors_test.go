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

// vector is one file of testdata/frames: a text message and what becomes of it. The files are for every implementation of
// the protocol, so nothing in them is about Go; the README.md beside them tells their form.
type vector struct {
	file string

	About     string   `json:"about"`
	Section   string   `json:"section"`   // of doc/protocol.md
	Direction string   `json:"direction"` // up or down
	Raw       *string  `json:"raw"`
	RawBase64 []byte   `json:"raw_base64"` // where the message is not UTF-8
	RawParts  []repeat `json:"raw_parts"`  // where it is too long to write out
	Expect    struct {
		// Type and Fields: the frame is taken. Fields are all that it says; what is absent, null, false, 0 or empty is left out.
		// A string too long to write out stands as {"repeat":[…]}; the cursor that matches no outbox as "malformed".
		// Type "?" is a frame the client does not know and ignores.
		Type   string         `json:"type"`
		Fields map[string]any `json:"fields"`
		// Error and Ref: the frame is refused with this code, naming this id or none.
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

// vectors reads them all. It fails rather than return few: a moved folder must not make the tests pass.
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
	// Every type must have a good example, so that a new one is not forgotten.
	for name := range upTypes {
		if !seen["up "+name] {
			t.Errorf("no vector of an up frame %s", name)
		}
	}
	for _, name := range strings.Fields("ready capabilities approved accepted delivered message media prompt prompt_done typing avatar tool pong result error ?") {
		if !seen["down "+name] {
			t.Errorf("no vector of a down frame %s", name)
		}
	}
}

func (v *vector) testUp(t *testing.T) {
	raw := v.raw()
	kept := bytes.Clone(raw)
	f, err := DecodeUp(raw)
	if err != nil {
		t.Fatalf("%s: refused with %v", v.About, err)
	}
	v.compare(t, upName(f), meaning(f))
	if !bytes.Equal(raw, kept) {
		t.Error("the decoder changed the message")
	}
	// The server reads the next frame into the same memory.
	for i := range raw {
		raw[i] = '!'
	}
	v.compare(t, upName(f), meaning(f))
	again, err := DecodeUp(EncodeUp(f))
	if err != nil {
		t.Fatalf("%s: written out as %.300s it is refused with %v", v.About, EncodeUp(f), err)
	}
	v.compare(t, upName(again), meaning(again))
}

func (v *vector) testRefused(t *testing.T) {
	f, err := DecodeUp(v.raw())
	if err == nil {
		t.Fatalf("%s: taken as %s, want %s", v.About, show(meaning(f)), v.Expect.Error)
	}
	e := checkError(t, err)
	if string(e.Code) != v.Expect.Error || e.Ref != v.Expect.Ref {
		t.Errorf("%s: got %s with ref %q, want %s with ref %q", v.About, e.Code, e.Ref, v.Expect.Error, v.Expect.Ref)
	}
}

// checkError holds what is true of every refusal: it is the frame to answer with, and its sentence helps whoever wrote
// the client.
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
		t.Fatalf("%s: refused with %v", v.About, err)
	}
	unknown, ok := f.(*Unknown)
	if ok != (v.Expect.Type == "?") {
		t.Fatalf("%s: decoded as %T, want %s", v.About, f, v.Expect.Type)
	}
	written := EncodeDown(f)
	again, err := DecodeDown(written)
	if err != nil {
		t.Fatalf("%s: written out as %.300s it is refused with %v", v.About, written, err)
	}
	if ok {
		if u, same := again.(*Unknown); !same || u.Type != unknown.Type {
			t.Errorf("%s: written out as %s it is %#v, want %#v", v.About, written, again, unknown)
		}
		return
	}
	v.compare(t, downName(f), meaning(f))
	v.compare(t, downName(again), meaning(again))
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

// upName is the type of an up frame on the wire, read back from what is written.
func upName(f Up) string {
	var head struct{ T string }
	if err := json.Unmarshal(EncodeUp(f), &head); err != nil {
		return err.Error()
	}
	return head.T
}

func show(meaning any) string {
	b, err := json.Marshal(meaning) // sorts the names of a map
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// plain makes what a vector expects comparable: long strings spelled out, and nothing that says nothing.
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

// meaning is what a frame says, by the names of the wire. It goes through reflection and not through the package's own
// encoder, which is on trial too.
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
