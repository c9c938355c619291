package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// capsWith returns the recorded capabilities of 0.22 with some features set.
func capsWith(t *testing.T, features map[string]any) *Capabilities {
	t.Helper()
	var all map[string]any
	must(t, json.Unmarshal(recordedStream(t, "0.22.2", "capabilities.json"), &all))
	for name, value := range features {
		if value == nil {
			delete(all["features"].(map[string]any), name)
		} else {
			all["features"].(map[string]any)[name] = value
		}
	}
	data, err := json.Marshal(all)
	must(t, err)
	caps, err := parseCapabilities(data)
	must(t, err)
	return caps
}

// kinds returns the events of newer gateways.
func kinds(events []Event) (thoughts string, tasks []string) {
	for _, e := range events {
		switch e := e.(type) {
		case Reasoning:
			thoughts += e.Text
		case Status:
			if strings.HasPrefix(e.Kind, "subagent.") {
				tasks = append(tasks, e.Kind+" "+e.DelegationID+" "+e.Text)
			}
		}
	}
	return thoughts, tasks
}

// TestEventsOfNewerGateways: in each mode that has them, reasoning is emitted only if the gateway
// advertises it, and tasks of subagents only if it advertises tools. The reply is the same in any
// case.
func TestEventsOfNewerGateways(t *testing.T) {
	t.Parallel()
	ways := map[TurnMode]func(g *fakeGateway){
		ModeRun: func(g *fakeGateway) {
			g.on("POST /v1/runs", answer(202, created))
			g.on("GET /v1/runs/run_1/events", stream(runEvents(`{"event":"reasoning.delta","delta":"hm "}`, `{"event":"reasoning.delta","text":"yes"}`,
				`{"event":"subagent.start","delegation_id":"d1","text":"look it up"}`, `{"event":"subagent.complete","delegation_id":"d1","preview":"found","status":{"odd":true}}`,
				`{"event":"message.delta","delta":"pie"}`, `{"event":"run.completed","output":"pie"}`)))
		},
		ModeSession: func(g *fakeGateway) {
			g.on("GET /api/sessions/s/messages", answer(200, rows("s")))
			g.on("POST /api/sessions/s/chat/stream", stream(sessionEvents("run.started", `{}`, "reasoning.delta", `{"delta":"hm "}`, "reasoning.delta", `{"text":"yes"}`,
				"subagent.start", `{"delegation_id":"d1","text":"look it up"}`, "subagent.complete", `{"delegation_id":"d1","preview":"found"}`,
				"assistant.delta", `{"delta":"pie"}`, "assistant.completed", `{"content":"pie"}`, "run.completed", `{"completed":true,"messages":[{"role":"assistant","content":"pie"}]}`, "done", `{}`)))
		},
		ModeResponses: func(g *fakeGateway) {
			g.on("POST /v1/responses", stream(`data: {"type":"response.created","response":{"id":"resp_1"}}

data: {"type":"response.reasoning_text.delta","item_id":"rs_1","delta":"hm "}

data: {"type":"response.reasoning_text.delta","item_id":"rs_1","delta":"yes"}

data: {"type":"response.output_text.delta","item_id":"m","delta":"pie"}

data: {"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[{"id":"m","type":"message","content":[{"text":"pie"}]}],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}}

`))
		},
	}
	for way, script := range ways {
		for _, advertised := range []any{true, false, nil, map[string]any{"supported": true}} {
			t.Run(fmt.Sprint(way, " ", advertised), func(t *testing.T) {
				tools := advertised != false
				g := newGatewayWith(t, capsWith(t, map[string]any{"reasoning_streaming": advertised, "tool_progress_events": tools}))
				script(g)
				req := TurnRequest{Text: "hi", Mode: way}
				if way == ModeSession {
					req.SessionID = "s"
				}
				events, ended := follow(t, start(t, g, req))
				thoughts, tasks := kinds(events)
				want := ""
				if advertised != nil && advertised != false {
					want = "hm yes"
				}
				if thoughts != want {
					t.Errorf("told of the thoughts %q, want %q", thoughts, want)
				}
				told := "subagent.start d1 look it up|subagent.complete d1 found"
				if !tools || way == ModeResponses {
					told = ""
				}
				if got := strings.Join(tasks, "|"); got != told {
					t.Errorf("told of the tasks %q, want %q", got, told)
				}
				if ended.Outcome.State != Completed || ended.Outcome.Text() != "pie" || ended.Outcome.Partial || reply(events) != "pie" {
					t.Errorf("outcome %+v", ended.Outcome)
				}
			})
		}
	}
}

