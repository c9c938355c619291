package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
)

// Two approvals are open at once, with IDs as gateways really send them, and are answered in
// reverse order: each has an ID of its own, and each answer reaches its approval.
func TestTwoApprovalsAtOnce(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		first, second string // the gateway's IDs
		direct        bool   // the gateway finds them by ID, so no answer has to wait
	}{
		"ids of their own": {"r1", "r2", true},
		"no ids":           {"", "", false},
		"one id for both":  {"r1", "r1", false},
		"one has none":     {"r1", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGateway(t, "0.22.2")
			release := make(chan struct{})
			g.on("POST /v1/runs", answer(202, created))
			g.on("GET /v1/runs/run_1/events", hold(runEvents(`{"event":"tool.started","tool":"a"}`, `{"event":"tool.started","tool":"b"}`,
				`{"event":"approval.request","command":"first","timestamp":1,"request_id":"`+tc.first+`"}`,
				`{"event":"approval.request","command":"second","timestamp":2,"request_id":"`+tc.second+`"}`), release,
				"id: 4\ndata: {\"event\":\"approval.responded\",\"choice\":\"once\",\"resolved\":1}\n\n"+
					"id: 5\ndata: {\"event\":\"approval.responded\",\"choice\":\"deny\",\"resolved\":1}\n\n"+
					"id: 6\ndata: {\"event\":\"run.completed\",\"output\":\"x\"}\n\n"))
			// What the gateway does: the named approval, else the oldest.
			open := []struct{ id, command string }{{tc.first, "first"}, {tc.second, "second"}}
			got := map[string]string{}
			g.on("POST /v1/runs/run_1/approval", func(w http.ResponseWriter, r *http.Request) {
				var body struct{ Choice, Request_ID string }
				posts := g.requests("POST /v1/runs/run_1/approval")
				_ = json.Unmarshal(posts[len(posts)-1].Body, &body)
				at := slices.IndexFunc(open, func(o struct{ id, command string }) bool { return body.Request_ID == "" || o.id == body.Request_ID })
				if at < 0 {
					answer(409, `{"error":{"code":"approval_not_pending","message":"none"}}`)(w, r)
					return
				}
				got[open[at].command] = body.Choice
				open = slices.Delete(open, at, at+1)
				answer(200, `{"resolved":1}`)(w, r)
			})
			turn := start(t, g, TurnRequest{Text: "hi"})
			var asked []Approval
			answered := map[string]string{}
			for event, err := range turn.Events(t.Context()) {
				must(t, err)
				switch e := event.(type) {
				case ApprovalRequested:
					if asked = append(asked, e.Approval); len(asked) < 2 {
						continue
					}
					if asked[0].ID == "" || asked[1].ID == "" || asked[0].ID == asked[1].ID {
						t.Fatalf("ids %q and %q", asked[0].ID, asked[1].ID)
					}
					must(t, turn.Answer(t.Context(), ApprovalAnswer{RequestID: asked[1].ID, Choice: "deny"}))
					if n := len(g.requests("POST /v1/runs/run_1/approval")); (n == 1) != tc.direct {
						t.Errorf("%d answers were sent", n)
					}
					must(t, turn.Answer(t.Context(), ApprovalAnswer{RequestID: asked[0].ID, Choice: "once"}))
					close(release)
				case ApprovalAnswered:
					answered[e.ApprovalID] = e.Choice
				}
			}
			if fmt.Sprint(got) != "map[first:once second:deny]" {
				t.Errorf("the gateway understood %v", got)
			}
			if answered[asked[0].ID] != "once" || answered[asked[1].ID] != "deny" {
				t.Errorf("told %v of %v", answered, asked)
			}
		})
	}
}

// Answers that come late, twice, for no approval, or while the gateway is offline.
func TestAnswersThatDoNotLand(t *testing.T) {
	t.Parallel()
	g := newGateway(t, "0.22.2")
	release := make(chan struct{})
	defer close(release)
	g.on("POST /v1/runs", answer(202, created))
	g.on("GET /v1/runs/run_1/events", hold(runEvents(`{"event":"tool.started","tool":"a"}`, `{"event":"approval.request","request_id":"r1"}`), release, ""))
	g.on("POST /v1/runs/run_1/approval", vanish, answer(409, `{"error":{"code":"approval_not_active","message":"too late"}}`))
	turn := start(t, g, TurnRequest{Text: "hi"})
	for event, err := range turn.Events(t.Context()) {
		must(t, err)
		if _, ok := event.(ApprovalRequested); ok {
			break
		}
	}
	say := func(id, choice string) error {
		return turn.Answer(t.Context(), ApprovalAnswer{RequestID: id, Choice: choice})
	}
	if err := say("r1", "maybe"); err == nil || errors.Is(err, ErrApprovalClosed) {
		t.Errorf("a choice that does not exist: %v", err)
	}
	if err := say("approval-9", "once"); !errors.Is(err, ErrApprovalClosed) {
		t.Errorf("an id that nobody made: %v", err)
	}
	if err := say("r1", "once"); err == nil || errors.Is(err, ErrApprovalClosed) {
		t.Errorf("while the gateway is away: %v", err)
	}
	if err := say("r1", "once"); !errors.Is(err, ErrApprovalClosed) {
		t.Errorf("too late: %v", err)
	}
	var refused *Error
	if err := say("elsewhere", "once"); !errors.Is(err, ErrApprovalClosed) || !errors.As(err, &refused) || refused.Code != "approval_not_active" {
		t.Errorf("an id from before a restart: %v", err)
	}
	if body := string(g.requests("POST /v1/runs/run_1/approval")[2].Body); body != `{"choice":"once","request_id":"elsewhere"}` {
		t.Errorf("asked with %s", body)
	}
	turn.Close()
	if err := say("r1", "once"); !errors.Is(err, ErrClosed) {
		t.Errorf("a closed turn: %v", err)
	}
}

