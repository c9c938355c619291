package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

const created = `{"run_id":"run_1","status":"started"}`

// A run of 0.22 from start to end: the requests and the events.
func TestRunIsFollowed(t *testing.T) {
	t.Parallel()
	g := newGateway(t, "0.22.2")
	events := recordedStream(t, "0.22.2", "run_tool_events.sse")
	id := "run_0f2fcf0078c84fdeab7d3245e93bcd5f"
	g.on("GET /api/sessions/s%201/messages", answer(200, rows("s 1", row(7, "user", "before", ""))))
	g.on("POST /v1/runs", answer(202, `{"run_id":"`+id+`","status":"started","replayed":false}`))
	g.on("GET /v1/runs/"+id+"/events", stream(string(events)))
	var leases []TurnHandle
	turn := start(t, g, TurnRequest{SessionID: "s 1", Text: "KW_TOOL please", Instructions: "be kind", OnHandle: func(l TurnHandle) { leases = append(leases, l) }})
	list, ended := follow(t, turn)
	if turn.Mode() != ModeRun || ended.Outcome.State != Completed || ended.Outcome.Text() != "Let me look.\n\nThe tool said hello-from-tool." || ended.Outcome.Usage.Total != 36 {
		t.Errorf("way %s, outcome %+v", turn.Mode(), ended.Outcome)
	}
	if first, ok := list[0].(Started); !ok || first.RunID != id || first.SessionID != "s 1" {
		t.Errorf("it begins with %+v", list[0])
	}
	if reply(list) != ended.Outcome.Text() {
		t.Errorf("the events make %q", reply(list))
	}
	post := g.requests("POST /v1/runs")[0]
	body := post.json(t)
	if body["input"] != "KW_TOOL please" || body["session_id"] != "s 1" || body["instructions"] != "be kind" || body["conversation_history"] != nil {
		t.Errorf("asked with %s", post.Body)
	}
	if len(leases) != 2 || leases[0].RunID != "" || leases[1].RunID != id || leases[0].IdempotencyKey == "" || post.Header.Get("Idempotency-Key") != leases[0].IdempotencyKey {
		t.Errorf("leases %+v, header %v", leases, post.Header)
	}
	if leases[0].After != 7 || leases[0].Endpoint != "/v1/runs" || leases[0].Generation != 3 || !leases[0].ToolEvents {
		t.Errorf("lease %#v", leases[0])
	}
	if q := g.requests("GET /api/sessions/s%201/messages")[0].Query; q != "limit=1&order=latest" {
		t.Errorf("the transcript was asked with %q", q)
	}
	for _, r := range g.asked {
		if r.Header.Get("Origin") != "" || r.Header.Get("Transfer-Encoding") != "" {
			t.Errorf("%s %s has a header that the gateway refuses", r.Method, r.Path)
		}
	}
	// A turn that has ended repeats its end.
	again, _ := follow(t, turn)
	if len(again) != 1 {
		t.Errorf("%d events after the end", len(again))
	}
}

// 0.19 loads no history for a run, has no idempotency keys, and allows one reader.
func TestRunOfOldGateway(t *testing.T) {
	t.Parallel()
	g := newGateway(t, "0.19.0")
	g.on("GET /api/sessions/s/messages", answer(200, rows("s", row(1, "user", "one", ""), row(2, "assistant", "", `,"tool_calls":[{"id":"c"}]`),
		row(3, "tool", "{}", ""), stopRow(4, "two"))))
	id := "run_b32ba8e81fdf446394968f8f54da30ba"
	g.on("POST /v1/runs", answer(202, `{"run_id":"`+id+`","status":"started"}`))
	g.on("GET /v1/runs/"+id+"/events", stream(string(recordedStream(t, "0.19.0", "run_tool_events.sse"))))
	_, ended := follow(t, start(t, g, TurnRequest{SessionID: "s", Text: "three"}))
	if ended.Outcome.State != Completed || ended.Outcome.Text() != "Let me look.\n\nThe tool said hello-from-tool." {
		t.Errorf("outcome %+v", ended.Outcome)
	}
	post := g.requests("POST /v1/runs")[0]
	history, _ := json.Marshal(post.json(t)["conversation_history"])
	if string(history) != `[{"content":"one","role":"user"},{"content":"two","role":"assistant"}]` {
		t.Errorf("history %s", history)
	}
	if post.Header.Get("Idempotency-Key") != "" {
		t.Error("a key was sent to a gateway that ignores it: net/http would repeat the call by itself")
	}
}

