package gateway

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"hermes-mobile/internal/sse"
)

// seed adds the recordings whose names contain one of the words.
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

// fuzzDecoder: a decoder accepts any input without harm. It ends at most once, emits nothing after
// that, and its events can be stored.
func fuzzDecoder(f *testing.F, fresh func() turnDecoder) {
	f.Fuzz(func(t *testing.T, data []byte) {
		d := fresh()
		r := sse.NewReader(bytes.NewReader(data), 1<<20)
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