// If the events of a run are gone, its status holds the open approval.
func TestApprovalOfAResumedRun(t *testing.T) {
	t.Parallel()
	g := newGateway(t, "0.22.2")
	g.on("GET /v1/runs/run_1", answer(200, string(recordedStream(t, "0.22.2", "run_approval_approve_status_waiting.json"))), answer(200, `{"status":"running"}`),
		answer(200, `{"status":"completed","output":"done"}`))
	handle := TurnHandle{Mode: ModeRun, RunID: "run_1", IdleTimeout: defaultIdleTimeout, OutcomeTimeout: defaultOutcomeTimeout}
	turn, err := g.client.ResumeTurn(t.Context(), handle, "")
	must(t, err)
	defer turn.Close()
	events, ended := follow(t, turn)
	i := slices.IndexFunc(events, func(e Event) bool { _, ok := e.(ApprovalRequested); return ok })
	if i < 0 || events[i].(ApprovalRequested).Approval.ID != "a9d20a3180f641feb4a65ab9f32ea884" || ended.Outcome.Text() != "done" {
		t.Errorf("events %+v", events)
	}
}

// On 0.19 the status does not hold the approval: the reader learns only that there is one.
func TestUnseenApprovalOfOldGateway(t *testing.T) {
	t.Parallel()
	g := newGateway(t, "0.19.0")
	g.on("GET /v1/runs/run_1", answer(200, `{"status":"waiting_for_approval"}`), answer(200, `{"status":"waiting_for_approval"}`), answer(200, `{"status":"completed","output":"done"}`))
	turn, err := g.client.ResumeTurn(t.Context(), TurnHandle{Mode: ModeRun, RunID: "run_1", SessionID: "s", IdleTimeout: defaultIdleTimeout, OutcomeTimeout: defaultOutcomeTimeout}, "")
	must(t, err)
	defer turn.Close()
	events, ended := follow(t, turn)
	n := 0
	for _, e := range events {
		if s, ok := e.(Status); ok && s.Kind == StatusWaiting {
			n++
		}
	}
	if n != 1 || ended.Outcome.State != Completed || len(g.requests("GET /v1/runs/run_1/events")) != 0 {
		t.Errorf("events %+v", events)
	}
}

