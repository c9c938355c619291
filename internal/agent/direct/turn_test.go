package direct

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hermes-mobile/gateway"
	"hermes-mobile/internal/agent"
)

func init() { busyWait = 20 * time.Millisecond }

// Text is streamed, a tool ends the message before it, and the end text is the one that counts.
func TestTurn(t *testing.T) {
	each(t, func(t *testing.T, v string) {
		g, d := newGateway(t, v), newDisk()
		l := begin(t, g.URL, d)
		in := message(1, "hi")
		in.Quote = "a line\nanother"
		ok(t, receive(t, l.hand(in), "taken"))
		run := g.run(1)
		if run.body["input"] != "> a line\n> another\n\nhi" {
			t.Errorf("the model reads %q", run.body["input"])
		}
		run.text("Let me ", "look.")
		l.steps("Let me look.")
		run.tool("Let me look.", "terminal")
		l.eventually("the tool", func(e []agent.Event) bool {
			return seen(e, func(s agent.ToolStep) bool {
				return s.Name == "terminal" && s.State == "started" && s.Title == "a line"
			})
		})
		if got := d.finals(1); !slices.Equal(got, []string{"Let me look."}) {
			t.Errorf("when the tool runs, %q is finished", got)
		}
		run.toolDone("terminal", true)
		l.eventually("the tool's end", func(e []agent.Event) bool {
			return seen(e, func(s agent.ToolStep) bool { return s.State == "failed" })
		})
		run.text("\n\nIt sa", "ys X")
		run.complete("It says Y.")
		if e := l.done(1); e.Interrupted {
			t.Error("it ended as interrupted")
		}
		wantFinals(t, d, 1, "Let me look.", "It says Y.")
		for _, e := range d.events {
			if s, is := e.(agent.Say); is && (s.ReplyTo != "m1" || s.Interrupted) {
				t.Errorf("it said %+v", s)
			}
		}

		// The session goes on.
		ok(t, receive(t, l.hand(message(2, "more")), "taken"))
		second := g.run(2)
		second.complete("ok")
		l.done(2)
		if second.session != run.session || g.count("POST /api/sessions") != 1 {
			t.Errorf("the second turn is of session %s, the first of %s", second.session, run.session)
		}
		if used := string(call(t, l, "usage.list", "{}")); !strings.Contains(used, `"id":"m1","input_tokens":7,"output_tokens":3,"total_tokens":10`) {
			t.Errorf("usage %s", used)
		}
	})
}

// Text that follows an approval or another pause in the same segment is not lost, and nothing is said twice.
func TestTextGoesOnAfterAQuestion(t *testing.T) {
	each(t, func(t *testing.T, v string) {
		g, d := newGateway(t, v), newDisk()
		l := begin(t, g.URL, d)
		ok(t, receive(t, l.hand(message(1, "hi")), "taken"))
		run := g.run(1)
		run.text("One.")
		run.ask("a", "rm")
		l.asks(1)
		run.text(" Two.")
		l.steps(" Two.")
		run.complete("One. Two. Three.")
		l.done(1)
		wantFinals(t, d, 1, "One.", " Two. Three.")
	})
}

// How turns end badly, in words for the person.
func TestBadEnds(t *testing.T) {
	type end struct {
		text, says string
		run        func(*fakeRun)
	}
	for name, c := range map[string]map[string]end{
		"failed at once": {older: {"", "The turn failed: HTTP 400: no such model", func(r *fakeRun) { r.end("failed", object{"error": "HTTP 400: no such model"}) }}},
		"failed":         {now: {"pie", "The turn failed: it broke", func(r *fakeRun) { r.end("failed", object{"error": "it broke"}) }}},
		"no answer":      {now: {"", "The model gave no answer.", func(r *fakeRun) { r.complete("") }}},
		"cancelled":      {older: {"pie", "The turn was stopped.", func(r *fakeRun) { r.end("cancelled", nil) }}, now: {"", "The turn was stopped.", func(r *fakeRun) { r.end("cancelled", nil) }}},
		"restarting":     {now: {"pie", "interrupted at the gateway", func(r *fakeRun) { r.end("interrupted", object{"error": "restart"}) }}},
	} {
		for v, c := range c {
			t.Run(name+" "+v, func(t *testing.T) {
				t.Parallel()
				g, d := newGateway(t, v), newDisk()
				l := begin(t, g.URL, d)
				ok(t, receive(t, l.hand(message(1, "hi")), "taken"))
				run := g.run(1)
				if c.text != "" {
					run.text(c.text)
					l.steps(c.text)
				}
				c.run(run)
				l.done(1)
				got := d.finals(1)
				if len(got) == 0 || !strings.Contains(got[len(got)-1], c.says) || c.text != "" && (len(got) != 2 || got[0] != c.text) {
					t.Errorf("it said %q", got)
				}
				ok(t, receive(t, l.hand(message(2, "next")), "taken"))
				g.run(2).complete("fine")
				l.done(2)
				wantFinals(t, d, 2, "fine")
			})
		}
	}
}

