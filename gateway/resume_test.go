package gateway

import (
	"testing"
)

// Missing events are detected by their numbers.
func TestMissedEvents(t *testing.T) {
	t.Parallel()
	g := newGateway(t, "0.22.2")
	g.on("GET /api/sessions/s/messages", answer(200, rows("s")), answer(200, rows("s", row(1, "user", "hi", ""), stopRow(2, "one two three"))))
	g.on("POST /v1/runs", answer(202, created))
	g.on("GET /v1/runs/run_1/events", stream("id: 0\ndata: {\"event\":\"message.delta\",\"delta\":\"one \"}\n\nid: 2\ndata: {\"event\":\"message.delta\",\"delta\":\"three\"}\n\n"+
		"id: 3\ndata: {\"event\":\"run.completed\"}\n\n"))
	if _, ended := follow(t, start(t, g, TurnRequest{SessionID: "s", Text: "hi"})); ended.Outcome.Text() != "one two three" {
		t.Errorf("outcome %+v", ended.Outcome)
	}
}

// The client does not wait for a status that it does not know: the session tells the outcome.
func TestUnknownStateOfARun(t *testing.T) {
	t.Parallel()
	g := newGateway(t, "0.19.0")
	g.on("GET /api/sessions/s/messages", answer(200, rows("s")), answer(200, rows("s", row(1, "user", "hi", ""), stopRow(2, "done"))))
	g.on("POST /v1/runs", answer(202, created))
	g.on("GET /v1/runs/run_1/events", cutStream(""))
	g.on("GET /v1/runs/run_1", answer(200, `{"status":"archived"}`))
	if _, ended := follow(t, start(t, g, TurnRequest{SessionID: "s", Text: "hi"})); ended.Outcome.State != Completed || ended.Outcome.Text() != "done" {
		t.Errorf("outcome %+v", ended.Outcome)
	}
}

// A position is parsed as it was written, and anything else is rejected.
func TestPosition(t *testing.T) {
	t.Parallel()
	for _, p := range []position{{seq: 0}, {seq: 12, segment: 3, has: true}, {seq: 7, segment: 1, has: true, tool: true}, {seq: 7, tool: true}} {
		d := &runDecoder{text: turnText{current: p.segment, has: p.has, tool: p.tool}}
		if again, err := parsePosition(p.String(d)); err != nil || again != p {
			t.Errorf("%q becomes %+v, %v", p.String(d), again, err)
		}
	}
	if p, err := parsePosition("41"); err != nil || p.seq != 41 {
		t.Errorf("a plain number becomes %+v, %v", p, err)
	}
}