// Stop and Steer where they are not supported.
func TestStopAndSteerWhereTheyCannotBe(t *testing.T) {
	t.Parallel()
	g := newGateway(t, "0.19.0")
	release := make(chan struct{})
	defer close(release)
	g.on("GET /api/sessions/s/messages", answer(200, rows("s")))
	g.on("POST /api/sessions/s/chat/stream", hold(sessionEvents("run.started", `{}`), release, ""))
	turn := start(t, g, TurnRequest{SessionID: "s", Text: "hi", Mode: ModeSession})
	for _, err := range turn.Events(t.Context()) {
		must(t, err)
		break
	}
	if err := turn.Stop(t.Context()); !errors.Is(err, ErrUnavailable) {
		t.Errorf("stop: %v", err)
	}
	if err := turn.Steer(t.Context(), "left"); !errors.Is(err, ErrUnavailable) {
		t.Errorf("steer: %v", err)
	}
	// Stopping a run that has ended is no error (404 on 0.19).
	run, err := g.client.ResumeTurn(t.Context(), TurnHandle{Mode: ModeRun, RunID: "run_1", IdleTimeout: defaultIdleTimeout, OutcomeTimeout: defaultOutcomeTimeout}, "")
	must(t, err)
	defer run.Close()
	must(t, run.Stop(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := run.Stop(ctx); err == nil {
		t.Error("a call whose context is done says nothing")
	}
}

// An approval in a stream of completions is answered under the ID of the completion.
func TestApprovalOfACompletion(t *testing.T) {
	t.Parallel()
	g := newGateway(t, "0.22.2")
	g.on("POST /v1/chat/completions", stream(string(recordedStream(t, "0.22.2", "chat_completions_stream_approval.sse"))))
	g.on("POST /v1/runs/chatcmpl-9bb97b19771b4c40bfeaf5c6a7702/approval", answer(200, `{"resolved":1}`))
	turn := start(t, g, TurnRequest{Text: "hi", Mode: ModeCompletions})
	asked := false
	for event, err := range turn.Events(t.Context()) {
		must(t, err)
		if e, ok := event.(ApprovalRequested); ok {
			asked = true
			must(t, turn.Answer(t.Context(), ApprovalAnswer{RequestID: e.Approval.ID, Choice: "once"}))
		}
	}
	if !asked || len(g.requests("POST /v1/runs/chatcmpl-9bb97b19771b4c40bfeaf5c6a7702/approval")) != 1 {
		t.Error("the answer did not arrive")
	}
}

// One answer can cover everything that is open.
func TestAnswerAll(t *testing.T) {
	t.Parallel()
	g := newGateway(t, "0.19.0")
	release := make(chan struct{})
	g.on("POST /v1/runs", answer(202, created))
	g.on("GET /v1/runs/run_1/events", hold(`data: {"event":"approval.request","command":"a","timestamp":1}`+"\n\n"+`data: {"event":"approval.request","command":"b","timestamp":2}`+"\n\n",
		release, `data: {"event":"approval.responded","choice":"deny","resolved":2}`+"\n\n"+`data: {"event":"run.completed","output":"x"}`+"\n\n"))
	g.on("POST /v1/runs/run_1/approval", answer(200, `{"resolved":2}`))
	turn := start(t, g, TurnRequest{Text: "hi"})
	var asked, told []string
	for event, err := range turn.Events(t.Context()) {
		must(t, err)
		switch e := event.(type) {
		case ApprovalRequested:
			if asked = append(asked, e.Approval.ID); len(asked) == 2 {
				must(t, turn.Answer(t.Context(), ApprovalAnswer{RequestID: asked[1], Choice: "deny", All: true}))
				close(release)
			}
		case ApprovalAnswered:
			told = append(told, e.ApprovalID)
		}
	}
	slices.Sort(asked)
	slices.Sort(told)
	if posts := g.requests("POST /v1/runs/run_1/approval"); len(posts) != 1 || string(posts[0].Body) != `{"all":true,"choice":"deny"}` || !slices.Equal(asked, told) {
		t.Errorf("%d answers, told of %q and of %q", len(posts), asked, told)
	}
}

// Two users answer at the same moment: one wins, and the other gets an error.
func TestAnsweredTwiceAtOnce(t *testing.T) {
	t.Parallel()
	g := newGateway(t, "0.22.2")
	release := make(chan struct{})
	defer close(release)
	g.on("POST /v1/runs", answer(202, created))
	g.on("GET /v1/runs/run_1/events", hold(runEvents(`{"event":"approval.request","request_id":"r1"}`), release, ""))
	g.on("POST /v1/runs/run_1/approval", answer(200, `{"resolved":1}`))
	turn := start(t, g, TurnRequest{Text: "hi"})
	for event, err := range turn.Events(t.Context()) {
		must(t, err)
		if _, ok := event.(ApprovalRequested); ok {
			break
		}
	}
	results := make(chan error)
	const people = 8
	for i := range people {
		go func() {
			results <- turn.Answer(t.Context(), ApprovalAnswer{RequestID: "r1", Choice: []string{"once", "deny"}[i%2]})
		}()
	}
	won := 0
	for range people {
		switch err := <-results; {
		case err == nil:
			won++
		case !errors.Is(err, ErrApprovalClosed):
			t.Error(err)
		}
	}
	if n := len(g.requests("POST /v1/runs/run_1/approval")); won != 1 || n != 1 {
		t.Errorf("%d won, %d answers were sent", won, n)
	}
}

// After a restart of the program an answer without an ID goes to the oldest approval, as on 0.19.
func TestAnswerAfterRestartOnOldGateway(t *testing.T) {
	t.Parallel()
	g := newGateway(t, "0.19.0")
	g.on("POST /v1/runs/run_1/approval", answer(200, `{"resolved":1}`))
	turn, err := g.client.ResumeTurn(t.Context(), TurnHandle{Mode: ModeRun, RunID: "run_1", IdleTimeout: defaultIdleTimeout, OutcomeTimeout: defaultOutcomeTimeout}, "")
	must(t, err)
	defer turn.Close()
	must(t, turn.Answer(t.Context(), ApprovalAnswer{Choice: "once"}))
	if body := string(g.requests("POST /v1/runs/run_1/approval")[0].Body); body != `{"choice":"once"}` {
		t.Errorf("answered with %s", body)
	}
}
