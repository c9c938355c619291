package frame

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// seed adds the vectors of one direction. It fails on an empty corpus, which would silently fuzz
// nothing.
func seed(f *testing.F, direction string) {
	f.Helper()
	added := 0
	for _, v := range vectors(f) {
		// TestVectors covers messages of a megabyte. Mutating them finds nothing that small ones do
		// not.
		if raw := v.raw(); v.Direction == direction && len(raw) < 64<<10 {
			f.Add(raw)
			added++
		}
	}
	if added < minVectors/4 {
		f.Fatalf("%d vectors to start from: the corpus is missing", added)
	}
}

func FuzzDecodeUp(f *testing.F) {
	seed(f, "up")
	f.Fuzz(func(t *testing.T, raw []byte) {
		kept := bytes.Clone(raw)
		frame, err := DecodeUp(raw)
		if !bytes.Equal(raw, kept) {
			t.Fatal("the decoder changed the message")
		}
		if err != nil {
			if frame != nil {
				t.Fatalf("an error with a partial frame: %#v", frame)
			}
			answer := EncodeDown(checkError(t, err))
			if back, err := DecodeDown(answer); err != nil || !json.Valid(answer) || *back.(*Error) != *checkError(t, mustFail(raw)) {
				t.Fatalf("the answer %s is not read back: %#v, %v", answer, back, err)
			}
			return
		}
		if !json.Valid(raw) {
			t.Fatalf("accepted, but encoding/json does not: %q", raw)
		}
		if h, ok := frame.(*Hello); ok && h.Token == "" && h.Pair == "" {
			return // the decoder accepts "token":"" so that the server can reject the token; no client sends it
		}
		want := show(meaning(frame))
		written := EncodeUp(frame)
		if !json.Valid(written) {
			t.Fatalf("written out as no JSON: %q", written)
		}
		again, err := DecodeUp(written)
		if err != nil {
			t.Fatalf("written out as %s it is rejected: %v", written, err)
		}
		if got := show(meaning(again)); got != want || UpName(again) != UpName(frame) {
			t.Fatalf("written out as %s\n got %s\nwant %s", written, got, want)
		}
	})
}

func mustFail(raw []byte) error {
	_, err := DecodeUp(raw)
	return err
}

func FuzzDecodeDown(f *testing.F) {
	seed(f, "down")
	f.Fuzz(func(t *testing.T, raw []byte) {
		frame, err := DecodeDown(raw)
		if err != nil {
			if frame != nil || err.Error() == "" {
				t.Fatalf("an error with a partial frame or an empty text: %#v, %q", frame, err)
			}
			return
		}
		settle(frame)
		written := EncodeDown(frame)
		again, err := DecodeDown(written)
		if err != nil {
			t.Fatalf("%#v\nwritten out as %s it is rejected: %v", frame, written, err)
		}
		if got, want := show(meaning(again)), show(meaning(frame)); got != want || DownName(again) != DownName(frame) {
			t.Fatalf("written out as %s\n got %s\nwant %s", written, got, want)
		}
	})
}

// settle removes from a decoded frame the fields that no server sends together, and that the
// encoder drops.
func settle(f Down) {
	switch f := f.(type) {
	case *Message:
		if f.Append != nil {
			f.Text, f.Chunk = "", Chunk{}
		} else {
			f.At = 0
		}
	case *Result:
		if f.Err != nil {
			f.Result = nil
		}
	}
}

// FuzzTooDeep compares the quick scan, which skips strings, with one that reads every byte, and on
// well-formed JSON with encoding/json.
func FuzzTooDeep(f *testing.F) {
	seed(f, "up")
	for _, n := range []int{MaxDepth - 1, MaxDepth, MaxDepth + 1} {
		f.Add([]byte(strings.Repeat("[", n) + strings.Repeat("]", n)))
		f.Add([]byte(strings.Repeat(`{"\\\"[":`, n) + `"\\"` + strings.Repeat("}", n)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		raw := raw(data)
		got := raw.tooDeep()
		if want := depthByBytes(raw) > MaxDepth; got != want {
			t.Fatalf("tooDeep = %v, want %v for %q", got, want, raw)
		}
		if json.Valid(raw) {
			if want := depthByTokens(raw) > MaxDepth; got != want {
				t.Fatalf("tooDeep = %v, want %v by encoding/json for %q", got, want, raw)
			}
		}
	})
}

func depthByBytes(raw []byte) (deepest int) {
	depth, inString, escaped := 0, false, false
	for _, c := range raw {
		switch {
		case escaped:
			escaped = false
		case inString && c == '\\':
			escaped = true
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}

func depthByTokens(raw []byte) (deepest int) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber() // a number may be too large for a float
	for depth := 0; ; {
		token, err := dec.Token()
		if err != nil {
			return deepest
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
			deepest = max(deepest, depth)
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
	}
}

// FuzzVisible checks that any text shows whole and hides nothing.
func FuzzVisible(f *testing.F) {
	for _, v := range readVisible[shownVector](f, "texts.json", 80) {
		f.Add(string(v.Text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) < 64<<10 {
			checkVisible(t, text)
		}
	})
}