// A gateway that is full or about to stop is asked again, and the message waits.
func TestFullGateway(t *testing.T) {
	each(t, func(t *testing.T, v string) {
		g, d := newGateway(t, v), newDisk()
		g.refuseNext(2, "POST /v1/runs", http.StatusTooManyRequests, `{"error":{"message":"full","code":"rate_limit_exceeded"}}`)
		g.refuseNext(1, "POST /v1/runs", http.StatusServiceUnavailable, `{"error":{"message":"draining","code":"gateway_draining"}}`)
		l := begin(t, g.URL, d)
		taken := l.hand(message(1, "hi"))
		g.run(1).complete("at last")
		ok(t, receive(t, taken, "taken"))
		l.done(1)
		wantFinals(t, d, 1, "at last")
	})
}

// What the gateway refuses is told in its words, and is not tried again.
func TestRefusedTurn(t *testing.T) {
	each(t, func(t *testing.T, v string) {
		g, d := newGateway(t, v), newDisk()
		g.refuseNext(1, "POST /v1/runs", 400, `{"error":{"message":"That model is not known.","code":"bad_model"}}`)
		l := begin(t, g.URL, d)
		ok(t, receive(t, l.hand(message(1, "hi")), "taken"))
		l.done(1)
		wantFinals(t, d, 1, "The gateway did not take this: That model is not known. Choose a model with /model.")
		l.agent.Hand(message(2, strings.Repeat("x", 65537)), func(error) {})
		l.done(2)
		if got := d.finals(2); len(got) != 1 || !strings.Contains(got[0], "65537 characters") || strings.Contains(got[0], "gateway did not take") {
			t.Errorf("of an oversize message is said %q", got)
		}
		if n := g.count("POST /v1/runs"); n != 1 {
			t.Errorf("runs were asked for %d times", n)
		}
	})
}

// A gateway that is away keeps the message with the hub.
func TestAway(t *testing.T) {
	each(t, func(t *testing.T, v string) {
		g, d := newGateway(t, v), newDisk()
		l := begin(t, g.URL, d)
		g.goAway(true)
		if err := receive(t, l.hand(message(1, "hi")), "the answer"); !errors.Is(err, agent.ErrAway) {
			t.Fatalf("taken with %v", err)
		}
		for l.agent.Status(phone).Online {
			time.Sleep(time.Millisecond)
		}
		if err := receive(t, l.hand(message(1, "hi")), "the answer"); !errors.Is(err, agent.ErrAway) {
			t.Fatalf("taken with %v", err)
		}
		select {
		case <-l.online:
		default:
		}
		g.goAway(false)
		receive(t, l.online, "the agent to be online")
		ok(t, receive(t, l.hand(message(1, "hi")), "taken"))
		g.run(1).complete("here")
		l.done(1)
		wantFinals(t, d, 1, "here")
	})
}

// The events break in the middle of a turn: nothing is lost and nothing doubled.
func TestEventsBreak(t *testing.T) {
	each(t, func(t *testing.T, v string) {
		g, d := newGateway(t, v), newDisk()
		l := begin(t, g.URL, d)
		ok(t, receive(t, l.hand(message(1, "hi")), "taken"))
		run := g.run(1)
		run.text("One.")
		run.tool("One.", "terminal")
		l.eventually("the first message", func(e []agent.Event) bool { return seen(e, func(s agent.ToolStep) bool { return true }) })
		run.toolDone("terminal", false)
		run.text("Tw")
		l.steps("Tw")
		g.CloseClientConnections()
		run.text("o.")
		run.complete("Two.")
		l.done(1)
		wantFinals(t, d, 1, "One.", "Two.")
		if v == now && g.count("POST /v1/runs/run_1/events") != 0 || g.count("POST /v1/runs") != 1 {
			t.Error("it was started again")
		}
	})
}

// A key that the gateway no longer takes does not end a turn that it works on.
func TestKeyRefusedInATurn(t *testing.T) {
	g, d := newGateway(t, now), newDisk()
	l := begin(t, g.URL, d)
	ok(t, receive(t, l.hand(message(1, "hi")), "taken"))
	run := g.run(1)
	run.text("half")
	l.steps("half")
	g.refuseNext(3, "GET /v1", 401, `{"error":{"message":"Invalid gateway API key","code":"gateway_auth_failed"}}`)
	g.CloseClientConnections()
	run.complete("half and half")
	l.done(1)
	wantFinals(t, d, 1, "half and half")
}