// TestUnknownEvents: unknown events change nothing, whatever their fields.
func TestUnknownEvents(t *testing.T) {
	t.Parallel()
	odd := []string{`{"event":"clarify.request","type":"clarify.request","choices":[{"id":"a","label":"A"}],"text":{"markdown":"?"},"delta":["x"],"item":"a string","response":5,"timestamp":"now","run_id":%q,"session_id":"s"}`,
		`{"event":"audio.delta","type":"response.audio.delta","delta":{"base64":"AA=="},"text":["x"],"content":[{"text":"THEIRS"}],"output":{"a":1},"run_id":%q,"session_id":"s"}`,
		`{"event":"","type":"","delta":5,"run_id":%q,"session_id":"s"}`,
		`{"event":"file.ready","type":"response.file.ready","args":"x","choices":"x","pattern_keys":{},"messages":"x","usage":"x","completed":"x","run_id":%q,"session_id":"s"}`}
	for _, way := range []TurnMode{ModeRun, ModeSession, ModeResponses} {
		t.Run(string(way), func(t *testing.T) {
			g := newGateway(t, "0.22.2")
			req := TurnRequest{Text: "hi", Mode: way}
			var frames []string
			for _, o := range odd {
				frames = append(frames, fmt.Sprintf(o, "run_1"))
			}
			switch way {
			case ModeRun:
				g.on("POST /v1/runs", answer(202, created))
				g.on("GET /v1/runs/run_1/events", stream(": open\n\ndata: "+strings.Join(append(frames, `{"event":"message.delta","run_id":"run_1","delta":"pie"}`, `{"event":"run.completed","run_id":"run_1","output":"pie"}`), "\n\ndata: ")+"\n\n"))
			case ModeSession:
				req.SessionID = "s"
				g.on("GET /api/sessions/s/messages", answer(200, rows("s")))
				pairs := []string{"run.started", `{}`}
				for i, f := range frames {
					pairs = append(pairs, []string{"clarify.request", "audio.delta", "", "file.ready"}[i], f)
				}
				g.on("POST /api/sessions/s/chat/stream", stream(sessionEvents(append(pairs, "assistant.delta", `{"delta":"pie"}`, "assistant.completed", `{"content":"pie"}`,
					"run.completed", `{"completed":true,"messages":[{"role":"assistant","content":"pie"}]}`, "done", `{}`)...)))
			case ModeResponses:
				g.on("POST /v1/responses", stream("data: "+strings.Join(append(append([]string{`{"type":"response.created","response":{"id":"resp_1"}}`}, frames...), `{"type":"response.output_text.delta","item_id":"m","delta":"pie"}`,
					`{"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[{"id":"m","type":"message","content":[{"text":"pie"}]}],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}}`), "\n\ndata: ")+"\n\n"))
			}
			events, ended := follow(t, start(t, g, req))
			if ended.Outcome.State != Completed || ended.Outcome.Text() != "pie" || ended.Outcome.Partial || reply(events) != "pie" {
				t.Errorf("outcome %+v of %+v", ended.Outcome, events)
			}
		})
	}
}

// TestProfilesOfOneGateway: a gateway with several profiles serves each below /p/<profile> with a
// key of its own. A client uses one of them: its key is sent nowhere else, and it accepts neither
// the other profile nor the main one instead.
func TestProfilesOfOneGateway(t *testing.T) {
	t.Parallel()
	for _, advertised := range []string{"", "/p/work"} { // paths with the prefix of the profile, or without
		keys := map[string]string{"": testToken, "work": "key-of-the-profile-work", "home": "key-of-the-profile-home"}
		var all map[string]any
		must(t, json.Unmarshal(recordedAnswers()["0.22.2"]["capabilities"].Body, &all))
		handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			profile, path := "", r.URL.EscapedPath()
			if rest, ok := strings.CutPrefix(path, "/p/"); ok {
				profile, path, _ = strings.Cut(rest, "/")
				path = "/" + path
			}
			key, known := keys[profile]
			w.Header().Set("Content-Type", "application/json")
			switch {
			case !known:
				w.WriteHeader(http.StatusNotFound)
				_, _ = io.WriteString(w, `{"error": "Unknown or unconfigured profile"}`)
			case path == "/health":
				_, _ = io.WriteString(w, `{"status":"ok","platform":"hermes-agent","version":"0.22.2"}`)
			case r.Header.Get("Authorization") != "Bearer "+key:
				recordedAnswers()["0.22.2"]["models_wrong_key"].answer(w)
			case path == "/v1/capabilities":
				all["model"] = "hermes-" + profile
				data, _ := json.Marshal(all)
				_, _ = w.Write(bytes.ReplaceAll(data, []byte(`"path":"/`), []byte(`"path":"`+advertised+`/`)))
			case path == "/v1/models":
				_, _ = fmt.Fprintf(w, `{"data":[{"id":"hermes-%s"}]}`, profile)
			default:
				http.NotFound(w, r)
			}
		})
		remote := serve(t, handler)
		of := func(profile, key string) *Client {
			return client(t, Profile{Remote: remote.URL + "/p/" + profile}, func(c *Credentials, _ *Options) { c.Token = NewSecret(key) })
		}
		work := of("work", keys["work"])
		list, err := work.Models.List(t.Context())
		if err != nil || len(list) != 1 || list[0].ID != "hermes-work" {
			t.Errorf("%q: the models of a profile are %v, %v", advertised, list, err)
		}
		if caps, err := work.Capabilities(t.Context()); err != nil || caps.Model != "hermes-work" {
			t.Errorf("%q: the capabilities of a profile are %+v, %v", advertised, caps, err)
		}
		for profile, key := range map[string]string{"work": keys["home"], "home": keys[""]} {
			if _, err := of(profile, key).Models.List(t.Context()); !errors.Is(err, ErrSignIn) {
				t.Errorf("%q: %s takes another's key: %v", advertised, profile, err)
			}
		}
		if _, err := of("nobody", keys["work"]).Models.List(t.Context()); err == nil {
			t.Errorf("%q: an unknown profile answers", advertised)
		}
		// Credentials of one profile do not work for another.
		kept := Credentials{Token: NewSecret(keys["work"])}.For(work.Profile())
		other := work.Profile()
		other.Remote = remote.URL + "/p/home"
		if !kept.For(other).Token.IsZero() || kept.For(work.Profile()).Token.IsZero() {
			t.Errorf("%q: the key of a profile is kept for another", advertised)
		}
	}
}
