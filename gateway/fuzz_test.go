package gateway

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"
)

// seed adds the recordings whose names hold one of the words.
func seed(f *testing.F, words ...string) {
	f.Helper()
	n := 0
	for _, file := range recordings(f) {
		for _, word := range words {
			if strings.Contains(file, word) {
				data, err := os.ReadFile(file)
				must(f, err)
				f.Add(data)
				n++
				break
			}
		}
	}
	if n == 0 {
		f.Fatalf("no recording is a seed for %v", words)
	}
}

// FuzzEventReader: the events do not depend on how the bytes arrive, and hold nothing that was not sent.
func FuzzEventReader(f *testing.F) {
	seed(f, ".sse")
	f.Add([]byte("\uFEFFdata: a\r\rid: 1\x00\r\ndata\n\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		whole, err := read(NewEventReader(bytes.NewReader(data), 0))
		if err != io.EOF {
			t.Fatalf("the reader failed: %v", err)
		}
		pieces, err := read(NewEventReader(iotest.OneByteReader(bytes.NewReader(data)), 0))
		if err != io.EOF || pieces != whole {
			t.Fatalf("by bytes: %s, %v\nwhole: %s", pieces, err, whole)
		}
		if utf8.Valid(data) {
			r := NewEventReader(bytes.NewReader(data), 0)
			for {
				ev, err := r.Next()
				if err != nil {
					break
				}
				if !utf8.Valid(ev.Data) {
					t.Fatal("the reader broke a character")
				}
			}
		}
	})
}

// fuzzDecoder: a decoder takes anything without harm. It ends at most once, nothing comes after that, and what it says can
// be stored.
func fuzzDecoder(f *testing.F, fresh func() turnDecoder) {
	f.Fuzz(func(t *testing.T, data []byte) {
		d := fresh()
		r := NewEventReader(bytes.NewReader(data), 1<<20)
		over := false
		var reply Reply
		for {
			ev, err := r.Next()
			if err != nil {
				break
			}
			for _, e := range d.decode(ev, nil) {
				if over {
					t.Fatalf("%T after the end", e)
				}
				if _, err := json.Marshal(e); err != nil {
					t.Fatalf("%T cannot be stored: %v", e, err)
				}
				if ended, ok := e.(Ended); ok {
					over = true
					checkOutcome(t, ended.Outcome)
				}
				reply.Apply(e)
			}
		}
		if !over {
			o, _ := d.end()
			checkOutcome(t, o)
		}
	})
}

func checkOutcome(t *testing.T, o Outcome) {
	t.Helper()
	if (o.Err == nil) != (o.State == Completed || o.State == Cancelled) {
		t.Fatalf("outcome %s with error %v", o.State, o.Err)
	}
	if o.Err != nil && o.Err.Error() == "" {
		t.Fatal("an error without words")
	}
}

func FuzzDecodeSession(f *testing.F) {
	seed(f, "chat_stream_")
	fuzzDecoder(f, func() turnDecoder { return &sessionDecoder{sessionID: "s-tool"} })
}

func FuzzDecodeRun(f *testing.F) {
	seed(f, "run_")
	fuzzDecoder(f, func() turnDecoder { return &runDecoder{sessionID: "s", runID: "run_1"} })
}

func FuzzDecodeCompletions(f *testing.F) {
	seed(f, "chat_completions_")
	fuzzDecoder(f, func() turnDecoder { return &completionsDecoder{} })
}

func FuzzDecodeResponses(f *testing.F) {
	seed(f, "responses_")
	fuzzDecoder(f, func() turnDecoder { return &responsesDecoder{hermes: true} })
}
