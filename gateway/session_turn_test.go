package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// sessionEvents returns a stream of a session, one frame for each pair of name and payload.
func sessionEvents(pairs ...string) string {
	var b strings.Builder
	for i := 0; i+1 < len(pairs); i += 2 {
		payload := pairs[i+1]
		if !strings.Contains(payload, `"session_id"`) {
			payload = strings.Replace(payload, "{", `{"session_id":"s",`, 1)
		}
		if !strings.Contains(payload, `"run_id"`) {
			payload = strings.Replace(payload, "{", `{"run_id":"run_1",`, 1)
		}
		fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", pairs[i], strings.ReplaceAll(payload, ",}", "}"))
	}
	return b.String()
}

func sessionTurn(t *testing.T, version, events string) ([]Event, Ended, *fakeGateway) {
	t.Helper()
	g := newGateway(t, version)
	g.on("GET /api/sessions/s/messages", answer(200, rows("s")), answer(200, rows("s", row(1, "user", "hi", ""), stopRow(2, "stored"))))
	g.on("POST /api/sessions/s/chat/stream", stream(events))
	list, ended := follow(t, start(t, g, TurnRequest{SessionID: "s", Text: "hi", Mode: ModeSession}))
	return list, ended, g
}

// Events of another session or turn are never applied.
func TestForeignEvents(t *testing.T) {
	t.Parallel()
	list, ended, _ := sessionTurn(t, "0.22.2", sessionEvents(
		"run.started", `{"session_id":"other","run_id":"run_9"}`,
		"run.started", `{}`,
		"assistant.delta", `{"delta":"mine "}`,
		"assistant.delta", `{"session_id":"other","delta":"THEIRS"}`,
		"assistant.delta", `{"session_id":"other","run_id":"run_9","delta":"THEIRS"}`,
		"assistant.delta", `{"run_id":"run_9","delta":"THEIRS"}`,
		"tool.started", `{"session_id":"other","tool_name":"THEIRS"}`,
		"error", `{"session_id":"other","run_id":"run_9","message":"THEIRS"}`,
		"assistant.completed", `{"session_id":"other","run_id":"run_9","content":"THEIRS"}`,
		"run.completed", `{"session_id":"other","run_id":"run_9","completed":true,"messages":[{"role":"assistant","content":"THEIRS"}]}`,
		"run.failed", `{"run_id":"run_9","error":"THEIRS"}`,
		"assistant.delta", `{"delta":"only"}`,
		"assistant.completed", `{"content":"mine only","completed":true}`,
		"run.completed", `{"completed":true,"messages":[{"role":"assistant","content":"mine only"}]}`,
		"done", `{}`))
	for _, e := range list {
		data, err := json.Marshal(e)
		must(t, err)
		if strings.Contains(string(data), "THEIRS") || e.At().SessionID == "other" {
			t.Errorf("it took %T %s", e, data)
		}
	}
	if ended.Outcome.State != Completed || ended.Outcome.Text() != "mine only" || ended.Outcome.SessionID != "s" || reply(list) != "mine only" {
		t.Errorf("outcome %+v", ended.Outcome)
	}
}

// A gateway that continues in a new session says so in the terminal events of the same run.
func TestCompressedSessionIsFollowed(t *testing.T) {
	t.Parallel()
	_, ended, _ := sessionTurn(t, "0.22.2", sessionEvents("run.started", `{}`, "assistant.delta", `{"delta":"a"}`,
		"assistant.completed", `{"session_id":"s2","content":"a","completed":true}`,
		"run.completed", `{"session_id":"s2","completed":true,"messages":[{"role":"assistant","content":"a"}]}`))
	if ended.Outcome.State != Completed || ended.Outcome.SessionID != "s2" || ended.Outcome.Text() != "a" {
		t.Errorf("outcome %+v", ended.Outcome)
	}
}

