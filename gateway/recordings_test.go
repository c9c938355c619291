package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hermes-mobile/internal/sse"
)

var update = flag.Bool("update", false, "write the golden files anew")

// recordings returns the streams that real gateways sent.
func recordings(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/api/*/*.sse")
	must(t, err)
	if len(files) < 140 {
		t.Fatalf("only %d recordings were found: the corpus is not whole", len(files))
	}
	return files
}

// decoderFor returns the decoder of a recording, chosen by its name and bound to its turn.
func decoderFor(t testing.TB, file string, data []byte) turnDecoder {
	name := filepath.Base(file)
	first := func(key string) string {
		_, rest, _ := strings.Cut(string(data), `"`+key+`": "`)
		value, _, _ := strings.Cut(rest, `"`)
		return value
	}
	switch {
	case strings.HasPrefix(name, "run_"):
		return &runDecoder{sessionID: "s", runID: first("run_id")}
	case strings.Contains(name, "chat_stream"):
		return &sessionDecoder{sessionID: first("session_id")}
	case strings.HasPrefix(name, "responses_"):
		return &responsesDecoder{hermes: true}
	case strings.Contains(name, "chat_completions"):
		return &completionsDecoder{}
	}
	t.Fatalf("nothing decodes %s", file)
	return nil
}

// copies are events that add nothing to others, with the reason.
var copies = map[string]string{
	"message.started":                       "the id of the message is in every event",
	"tool.progress":                         "a copy of the visible text",
	"reasoning.available":                   "a copy of the visible text",
	"assistant.completed":                   "given out with run.*",
	"done":                                  "nothing follows",
	"response.output_item.added":            "the text comes as deltas; calls are told when they are added",
	"response.output_item.done":             "a copy, but for results of tools",
	"response.reasoning_summary_part.added": "the text comes as deltas",
	"response.reasoning_summary_part.done":  "a copy",
	"response.reasoning_summary_text.done":  "a copy",
	"chat.completion.chunk":                 "chunks without text begin or end the reply",
	"[DONE]":                                "nothing follows",
}

// Every recording is decoded to the same events as before: none is lost and none is invented. Only
// events in copies may produce nothing.
func TestRecordings(t *testing.T) {
	for _, file := range recordings(t) {
		data, err := os.ReadFile(file)
		must(t, err)
		d := decoderFor(t, file, data)
		r := sse.NewReader(bytes.NewReader(data), maxEvent)
		var golden bytes.Buffer
		last := map[string]string{}
		var reply Reply
		frames, ended := 0, 0
		for {
			ev, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			must(t, err)
			frames++
			events := d.decode(ev, nil)
			if name := wireName(t, ev); len(events) == 0 && copies[name] == "" {
				t.Errorf("%s: %q is lost", file, name)
			}
			for _, e := range events {
				fmt.Fprintf(&golden, "%s %s\n", strings.TrimPrefix(fmt.Sprintf("%T", e), "gateway."), news(t, e, last))
				if _, ok := e.(Ended); ok {
					ended++
				} else {
					reply.Apply(e)
				}
			}
		}
		if d.damaged() || frames == 0 || ended > 1 {
			t.Errorf("%s: damaged %v, %d frames, %d ends", file, d.damaged(), frames, ended)
		}
		if ended == 0 {
			o, sure := d.end()
			fmt.Fprintf(&golden, "no end, sure %v %s\n", sure, news(t, o, last))
		}
		fmt.Fprintf(&golden, "text %q\n", reply.Text())
		if frames != bytes.Count(data, []byte("\ndata: "))+btoi(bytes.HasPrefix(data, []byte("data: "))) {
			t.Errorf("%s: %d frames were read", file, frames)
		}
		check(t, strings.TrimSuffix(file, ".sse")+".golden", golden.Bytes())
	}
}

// news returns the non-zero fields of a value, and of its meta data only what has changed.
func news(t testing.TB, v any, last map[string]string) string {
	t.Helper()
	data, err := json.Marshal(v)
	must(t, err)
	var fields map[string]json.RawMessage
	must(t, json.Unmarshal(data, &fields))
	for name, value := range fields {
		switch text := string(value); {
		case text == "null", text == "0", text == `""`, text == "false", text == `"0001-01-01T00:00:00Z"`:
			delete(fields, name)
		case name == "SessionID" || name == "RunID" || name == "MessageID":
			if last[name] == text {
				delete(fields, name)
			}
			last[name] = text
		}
	}
	if e, ok := v.(Ended); ok && e.Outcome.Err != nil {
		fields["Err"], err = json.Marshal(e.Outcome.Err.Error())
		must(t, err)
	}
	data, err = json.Marshal(fields)
	must(t, err)
	return string(data)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// wireName returns the gateway's name of an event.
func wireName(t testing.TB, ev sse.Event) string {
	if string(ev.Data) == "[DONE]" {
		return "[DONE]"
	}
	if ev.Name != "" {
		return ev.Name
	}
	var f struct{ Event, Object string }
	must(t, json.Unmarshal(ev.Data, &f))
	return f.Event + f.Object
}

func check(t testing.TB, file string, got []byte) {
	t.Helper()
	if *update {
		must(t, os.WriteFile(file, got, 0o644))
		return
	}
	want, err := os.ReadFile(file)
	must(t, err)
	if !bytes.Equal(got, want) {
		t.Errorf("%s: decoded to\n%s\nwant\n%s", file, got, want)
	}
}

// The visible text is the same in every mode and on both versions: that of the transcript.
func TestRecordedTextIsTheTranscript(t *testing.T) {
	for _, version := range []string{"0.19.0", "0.22.2"} {
		var stored transcript
		must(t, json.Unmarshal(recordedStream(t, version, "session_messages_after_tool.json"), &stored))
		want := joinSegments(replyTexts(stored.Rows))
		if want == "" {
			t.Fatal("the transcript is empty")
		}
		for _, name := range []string{"chat_stream_tool", "run_tool_events", "chat_completions_stream_tool", "responses_stream_tool"} {
			file := filepath.Join("testdata/api", version, name+".sse")
			data, err := os.ReadFile(file)
			must(t, err)
			d := decoderFor(t, file, data)
			var reply Reply
			var ended Ended
			for _, e := range decodeAll(t, d, data) {
				if e, ok := e.(Ended); ok {
					ended = e
					continue
				}
				reply.Apply(e)
			}
			text := strings.ReplaceAll(reply.Text(), " \n\n", "\n\n") // responses keep the blank before a tool call
			if text != want || strings.ReplaceAll(ended.Outcome.Text(), " \n\n", "\n\n") != want || ended.Outcome.State != Completed {
				t.Errorf("%s: streamed %q, ended %s %q, want %q", file, text, ended.Outcome.State, ended.Outcome.Text(), want)
			}
		}
	}
}

func decodeAll(t testing.TB, d turnDecoder, data []byte) (events []Event) {
	t.Helper()
	r := sse.NewReader(bytes.NewReader(data), maxEvent)
	for {
		ev, err := r.Next()
		if errors.Is(err, io.EOF) {
			return events
		}
		must(t, err)
		events = d.decode(ev, events)
	}
}

// The final states of the recordings, kept apart from the golden files so that -update cannot hide
// an error.
func TestRecordedOutcomes(t *testing.T) {
	for name, want := range map[string]TurnState{
		"0.19.0/chat_stream_plain": Completed, "0.19.0/chat_stream_error400": Failed, "0.19.0/chat_stream_error500": Failed, "0.19.0/chat_stream_error401": Failed,
		"0.22.2/chat_stream_error400": Failed, "0.22.2/chat_stream_error401": Failed, "0.22.2/chat_stream_error500": Failed, "0.22.2/chat_stream_stopped": Cancelled, "0.19.0/chat_stream_stopped": Completed, "0.22.2/chat_stream_approval_deny": Completed,
		"0.19.0/run_error400_events": Failed, "0.22.2/run_error400_events": Failed, "0.19.0/run_stopped_events": Cancelled, "0.22.2/run_stopped_events": Cancelled,
		"0.22.2/run_media_events": Completed, "0.19.0/chat_completions_stream_error400": Failed, "0.22.2/chat_completions_stream_error400": Failed,
		"0.22.2/chat_completions_stream_tool": Completed, "0.19.0/responses_stream_error400": Failed, "0.22.2/responses_stream_error400": Failed,
		"0.22.2/responses_stream_reasoning": Completed, "0.22.2/chat_stream_empty_reply": Completed,
		// Streams without an end mark.
		"0.19.0/chat_stream_gateway_sigterm": Unknown, "0.22.2/chat_stream_gateway_sigkill": Unknown, "0.19.0/chat_stream_disconnect": Unknown,
		"0.22.2/run_events_disconnect_events": Unknown, "0.19.0/chat_completions_stream_disconnect": Interrupted, "0.22.2/responses_stream_disconnect": Interrupted,
	} {
		file := filepath.Join("testdata/api", name+".sse")
		data, err := os.ReadFile(file)
		must(t, err)
		d := decoderFor(t, file, data)
		events := decodeAll(t, d, data)
		o, _ := d.end()
		if i := slices.IndexFunc(events, func(e Event) bool { _, ok := e.(Ended); return ok }); i >= 0 {
			o = events[i].(Ended).Outcome
		}
		if o.State != want || (o.Err == nil) != (want == Completed || want == Cancelled) {
			t.Errorf("%s ended %s (%v), want %s", name, o.State, o.Err, want)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, name := range []string{"0.22.2/run_tool_events", "0.22.2/chat_stream_two_tools_multiline", "0.22.2/chat_completions_stream_tool", "0.22.2/responses_stream_tool"} {
		file := "testdata/api/" + name + ".sse"
		data, err := os.ReadFile(file)
		must(b, err)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				decodeAll(b, decoderFor(b, file, data), data)
			}
		})
	}
}
