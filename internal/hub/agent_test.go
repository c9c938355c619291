package hub_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"hermes-mobile/frame"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/store"
)

// An agent that is away: what it was handed stays first, in order, and comes again when it is back.
func TestAwayKeepsOrder(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connect("d")
	c.text("m1", "one")
	c.text("m2", "two")
	h := w.next()
	w.agent.online(false)
	h.taken(agent.ErrAway)
	if caps := find[*frame.CapabilitiesChanged](c, nil); caps.Agent != frame.Away {
		t.Errorf("the device was told %s", show(caps))
	}
	if a := c.text("m3", "three"); !a.Queued {
		t.Errorf("receipt %s while the agent is away", show(a))
	}
	w.idle()
	w.agent.online(true)
	for i, want := range []string{"one", "two", "three"} {
		h := w.take()
		if h.Text != want || h.ID != fmt.Sprint("m", i+1) || h.Handed {
			t.Fatalf("handed %q (%s, handed before: %v), want %q", h.Text, h.ID, h.Handed, want)
		}
		w.reply(h, "re "+want)
		if m := find(c, func(m *frame.Message) bool { return m.Final }); m.Text != "re "+want || m.ReplyTo != h.ID {
			t.Fatalf("reply %s", show(m))
		}
	}
}

// The agent says that it is away while its status says online: it was away for a moment, and what it could not take must
// not wait for the next thing to happen.
func TestAwayForAMoment(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connect("d")
	c.text("m1", "one")
	h := w.next()
	w.agent.host.Changed() // it is back before the hub hears that it was away
	h.taken(agent.ErrAway)
	if h = w.take(); h.Text != "one" {
		t.Errorf("handed %q", h.Text)
	}
}

// The same for a decision.
func TestAwayForAMomentWithDecision(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connect("d")
	w.post("d", agent.Ask{Card: agent.Card{ID: "c1", Kind: frame.ExecApproval, Options: []agent.Option{{ID: "once"}}}})
	expect[*frame.Prompt](c)
	c.send(&frame.Answer{PromptID: "c1", OptionID: "once"})
	expect[*frame.PromptDone](c)
	a := w.told()
	w.agent.host.Changed()
	a.taken(agent.ErrAway)
	w.told().taken(nil)
}

// An agent that refuses a message for good says why, to the person, and the next message has its turn.
func TestRefusedByTheAgent(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connect("d")
	c.text("m1", "one")
	c.text("m2", "two")
	w.next().taken(errors.New("it is far too long"))
	m := c.message()
	if !strings.Contains(m.Text, "it is far too long") || m.ReplyTo != "m1" || m.Seq == 0 {
		t.Errorf("the person reads %s", show(m))
	}
	h := w.take()
	if h.Text != "two" {
		t.Errorf("handed %q", h.Text)
	}
	w.reply(h, "fine")
	if m := c.message(); m.Text != "fine" {
		t.Errorf("reply %s", show(m))
	}
	w.restart()
	w.idle() // a refused message does not come again
}

// What the agent admits passes the messages that wait; those keep their order.
func TestAdmits(t *testing.T) {
	w := newWorld(t, nil)
	w.agent.admits = func(in agent.Input) bool { return strings.HasPrefix(in.Text, "/") }
	c := w.connect("d")
	c.text("m1", "one")
	first := w.take()
	c.text("m2", "two")
	c.text("m3", "/now")
	c.text("m4", "three")
	c.text("m5", "/again")
	now, again := w.take(), w.take()
	if now.Text != "/now" || again.Text != "/again" {
		t.Fatalf("handed %q and %q in the turn", now.Text, again.Text)
	}
	w.reply(again, "a")
	w.reply(now, "n")
	c.sync()
	w.idle() // the end of those did not end the turn
	w.reply(first, "1")
	if h := w.take(); h.Text != "two" {
		t.Errorf("handed %q", h.Text)
	} else {
		w.reply(h, "2")
	}
	if h := w.take(); h.Text != "three" {
		t.Errorf("handed %q", h.Text)
	}
}