// How the stream of a session ends, and what is stored if it does not say so.
func TestSessionEnds(t *testing.T) {
	t.Parallel()
	begin := []string{"run.started", `{}`, "assistant.delta", `{"delta":"pie"}`}
	for name, tc := range map[string]struct {
		version string
		events  []string
		state   TurnState
		text    string
		err     string
	}{
		"an error event":          {"0.19.0", []string{"error", `{"message":"it broke","code":"x"}`, "done", `{}`}, Failed, "pie", "it broke"},
		"an error without words":  {"0.19.0", []string{"error", `{}`}, Failed, "pie", "gave no reason"},
		"done alone":              {"0.19.0", []string{"done", `{}`}, Completed, "stored", ""},
		"nothing more":            {"0.19.0", nil, Completed, "stored", ""},
		"completed without run.*": {"0.19.0", []string{"assistant.completed", `{"content":"piece"}`, "done", `{}`}, Completed, "stored", ""},
		"a reply that replaces":   {"0.19.0", []string{"assistant.completed", `{"content":"other"}`, "run.completed", `{"completed":true,"messages":[{"role":"assistant","content":"pie"}]}`}, Completed, "other", ""},
		"interrupted": {"0.22.2", []string{"assistant.completed", `{"content":"pie","completed":false,"interrupted":true}`,
			"run.completed", `{"completed":false,"interrupted":true,"messages":[{"role":"assistant","content":"pie"}]}`}, Interrupted, "pie", "the turn ended early"},
		"a frame that cannot be read": {"0.22.2", []string{"assistant.delta", `{"delta":"x"`, "run.completed", `{"completed":true}`}, Completed, "stored", ""},
		"fields of other types": {"0.22.2", []string{"assistant.delta", `{"delta":7}`, "tool.started", `{"tool_name":[],"args":"no"}`, "assistant.delta", `{"delta":"ce","ts":"soon"}`,
			"run.completed", `{"completed":true,"usage":"none"}`}, Completed, "pie\n\nce", ""},
		"unknown events": {"0.22.2", []string{"hello.world", `{"x":1}`, "run.completed", `{"completed":true,"messages":[{"role":"assistant","content":"pie"}]}`}, Completed, "pie", ""},
		"a second end":   {"0.22.2", []string{"run.completed", `{"completed":true}`, "run.failed", `{"error":"no"}`, "assistant.delta", `{"delta":"more"}`}, Completed, "pie", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, ended, g := sessionTurn(t, tc.version, sessionEvents(append(slices.Clone(begin), tc.events...)...))
			o := ended.Outcome
			if o.State != tc.state || o.Text() != tc.text || tc.err == "" != (o.Err == nil) || o.Err != nil && !strings.Contains(o.Err.Error(), tc.err) {
				t.Errorf("outcome %+v", o)
			}
			if n := len(g.requests("POST /api/sessions/s/chat/stream")); n != 1 {
				t.Errorf("it was sent %d times", n)
			}
		})
	}
}

// A broken stream of a session is not sent again. The client looks up the outcome, on 0.22 by its
// run.
func TestSessionStreamIsCut(t *testing.T) {
	t.Parallel()
	events := sessionEvents("run.started", `{}`, "assistant.delta", `{"delta":"tok0 tok1"}`)
	for name, tc := range map[string]struct {
		version, status, rows string
		first                 http.HandlerFunc
		state                 TurnState
		text                  string
	}{
		"0.22 interrupts it":       {"0.22.2", `{"status":"cancelled"}`, rows("s", row(1, "user", "hi", ""), row(2, "assistant", "tok0 tok1 tok2", "")), cutStream(events), Cancelled, "tok0 tok1 tok2"},
		"0.22 started anew":        {"0.22.2", "", rows("s", row(1, "user", "hi", ""), row(2, "assistant", "tok0", "")), cutStream(events), Interrupted, "tok0"},
		"0.22 in a tool":           {"0.22.2", "", rows("s", row(1, "user", "hi", ""), row(2, "assistant", "Look.", `,"tool_calls":[{}]`), row(3, "tool", "{}", ""), row(4, "assistant", "", `,"display_kind":"hidden"`)), cutStream(events), Interrupted, "Look."},
		"0.22 says that it failed": {"0.22.2", "", rows("s", row(1, "user", "hi", ""), row(2, "assistant", "not processed", `,"display_kind":"failed_turn"`)), cutStream(events), Failed, ""},
		"0.19 runs to its end":     {"0.19.0", "", rows("s", row(1, "user", "hi", ""), stopRow(2, "tok0 tok1 tok2")), cutStream(events), Completed, "tok0 tok1 tok2"},
		"killed":                   {"0.22.2", `{"status":"interrupted","error":"The gateway restarted before this run settled."}`, rows("s", row(1, "user", "hi", "")), cutStream(events), Interrupted, "tok0 tok1"},
		"the reply was lost":       {"0.19.0", "", rows("s", row(1, "user", "hi", ""), stopRow(2, "ran")), vanish, Completed, "ran"},
		"it never arrived":         {"0.19.0", "", rows("s"), vanish, Absent, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGateway(t, tc.version)
			g.on("GET /api/sessions/s/messages", answer(200, rows("s")), answer(200, tc.rows))
			g.on("POST /api/sessions/s/chat/stream", tc.first)
			if tc.status != "" {
				g.on("GET /v1/runs/run_1", answer(200, tc.status))
			}
			_, ended := follow(t, start(t, g, TurnRequest{SessionID: "s", Text: "hi", Mode: ModeSession}))
			if ended.Outcome.State != tc.state || ended.Outcome.Text() != tc.text {
				t.Errorf("outcome %+v", ended.Outcome)
			}
			if n := len(g.requests("POST /api/sessions/s/chat/stream")); n != 1 {
				t.Errorf("it was sent %d times", n)
			}
		})
	}
}

