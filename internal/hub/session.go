package hub

import (
	"errors"
	"slices"
	"sync"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/media"
	"hermes-mobile/internal/notify"
	"hermes-mobile/internal/store"
)

// session is the conversation of one device. Its state belongs to its queue: readers, timers, the agent and the admin
// interface only post events, which are applied one after the other by a goroutine that exists while there are any, or by
// whoever posts one that needs no more than a moment.
type session struct {
	hub *Hub
	id  string // of the device

	mu      sync.Mutex
	mail    []event
	weight  int // bytes of the events in mail
	room    chan struct{}
	running bool // somebody is applying events
	dead    bool // left the hub; a new session must be made

	// What follows belongs to the queue.
	loaded bool
	behind bool          // the outbox holds entries after cursor that conn was not given
	typing bool          // as the device was last told
	dev    *store.Device // nil: no such device
	seq    int64         // the newest that was allotted
	count  int           // entries in the outbox
	held   heldBytes     // bytes in the outbox

	conn    *conn
	cursor  int64 // newest seq given to conn
	part    int   // parts of the file after cursor that conn was given
	written int64 // newest seq known to have left for the device
	trail   store.Trail

	waiting []agent.Input // accepted, not yet handed over
	waits   waits         // how much that is
	coming  weighed       // what is being stored, and waits then
	turn    *turn
	aside   map[int64]agent.Input // handed over in the middle of a turn
	streams []*stream
	cards   []*card // open or not settled
	uploads *media.Assembler

	// Of a conversation that is shared with other devices (shared.go).
	members   []string        // that have joined this one
	lead      int64           // number of the device whose conversation this one has joined, 0 if none
	loadedTo  int64           // inputs up to here were read from the store
	taken     int64           // what is shared was taken up to here
	resumed   int64           // the cursor at which conn began
	leadCards []*frame.Prompt // open cards of the lead, to be shown after the backlog

	notes  notify.Device
	unseen []store.Notice // that the live connection was given last, in a shared conversation

	pending int // writes that nobody waits for and that are not made yet
	unnoted []func(*store.Tx) error

	avatar  string
	shown   agent.Status // what the device was last told
	offered []string     // and what it may call
	pace    pace
	timers  timers
}

// event is something that happens to a session. apply runs in the session's queue: it checks, and gives the batch what
// is to be stored and what is to be done then. Whatever depends on earlier events of the same batch belongs in the latter.
type event interface {
	apply(s *session, b *batch)
}

// weighted is an event that holds many bytes.
type weighted interface{ weight() int }

// quick is an event that may wait for nothing while it is applied: nearly all that is streamed, and texts that are delivered.
// In a session that does nothing it is applied by whoever posts it, which spares a goroutine for each.
type quick interface {
	event
	// quick is asked in the session's queue.
	quick(s *session) bool
}

// maxMail bounds the bytes a session holds unapplied; a reader that brings more waits.
const maxMail = 24 << 20

// maxBatch bounds the events of one transaction.
const maxBatch = 256

// batch collects what one run of the queue stores, and what follows from it, in order.
type batch struct {
	session *session
	steps   []step
	event   int // number of the event that adds steps now; 0: reading the session back
}

type step struct {
	event int
	op    func(*store.Tx) error
	after func(error)
}

// do stores something, then calls after with the outcome. What one event stores is stored whole or not at all.
func (b *batch) do(op func(*store.Tx) error, after func(error)) {
	b.steps = append(b.steps, step{b.event, op, after})
}

// then runs f in order with what is stored; not at all where storing this event failed. With nothing to be stored it runs
// at once.
func (b *batch) then(f func()) {
	if len(b.steps) == 0 {
		f()
		return
	}
	b.do(nil, func(err error) {
		if err == nil {
			f()
		}
	})
}

// flush stores what the batch holds so far, for an event that depends on what came before it.
func (b *batch) flush() {
	if len(b.steps) > 0 {
		b.session.commit(b)
		b.steps = nil
	}
}

// run has the session run f. It reports false if the session has left the hub.
func (s *session) run(f func(*batch)) bool { return s.post(evRun(f)) }

// evRun is an event that needs neither a weight nor an answer when the session cannot be loaded.
type evRun func(*batch)

func (f evRun) apply(_ *session, b *batch) { f(b) }

// evRunOn is evRun for whoever knows the device only.
type evRunOn func(*session, *batch)

func (f evRunOn) apply(s *session, b *batch) { f(s, b) }

// run has the session of a device run f.
func (h *Hub) run(id string, f func(*session, *batch)) { h.post(id, evRunOn(f)) }

// post gives the session an event. It never blocks. false: the session has left the hub.
func (s *session) post(e event) bool {
	s.mu.Lock()
	if s.dead {
		s.mu.Unlock()
		return false
	}
	if q, ok := e.(quick); ok && !s.running && s.loaded && q.quick(s) {
		s.running = true
		s.mu.Unlock()
		s.hub.work.Add(1)
		s.applyQuick(q)
		return true
	}
	s.mail = append(s.mail, e)
	if w, ok := e.(weighted); ok {
		s.weight += w.weight()
	}
	start := !s.running
	s.running = true
	s.mu.Unlock()
	if start {
		s.hub.work.Add(1)
		go s.work()
	}
	return true
}