// A message that comes in the moment in which the agent begins to admit messages does not pass those that wait.
func TestAdmitsInOrder(t *testing.T) {
	w := newWorld(t, nil)
	var open atomic.Bool // what the agent admits has changed, which the hub was not told yet
	w.agent.admits = func(agent.Input) bool { return open.Load() }
	c := w.connect("d")
	c.text("m1", "one")
	w.take()
	c.text("m2", "two")
	c.sync()
	open.Store(true)
	c.text("m3", "three")
	for _, want := range []string{"two", "three"} {
		if h := w.take(); h.Text != want {
			t.Errorf("handed %q, want %q", h.Text, want)
		}
	}
}

// An admitted message that the agent could not take after all waits in its place.
func TestAdmittedAndAway(t *testing.T) {
	w := newWorld(t, nil)
	w.agent.admits = func(in agent.Input) bool { return in.Text == "/now" }
	c := w.connect("d")
	c.text("m1", "one")
	first := w.take()
	c.text("m2", "/now")
	c.text("m3", "three")
	w.next().taken(agent.ErrAway)
	c.sync()
	w.reply(first, "1")
	if h := w.take(); h.Text != "/now" {
		t.Errorf("handed %q, want what waits longest", h.Text)
	}
}

// A turn of an earlier life is handed again with what became of it; nothing else is.
func TestHandedAfterCrash(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connect("d", withUser("anna"))
	c.text("m1", "one")
	c.text("m2", "two")
	h := w.take()
	w.post("d", agent.Say{ID: "s1", Text: "first", Final: true, N: h.N, ReplyTo: h.ID},
		agent.Ask{Card: agent.Card{ID: "c1", N: h.N, Kind: frame.Clarify, Text: "which?", Options: []agent.Option{{ID: "a", Label: "A"}}, State: []byte("mine")}},
		agent.Ask{Card: agent.Card{ID: "c2", N: h.N, Kind: frame.Clarify, Text: "and?", Options: []agent.Option{{ID: "a", Label: "A"}}}},
		agent.Ask{Card: agent.Card{ID: "c3", N: 0, Kind: frame.Clarify, Text: "of no turn"}},
		agent.Say{ID: "s2", Text: "half", N: h.N, ReplyTo: h.ID})
	c.send(&frame.Answer{PromptID: "c2", OptionID: "a"})
	find[*frame.PromptDone](c, nil)
	a := w.told()
	w.post("d", agent.Say{ID: "s3", Text: "and it is A", Final: true, N: h.N, ReplyTo: h.ID, Settles: "c2"})
	a.taken(nil)
	c.sync()

	w = w.crash()
	h = w.next()
	if !h.Handed || h.Text != "one" || h.ID != "m1" || h.User != "anna" || h.Device != "d" {
		t.Fatalf("handed %+v", h.Input)
	}
	if h.Texts != 2 {
		t.Errorf("%d finals are said to be stored, want 2: a message that was cut by the crash is none", h.Texts)
	}
	if len(h.Cards) != 1 || h.Cards[0].ID != "c1" || string(h.Cards[0].State) != "mine" || h.Cards[0].Options[0].Label != "A" {
		t.Errorf("cards %+v, want the one of this turn that is not settled", h.Cards)
	}
	open := value[[]agent.Card](t)(w.hub.OpenCards(ctx, "d"))
	if len(open) != 2 || open[0].ID != "c1" || open[1].ID != "c3" {
		t.Errorf("open cards %+v", open)
	}
	h.taken(nil)
	w.idle()
	w.reply(h, "whole")
	if h := w.take(); h.Text != "two" || h.Handed || len(h.Cards) != 0 || h.Texts != 0 {
		t.Errorf("then handed %+v", h.Input)
	}
	// The device sees an end of the message that was begun, and it is not the agent's new answer.
	c = w.connect("d", withResume("another", 0))
	cut := find(c, func(m *frame.Message) bool { return m.ID == "s2" })
	if !cut.Final || !cut.Interrupted || cut.Text != "half" || cut.ReplyTo != "m1" {
		t.Errorf("the message that was cut: %s", show(cut))
	}
}