// Silence ends a stream, comments keep it open.
func TestIdleStream(t *testing.T) {
	t.Parallel()
	g := newGateway(t, "0.19.0")
	g.on("GET /api/sessions/s/messages", answer(200, rows("s")), answer(200, rows("s", row(1, "user", "hi", ""), stopRow(2, "late"))))
	alive := make(chan struct{})
	g.on("POST /api/sessions/s/chat/stream", func(w http.ResponseWriter, r *http.Request) {
		stream(sessionEvents("run.started", `{}`))(w, r)
		control := http.NewResponseController(w)
		for range 40 { // together much longer than the timeout
			_, _ = w.Write([]byte(": keepalive\n\n"))
			_ = control.Flush()
			time.Sleep(50 * time.Millisecond)
		}
		close(alive)
		<-r.Context().Done()
	})
	turn := start(t, g, TurnRequest{SessionID: "s", Text: "hi", Mode: ModeSession, IdleTimeout: 1500 * time.Millisecond})
	_, ended := follow(t, turn)
	select {
	case <-alive:
	default:
		t.Error("the stream was given up though comments came")
	}
	if ended.Outcome.Text() != "late" {
		t.Errorf("outcome %+v", ended.Outcome)
	}
}

// 0.19 does not queue turns: the client runs those of one session one after the other, and those of
// other sessions beside them. 0.22 queues them itself.
func TestTurnsOfOneSession(t *testing.T) {
	t.Parallel()
	for version, serial := range map[string]bool{"0.19.0": true, "0.22.2": false} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			g := newGateway(t, version)
			release := make(chan struct{})
			for _, s := range []string{"a", "b"} {
				g.on("GET /api/sessions/"+s+"/messages", answer(200, rows(s)))
			}
			n := 0
			g.on("POST /v1/runs", func(w http.ResponseWriter, r *http.Request) {
				n++
				id := fmt.Sprintf("run_%d", n)
				g.on("GET /v1/runs/"+id+"/events", hold("", release, `data: {"event":"run.completed","output":"x"}`+"\n\n"))
				answer(202, `{"run_id":"`+id+`"}`)(w, r)
			})
			first := start(t, g, TurnRequest{SessionID: "a", Text: "1"})
			start(t, g, TurnRequest{SessionID: "b", Text: "2"})
			second := make(chan error, 1)
			go func() {
				turn, err := g.client.StartTurn(t.Context(), TurnRequest{SessionID: "a", Text: "3"})
				if err == nil {
					turn.Close()
				}
				second <- err
			}()
			if !serial {
				must(t, <-second)
				close(release)
				return
			}
			short, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
			defer cancel()
			if _, err := g.client.StartTurn(short, TurnRequest{SessionID: "a", Text: "4"}); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a turn beside another gives %v", err)
			}
			if got := len(g.requests("POST /v1/runs")); got != 2 {
				t.Errorf("%d turns were started", got)
			}
			close(release)
			follow(t, first)
			must(t, <-second)
		})
	}
}

