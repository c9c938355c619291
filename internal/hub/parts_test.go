package hub

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/metrics"
	"hermes-mobile/internal/quota"
	"hermes-mobile/internal/store"
)

// fakeQueue is a queue that the test works off: every event is a transaction of its own.
type fakeQueue struct {
	t      *testing.T
	store  *store.Store
	events chan event
}

func (q *fakeQueue) post(e event) bool       { q.events <- e; return true }
func (q *fakeQueue) run(f func(*batch)) bool { return q.post(evRun(f)) }
func (q *fakeQueue) later(op string, f func(*store.Tx) error, failed func()) {
	if err := q.store.Do(f); err != nil && failed != nil {
		failed()
	}
}

func (q *fakeQueue) commit(steps []step) {
	err := q.store.Do(transaction(steps))
	for _, st := range steps {
		if st.after != nil {
			st.after(err)
		}
	}
}

// do runs f as an event, then all events that are posted by then.
func (q *fakeQueue) do(f func(*batch)) {
	q.t.Helper()
	q.apply(evRun(f))
	for len(q.events) > 0 {
		q.apply(<-q.events)
	}
}

func (q *fakeQueue) apply(e event) {
	b := batch{session: q}
	e.apply(&b)
	q.commit(b.steps)
}

// next waits for an event, which a timer posts, and applies it.
func (q *fakeQueue) next() {
	q.t.Helper()
	select {
	case e := <-q.events:
		q.apply(e)
	case <-time.After(10 * time.Second):
		q.t.Fatal("waited in vain for an event")
	}
}

// fakeAgent acknowledges what the test tells it to.
type fakeAgent struct {
	agent.Agent
	online  bool
	inputs  []agent.Input
	answers []agent.Answer
	ack     func(error)
}

func (a *fakeAgent) Status(string) agent.Status { return agent.Status{Online: a.online} }
func (a *fakeAgent) Admits(agent.Input) bool    { return false }
func (a *fakeAgent) Hand(in agent.Input, ack func(error)) {
	a.inputs, a.ack = append(a.inputs, in), ack
}
func (a *fakeAgent) Answer(_ agent.Card, answer agent.Answer, ack func(error)) {
	a.answers, a.ack = append(a.answers, answer), ack
}

// quiet observes nothing.
type quiet struct{}

func (quiet) entryStored(*entry)                            {}
func (quiet) entryGiven(*entry)                             {}
func (quiet) beforeTaking(*entry)                           {}
func (quiet) flushSteps()                                   {}
func (quiet) caughtUp()                                     {}
func (quiet) mayRevoke(string) (bool, *store.Device, error) { return false, nil, nil }

// rig is the parts of one conversation on a real store, without a session.
type rig struct {
	*fakeQueue
	core         core
	agent        *fakeAgent
	deliveries   deliveries
	out          outbox
	group        group
	conversation conversation
}