// What an agent is about to give to its backend is handed again as such after a crash, unless it takes that back, and a
// decision is not told again. What cannot be stored is told to the agent.
func TestGivenBeforeACrash(t *testing.T) {
	for _, back := range []bool{false, true} {
		w := newWorld(t, nil)
		c := w.connect("d")
		c.text("m1", "one")
		h := w.next()
		w.post("d", agent.Ask{Card: agent.Card{ID: "c1", N: h.N, Kind: frame.Clarify, Text: "which?", Options: []agent.Option{{ID: "a", Label: "A"}}}})
		c.send(&frame.Answer{PromptID: "c1", OptionID: "a"})
		find[*frame.PromptDone](c, nil)
		w.told()
		w.post("d", agent.Given{N: h.N}, agent.Given{Card: "c1"})
		if back {
			w.post("d", agent.Given{N: h.N, Back: true}, agent.Given{Card: "c1", Back: true})
		}
		w = w.crash()
		if h := w.next(); h.Handed == back || h.Text != "one" {
			t.Errorf("taken back %v: handed %+v", back, h.Input)
		}
		if open, all := w.unsettled(t); open != 0 || (all == 1) != back {
			t.Errorf("taken back %v: %d cards are not settled", back, all)
		}
	}
	w := newWorld(t, nil)
	w.connect("d").text("m1", "one")
	h := w.next()
	w.sql("CREATE TRIGGER test_inbox BEFORE UPDATE ON inbox BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END")
	if err := w.try("d", agent.Given{N: h.N}); err == nil {
		t.Error("what could not be stored was stored")
	}
	w.healWrites("inbox")
}

// A server that is told to stop does the same as a crash: the turn comes again, and what was cut does not count as said.
func TestHandedAfterStop(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connect("d")
	c.text("m1", "one")
	h := w.take()
	w.post("d", agent.Say{ID: "s1", Text: "first", Final: true, N: h.N, ReplyTo: h.ID}, agent.Say{ID: "s2", Text: "half", N: h.N, ReplyTo: h.ID})
	w.restart()
	if m := find(c, func(m *frame.Message) bool { return m.ID == "s2" && m.Final }); !m.Interrupted || m.Text != "half" {
		t.Errorf("the message that was cut: %s", show(m))
	}
	if code := c.closed(); code != int(frame.CloseGoingAway) {
		t.Errorf("closed with %d", code)
	}
	if h = w.take(); !h.Handed || h.Texts != 1 {
		t.Errorf("handed again %v with %d finals, want 1: a rerun that skips as many would swallow the answer", h.Handed, h.Texts)
	}
}

func TestDoneTwiceAndUnknown(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connect("d")
	c.text("m1", "one")
	c.text("m2", "two")
	c.text("m3", "three")
	first := w.take()
	w.post("d", agent.Done{N: first.N + 1000}, agent.Done{N: 0}, agent.Done{N: -1})
	c.sync()
	w.idle()
	w.reply(first, "1")
	second := w.take()
	w.post("d", agent.Done{N: first.N})
	w.post("d", agent.Done{N: first.N, Interrupted: true})
	c.sync()
	w.idle() // the second turn still runs
	w.reply(second, "2")
	if h := w.take(); h.Text != "three" {
		t.Errorf("handed %q", h.Text)
	}
}

// The end of a message that still waits its turn: it is not handed over any more, or once; never twice.
func TestDoneOfAWaitingMessage(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connect("d")
	c.text("m1", "one")
	c.text("m2", "two")
	c.text("m3", "three")
	first := w.take()
	w.post("d", agent.Done{N: first.N + 1})
	w.reply(first, "1")
	h := w.take()
	if h.Text == "two" {
		w.reply(h, "2")
		h = w.take()
	}
	if h.Text != "three" {
		t.Errorf("handed %q", h.Text)
	}
}