// The client waits for a leftover run before the next turn of its session, and finally forgets the
// queue.
func TestLeftRunIsWaitedFor(t *testing.T) {
	t.Parallel()
	g := newGateway(t, "0.19.0")
	g.on("GET /api/sessions/s/messages", answer(200, rows("s")))
	g.on("POST /v1/runs", answer(202, created))
	g.on("GET /v1/runs/run_1", answer(200, `{"status":"running"}`), answer(503, `{}`), answer(200, `{"status":"completed"}`))
	g.on("GET /v1/runs/run_1/events", stream(`data: {"event":"run.completed","output":"x"}`+"\n\n"))
	start(t, g, TurnRequest{SessionID: "s", Text: "1"}).Close()
	follow(t, start(t, g, TurnRequest{SessionID: "s", Text: "2"}))
	if n := len(g.requests("GET /v1/runs/run_1")); n != 3 {
		t.Errorf("the run was asked for %d times", n)
	}
	if n := len(g.client.turns.sessions); n != 0 {
		t.Errorf("%d lines are kept", n)
	}
}

// A turn keeps its route while its stream lasts. Later calls use the new one.
func TestRouteChangesMeanwhile(t *testing.T) {
	t.Parallel()
	for _, way := range []TurnMode{ModeSession, ModeRun} {
		t.Run(string(way), func(t *testing.T) {
			t.Parallel()
			first, second := newGateway(t, "0.22.2"), newGateway(t, "0.22.2")
			release := make(chan struct{})
			ending := sessionEvents("run.completed", `{"completed":true}`)
			first.on("GET /api/sessions/s/messages", answer(200, rows("s")))
			first.on("POST /v1/runs", answer(202, created))
			first.on("POST /api/sessions/s/chat/stream", hold(sessionEvents("run.started", `{}`, "assistant.delta", `{"delta":"x"}`), release, ending))
			second.on("GET /v1/runs/run_1/events", stream(runEvents(`{"event":"run.completed","output":"x"}`)))
			second.on("POST /v1/runs/run_1/stop", answer(200, `{}`))
			turn := start(t, first, TurnRequest{SessionID: "s", Text: "hi", Mode: way})
			if turn.Handle().Generation != 3 {
				t.Errorf("lease %#v", turn.Handle())
			}
			first.moveTo(second, 4)
			close(release)
			if _, ended := follow(t, turn); ended.Outcome.State != Completed || ended.Outcome.Text() != "x" {
				t.Errorf("outcome %+v", ended.Outcome)
			}
			if want := map[TurnMode]uint64{ModeSession: 3, ModeRun: 4}[way]; turn.Handle().Generation != want {
				t.Errorf("generation %d", turn.Handle().Generation)
			}
			if n := len(second.asked); (n == 0) != (way == ModeSession) {
				t.Errorf("the new route was asked %d times", n)
			}
		})
	}
}

// The context of the start limits only the start.
func TestStartContextEnds(t *testing.T) {
	t.Parallel()
	g := newGateway(t, "0.22.2")
	release := make(chan struct{})
	g.on("GET /api/sessions/s/messages", answer(200, rows("s")))
	g.on("POST /api/sessions/s/chat/stream", hold(sessionEvents("run.started", `{}`), release, sessionEvents("assistant.delta", `{"delta":"x"}`, "run.completed", `{"completed":true}`)))
	ctx, cancel := context.WithCancel(t.Context())
	turn, err := g.client.StartTurn(ctx, TurnRequest{SessionID: "s", Text: "hi", Mode: ModeSession})
	must(t, err)
	defer turn.Close()
	cancel()
	close(release)
	if _, ended := follow(t, turn); ended.Outcome.State != Completed || ended.Outcome.Text() != "x" {
		t.Errorf("outcome %+v", ended.Outcome)
	}
}