// applyQuick applies an event without waiting for what it stores.
func (s *session) applyQuick(e quick) {
	b := batch{session: s, event: 1}
	e.apply(s, &b)
	if len(b.steps) == 0 {
		s.applied()
		return
	}
	s.hub.store.Go(transaction(b.steps), func(err error) {
		s.hub.finish.do(func() {
			var failed map[int]error
			if err != nil {
				failed = map[int]error{b.event: err}
			}
			s.committed(b.steps, failed)
			s.applied()
		})
	})
}

// applied ends what applyQuick began. What came meanwhile is left to a goroutine.
func (s *session) applied() {
	s.mu.Lock()
	if len(s.mail) > 0 {
		s.mu.Unlock()
		go s.work()
		return
	}
	s.halt()
	s.mu.Unlock()
	s.hub.work.Done()
}

// halt ends the queue's run: there is nothing to do. It is called with the lock held.
func (s *session) halt() {
	if s.idle() && s.hub.remove(s) {
		s.dead = true
	}
	s.running = false
	s.mail = nil // an idle phone holds no memory for what it said last
}

// wait blocks a reader while the session holds too much unapplied.
func (s *session) wait() {
	for {
		s.mu.Lock()
		if s.weight <= maxMail || s.dead {
			s.mu.Unlock()
			return
		}
		if s.room == nil {
			s.room = make(chan struct{})
		}
		room := s.room
		s.mu.Unlock()
		<-room
	}
}

func (s *session) work() {
	defer s.hub.work.Done()
	for {
		s.mu.Lock()
		if len(s.mail) == 0 {
			s.halt()
			s.mu.Unlock()
			return
		}
		n := min(len(s.mail), maxBatch)
		events := s.mail[:n:n]
		s.mail = s.mail[n:]
		s.mu.Unlock()

		s.apply(events)

		s.mu.Lock()
		for _, e := range events {
			if w, ok := e.(weighted); ok {
				s.weight -= w.weight()
			}
			if r, ok := e.(*received); ok {
				s.hub.unapplied.Give(r.held)
			}
		}
		if s.room != nil && s.weight <= maxMail {
			close(s.room)
			s.room = nil
		}
		s.mu.Unlock()
	}
}

func (s *session) apply(events []event) {
	b := batch{session: s}
	if !s.loaded {
		if err := s.load(&b); err != nil {
			s.hub.storeFailed("load a session", err)
			for _, e := range events {
				if f, ok := e.(failing); ok {
					f.fail(s, err)
				}
			}
			return
		}
	}
	for i, e := range events {
		b.event = i + 1
		e.apply(s, &b)
	}
	s.commit(&b)
}

// failing is an event that somebody waits for.
type failing interface {
	fail(s *session, err error)
}

func (s *session) commit(b *batch) { s.committed(b.steps, s.save(b.steps)) }

// committed does what follows from steps. failed are the errors by the number of the event.
func (s *session) committed(steps []step, failed map[int]error) {
	for _, err := range failed { // once: a full disk fails all of them
		if !refusal(err) {
			s.hub.storeFailed("store what happened", err)
			break
		}
	}
	if c := s.conn; c != nil && len(steps) > 1 { // receipts of several messages, or the end of a turn: one write
		defer s.together(c)()
	}
	for _, st := range steps {
		if st.after != nil {
			st.after(failed[st.event])
		}
	}
}

// refusal reports whether an error of a transaction is no failure of the store, but a reason for which nothing is stored.
func refusal(err error) bool {
	for _, reason := range []error{errTwice, errCodeGone, errDecided, store.ErrTooNew, store.ErrUserTaken, store.ErrManyDevices, store.ErrManyUnapproved} {
		if errors.Is(err, reason) {
			return true
		}
	}
	return false
}

// save stores steps in one transaction. When that fails each event gets one of its own, so that one that cannot be stored
// takes no others along. It returns the errors by the number of the event.
func (s *session) save(steps []step) map[int]error {
	err := s.transact(steps)
	if err == nil {
		return nil
	}
	failed := map[int]error{}
	for rest := steps; len(rest) > 0; {
		n := slices.IndexFunc(rest, func(st step) bool { return st.event != rest[0].event })
		if n < 0 {
			n = len(rest)
		}
		if n < len(steps) {
			err = s.transact(rest[:n])
		}
		if err != nil {
			failed[rest[0].event] = err
		}
		rest = rest[n:]
	}
	return failed
}

// transact stores steps, all of them or none.
func (s *session) transact(steps []step) error {
	if !slices.ContainsFunc(steps, func(st step) bool { return st.op != nil }) {
		return nil
	}
	return s.hub.store.Do(transaction(steps))
}

