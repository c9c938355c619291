package relay

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"hermes-mobile/internal/agent"
)

// fixture is the parts of a gateway without a gateway: nothing is connected, and stores finish when the
// test says so.
type fixture struct {
	*parts
	clock  clock
	events []agent.Event
	stores []func(error)
	gone   []string
	over   []string
	counts []string
}

func (b *fixture) Post(_ string, done func(error), events ...agent.Event) {
	b.events = append(b.events, events...)
	if done != nil {
		b.stores = append(b.stores, done)
	}
}

func (b *fixture) Changed() {}

func (b *fixture) OpenCards(context.Context, string) ([]agent.Card, error) { return nil, nil }

func newFixture() *fixture {
	b := &fixture{clock: clock{t: time.Unix(1_800_000_000, 0)}}
	now, log := b.clock.now, slog.New(slog.DiscardHandler)
	p := &parts{
		now: now, log: log, limited: newRateLog(log, now), count: func(what string) { b.counts = append(b.counts, what) },
		run: func(func(context.Context)) bool { return false }, instance: "x", config: func() *Gateway { return &Gateway{ID: "gw"} },
		seq: &sequencer{}, profiles: &profiles{served: map[string][]string{}, chosen: map[string]string{}},
	}
	p.wire = &wire{now: now, log: log, count: p.count, down: func() {}, offlineSince: now()}
	p.traits = &traits{log: log, learned: func(Version) {}, version: Newer}
	p.reports = &reports{
		seq: p.seq, host: func() agent.Host { return b }, drained: func() {},
		overload: func(of string) { b.over = append(b.over, of) }, gone: func(device string) { b.gone = append(b.gone, device) },
	}
	p.answers = &answers{now: now, limited: p.limited, wire: p.wire, reports: p.reports, waiting: map[string]time.Time{}}
	p.queue = &queue{now: now, log: log, count: p.count, wire: p.wire, traits: p.traits, reports: p.reports, onAck: func() {}}
	p.rounds = &rounds{now: now, wire: p.wire}
	b.parts = p
	return b
}

// connect makes the gateway look connected. Nothing may be written to it.
func (b *fixture) connect() {
	b.wire.link, b.wire.connectedAt = &link{}, b.now()
	b.wire.hello()
}

func (b *fixture) turns() *turns {
	return &turns{device: "tel", now: b.now, log: b.log, wire: b.wire, traits: b.traits, reports: b.reports}
}

// running returns turns of which one runs and was acknowledged.
func (b *fixture) running() (*turns, *turn) {
	ts, t := b.turns(), &turn{n: 1, mid: "m1-x", acked: true}
	ts.begin(t)
	return ts, t
}

func TestSequencerTellsInOrder(t *testing.T) {
	s := &sequencer{}
	var told []int
	s.do(func() {
		s.later(func() {
			told = append(told, 1)
			s.do(func() { s.later(func() { told = append(told, 3) }) }) // left to the one that tells
		})
		s.later(func() { told = append(told, 2) })
	})
	if !slices.Equal(told, []int{1, 2, 3}) {
		t.Errorf("told %v", told)
	}
	s.Lock()
	defer s.Unlock()
	if !s.quiet() {
		t.Error("something is left to be told")
	}
}

func TestReportsBudget(t *testing.T) {
	b := newFixture()
	var outcome error
	b.seq.do(func() { b.reports.store("tel", 10, func(err error) { outcome = err }, agent.Home{}) })
	if b.reports.pending != 1 || b.reports.pendingBytes != 10 || b.reports.lagging() {
		t.Errorf("%d stores of %d bytes", b.reports.pending, b.reports.pendingBytes)
	}
	b.stores[0](agent.ErrNoDevice)
	if !errors.Is(outcome, agent.ErrNoDevice) || !slices.Equal(b.gone, []string{"tel"}) || b.reports.pending != 0 || b.reports.pendingBytes != 0 {
		t.Errorf("%v, gone %v, %d stores", outcome, b.gone, b.reports.pending)
	}
	b.seq.do(func() {
		b.reports.reserve(hardBytes)
		b.reports.reserve(1)
		b.reports.reserve(-1)
	})
	if !slices.Equal(b.over, []string{"open messages"}) {
		t.Errorf("over the budget: %v", b.over)
	}
}