func newRig(t *testing.T) *rig {
	t.Helper()
	ctx := context.Background()
	st, err := store.Open(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	dev := &store.Device{ID: "d", UserID: "u", Label: "main"}
	if err := st.Do(func(tx *store.Tx) error { return tx.AddDevice(dev, time.Now()) }); err != nil {
		t.Fatal(err)
	}
	r := &rig{fakeQueue: &fakeQueue{t: t, store: st, events: make(chan event, 100)}, agent: &fakeAgent{online: true}}
	sv := &services{Options: Options{Agent: r.agent, Metrics: metrics.New("test"), OutboxEntries: 3, IdleTimeout: time.Minute,
		PromptLife: time.Minute}.withDefaults(), store: st, log: slog.New(slog.DiscardHandler), ctx: ctx, shares: quota.NewShares(nil)}
	r.core = core{services: sv, queue: r.fakeQueue, id: "d", dev: dev}
	r.parts(r)
	t.Cleanup(func() { r.conversation.stop(); r.deliveries.close() })
	return r
}

// parts makes the parts of the rig into.
func (r *rig) parts(into *rig) {
	into.deliveries = deliveries{core: &r.core}
	into.out = outbox{core: &r.core, deliveries: &into.deliveries, observer: quiet{}}
	into.group = group{core: &r.core, out: &into.out}
	into.conversation.init(&r.core, &into.group)
}

func TestBatch(t *testing.T) {
	q := newRig(t).fakeQueue
	var got []string
	note := func(what string) func() { return func() { got = append(got, what) } }
	fails := errors.New("fails")
	q.do(func(b *batch) {
		b.then(note("at once"))
		b.do(none, func(error) { note("stored")() })
		b.then(note("then"))
		got = append(got, "added")
		b.flush()
		b.then(note("flushed"))
		b.do(func(*store.Tx) error { return fails }, func(err error) {
			if errors.Is(err, fails) {
				note("failed")()
			}
		})
		b.then(note("never"))
	})
	if want := []string{"at once", "added", "stored", "then", "flushed", "failed"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A timer that was stopped after its time was over runs nothing, also if it was started again.
func TestTimer(t *testing.T) {
	q := newRig(t).fakeQueue
	var got []string
	var tm timer
	tm.start(q, 0, func(*batch) { got = append(got, "first") })
	e := <-q.events
	tm.stop()
	tm.start(q, time.Hour, func(*batch) { got = append(got, "second") })
	tm.start(q, 0, func(*batch) { got = append(got, "third") }) // it is running
	q.apply(e)
	if len(got) > 0 || !tm.running() {
		t.Errorf("%q ran", got)
	}
	tm.stop()
	tm.startQuick(q, 0, func(*batch) { got = append(got, "fourth") })
	q.next()
	if !slices.Equal(got, []string{"fourth"}) || tm.running() {
		t.Errorf("%q ran", got)
	}
}

func TestOutboxDropsTheOldest(t *testing.T) {
	r := newRig(t)
	for range 5 {
		r.do(func(b *batch) { r.out.append(b, &entry{Message: &frame.Message{ID: agent.NewID()}}, nil, nil) })
	}
	rows, err := r.store.Outbox(r.core.ctx, r.core.dev.N, 0, 10)
	if err != nil || len(rows) != 3 || rows[0].Seq != 3 || r.core.dev.Floor != 2 || r.out.seq != 5 {
		t.Errorf("%d entries after %d: %v", len(rows), r.core.dev.Floor, err)
	}
	if !r.out.forget(4) || r.out.forget(4) || r.out.count != 1 {
		t.Errorf("%d entries are counted after an acknowledgement", r.out.count)
	}
}

func TestDeliveriesWatermarks(t *testing.T) {
	r := newRig(t)
	deliver := func(id string) (got error) {
		r.do(func(b *batch) {
			record := r.deliveries.record(store.Delivery{Source: sourceDeliver, Sender: "s", ID: id, Message: "m" + id}, r.out.seq+1)
			r.out.append(b, &entry{Message: &frame.Message{ID: "m" + id}}, record, func(err error) { got = err })
		})
		return got
	}
	if err := errors.Join(deliver("1"), deliver("2")); err != nil {
		t.Fatal(err)
	}
	if err := deliver("2"); !errors.Is(err, errTwice) {
		t.Errorf("a delivery that was made before: %v", err)
	}
	r.deliveries.left(1)
	if !r.deliveries.noting.running() {
		t.Error("nothing will be noted as sent")
	}
	r.deliveries.noteSent()
	for _, step := range []struct {
		what string
		do   func()
		want store.Watermark // of the deliveries that were not seen
	}{
		{"one was sent", func() {}, store.Watermark{Last: 2, Sent: 1}},
		{"both are acknowledged", func() { r.deliveries.acked(2, false) }, store.Watermark{Last: 2, Sent: 2, Acked: 2}},
		{"both were seen", func() { r.deliveries.acked(2, true) }, store.Watermark{}},
	} {
		step.do()
		if got, err := r.store.Deliveries().Watermark(r.core.ctx, r.core.dev.N); err != nil || got != step.want {
			t.Errorf("%s: %+v, want %+v, %v", step.what, got, step.want, err)
		}
	}
}

func ask(id string) agent.Card {
	return agent.Card{ID: id, Kind: frame.ExecApproval, Text: "Run?", Options: []agent.Option{{ID: "once"}, {ID: frame.DenyOption}}}
}

// Whoever commits first decides. Another session over the same store, as on a second server, adopts
// that decision.
func TestTheStoreDecides(t *testing.T) {
	r := newRig(t)
	r.do(func(b *batch) { r.conversation.cards.ask(b, ask("c")) })
	rows, err := r.store.Cards(r.core.ctx, r.core.dev.N)
	if err != nil || len(rows) != 1 {
		t.Fatal(rows, err)
	}
	other := &rig{}
	r.parts(other)
	other.out.seq = 100
	if err := other.conversation.cards.load(rows[0]); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.conversation.stop)
	var verdicts []verdict
	decide := func(c *cards, option string) {
		r.do(func(b *batch) {
			c.decide(b, c.find("c"), agent.Answer{OptionID: option}, nil, none, func(_ *batch, v verdict) { verdicts = append(verdicts, v) })
		})
	}
	decide(&other.conversation.cards, "once")
	decide(&r.conversation.cards, frame.DenyOption)
	if !slices.Equal(verdicts, []verdict{{first: true}, {}}) {
		t.Errorf("verdicts %+v", verdicts)
	}
	if k := r.conversation.cards.find("c"); k == nil || k.row.OptionID != "once" || k.open() {
		t.Errorf("the session that was late has %+v", k)
	}
	if len(r.agent.answers) != 1 || r.agent.answers[0].OptionID != "once" {
		t.Errorf("the agent was told %+v", r.agent.answers)
	}
	r.agent.ack(nil)
	r.do(func(*batch) {})
	if r.conversation.cards.find("c") != nil {
		t.Error("a card stays although the agent knows its decision")
	}
}

// A card whose decision could not be stored stays open.
func TestUndecidedCardStaysOpen(t *testing.T) {
	r := newRig(t)
	c := &r.conversation.cards
	r.do(func(b *batch) { c.ask(b, ask("c")) })
	fails := errors.New("fails")
	var got verdict
	r.do(func(b *batch) {
		c.decide(b, c.find("c"), agent.Answer{OptionID: "once"}, nil, func(*store.Tx) error { return fails }, func(_ *batch, v verdict) { got = v })
	})
	if k := c.find("c"); !errors.Is(got.err, fails) || !k.open() || !k.expiry.running() || len(r.agent.answers) > 0 {
		t.Errorf("verdict %+v", got)
	}
}

func TestTurnsGoOneByOne(t *testing.T) {
	r := newRig(t)
	turns := &r.conversation.turns
	for _, n := range []int64{2, 1, 3} {
		turns.enter(agent.Input{N: n, Text: "x"}, n < 3)
	}
	if len(r.agent.inputs) != 1 || r.agent.inputs[0].N != 2 {
		t.Fatalf("submitted %+v", r.agent.inputs)
	}
	if turns.waits.messages.Load() != 2 || turns.waiting[0].N != 1 {
		t.Errorf("%d wait, first %+v", turns.waits.messages.Load(), turns.waiting[0])
	}
	r.agent.ack(agent.ErrAway)
	r.agent.online = false
	r.do(func(*batch) {})
	if turns.running != nil || turns.waits.messages.Load() != 3 || !slices.IsSortedFunc(turns.waiting, func(a, b agent.Input) int { return int(a.N - b.N) }) {
		t.Errorf("after the agent went offline %+v", turns.waiting)
	}
	r.agent.online = true
	for range 3 {
		r.do(func(*batch) { turns.next() })
		r.do(func(b *batch) { turns.done(b, agent.Done{N: turns.running.in.N}) })
	}
	if turns.waits.bytes.Load() != 0 || turns.services.waiting.Load() != 0 || len(r.agent.inputs) != 4 {
		t.Errorf("%d bytes wait, %d were submitted", turns.waits.bytes.Load(), len(r.agent.inputs))
	}
}

// A message that was begun gets its end with its turn, and one that is no longer said does not.
func TestStreamsEndWithTheirTurn(t *testing.T) {
	r := newRig(t)
	s := &r.conversation.streams
	r.do(func(b *batch) {
		s.say(b, agent.Say{ID: "a", Text: "one", N: 1})
		s.say(b, agent.Say{ID: "b", Text: "two", N: 2})
	})
	if !s.quick(agent.Say{ID: "a", Text: "one more"}) || s.quick(agent.Say{ID: "c"}) || s.quick(agent.Say{ID: "a", Final: true}) {
		t.Error("the wrong steps are quick")
	}
	r.do(func(b *batch) { r.conversation.turns.done(b, agent.Done{N: 1}) })
	if len(s.list) != 1 || s.list[0].say.ID != "b" {
		t.Errorf("%d messages have no end", len(s.list))
	}
	rows, err := r.store.Outbox(r.core.ctx, r.core.dev.N, 0, 10)
	if err != nil || len(rows) != 1 || !strings.Contains(string(rows[0].Body), "one") {
		t.Errorf("%d entries, %v", len(rows), err)
	}
}

func TestUploadsAreFreed(t *testing.T) {
	r := newRig(t)
	u := &uploads{core: &r.core}
	r.core.MaxMedia = 1 << 20
	full := errors.New("full")
	part := &frame.Media{ID: "f", Kind: "image", Mime: "image/png", Parts: 2, Size: 20, Data: []byte("0123456789")}
	if up, err := u.add(part, func(size int64) error { return full }); up != nil || !errors.Is(err, full) {
		t.Errorf("a file without room: %v", err)
	}
	u.free()
	if !u.idle() || u.assembler != nil {
		t.Error("an upload is left")
	}
}