// A session that was deleted elsewhere does not end the conversation.
func TestSessionIsGone(t *testing.T) {
	each(t, func(t *testing.T, v string) {
		g, d := newGateway(t, v), newDisk()
		l := begin(t, g.URL, d)
		ok(t, receive(t, l.hand(message(1, "hi")), "taken"))
		g.run(1).complete("one")
		l.done(1)
		g.mu.Lock()
		g.sessions["api_1"] = nil
		g.mu.Unlock()
		g.refuseNext(1, "POST /v1/runs", 404, `{"error":{"message":"no such session","code":"session_not_found"}}`)
		ok(t, receive(t, l.hand(message(2, "hi")), "taken"))
		g.run(2).complete("two")
		l.done(2)
		wantFinals(t, d, 2, "two")
		if s := g.run(2).session; s != "api_2" {
			t.Errorf("it goes on in %s", s)
		}
	})
}

// The next turn belongs to the session that the gateway went on in.
func TestCompressedSession(t *testing.T) {
	g, d := newGateway(t, now), newDisk()
	l := begin(t, g.URL, d)
	ok(t, receive(t, l.hand(message(1, "hi")), "taken"))
	run := g.run(1)
	g.mu.Lock()
	g.sessions["api_next"] = []object{}
	run.add("run.completed", object{"output": "one", "session_id": "api_next", "completed": true})
	run.status = "completed"
	g.mu.Unlock()
	l.done(1)
	ok(t, receive(t, l.hand(message(2, "hi")), "taken"))
	g.run(2).complete("two")
	l.done(2)
	if s := g.run(2).session; s != "api_next" {
		t.Errorf("the second turn is of session %s", s)
	}
}

// The hub cannot store for a while: what was said comes when it can.
func TestStoreFails(t *testing.T) {
	g, d := newGateway(t, now), newDisk()
	l := begin(t, g.URL, d)
	ok(t, receive(t, l.hand(message(1, "hi")), "taken"))
	run := g.run(1)
	run.text("One.")
	l.steps("One.")
	fails := func(err error) {
		l.mu.Lock()
		l.fail = err
		l.mu.Unlock()
	}
	fails(errors.New("disk full"))
	run.tool("One.", "terminal")
	run.toolDone("terminal", false)
	run.complete("Two.")
	g.eventually("the events to be read", func() bool { return run.readers == 0 })
	fails(nil)
	l.done(1)
	wantFinals(t, d, 1, "One.", "Two.")
}

// A device that is gone leaves no run behind.
func TestDeviceIsGone(t *testing.T) {
	g, d := newGateway(t, now), newDisk()
	l := begin(t, g.URL, d)
	ok(t, receive(t, l.hand(message(1, "hi")), "taken"))
	run := g.run(1)
	l.mu.Lock()
	l.fail = agent.ErrNoDevice
	l.mu.Unlock()
	run.text("One.")
	run.tool("One.", "terminal")
	g.eventually("the stop", func() bool { return run.stopped })
	run.end("cancelled", nil)
}

// Events that a gateway no longer has: the end text puts all of it right.
func TestGap(t *testing.T) {
	g, d := newGateway(t, now), newDisk()
	l := begin(t, g.URL, d)
	in := message(1, "hi")
	ok(t, receive(t, l.hand(in), "taken"))
	run := g.run(1)
	run.text("A.")
	run.tool("A.", "terminal")
	l.eventually("A", func([]agent.Event) bool { return len(d.finals(1)) == 1 })
	l.kill()
	run.toolDone("terminal", false)
	run.text("B ", "is long.")
	run.tool("B is long.", "terminal")
	run.toolDone("terminal", false)
	run.text("C.")
	g.mu.Lock()
	run.trimmed = 4 // in the middle of B
	g.mu.Unlock()
	l = begin(t, g.URL, d)
	ok(t, receive(t, l.hand(d.handed(in)), "taken"))
	g.eventually("a reader", func() bool { return run.readers > 0 })
	run.complete("C.")
	l.done(1)
	wantFinals(t, d, 1, "A.", "B is long.", "C.")
}

// A session that is opened while a turn of another one runs is for the next turn. What the running one says stays whole.
func TestSessionIsSwitchedInATurn(t *testing.T) {
	each(t, func(t *testing.T, v string) {
		g, d := newGateway(t, v), newDisk()
		l := begin(t, g.URL, d)
		call(t, l, "sessions.create", `{"title":"other"}`)
		call(t, l, "sessions.create", `{"title":"first"}`)
		ok(t, receive(t, l.hand(message(1, "hi")), "taken"))
		run := g.run(1)
		run.text("ha")
		l.steps("ha")
		call(t, l, "sessions.open", `{"id":"api_1"}`)
		run.text("lf")
		l.steps("half")
		run.complete("half and half")
		l.done(1)
		wantFinals(t, d, 1, "half and half")
		ok(t, receive(t, l.hand(message(2, "hi")), "taken"))
		g.run(2).complete("other")
		l.done(2)
		if a, b := run.session, g.run(2).session; a != "api_2" || b != "api_1" {
			t.Errorf("the turns are of %s and %s", a, b)
		}
	})
}