// A stream that breaks at any byte is continued after its last ID: every event arrives once, in
// order.
func TestRunCutAtEveryByte(t *testing.T) {
	t.Parallel()
	whole := runEvents(`{"event":"message.delta","delta":"One "}`, `{"event":"tool.started","tool":"x","preview":"p"}`, `{"event":"tool.completed","tool":"x","error":false}`,
		`{"event":"message.delta","delta":"\n\nTwo 😀"}`, `{"event":"run.completed","output":"Two 😀"}`)
	var want string
	for at := 0; at <= len(whole); at++ {
		g := newGateway(t, "0.22.2")
		g.on("POST /v1/runs", answer(202, created))
		n := 0
		g.on("GET /v1/runs/run_1/events", func(w http.ResponseWriter, r *http.Request) {
			if n++; n == 1 {
				cutStream(whole[:at])(w, r)
				return
			}
			last := r.Header.Get("Last-Event-ID")
			rest := whole
			if last != "" {
				rest = whole[strings.Index(whole, "id: "+last+"\n"):]
			}
			stream(rest)(w, r) // repeats the last event, as a gateway might
		})
		events, ended := follow(t, start(t, g, TurnRequest{Text: "hi"}))
		var got strings.Builder
		for _, e := range events {
			if s, ok := e.(Status); ok && s.Kind == StatusReconnecting {
				continue
			}
			if s, ok := e.(Started); ok {
				s.Time = time.Time{}
				e = s
			}
			data, err := json.Marshal(e)
			must(t, err)
			fmt.Fprintf(&got, "%T %s\n", e, data)
		}
		if want == "" {
			want = got.String()
		}
		if got.String() != want || ended.Outcome.Text() != "One\n\nTwo 😀" {
			t.Fatalf("cut at byte %d:\n%s\nwant\n%s", at, got.String(), want)
		}
		if len(g.requests("POST /v1/runs")) != 1 {
			t.Fatal("the turn was started twice")
		}
		g.Server.Close()
	}
}

// The client asks the gateway for what a broken stream did not say, on 0.19 without a second
// reader.
func TestRunCutOnOldGateway(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		events http.HandlerFunc
		status []http.HandlerFunc
		rows   string
		state  TurnState
		text   string
	}{
		"cut, the run goes on": {cutStream("data: {\"event\":\"message.delta\",\"run_id\":\"run_1\",\"delta\":\"He\"}\n\n"),
			[]http.HandlerFunc{answer(200, `{"status":"running"}`), answer(503, `{}`), answer(200, `{"status":"completed","output":"Hello","session_id":"s"}`)},
			rows("s", row(1, "user", "hi", ""), stopRow(2, "Hello")), Completed, "Hello"},
		"end without a mark": {stream("data: {\"event\":\"message.delta\",\"run_id\":\"run_1\",\"delta\":\"He\"}\n\n: stream closed\n\n"),
			[]http.HandlerFunc{answer(200, `{"status":"cancelled","session_id":"s"}`)}, rows("s", row(1, "user", "hi", ""), row(2, "assistant", "Hel", "")), Cancelled, "Hel"},
		"failed meanwhile": {cutStream(""), []http.HandlerFunc{answer(200, `{"status":"failed","error":"HTTP 400: no"}`)}, rows("s", row(1, "user", "hi", "")), Failed, ""},
		"started anew, the old process stored the answer": {cutStream(""), []http.HandlerFunc{answer(404, `{"error":{"code":"run_not_found"}}`)},
			rows("s", row(1, "user", "hi", ""), row(2, "assistant", "Let me look.", `,"tool_calls":[{}]`), row(3, "tool", "{}", ""), stopRow(4, "Done.")), Completed, "Let me look.\n\nDone."},
		"killed: only the message is stored": {cutStream("data: {\"event\":\"message.delta\",\"run_id\":\"run_1\",\"delta\":\"He\"}\n\n"),
			[]http.HandlerFunc{answer(404, `{}`)}, rows("s", row(1, "user", "hi", "")), Unknown, "He"},
		"another turn follows": {cutStream(""), []http.HandlerFunc{answer(404, `{}`)},
			rows("s", row(1, "user", "hi", ""), stopRow(2, "mine"), row(3, "user", "hi", ""), stopRow(4, "not mine")), Completed, "mine"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGateway(t, "0.19.0")
			g.on("GET /api/sessions/s/messages", answer(200, rows("s")), answer(200, tc.rows))
			g.on("POST /v1/runs", answer(202, created))
			g.on("GET /v1/runs/run_1/events", tc.events)
			g.on("GET /v1/runs/run_1", tc.status...)
			_, ended := follow(t, start(t, g, TurnRequest{SessionID: "s", Text: "hi"}))
			if ended.Outcome.State != tc.state || ended.Outcome.Text() != tc.text || (ended.Outcome.Err != nil) == (tc.state == Completed || tc.state == Cancelled) {
				t.Errorf("outcome %+v", ended.Outcome)
			}
			if n := len(g.requests("GET /v1/runs/run_1/events")); n != 1 {
				t.Errorf("%d readers", n)
			}
		})
	}
}

