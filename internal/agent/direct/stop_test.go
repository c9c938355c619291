package direct

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"hermes-mobile/gateway"
	"hermes-mobile/internal/agent"
)

// Stop before the gateway has the turn: while it is full, and during the request.
func TestStopBeforeTheStart(t *testing.T) {
	each(t, func(t *testing.T, v string) {
		g, d := newGateway(t, v), newDisk()
		g.refuseNext(1, "POST /v1/runs", 429, `{"error":{"message":"full","code":"rate_limit_exceeded"}}`)
		l := begin(t, g.URL, d)
		g.next(func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method+r.URL.Path != "POST/api/sessions" {
				return false
			}
			l.agent.Stop(phone)
			return false
		})
		taken := l.hand(message(1, "hi"))
		l.done(1)
		ok(t, receive(t, taken, "taken"))
		wantFinals(t, d, 1, "The turn was stopped.")
		if len(g.runs) != 0 {
			t.Error("it was begun")
		}
		g.mu.Lock()
		g.refuse = nil
		g.mu.Unlock()
		again := make(chan struct{})
		g.next(func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method+r.URL.Path != "POST/v1/runs" {
				return false
			}
			l.agent.Stop(phone) // during the request: the run that results must not continue unseen
			g.createRun(w, r)
			close(again)
			return true
		})
		ok(t, receive(t, l.hand(message(2, "hi")), "taken"))
		receive(t, again, "the call")
		run := g.run(1)
		g.eventually("the stop", func() bool { return run.stopped })
		run.end("cancelled", nil)
		l.done(2)
		wantFinals(t, d, 2, "The turn was stopped.")
	})
}

// Stop keeps the output so far. A stop after the turn does no harm. Both also work by the command.
func TestStop(t *testing.T) {
	each(t, func(t *testing.T, v string) {
		g, d := newGateway(t, v), newDisk()
		l := begin(t, g.URL, d)
		for n, how := range []func(){func() { l.agent.Stop(phone); l.agent.Stop(phone) }, func() { l.hand(message(10, "/stop")) }} {
			n := int64(n + 1)
			ok(t, receive(t, l.hand(message(n, "hi")), "taken"))
			run := g.run(int(n))
			run.text("half")
			l.eventually("the text", func(e []agent.Event) bool {
				return seen(e, func(s agent.Say) bool { return s.N == n && s.Text == "half" })
			})
			how()
			g.eventually("the stop", func() bool { return run.stopped })
			run.end("cancelled", nil)
			if e := l.done(n); !e.Interrupted {
				t.Error("it ended as done")
			}
			wantFinals(t, d, n, "half")
			l.agent.Stop(phone)
		}
	})
}

// A stop while the gateway is offline is sent when it is back.
func TestStopWhileAway(t *testing.T) {
	g, d := newGateway(t, now), newDisk()
	l := begin(t, g.URL, d)
	ok(t, receive(t, l.hand(message(1, "hi")), "taken"))
	run := g.run(1)
	run.text("half")
	l.steps("half")
	g.goAway(true)
	l.agent.Stop(phone)
	before := g.count("")
	g.eventually("tries", func() bool { return len(g.asked) > before+3 })
	g.goAway(false)
	g.eventually("the stop", func() bool { return run.stopped })
	run.end("cancelled", nil)
	l.done(1)
	wantFinals(t, d, 1, "half")
}