// The stream of a session on 0.22 is stopped and answered by its run.
func TestSessionStreamIsStopped(t *testing.T) {
	t.Parallel()
	g := newGateway(t, "0.22.2")
	release := make(chan struct{})
	g.on("GET /api/sessions/s/messages", answer(200, rows("s")))
	data := string(recordedStream(t, "0.22.2", "chat_stream_stopped.sse"))
	data = strings.ReplaceAll(strings.ReplaceAll(data, "s-stop", "s"), "run_3f9c25f682864756b9cbcbb7a071e44c", "run_1")
	cutAt := strings.Index(data, "event: assistant.completed")
	g.on("POST /api/sessions/s/chat/stream", hold(data[:cutAt], release, data[cutAt:]))
	g.on("POST /v1/runs/run_1/stop", func(w http.ResponseWriter, r *http.Request) {
		close(release)
		answer(200, `{"run_id":"run_1","status":"stopping"}`)(w, r)
	})
	turn := start(t, g, TurnRequest{SessionID: "s", Text: "hi", Mode: ModeSession})
	var ended Ended
	stopped := false
	for event, err := range turn.Events(t.Context()) {
		must(t, err)
		if _, ok := event.(Delta); ok && !stopped {
			stopped = true
			must(t, turn.Stop(t.Context()))
		}
		if e, ok := event.(Ended); ok {
			ended = e
		}
	}
	if ended.Outcome.State != Cancelled || ended.Outcome.Text() != "tok0 tok1 tok2 tok3 tok4 tok5" {
		t.Errorf("outcome %+v", ended.Outcome)
	}
}

// The stored text of a message with an image differs from what was sent: the turn is found all the
// same.
func TestCutTurnWithAnImage(t *testing.T) {
	t.Parallel()
	g := newGateway(t, "0.19.0")
	g.on("GET /api/sessions/s/messages", answer(200, rows("s", row(1, "user", "before", ""), stopRow(2, "old"))),
		answer(200, rows("s", row(1, "user", "before", ""), stopRow(2, "old"), row(3, "user", "what\n[screenshot]", ""), stopRow(4, "a cat"))))
	g.on("POST /api/sessions/s/chat/stream", cutStream(""))
	_, ended := follow(t, start(t, g, TurnRequest{SessionID: "s", Text: "what", Images: []Image{{MIMEType: "image/png", Data: []byte("x")}}}))
	if ended.Outcome.State != Completed || ended.Outcome.Text() != "a cat" {
		t.Errorf("outcome %+v", ended.Outcome)
	}
}

// Closing a turn ends the wait of its reader for the outcome.
func TestCloseWhileSettling(t *testing.T) {
	t.Parallel()
	g := newGateway(t, "0.19.0")
	g.on("GET /v1/runs/run_1", answer(200, `{"status":"running"}`))
	turn, err := g.client.ResumeTurn(t.Context(), TurnHandle{Mode: ModeRun, RunID: "run_1", IdleTimeout: defaultIdleTimeout, OutcomeTimeout: defaultOutcomeTimeout}, "")
	must(t, err)
	for _, err := range turn.Events(t.Context()) {
		if err != nil {
			if !errors.Is(err, ErrClosed) {
				t.Errorf("the reader got %v", err)
			}
			return
		}
		go turn.Close()
	}
}

// A slow reader is not a silent gateway.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	g := newGateway(t, "0.22.2")
	release := make(chan struct{})
	g.on("GET /api/sessions/s/messages", answer(200, rows("s")))
	g.on("POST /api/sessions/s/chat/stream", hold(sessionEvents("assistant.delta", `{"delta":"x"}`), release, sessionEvents("run.completed", `{"completed":true}`)))
	const idle = time.Second
	turn := start(t, g, TurnRequest{SessionID: "s", Text: "hi", Mode: ModeSession, IdleTimeout: idle})
	for event, err := range turn.Events(t.Context()) {
		must(t, err)
		switch e := event.(type) {
		case Delta:
			close(release)
			time.Sleep(idle + idle/4)
		case Status:
			t.Errorf("the stream was given up: %+v", e)
		}
	}
}

// The events of a run on 0.19 are requested once, whatever the result.
func TestOldGatewayHasOneReader(t *testing.T) {
	t.Parallel()
	g := newGateway(t, "0.19.0")
	g.on("POST /v1/runs", answer(202, created))
	g.on("GET /v1/runs/run_1/events", answer(503, `{}`))
	g.on("GET /v1/runs/run_1", answer(200, `{"status":"completed","output":"x"}`))
	_, ended := follow(t, start(t, g, TurnRequest{Text: "hi"}))
	if n := len(g.requests("GET /v1/runs/run_1/events")); n != 1 || ended.Outcome.Text() != "x" {
		t.Errorf("%d readers, outcome %+v", n, ended.Outcome)
	}
}