// The response to the call that starts a run is lost.
func TestLostReply(t *testing.T) {
	t.Parallel()
	t.Run("the key brings the same run", func(t *testing.T) {
		t.Parallel()
		g := newGateway(t, "0.22.2")
		g.on("POST /v1/runs", vanish, answer(502, "bad gateway"), answer(202, `{"run_id":"run_1","status":"running","replayed":true}`))
		g.on("GET /v1/runs/run_1/events", stream(runEvents(`{"event":"run.completed","output":"once"}`)))
		_, ended := follow(t, start(t, g, TurnRequest{Text: "hi"}))
		posts := g.requests("POST /v1/runs")
		for _, p := range posts {
			if p.Header.Get("Idempotency-Key") != posts[0].Header.Get("Idempotency-Key") || !bytes.Equal(p.Body, posts[0].Body) {
				t.Errorf("a repeat differs: %s", p.Body)
			}
		}
		if len(posts) < 3 || ended.Outcome.Text() != "once" {
			t.Errorf("%d calls, outcome %+v", len(posts), ended.Outcome)
		}
	})
	t.Run("a key with another body is a conflict", func(t *testing.T) {
		t.Parallel()
		g := newGateway(t, "0.22.2")
		g.on("POST /v1/runs", answer(409, `{"error":{"message":"other","code":"idempotency_key_conflict"}}`))
		_, err := g.client.StartTurn(t.Context(), TurnRequest{Text: "hi", IdempotencyKey: "k"})
		var refused *Error
		if !errors.As(err, &refused) || refused.Code != "idempotency_key_conflict" || len(g.requests("POST /v1/runs")) != 1 {
			t.Errorf("error %v", err)
		}
	})
	for name, tc := range map[string]struct {
		rows  string
		state TurnState
		text  string
	}{
		"0.19 ran it":         {rows("s", row(1, "user", "hi", ""), stopRow(2, "once")), Completed, "once"},
		"0.19 never heard it": {rows("s"), Absent, ""},
		"0.19 runs it still":  {rows("s", row(1, "user", "hi", "")), Unknown, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGateway(t, "0.19.0")
			g.on("GET /api/sessions/s/messages", answer(200, rows("s")), answer(200, tc.rows))
			g.on("POST /v1/runs", vanish)
			_, ended := follow(t, start(t, g, TurnRequest{SessionID: "s", Text: "hi"}))
			if ended.Outcome.State != tc.state || ended.Outcome.Text() != tc.text {
				t.Errorf("outcome %+v", ended.Outcome)
			}
			if n := len(g.requests("POST /v1/runs")); n != 1 {
				t.Errorf("it was started %d times", n)
			}
		})
	}
}