// Two open approvals are answered in reverse order: each answer reaches its approval.
func TestApprovalsInReverse(t *testing.T) {
	each(t, func(t *testing.T, v string) {
		g, d := newGateway(t, v), newDisk()
		l := begin(t, g.URL, d)
		ok(t, receive(t, l.hand(message(1, "hi")), "taken"))
		run := g.run(1)
		run.tool("", "terminal")
		run.tool("", "terminal")
		run.ask("a1", "one")
		run.ask("a2", "two")
		cards := l.asks(2)
		if cards[0].Command != "one" || cards[1].Command != "two" || cards[0].ID == cards[1].ID || cards[0].N != 1 {
			t.Fatalf("cards %+v", cards)
		}
		if life := map[string]time.Duration{older: 58 * time.Second, now: 298 * time.Second}[v]; cards[0].Life != life {
			t.Errorf("they live %v", cards[0].Life)
		}
		has := func(c agent.Card) bool {
			return slices.ContainsFunc(c.Options, func(o agent.Option) bool { return o.ID == allChoice })
		}
		if has(cards[0]) || !has(cards[1]) {
			t.Error("all is offered where others are open, and only there")
		}
		ok(t, l.answer(cards[1], agent.Answer{OptionID: "deny"}))
		ok(t, l.answer(cards[0], agent.Answer{OptionID: "once"}))
		g.eventually("both answers", func() bool { return len(run.answers) == 2 })
		choice := func(n int) any { return run.answers[n]["choice"] }
		if v == older { // it applies an answer to the oldest approval, so the later one waits
			if choice(0) != "once" || choice(1) != "deny" {
				t.Errorf("answers %v", run.answers)
			}
		} else if choice(0) != "deny" || run.answers[0]["request_id"] != "a2" || choice(1) != "once" || run.answers[1]["request_id"] != "a1" {
			t.Errorf("answers %v", run.answers)
		}
		run.toolDone("terminal", false)
		run.toolDone("terminal", true)
		run.complete("ok")
		l.done(1)
		wantFinals(t, d, 1, "ok")
		for _, e := range d.events {
			if c, is := e.(agent.CloseCard); is {
				t.Errorf("a card that the person answered was closed: %+v", c)
			}
		}
	})
}

// One answer for all open approvals closes the other cards.
func TestApproveAll(t *testing.T) {
	each(t, func(t *testing.T, v string) {
		g, d := newGateway(t, v), newDisk()
		l := begin(t, g.URL, d)
		ok(t, receive(t, l.hand(message(1, "hi")), "taken"))
		run := g.run(1)
		run.ask("a1", "one")
		run.ask("a2", "two")
		cards := l.asks(2)
		ok(t, l.answer(cards[1], agent.Answer{OptionID: allChoice}))
		if c := l.closed(cards[0]); c.OptionID != "once" || c.Expired {
			t.Errorf("the other card is closed with %+v", c)
		}
		if len(run.answers) != 1 || run.answers[0]["all"] != true || run.answers[0]["choice"] != "once" {
			t.Errorf("answers %v", run.answers)
		}
		run.complete("ok")
		l.done(1)
		wantFinals(t, d, 1, "ok")
	})
}

// An approval is answered elsewhere, expires, or is answered too late.
func TestApprovalEnds(t *testing.T) {
	each(t, func(t *testing.T, v string) {
		g, d := newGateway(t, v), newDisk()
		l := begin(t, g.URL, d)
		ok(t, receive(t, l.hand(message(1, "hi")), "taken"))
		run := g.run(1)
		run.tool("", "terminal")
		run.ask("a1", "one")
		first := l.asks(1)[0]
		g.mu.Lock()
		run.approvals = nil
		run.add("approval.responded", object{"choice": "session", "resolved": 1})
		g.mu.Unlock()
		if c := l.closed(first); c.OptionID != "session" || c.Expired {
			t.Errorf("answered elsewhere: %+v", c)
		}
		run.ask("a2", "two")
		second := l.asks(2)[1]
		g.mu.Lock()
		run.approvals = nil
		g.mu.Unlock()
		run.toolDone("terminal", true)
		if c := l.closed(second); !c.Expired {
			t.Errorf("expired: %+v", c)
		}
		ok(t, l.answer(second, agent.Answer{OptionID: "once"})) // the user was faster than the event
		l.eventually("the word that it is late", func(e []agent.Event) bool {
			return seen(e, func(s agent.Say) bool { return s.N == 0 && strings.Contains(s.Text, "too late") })
		})
		ok(t, l.answer(second, agent.Answer{OptionID: "deny", Expired: true})) // an expiry by the hub is no news for the user
		run.complete("ok")
		l.done(1)
		wantFinals(t, d, 1, "ok")
		ok(t, l.answer(second, agent.Answer{OptionID: "once"})) // its turn has ended
		ok(t, l.answer(agent.Card{ID: "x", N: 1, State: []byte("of another agent")}, agent.Answer{OptionID: "once"}))
	})
}

