package gateway

import (
	"bytes"
	"os"
	"reflect"
	"strings"
	"testing"

	"hermes-mobile/internal/sse"
)

// freshDecoders returns the decoders that decode plain deltas, in the state of a running turn.
func freshDecoders() []turnDecoder {
	return []turnDecoder{
		&runDecoder{sessionID: "s", runID: "run_1"},
		&sessionDecoder{sessionID: "s", runID: "run_1"},
		&completionsDecoder{id: "c"},
	}
}

// sameDelta lets quick decode an event as a plain delta and slow decode it in full. What quick
// accepts must equal slow's result. What it rejects must not have changed quick.
func sameDelta(t *testing.T, quick, slow turnDecoder, ev sse.Event) (taken bool) {
	t.Helper()
	before := quick.(deltaDecoder)
	delta, ok := before.delta(ev)
	if !ok {
		return false
	}
	want := slow.decode(ev, nil)
	if len(want) == 1 {
		if d, is := want[0].(Delta); is {
			d.Position = "" // fillMeta adds it
			want[0] = d
		}
	}
	if !reflect.DeepEqual(want, []Event{delta}) || slow.damaged() {
		t.Fatalf("%q is the delta %+v, decoded it is %+v", ev.Data, delta, want)
	}
	quickEnd, _ := quick.end()
	slowEnd, _ := slow.end()
	if !reflect.DeepEqual(quickEnd, slowEnd) {
		t.Fatalf("after %q the reply is %+v, decoded it is %+v", ev.Data, quickEnd, slowEnd)
	}
	return true
}

// The one-pass decoder agrees with the full one on the recordings, and accepts most deltas.
func TestDeltaRecordings(t *testing.T) {
	for _, file := range recordings(t) {
		data, err := os.ReadFile(file)
		must(t, err)
		quick, slow := decoderFor(t, file, data), decoderFor(t, file, data)
		if _, ok := quick.(deltaDecoder); !ok {
			continue
		}
		taken, deltas := 0, 0
		r := sse.NewReader(bytes.NewReader(data), maxEvent)
		for {
			ev, err := r.Next()
			if err != nil {
				break
			}
			if sameDelta(t, quick, slow, ev) {
				taken++
				deltas++
				continue
			}
			want := slow.decode(ev, nil)
			if got := quick.decode(ev, nil); !reflect.DeepEqual(got, want) {
				t.Fatalf("%s: %q gives %+v, want %+v", file, ev.Data, got, want)
			}
			for _, e := range want {
				if _, ok := e.(Delta); ok {
					deltas++
				}
			}
		}
		if deltas > 10 && taken < deltas/2 {
			t.Errorf("%s: only %d of %d deltas were read in one pass", file, taken, deltas)
		}
	}
}

func TestDeltaShapes(t *testing.T) {
	const (
		run, session, completions = 0, 1, 2
	)
	for _, c := range []struct {
		way   int
		data  string
		taken bool
	}{
		{run, `{"event": "message.delta", "run_id": "run_1", "timestamp": 1795988917.037798, "delta": "Hello ", "seq": 0}`, true},
		{run, ` {"event":"message.delta","delta":"a\n\t\"\\\/\b\f\r\u00e9\ud83d\ude00ü"} `, true},
		{run, `{"event":"message.delta","delta":"a","delta":"b","run_id":"run_1"}`, true},
		{run, `{"event":"message.delta","delta":""}`, false},
		{run, `{"event":"message.delta","delta":"a","run_id":"run_2"}`, false},
		{run, `{"event":"reasoning.delta","delta":"a"}`, false},
		{run, `{"event":"message.delta","delta":"a","text":"b"}`, false},
		{run, `{"event":"message.delta","delta":"a","Delta":"b"}`, false},
		{run, `{"event":"message.delta","delta":"\ud83d"}`, false},
		{run, `{"event":"message.delta","delta":"\ud83dx"}`, false},
		{run, "{\"event\":\"message.delta\",\"delta\":\"\xff\"}", false},
		{run, "{\"event\":\"message.delta\",\"delta\":\"a\nb\"}", false},
		{run, `{"event":"message.delta","delta":"a"}}`, false},
		{run, `{"event":"message.delta","delta":"a",}`, false},
		{run, `{"event":"message.delta","delta":"a"`, false},
		{run, `{"event":"message.delta","delta":"a\`, false},
		{run, `{"event":"message.delta","delta":"a\u00`, false},
		{run, `{"event":"message.delta","delta":"\x"}`, false},
		{run, `{"event":"message.delta","timestamp":01,"delta":"a"}`, false},
		{run, `{"event":"message.delta","timestamp":-,"delta":"a"}`, false},
		{run, `{"event":"message.delta","timestamp":1.,"delta":"a"}`, false},
		{run, `{"event":"message.delta","timestamp":null,"delta":"a"}`, false},
		{run, `[]`, false},
		{run, ``, false},
		{session, `{"message_id":"m","delta":"a","session_id":"s","run_id":"run_1","seq":3,"ts":1795988684.25}`, true},
		{session, `{"delta":"a","session_id":"other","run_id":"run_1"}`, false},
		{session, `{"delta":"a","session_id":"s","run_id":"run_2"}`, false},
		{completions, `{"id":"c","object":"chat.completion.chunk","created":1795989085,"model":"m","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}`, true},
		{completions, `{"id":"c","usage":null,"system_fingerprint":null,"choices":[{"index":0,"delta":{"role":"assistant","content":"a","refusal":null},"logprobs":null,"finish_reason":null}]}`, true},
		{completions, `{"id":"c","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}`, false},
		{completions, `{"id":"c","choices":[{"index":1,"delta":{"content":"a"}}]}`, false},
		{completions, `{"id":"c","choices":[{"index":0,"delta":{"content":"a"}},{"index":0,"delta":{"content":"b"}}]}`, false},
		{completions, `{"id":"c","choices":[]}`, false},
		{completions, `{"id":"c","choices":[{"index":0,"delta":{"content":"a","reasoning_content":"b"}}]}`, false},
		{completions, `{"id":"d","choices":[{"index":0,"delta":{"content":"a"}}]}`, false},
		{completions, `[DONE]`, false},
	} {
		ev := sse.Event{Data: []byte(c.data)}
		if c.way == session {
			ev.Name = "assistant.delta"
		}
		if taken := sameDelta(t, freshDecoders()[c.way], freshDecoders()[c.way], ev); taken != c.taken {
			t.Errorf("%q: read in one pass %v, want %v", c.data, taken, c.taken)
		}
	}
}

// FuzzDelta: the one-pass decoder agrees with the full one on everything that it accepts.
func FuzzDelta(f *testing.F) {
	for _, file := range recordings(f) {
		if !strings.Contains(file, "unicode") && !strings.Contains(file, "plain") {
			continue
		}
		data, err := os.ReadFile(file)
		must(f, err)
		for line := range bytes.Lines(data) {
			if data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data: ")); ok {
				f.Add(data)
			}
		}
	}
	f.Add([]byte(`{"id":"c","created":1,"choices":[{"index":0,"delta":{"content":"\ud83d\ude00"},"finish_reason":null}]}`))
	f.Add([]byte(`{"event":"message.delta","run_id":"run_1","timestamp":1.5,"delta":"a","seq":3}`))
	f.Add([]byte(`{"session_id":"s","run_id":"run_1","message_id":"m","ts":1.5,"delta":"a","seq":3}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for i, quick := range freshDecoders() {
			ev := sse.Event{Data: data}
			if i == 1 {
				ev.Name = "assistant.delta"
			}
			sameDelta(t, quick, freshDecoders()[i], ev)
		}
	})
}