// A restarted program continues with what it stored.
func TestResume(t *testing.T) {
	t.Parallel()
	frames := []string{`{"event":"message.delta","delta":"Let me "}`, `{"event":"message.delta","delta":"look."}`, `{"event":"tool.started","tool":"x"}`,
		`{"event":"tool.completed","tool":"x","error":false}`, `{"event":"message.delta","delta":"\n\nIt "}`, `{"event":"message.delta","delta":"said so."}`,
		`{"event":"run.completed","output":"It said so."}`}
	whole := runEvents(frames...)
	for stop := 1; stop < len(frames); stop++ {
		g := newGateway(t, "0.22.2")
		g.on("GET /api/sessions/s/messages", answer(200, rows("s")), answer(200, rows("s", row(1, "user", "hi", ""),
			row(2, "assistant", "Let me look.", `,"tool_calls":[{}]`), row(3, "tool", "{}", ""), stopRow(4, "It said so."))))
		g.on("POST /v1/runs", answer(202, created))
		g.on("GET /v1/runs/run_1/events", func(w http.ResponseWriter, r *http.Request) {
			rest := whole
			if last := r.Header.Get("Last-Event-ID"); last != "" {
				rest = whole[strings.Index(whole, "id: "+last+"\n"):]
			}
			stream(rest)(w, r)
		})
		turn := start(t, g, TurnRequest{SessionID: "s", Text: "hi"})
		var before Reply
		n, last := 0, ""
		for event, err := range turn.Events(t.Context()) {
			must(t, err)
			before.Apply(event)
			last = event.At().Position
			if n++; n == stop {
				break
			}
		}
		stored, err := json.Marshal(turn.Handle())
		must(t, err)
		turn.Close()
		for event, err := range turn.Events(t.Context()) {
			if !errors.Is(err, ErrClosed) {
				t.Fatalf("a closed turn gives %v, %v", event, err)
			}
		}
		var handle TurnHandle
		must(t, json.Unmarshal(stored, &handle))
		again, err := g.client.ResumeTurn(t.Context(), handle, last)
		must(t, err)
		var ended Ended
		for event, err := range again.Events(t.Context()) {
			must(t, err)
			if e, ok := event.(Ended); ok {
				ended = e
				break
			}
			before.Apply(event)
		}
		again.Close()
		if before.Text() != "Let me look.\n\nIt said so." || ended.Outcome.Text() != before.Text() || ended.Outcome.State != Completed {
			t.Errorf("after %d events and a restart the text is %q, the outcome %+v", stop, before.Text(), ended.Outcome)
		}
		g.Server.Close()
	}
}

// The stream of a session.
func TestSessionStream(t *testing.T) {
	t.Parallel()
	g := newGateway(t, "0.22.2")
	g.on("GET /api/sessions/s-image/messages", answer(200, rows("s-image")))
	g.on("POST /api/sessions/s-image/chat/stream", stream(string(recordedStream(t, "0.22.2", "chat_stream_image.sse"))))
	turn := start(t, g, TurnRequest{SessionID: "s-image", Text: "KW_IMG what", Images: []Image{{MIMEType: "image/png", Data: []byte("png")}}})
	_, ended := follow(t, turn)
	if turn.Mode() != ModeSession || ended.Outcome.State != Completed || ended.Outcome.Text() != "images seen: 0 []" || turn.Handle().RunID == "" {
		t.Errorf("way %s, outcome %+v", turn.Mode(), ended.Outcome)
	}
	body := string(g.requests("POST /api/sessions/s-image/chat/stream")[0].Body)
	if !strings.Contains(body, `"url":"data:image/png;base64,cG5n"`) || !strings.Contains(body, `"text":"KW_IMG what"`) {
		t.Errorf("asked with %s", body)
	}
}

// Approvals, Stop and Steer reach the run.
func TestAnswerStopSteer(t *testing.T) {
	t.Parallel()
	g := newGateway(t, "0.22.2")
	release := make(chan struct{})
	g.on("POST /v1/runs", answer(202, created))
	g.on("GET /v1/runs/run_1/events", hold(runEvents(`{"event":"approval.request","command":"rm","request_id":"r1","choices":["once","deny"]}`), release,
		"id: 1\ndata: {\"event\":\"approval.responded\",\"choice\":\"once\",\"resolved\":1}\n\nid: 2\ndata: {\"event\":\"run.cancelled\"}\n\n"))
	g.on("POST /v1/runs/run_1/approval", answer(200, `{"resolved":1}`))
	g.on("POST /v1/runs/run_1/steer", answer(200, `{"accepted":true}`))
	g.on("POST /v1/runs/run_1/stop", answer(200, `{"status":"stopping"}`))
	turn := start(t, g, TurnRequest{Text: "hi"})
	var seen []Event
	for event, err := range turn.Events(t.Context()) {
		must(t, err)
		seen = append(seen, event)
		if ask, ok := event.(ApprovalRequested); ok {
			if err := turn.Answer(t.Context(), ApprovalAnswer{RequestID: ask.Approval.ID, Choice: "always"}); err == nil {
				t.Error("a choice that is not offered was taken")
			}
			must(t, turn.Answer(t.Context(), ApprovalAnswer{RequestID: ask.Approval.ID, Choice: "once"}))
			if err := turn.Answer(t.Context(), ApprovalAnswer{RequestID: ask.Approval.ID, Choice: "deny"}); !errors.Is(err, ErrApprovalClosed) {
				t.Errorf("a second answer gives %v", err)
			}
			must(t, turn.Steer(t.Context(), "left"))
			must(t, turn.Stop(t.Context()))
			close(release)
		}
	}
	if answered, ok := seen[2].(ApprovalAnswered); !ok || answered.ApprovalID != "r1" || answered.Choice != "once" {
		t.Errorf("events %+v", seen)
	}
	if ended := seen[len(seen)-1].(Ended); ended.Outcome.State != Cancelled || ended.Outcome.Err != nil {
		t.Errorf("outcome %+v", ended)
	}
	if body := string(g.requests("POST /v1/runs/run_1/approval")[0].Body); body != `{"choice":"once","request_id":"r1"}` {
		t.Errorf("answered with %s", body)
	}
	if body := string(g.requests("POST /v1/runs/run_1/steer")[0].Body); body != `{"input":"left"}` {
		t.Errorf("steered with %s", body)
	}
	must(t, turn.Stop(t.Context()))
	if n := len(g.requests("POST /v1/runs/run_1/stop")); n != 1 {
		t.Errorf("a turn that is over was stopped: %d calls", n)
	}
}