func TestTraits(t *testing.T) {
	var learned []Version
	tr := &traits{log: slog.New(slog.DiscardHandler), learned: func(v Version) { learned = append(learned, v) }}
	tr.saw(&action{Op: "send"})
	tr.saw(&action{Op: "typing"})
	tr.saw(&action{Op: "draft"})
	tr.saw(&action{Op: "typing"})
	tr.saw(&action{Op: "prompt", PromptID: "without-nonce"})
	if !slices.Equal(learned, []Version{Early, Newer, Early}) {
		t.Errorf("learned %v", learned)
	}
	if names := tr.sessionNames(); !slices.Equal(names, []string{"relay"}) {
		t.Errorf("without a name: %v", names)
	}
	tr.addName("mobile")
	if names := tr.sessionNames(); !slices.Equal(names, []string{"relay", "mobile"}) {
		t.Errorf("with a name that may be known: %v", names)
	}
	tr.proveName("other")
	tr.proveName("mobile")
	if names := tr.sessionNames(); !slices.Equal(names, []string{"mobile"}) {
		t.Errorf("with a known name: %v", names)
	}
	if tr.process("aa") || !tr.stale("bb") || tr.stale("aa") || tr.stale("") {
		t.Error("the first process")
	}
	if tr.process("aa") || !tr.process("bb") || !tr.stale("aa") || tr.stale("bb") {
		t.Error("the second process")
	}
	if tr.processEnds(); !tr.stale("bb") || tr.stale("cc") {
		t.Error("the process that ended")
	}
}