// What a server without sessions is told again is bounded, and begins anew with /new.
func TestHistoryIsBounded(t *testing.T) {
	var mu sync.Mutex
	var asked [][]object
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/models" {
			respond(w, 200, object{"object": "list", "data": []object{{"id": "small"}}})
			return
		}
		var body struct{ Messages []object }
		_ = json.NewDecoder(r.Body).Decode(&body)
		mu.Lock()
		asked = append(asked, body.Messages)
		mu.Unlock()
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"id":"c","choices":[{"index":0,"delta":{"content":"yes"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`+"\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(api.Close)
	d := newDisk()
	l := begin(t, api.URL, d, func(_ *Options, p *gateway.Profile) { p.Kind = gateway.OpenAI })
	if s := l.agent.Status(phone); !s.Stop || s.Prompt || !s.Images || s.Tool {
		t.Errorf("status %+v", s)
	}
	last := func() []object {
		mu.Lock()
		defer mu.Unlock()
		return asked[len(asked)-1]
	}
	n := int64(0)
	say := func(text string) {
		t.Helper()
		n++
		ok(t, receive(t, l.hand(message(n, text)), "taken"))
		l.done(n)
	}
	for range 8 {
		say(strings.Repeat("x", 60_000))
	}
	size := 0
	for _, m := range last() {
		size += len(m["content"].(string))
	}
	if len(last()) < 5 || size > maxHistoryBytes+60_001 {
		t.Errorf("%d messages of %d bytes were sent", len(last()), size)
	}
	for range 70 {
		say("short")
	}
	if got := len(last()); got > maxHistory+1 || got < maxHistory-10 {
		t.Errorf("%d messages were sent", got)
	}
	say("/new")
	say("fresh")
	if got := last(); len(got) != 1 || got[0]["content"] != "fresh" {
		t.Errorf("after /new it is told %v", got)
	}
	for _, method := range l.agent.Methods(phone) {
		if strings.HasPrefix(method, "sessions.") || strings.HasPrefix(method, "jobs.") {
			t.Errorf("it offers %s", method)
		}
	}
}

// A turn that says nothing gives signs of life, and none when it is over.
func TestSignsOfLife(t *testing.T) {
	old := typingInterval
	typingInterval = 5 * time.Millisecond
	defer func() { typingInterval = old }()
	g, d := newGateway(t, now), newDisk()
	l := begin(t, g.URL, d)
	ok(t, receive(t, l.hand(message(1, "hi")), "taken"))
	run := g.run(1)
	l.eventually("signs of life", func(events []agent.Event) bool {
		n := 0
		for _, e := range events {
			if _, is := e.(agent.Working); is {
				n++
			}
		}
		return n > 2
	})
	run.complete("ok")
	l.done(1)
	l.kill()
	if _, last := l.live[len(l.live)-1].(agent.Done); !last {
		t.Errorf("after the end came %+v", l.live[len(l.live)-1])
	}
}

// The link breaks in a turn, and when it is back the gateway no longer has all that was said meanwhile.
func TestGapInOneLife(t *testing.T) {
	g, d := newGateway(t, now), newDisk()
	l := begin(t, g.URL, d)
	ok(t, receive(t, l.hand(message(1, "hi")), "taken"))
	run := g.run(1)
	run.text("A.")
	run.tool("A.", "terminal")
	l.eventually("the tool", func(e []agent.Event) bool { return seen(e, func(agent.ToolStep) bool { return true }) })
	g.goAway(true)
	run.toolDone("terminal", false)
	run.text("B ", "is long.")
	run.tool("B is long.", "terminal")
	run.toolDone("terminal", false)
	run.text("C.")
	g.mu.Lock()
	run.trimmed = 4
	g.mu.Unlock()
	g.goAway(false)
	run.complete("C.")
	l.done(1)
	wantFinals(t, d, 1, "A.", "B is long.", "C.")
}

// A conversation sees the session that it is in, also where it was opened when it saw all.
func TestCurrentSessionIsSeen(t *testing.T) {
	g, d := newGateway(t, now), newDisk()
	l := begin(t, g.URL, d, all)
	g.mu.Lock()
	id := g.newSession("of somebody else")
	g.store(id, "user", "before", nil)
	g.mu.Unlock()
	call(t, l, "sessions.open", `{"id":"`+id+`"}`)
	l.kill()
	l = begin(t, g.URL, d)
	if got := string(call(t, l, "sessions.history", `{"id":"`+id+`"}`)); !strings.Contains(got, "before") {
		t.Errorf("the history is %s", got)
	}
}