// A reader that leaves does not end the turn: the next one continues.
func TestReaderMayLeave(t *testing.T) {
	t.Parallel()
	g := newGateway(t, "0.22.2")
	g.on("POST /v1/runs", answer(202, created))
	release := make(chan struct{})
	g.on("GET /v1/runs/run_1/events", hold(runEvents(`{"event":"message.delta","delta":"a"}`), release, ""),
		stream(runEvents(`{"event":"message.delta","delta":"a"}`, `{"event":"run.completed","output":"ab"}`)))
	turn := start(t, g, TurnRequest{Text: "hi"})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	for event, err := range turn.Events(ctx) {
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("the reader got %v", err)
			}
			break
		}
		if _, ok := event.(Delta); ok {
			cancel()
		}
	}
	cancel()
	close(release)
	events, ended := follow(t, turn)
	for _, event := range events {
		if _, ok := event.(Delta); ok {
			t.Errorf("it came again: %+v", event)
		}
	}
	if ended.Outcome.State != Completed || ended.Outcome.Text() != "ab" {
		t.Errorf("outcome %+v", ended.Outcome)
	}
}

// The gateway no longer has the events: the reader gets a Gap, and the full text at the end.
func TestReplayIsTruncated(t *testing.T) {
	t.Parallel()
	g := newGateway(t, "0.22.2")
	g.on("GET /api/sessions/s/messages", answer(200, rows("s")), answer(200, rows("s", row(1, "user", "hi", ""),
		row(2, "assistant", "First.", `,"tool_calls":[{}]`), row(3, "tool", "{}", ""), stopRow(4, "Last."))))
	g.on("POST /v1/runs", answer(202, created))
	g.on("GET /v1/runs/run_1/events", stream(": open\n\ndata: {\"event\":\"replay.truncated\",\"oldest_retained_seq\":1200}\n\n"+
		"id: 1200\ndata: {\"event\":\"message.delta\",\"delta\":\"st.\"}\n\nid: 1201\ndata: {\"event\":\"run.completed\",\"output\":\"Last.\"}\n\n"))
	events, ended := follow(t, start(t, g, TurnRequest{SessionID: "s", Text: "hi"}))
	if _, ok := events[1].(Gap); !ok {
		t.Errorf("the reader is not told: %+v", events)
	}
	if ended.Outcome.Text() != "First.\n\nLast." || ended.Outcome.Partial {
		t.Errorf("outcome %+v", ended.Outcome)
	}
}

// The events are gone, as after a restart of the gateway, and the status of the run is there.
func TestRunWithoutEvents(t *testing.T) {
	t.Parallel()
	g := newGateway(t, "0.22.2")
	g.on("POST /v1/runs", answer(202, created))
	g.on("GET /v1/runs/run_1", answer(200, string(recordedStream(t, "0.22.2", "run_idempotent_status_after_sigkill.json"))))
	_, ended := follow(t, start(t, g, TurnRequest{Text: "hi"}))
	var why *Error
	if o := ended.Outcome; o.State != Interrupted || !errors.As(o.Err, &why) || why.Message != "The gateway restarted before this run settled." {
		t.Errorf("outcome %+v", o)
	}
}