func transaction(steps []step) func(*store.Tx) error {
	return func(tx *store.Tx) error {
		for _, st := range steps {
			if st.op != nil {
				if err := st.op(tx); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// idle reports whether nothing of this session needs memory: everything that matters is in the store.
func (s *session) idle() bool {
	return s.conn == nil && s.pending == 0 && s.turn == nil && len(s.waiting) == 0 && len(s.aside) == 0 && len(s.streams) == 0 && len(s.cards) == 0 && !s.timers.any() && s.notes.Idle()
}

// later stores something without waiting for it. The session stays in memory until it is stored, for the next one reads
// what this one knows from the store.
func (s *session) later(what string, op func(*store.Tx) error) { s.laterOr(what, op, nil) }

// laterOr is later, with what to do where it could not be stored.
func (s *session) laterOr(what string, op func(*store.Tx) error, otherwise func()) {
	s.pending++
	s.hub.work.Add(1) // Close waits for it, so that nothing is posted when it has returned
	s.hub.store.Go(op, func(err error) {
		defer s.hub.work.Done()
		if err == nil {
			otherwise = nil
		} else {
			s.hub.storeFailed(what, err)
		}
		s.post(stored{otherwise})
	})
}

// stored: a write that nobody waited for was made, or failed.
type stored struct{ otherwise func() }

func (stored) quick(*session) bool { return true }

func (e stored) apply(s *session, _ *batch) {
	s.pending--
	if e.otherwise != nil {
		e.otherwise()
	}
}

// load reads what an earlier session or an earlier life of the server left.
func (s *session) load(b *batch) error {
	ctx := s.hub.ctx
	dev, err := s.hub.store.Device(ctx, s.id)
	if err != nil {
		return err
	}
	s.avatar = avatarIdle
	if dev == nil {
		s.loaded = true
		return nil
	}
	sweeps := s.hub.sweeps.Load()
	count, last, held, err := s.hub.store.OutboxBounds(ctx, dev.N)
	if err != nil {
		return err
	}
	newest, err := s.hub.store.NewestInput(ctx) // before the inbox is read: what is accepted meanwhile comes by itself
	if err != nil {
		return err
	}
	entries, err := s.hub.store.Inbox(ctx, dev.N)
	if err != nil {
		return err
	}
	cards, err := s.hub.store.Cards(ctx, dev.N)
	if err != nil {
		return err
	}
	open, err := s.hub.store.OpenMessages(ctx, dev.N)
	if err != nil {
		return err
	}
	trail, err := s.hub.store.Trail(ctx, dev.N)
	if err != nil {
		return err
	}
	if err := s.loadGroup(dev.Conversation); err != nil {
		return err
	}
	if err := s.notes.Load(ctx, dev.N); err != nil {
		return err
	}
	s.dev, s.count, s.seq, s.trail, s.loadedTo = dev, count, max(last, dev.Floor, dev.Sent), trail, newest
	s.held = heldBytes{bytes: held, known: sweeps}
	s.loaded = true
	s.notes.Update()
	s.notes.UpdateShown()
	for _, e := range entries {
		if e.N > newest {
			break
		}
		in, err := s.input(e)
		if err != nil {
			s.hub.log.Error("a stored message cannot be read", "device", s.id, "n", e.N, "error", err)
			continue
		}
		s.line(in)
	}
	for _, c := range cards {
		if err := s.loadCard(c); err != nil {
			s.hub.log.Error("a stored card cannot be read", "device", s.id, "error", err)
		}
	}
	for _, m := range open { // begun in an earlier life: it ends with what there was
		s.final(b, agent.Say{ID: m.ID, Text: m.Text, Final: true, Interrupted: true, ReplyTo: m.ReplyTo}, true)
	}
	b.then(func() { s.next(); s.tellDecisions() })
	if s.hub.sharing.Load() || s.hub.passed.Load() {
		s.post(shared{})
	}
	s.steadyWait()
	return nil
}

// timers of a session; each posts an event. A nil one is not running.
type timers struct {
	flush, idle, lease, working, uploads, retry, sent, answers, expiry *time.Timer
}

func (t *timers) all() [9]**time.Timer {
	return [...]**time.Timer{&t.flush, &t.idle, &t.lease, &t.working, &t.uploads, &t.retry, &t.sent, &t.answers, &t.expiry}
}

func (t *timers) any() bool {
	all := t.all()
	return slices.ContainsFunc(all[:], func(t **time.Timer) bool { return *t != nil })
}

func (t *timers) stop() {
	for _, t := range t.all() {
		stop(t)
	}
}

// start arms a timer that posts e after d, unless it is running.
func (s *session) start(t **time.Timer, d time.Duration, e event) {
	if *t == nil {
		*t = time.AfterFunc(max(d, 0), func() { s.post(e) })
	}
}

func stop(t **time.Timer) {
	if *t != nil {
		(*t).Stop()
		*t = nil
	}
}