// An agent that goes on with a message after its final breaks the contract (agent.Say). What the device sees of it ends all
// the same, the turn ends, and nothing stays behind.
func TestSayAfterFinal(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connect("d")
	c.text("m1", "one")
	c.text("m2", "two")
	h := w.take()
	say := agent.Say{ID: "s1", Text: "whole", Final: true, N: h.N, ReplyTo: h.ID}
	w.post("d", say)
	if m := c.message(); m.Text != "whole" {
		t.Errorf("final %s", show(m))
	}
	step := say
	step.Final, step.Text = false, "late"
	w.post("d", step)
	w.post("d", agent.Done{N: h.N})
	open := ""
	for _, f := range c.sync() {
		if m, is := f.(*frame.Message); is {
			open = m.ID
			if m.Final {
				open = ""
			}
		}
	}
	if open != "" {
		t.Errorf("message %s was begun and has no end", open)
	}
	w.reply(w.take(), "2")
	if left := value[[]store.OpenMessage](t)(w.store.OpenMessages(ctx, 1)); len(left) != 0 {
		t.Errorf("open in the store: %+v", left)
	}
}

func TestAskTwice(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connect("d")
	card := agent.Card{ID: "c1", Kind: frame.ExecApproval, Text: "may I?", Options: []agent.Option{{ID: "once", Label: "Once"}, {ID: "deny", Label: "Deny"}}}
	w.post("d", agent.Ask{Card: card})
	expect[*frame.Prompt](c)
	_ = w.try("d", agent.Ask{Card: card}) // it may be refused or ignored
	if at := w.hub.StoreFailedAt(); !at.IsZero() {
		t.Error("the agent's mistake counts as a failure of the store: the server says that it is not ready")
	}
	c.sync()
	c.send(&frame.Answer{PromptID: "c1", OptionID: "once"})
	if d := find[*frame.PromptDone](c, nil); d.OptionID != "once" || d.Expired {
		t.Errorf("decided %s", show(d))
	}
	a := w.told()
	if a.answer.OptionID != "once" || a.card.ID != "c1" {
		t.Errorf("the agent was told %+v", a)
	}
	a.taken(nil)
	c.sync()
	w.idle()
	_ = w.try("d", agent.Ask{Card: card}) // also when it is settled
	c.sync()
	if open := value[[]agent.Card](t)(w.hub.OpenCards(ctx, "d")); len(open) != 0 {
		t.Errorf("open again: %v", open)
	}
	c.text("m1", "still there?")
}

func TestCloseCard(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connect("d")
	w.post("d", agent.CloseCard{ID: "unknown", OptionID: "once"})
	c.quiet()
	ask := func(id string) {
		w.post("d", agent.Ask{Card: agent.Card{ID: id, Kind: frame.ExecApproval, Options: []agent.Option{{ID: "once"}, {ID: "deny"}}}})
		expect[*frame.Prompt](c)
	}
	ask("c1")
	c.send(&frame.Answer{PromptID: "c1", OptionID: "once"})
	expect[*frame.PromptDone](c)
	w.post("d", agent.CloseCard{ID: "c1", OptionID: "deny", Expired: true})
	c.quiet() // a decided card stays as it is
	a := w.told()
	if a.answer.OptionID != "once" {
		t.Errorf("told %+v", a.answer)
	}
	a.taken(nil)

	ask("c2")
	w.post("d", agent.CloseCard{ID: "c2", OptionID: "deny"})
	if d := expect[*frame.PromptDone](c); d.PromptID != "c2" || d.OptionID != "deny" || d.Expired {
		t.Errorf("closed by the agent: %s", show(d))
	}
	w.post("d", agent.CloseCard{ID: "c2", OptionID: "once"})
	c.quiet()
	c.send(&frame.Answer{PromptID: "c2", OptionID: "once"})
	if d := expect[*frame.PromptDone](c); d.OptionID != "deny" {
		t.Errorf("a late answer gets %s", show(d))
	}
	w.idle() // the agent decided by itself
}