// The client waits for a gateway that is full, stops or starts. A refused credential is returned to
// the reader, and the turn continues after that.
func TestFollowingMeetsTrouble(t *testing.T) {
	t.Parallel()
	g := newGateway(t, "0.22.2")
	g.on("POST /v1/runs", answer(202, created))
	g.on("GET /v1/runs/run_1/events", answer(503, `{}`), vanish, answer(429, `{}`), stream(": open\n\n"), answer(401, `{}`),
		stream(runEvents(`{"event":"run.completed","output":"x"}`)))
	g.on("GET /v1/runs/run_1", answer(200, `{"status":"running"}`))
	turn := start(t, g, TurnRequest{Text: "hi"})
	var failed error
	for _, err := range turn.Events(t.Context()) {
		failed = err
	}
	if !errors.Is(failed, ErrSignIn) {
		t.Errorf("the reader got %v", failed)
	}
	if _, ended := follow(t, turn); ended.Outcome.Text() != "x" {
		t.Errorf("outcome %+v", ended.Outcome)
	}
}

// One reader at a time, and none of a closed turn.
func TestReaders(t *testing.T) {
	t.Parallel()
	g := newGateway(t, "0.22.2")
	release := make(chan struct{})
	g.on("POST /v1/runs", answer(202, created))
	g.on("GET /v1/runs/run_1/events", hold(runEvents(`{"event":"message.delta","delta":"a"}`), release, ""))
	defer close(release)
	turn := start(t, g, TurnRequest{Text: "hi"})
	closed := false
	for event, err := range turn.Events(t.Context()) {
		if closed {
			if !errors.Is(err, ErrClosed) {
				t.Errorf("after Close: %v, %v", event, err)
			}
			continue
		}
		must(t, err)
		for _, err := range turn.Events(t.Context()) {
			if err == nil {
				t.Error("a second reader gets events")
			}
		}
		if _, err := turn.Reconcile(t.Context()); err == nil {
			t.Error("the outcome is looked up beside a reader")
		}
		closed = true
		turn.Close()
		turn.Close()
	}
	for name, err := range map[string]error{"stop": turn.Stop(t.Context()), "steer": turn.Steer(t.Context(), "x"), "answer": turn.Answer(t.Context(), ApprovalAnswer{Choice: "once"})} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s of a closed turn: %v", name, err)
		}
	}
}

// An unknown outcome can become known later.
func TestReconcileLater(t *testing.T) {
	t.Parallel()
	g := newGateway(t, "0.19.0")
	g.on("GET /api/sessions/s/messages", answer(200, rows("s")), answer(200, rows("s", row(1, "user", "hi", ""))))
	g.on("POST /v1/runs", answer(202, created))
	g.on("GET /v1/runs/run_1/events", cutStream(""))
	turn := start(t, g, TurnRequest{SessionID: "s", Text: "hi", OutcomeTimeout: 1})
	if _, ended := follow(t, turn); ended.Outcome.State != Unknown || !errors.Is(ended.Outcome.Err, ErrStreamBroken) {
		t.Fatalf("outcome %+v", ended.Outcome)
	}
	g.on("GET /api/sessions/s/messages", answer(200, rows("s", row(1, "user", "hi", ""), stopRow(2, "late"))))
	o, err := turn.Reconcile(t.Context())
	if err != nil || o.State != Completed || o.Text() != "late" {
		t.Errorf("outcome %+v, %v", o, err)
	}
}

// Tool events are emitted only if the gateway advertises them.
func TestToolEventsAreGated(t *testing.T) {
	t.Parallel()
	data := recordedStream(t, "0.22.2", "capabilities.json")
	caps, err := parseCapabilities(bytes.Replace(data, []byte(`"tool_progress_events": true`), []byte(`"tool_progress_events": false`), 1))
	must(t, err)
	g := newGatewayWith(t, caps)
	g.on("POST /v1/runs", answer(202, created))
	g.on("GET /v1/runs/run_1/events", stream(runEvents(`{"event":"message.delta","delta":"a"}`, `{"event":"tool.started","tool":"x"}`,
		`{"event":"tool.completed","tool":"x"}`, `{"event":"message.delta","delta":"\n\nb"}`, `{"event":"run.completed","output":"b"}`)))
	turn := start(t, g, TurnRequest{Text: "hi"})
	events, ended := follow(t, turn)
	for _, e := range events {
		switch e.(type) {
		case ToolStarted, ToolEnded:
			t.Errorf("told of %+v", e)
		}
	}
	if turn.Handle().ToolEvents || ended.Outcome.Text() != "a\n\nb" {
		t.Errorf("outcome %+v", ended.Outcome)
	}
}