// A card survives a restart of the server, and its answer reaches the gateway once.
func TestApprovalAfterRestart(t *testing.T) {
	each(t, func(t *testing.T, v string) {
		g, d := newGateway(t, v), newDisk()
		l := begin(t, g.URL, d)
		in := message(1, "hi")
		ok(t, receive(t, l.hand(in), "taken"))
		run := g.run(1)
		run.tool("", "terminal")
		run.ask("a1", "one")
		card := l.asks(1)[0]
		l.kill()
		l = begin(t, g.URL, d)
		if err := l.answer(card, agent.Answer{OptionID: "once"}); !errors.Is(err, agent.ErrAway) {
			t.Fatalf("before its turn is taken up again: %v", err)
		}
		d.cards[card.ID] = card
		ok(t, receive(t, l.hand(d.handed(in)), "taken"))
		ok(t, l.answer(card, agent.Answer{OptionID: "once"}))
		g.eventually("the answer", func() bool { return len(run.answers) == 1 })
		ok(t, l.answer(card, agent.Answer{OptionID: "once"})) // sent again, as after a crash
		run.toolDone("terminal", false)
		run.complete("ok")
		l.done(1)
		wantFinals(t, d, 1, "ok")
		if len(run.answers) != 1 || run.answers[0]["choice"] != "once" {
			t.Errorf("answers %v", run.answers)
		}
		for _, e := range l.live {
			if s, is := e.(agent.Say); is && strings.Contains(s.Text, "late") {
				t.Errorf("it said %q", s.Text)
			}
		}
	})
}

// An answer to a turn that is not followed. The turn may have ended. Or it was only left, because
// the server stops or the gateway is offline: then it continues later, and the answer must be sent
// again.
func TestAnswerToATurnNobodyFollows(t *testing.T) {
	for _, stopped := range []bool{false, true} {
		l := begin(t, newGateway(t, now).URL, newDisk())
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		turn := newTurn(ctx, l.agent, message(1, "hi"), func(error) {})
		card := turn.card(gateway.Approval{ID: "a1", Choices: []string{"once", "deny"}}, false)
		turn.remember(gateway.TurnHandle{})
		early := make(chan error, 1)
		go func() { early <- l.agent.answer(t.Context(), turn, card, agent.Answer{OptionID: "once"}) }()
		turn.over()
		if stopped {
			stop()
		}
		late := l.agent.answer(t.Context(), turn, card, agent.Answer{OptionID: "once"})
		for _, err := range []error{receive(t, early, "the answer before it was left"), late} {
			if !errors.Is(err, agent.ErrAway) {
				t.Errorf("the turn was left, stopped is %v, and the answer is said to be %v", stopped, err)
			}
		}
		turn.forget()
		for range 2 {
			if err := l.agent.answer(t.Context(), turn, card, agent.Answer{OptionID: "once"}); err != nil {
				t.Errorf("the turn has ended, and the answer is said to be %v", err)
			}
			stop() // what the agent does with every ended turn
		}
	}
}

// An answer that arrives while the turn is being closed is no news for the user.
func TestAnswerToATurnThatCloses(t *testing.T) {
	g := newGateway(t, now)
	l := begin(t, g.URL, newDisk())
	turn := newTurn(t.Context(), l.agent, message(1, "hi"), func(error) {})
	card := turn.card(gateway.Approval{ID: "a1", Choices: []string{"once", "deny"}}, false)
	running, err := turn.start()
	ok(t, err)
	turn.attach(running)
	running.Close()
	if err := l.agent.answer(t.Context(), turn, card, agent.Answer{OptionID: "once"}); !errors.Is(err, agent.ErrAway) {
		t.Errorf("its end is not stored yet, and the answer is said to be %v", err)
	}
	turn.forget()
	ok(t, l.agent.answer(t.Context(), turn, card, agent.Answer{OptionID: "once"}))
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.live) > 0 {
		t.Errorf("it said %+v", l.live)
	}
}