// Asking and closing in one post: one fate.
func TestAskAndCloseTogether(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connect("d")
	w.post("d", agent.Ask{Card: agent.Card{ID: "c1", Kind: frame.Clarify}}, agent.CloseCard{ID: "c1", Expired: true})
	expect[*frame.Prompt](c)
	if d := expect[*frame.PromptDone](c); !d.Expired {
		t.Errorf("closed: %s", show(d))
	}
}

func TestPostToNobody(t *testing.T) {
	w := newWorld(t, nil)
	if err := w.try("unknown", agent.Say{ID: "s", Text: "x", Final: true}, agent.Done{N: 1}); !errors.Is(err, agent.ErrNoDevice) {
		t.Errorf("unknown device: %v", err)
	}
	w.hub.Post("unknown", nil, agent.Say{ID: "s", Text: "x", Final: true}) // done may be nil
	c := w.connect("d")
	ok(t, w.hub.Owner().Revoke(ctx, "d"))
	c.closed()
	if err := w.try("d", agent.Say{ID: "s", Text: "x", Final: true}); !errors.Is(err, agent.ErrNoDevice) {
		t.Errorf("revoked device: %v", err)
	}
	until(t, "the sessions to leave memory", func() bool { return w.hub.Sessions() == 0 })
	if cards := value[[]agent.Card](t)(w.hub.OpenCards(ctx, "unknown")); len(cards) != 0 {
		t.Errorf("cards of nobody: %v", cards)
	}
}

// done is called once for every post, with the order of one goroutine's posts kept, also while the store fails for some.
func TestPostIsAnsweredOnce(t *testing.T) {
	w := newWorld(t, nil)
	w.connect("d")
	const posts = 300
	counts := make(chan int, 4*posts)
	for i := range posts {
		if i == 100 {
			w.failWrites("outbox")
		}
		if i == 200 {
			w.healWrites("outbox")
		}
		w.hub.Post("d", func(error) { counts <- i }, agent.Say{ID: fmt.Sprint("s", i), Text: "x", Final: true})
	}
	seen := make([]int, posts)
	for range posts {
		seen[receive(t, counts, "the outcome of a post")]++
	}
	if err := w.try("d", agent.Say{ID: "last", Text: "x", Final: true}); err != nil {
		t.Errorf("after the trouble: %v", err)
	}
	for i, n := range seen {
		if n != 1 {
			t.Errorf("post %d was answered %d times", i, n)
		}
	}
	if len(counts) != 0 {
		t.Errorf("%d answers too many", len(counts))
	}
}

// A file, steps and tools keep the order in which they were posted.
func TestOrderWithinAPost(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connect("d", withDelta())
	f := value[hashed](t)(w.put([]byte("hello")))
	w.post("d", agent.Say{ID: "s1", Text: "step"})
	w.post("d", agent.ToolStep{ID: "t", Name: "terminal", State: "started"}, agent.Say{ID: "s1", Text: "step done", Final: true},
		agent.SendFile{ID: "f1", File: agent.File{Kind: "document", Mime: "text/plain", Name: "a/b.txt", Hash: f.hash, Size: f.size}, Caption: "c"},
		agent.Say{ID: "s2", Text: "end", Final: true})
	if m := expect[*frame.Message](c); m.Final || m.Text != "step" {
		t.Errorf("first %s", show(m))
	}
	if tool := expect[*frame.Tool](c); tool.Name != "terminal" {
		t.Errorf("second %s", show(tool))
	}
	if m := expect[*frame.Message](c); !m.Final || m.ID != "s1" || !m.Edit {
		t.Errorf("third %s", show(m))
	}
	if m := expect[*frame.Media](c); m.Filename != "b.txt" || string(m.Data) != "hello" || m.Caption != "c" || m.Seq == 0 {
		t.Errorf("fourth %s", show(m))
	}
	if m := expect[*frame.Message](c); m.ID != "s2" {
		t.Errorf("fifth %s", show(m))
	}
}

type hashed struct {
	hash string
	size int64
}

func (w *world) put(b []byte) (hashed, error) {
	f, err := w.files.Put(b)
	return hashed{f.Hash, f.Size}, err
}