func TestTurnsEnd(t *testing.T) {
	b := newFixture()
	b.connect()
	marks := func(ts *turns) {
		ts.react(&action{MessageID: "m1-x", Emoji: eyes})
		ts.react(&action{MessageID: "m1-x", Emoji: eyes, Remove: true})
		ts.react(&action{MessageID: "m1-x", Emoji: "✅"})
	}
	for name, c := range map[string]struct {
		version Version
		does    func(ts *turns, t *turn)
		sight   sight
		lasts   time.Duration // it ends after this
		want    ending
	}{
		"marks":                    {Newer, func(ts *turns, t *turn) { t.says(b.now()); marks(ts) }, sight{}, lingerMark, endsDone},
		"marks of queueing":        {Newer, func(ts *turns, t *turn) { marks(ts) }, sight{}, startupGrace, endsDone},
		"marks after a stop":       {Newer, func(ts *turns, t *turn) { t.stopping = true; marks(ts) }, sight{}, lingerMark, endsInterrupted},
		"the stop shows no effect": {Newer, func(_ *turns, t *turn) { t.stopBy = b.now().Add(stopGrace) }, sight{}, stopGrace, endsInterrupted},
		"nothing is seen":          {Newer, func(*turns, *turn) {}, sight{}, idleUnseen, endsInterrupted},
		"it falls silent":          {Newer, func(_ *turns, t *turn) { t.says(b.now()) }, sight{}, idleNewer, endsInterrupted},
		"an older one is silent":   {Older, func(_ *turns, t *turn) { t.says(b.now()) }, sight{}, idleOlder, endsInterrupted},
		"it asks":                  {Newer, func(_ *turns, t *turn) { t.says(b.now()) }, sight{cards: 1}, idleCard, endsInterrupted},
		"no marks come":            {Newer, func(ts *turns, t *turn) { ts.sent(t, &action{ReplyTo: t.mid, Metadata: metadata{Notify: true}}) }, sight{}, quietNotify, endsDone},
		"an older one notifies":    {Older, func(ts *turns, t *turn) { ts.sent(t, &action{ReplyTo: t.mid, Metadata: metadata{Notify: true}}) }, sight{}, lingerNotify, endsDone},
		"from an earlier run":      {Newer, func(_ *turns, t *turn) { t.adopted, t.texts = true, 1 }, sight{}, idleUntyped, endsInterrupted},
		"perhaps it never arrived": {Older, func(_ *turns, t *turn) { t.doubt = messageInDoubt }, sight{}, idleDoubt, endsInterrupted},
	} {
		b.traits.version = c.version
		ts, turn := b.running()
		c.does(ts, turn)
		if got := ts.due(b.now().Add(c.lasts-time.Millisecond), c.sight); got != goesOn {
			t.Errorf("%s: it ended early with %d", name, got)
		}
		if got := ts.due(b.now().Add(c.lasts+time.Millisecond), c.sight); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	ts, turn := b.running()
	if turn.acked = false; ts.due(b.now().Add(24*time.Hour), sight{}) != goesOn {
		t.Error("a turn whose event is on its way was ended")
	}
}

func TestTurnsQuestion(t *testing.T) {
	b := newFixture()
	b.connect()
	ts, turn := b.running()
	ts.sent(nil, &action{Op: "send", Content: "Which one?"})
	ts.look(b.now().Add(typingPaused), sight{})
	if ts.question {
		t.Error("a gateway that may still type asks")
	}
	ts.look(b.now().Add(typingPaused+time.Millisecond), sight{cards: 1})
	if ts.question {
		t.Error("a card is not a question in words")
	}
	if ts.look(b.now().Add(typingPaused+time.Millisecond), sight{}); !ts.question {
		t.Error("a gateway that has stopped typing does not ask")
	}
	if ts.typing(false); ts.question || turn.doubt != "" {
		t.Error("a gateway that types asks")
	}
}

func TestQueueOneInFlight(t *testing.T) {
	b := newFixture()
	var rejected []error
	add := func(id string) *item {
		it := &item{id: id, device: "tel", acked: func() {}, rejected: func(err error) { rejected = append(rejected, err) }}
		b.queue.add(it)
		return it
	}
	a, second := add("a"), add("b")
	if b.queue.inflight != nil || a.sent {
		t.Fatal("an event was written to a gateway that is offline")
	}
	b.connect()
	a.writtenAt, a.sent, b.queue.inflight = b.now(), true, a
	b.queue.clock(b.now().Add(stallAfter + time.Millisecond))
	b.queue.clock(b.now().Add(stallAfter + time.Second))
	if !b.queue.stalled || b.queue.stalls != 1 || !slices.Equal(b.counts, []string{CountWedge}) {
		t.Errorf("stalled %v, %d times, counted %v", b.queue.stalled, b.queue.stalls, b.counts)
	}
	b.queue.ack("b") // not in flight
	if b.queue.inflight != a {
		t.Error("the ack of another event was accepted")
	}
	b.wire.idle = true // so nothing is written
	b.queue.ack("a")
	if b.queue.stalled || b.queue.inflight != nil || len(b.queue.list) != 1 || b.queue.list[0] != second {
		t.Errorf("after the ack: %+v", b.queue)
	}
	list := b.queue.withdraw(func(it *item) bool { return it.id == "b" })
	if len(list) != 1 || list[0] != second || len(b.queue.list) != 0 {
		t.Errorf("withdrawn: %v", list)
	}
	c, d := add("c"), add("d")
	c.sent = true
	b.queue.giveBack(false)
	if len(b.queue.list) != 1 || b.queue.list[0] != c || len(rejected) != 1 || !errors.Is(rejected[0], agent.ErrAway) || d.sent {
		t.Errorf("kept %d, rejected %v", len(b.queue.list), rejected)
	}
	lost := 0
	b.traits.version, c.lost = Older, func() { lost++ }
	if b.queue.giveBack(false); lost != 1 || len(b.queue.list) != 0 {
		t.Errorf("an event that may have arrived at an older gateway is sent again: %d", len(b.queue.list))
	}
}

func TestRest(t *testing.T) {
	b := newFixture()
	r := rest{rounds: b.rounds}
	holds := func(command, steers, want bool) {
		t.Helper()
		if got := r.holds(command, steers); got != want {
			t.Errorf("command %v, steers %v: holds %v", command, steers, got)
		}
	}
	holds(true, true, false) // no turn has ended
	r.begin(b.now())
	holds(true, false, true)
	holds(false, false, false)
	holds(false, true, true)
	b.clock.add(restSession)
	holds(true, false, true) // by the rounds
	for range restPongs {
		b.rounds.pong()
	}
	holds(true, false, false)
	holds(false, true, false)
	b.rounds.unanswered = b.now()
	b.clock.add(stoodStill + time.Millisecond)
	if !b.rounds.pong() || b.rounds.pong() {
		t.Error("the loop stood still before one of two pongs")
	}
	r.stood()
	holds(true, false, true)
	b.clock.add(restSession)
	holds(true, false, false)
}

func TestStreamsForms(t *testing.T) {
	b := newFixture()
	b.connect()
	ts, _ := b.running()
	ss := &streams{device: "tel", now: b.now, wire: b.wire, traits: b.traits, reports: b.reports, answers: b.answers, turns: ts}
	says := func() (list []agent.Say) {
		b.seq.do(func() {})
		for _, e := range b.events {
			list = append(list, e.(agent.Say))
		}
		b.events = nil
		return list
	}
	draft := func(text string) *action {
		return &action{Op: "draft", DraftID: "7", Content: text, Metadata: metadata{ReplyTo: "m1-x"}}
	}
	ss.draft(draft("Hel"))
	ss.draft(draft("Hello"))
	shown := says()
	if len(shown) != 2 || shown[1].Text != "Hello" || shown[0].ID != shown[1].ID || shown[1].N != 1 || b.reports.openBytes != 5 {
		t.Fatalf("drafts: %+v, %d bytes", shown, b.reports.openBytes)
	}
	id, before := ss.takeOver(&action{Content: "Hello world", ReplyTo: "m1-x", Metadata: metadata{Notify: true}})
	if id != shown[0].ID || before != nil || len(ss.list) != 0 || b.reports.openBytes != 0 {
		t.Errorf("taken over as %s after %v, %d bytes", id, before, b.reports.openBytes)
	}
	if ss.draft(draft("late")); len(says()) != 0 || len(ss.list) != 0 {
		t.Error("a draft that came after its message was shown")
	}
	ss.begin(ts.running, &action{Content: "One ▉", ReplyTo: "m1-x", Metadata: metadata{ExpectEdits: true}})
	wire := ss.list[0].wire
	ss.edit(&action{MessageID: wire, Content: "One two ▉"})
	ss.edit(&action{MessageID: wire, Content: "One two."})
	edits := says()
	if len(edits) != 3 || edits[0].Text != "One" || edits[2].Text != "One two." || !edits[2].Final || edits[2].Interrupted || len(ss.list) != 0 {
		t.Errorf("edits: %+v", edits)
	}
	ss.begin(ts.running, &action{Content: "Half ▉", ReplyTo: "m1-x", Metadata: metadata{ExpectEdits: true}})
	says()
	end := ss.endTurn(ts.end(), false)
	if len(end) != 1 || !end[0].(agent.Say).Interrupted {
		t.Errorf("the end of the turn: %+v", end)
	}
}

func TestIdentity(t *testing.T) {
	b := newFixture()
	i := identity{device: "tel", instance: "x", config: b.config, traits: b.traits, profiles: b.profiles}
	if ev := i.event(nil, "hi", "text", i.mid(7)); ev.MessageID != "m7-x" || ev.Source.UserName != "tel" || ev.Source.UserID != "tel" || ev.Source.Platform != "relay" {
		t.Errorf("without a user: %+v", ev)
	}
	i.restore(cardState{User: "u", UserName: "Ann", Name: "Phone", Profile: "work"})
	i.restore(cardState{User: "other"})
	if ev := i.event(nil, "hi", "text", i.mid(7)); ev.Source.UserID != "u" || ev.Source.ChatName != "Phone" || ev.Source.Profile != "work" {
		t.Errorf("with a user: %+v", ev)
	}
	if p := i.profile(&turn{profile: "home"}); p != "home" {
		t.Errorf("the profile of a turn is %q", p)
	}
	b.profiles.serve("gw", []string{"default", "home", "Not Valid"})
	b.profiles.choose("tel", "gone")
	if _, err := i.nextProfile(); err == nil {
		t.Error("a profile that is not served was picked")
	}
	if frames := i.interrupts(&turn{profile: "main"}); len(frames) != 1 || string(frames[0]) !=
		`{"type":"interrupt_inbound","session_key":"agent:main~:relay:dm:tel","chat_id":"tel"}`+"\n" {
		t.Errorf("%s", frames)
	}
}

func TestOwners(t *testing.T) {
	asked := 0
	c := clock{t: time.Unix(1_800_000_000, 0)}
	o := &owners{now: c.now, ask: func(string) string { asked++; return "ann" }}
	first := o.of("tel")
	if again := o.of("tel"); first != "ann" || again != "ann" || asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	c.add(keepOwner)
	if o.of("tel"); asked != 2 {
		t.Error("the user of a device is remembered for too long")
	}
	if (&owners{now: c.now}).of("tel") != "" {
		t.Error("a device has a user that nobody knows")
	}
}