// What a person replies to reaches the agent in words, also long after the device has acknowledged it, and only the
// device's own messages do.
func TestQuoteOutlivesTheOutbox(t *testing.T) {
	w := newWorld(t, nil)
	c, other := w.connect("d"), w.connect("e")
	w.post("d", agent.Say{ID: "s1", Text: "cron says hi", Final: true, Source: frame.SourceCron, Job: "j"})
	m := c.message()
	c.send(&frame.Ack{Seq: m.Seq})
	c.sync()
	for i, q := range []struct {
		c         *client
		id, quote string
	}{{c, "s1", "cron says hi"}, {other, "s1", ""}, {c, "s2", ""}} {
		q.c.send(&frame.Text{ID: fmt.Sprint("m", i), Text: "why?", ReplyTo: q.id})
		h := w.take()
		if h.Quote != q.quote || h.ReplyTo != q.id {
			t.Errorf("handed %+v", h.Input)
		}
		w.reply(h, "because")
	}
	w.restart()
	c = w.connect("d")
	c.send(&frame.Text{ID: "m9", Text: "why?", ReplyTo: "s1"})
	if h := w.take(); h.Quote != "cron says hi" {
		t.Errorf("after a restart handed %+v", h.Input)
	}
}

// An agent that takes images only: other files are refused at their first part, before anything of them was kept, and the
// capabilities say so.
func TestImagesOnly(t *testing.T) {
	w := newWorld(t, nil)
	w.agent.set(func(s *agent.Status) { s.FilesIn, s.Images = false, true })
	c := w.connect("d")
	if caps := c.Ready.Capabilities; caps.Audio || !caps.Media || !slices.Equal(caps.MediaKinds, []string{"image"}) {
		t.Errorf("capabilities %+v", caps)
	}
	c.send(&frame.Media{ID: "u1", Kind: "document", Filename: "a.pdf", Mime: "application/pdf", Data: make([]byte, 5000), Parts: 3})
	if e := expect[*frame.Error](c); e.Code != frame.Forbidden || e.Ref != "u1" || !strings.Contains(e.Message, "images only") {
		t.Errorf("answered %s", show(e))
	}
	c.send(&frame.Audio{ID: "v1", Format: "ogg", Data: []byte("OggS")})
	if e := expect[*frame.Error](c); e.Code != frame.Forbidden || e.Ref != "v1" {
		t.Errorf("answered %s", show(e))
	}
	c.send(&frame.Media{ID: "u2", Kind: "image", Filename: "a.png", Mime: "image/png", Data: []byte("\x89PNG\r\n\x1a\n"), Parts: 1})
	if a := find[*frame.Accepted](c, nil); a.ID != "u2" {
		t.Errorf("receipt %s", show(a))
	}
	if h := w.take(); h.File == nil || h.File.Kind != "image" {
		t.Errorf("handed %+v", h.Input)
	}
	w.agent.set(func(s *agent.Status) { s.AnyFile = true })
	if caps := find[*frame.CapabilitiesChanged](c, nil).Capabilities; caps.Audio || !caps.Media || caps.MediaKinds != nil {
		t.Errorf("capabilities %+v", caps)
	}
	c.send(&frame.Media{ID: "u3", Kind: "document", Filename: "a.txt", Mime: "text/plain", Data: []byte("words"), Parts: 1})
	if a := find[*frame.Accepted](c, nil); a.ID != "u3" {
		t.Errorf("receipt %s", show(a))
	}
	c.send(&frame.Audio{ID: "v2", Format: "ogg", Data: []byte("OggS")})
	if e := find[*frame.Error](c, nil); e.Code != frame.Forbidden || e.Ref != "v2" {
		t.Errorf("answered %s", show(e))
	}
	w.agent.set(func(s *agent.Status) { s.FilesIn = true })
	if caps := find[*frame.CapabilitiesChanged](c, nil).Capabilities; !caps.Audio || caps.MediaKinds != nil {
		t.Errorf("capabilities %+v", caps)
	}
}
