package hub

import (
	"errors"
	"slices"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/store"
)

// turn is an input that the agent works on. Whatever happens to the agent, the lease ends it.
type turn struct {
	in   agent.Input
	sign time.Time // the agent's last sign of life
}

const (
	avatarIdle     = "idle"
	avatarThinking = "thinking"
	avatarSpeaking = "speaking"

	idleAfter    = time.Second      // from the end of a turn to avatar idle
	workingLease = 15 * time.Second // of Working outside of a turn
	retryAway    = time.Second      // until an agent that was away for a moment is asked again
)

// next hands the oldest waiting input to the agent, when no turn is running and the agent is there.
func (s *session) next() {
	if s.turn != nil || len(s.waiting) == 0 || s.hub.closing.Load() {
		return
	}
	if !s.hub.Agent.Status(s.id).Online {
		if w, sleeps := s.hub.Agent.(agent.Waker); sleeps {
			w.Waits(s.id)
		}
		return
	}
	in := s.shift()
	s.turn = &turn{in: in, sign: time.Now()}
	s.start(&s.timers.lease, s.hub.TurnLease, leaseOver{})
	s.indicate(avatarThinking, true)
	s.hand(in)
}

// admit hands over what waits and may now pass in the middle of a turn.
func (s *session) admit() {
	for i := 0; s.turn != nil && i < len(s.waiting); { // what is to join the turn passes what waits for its own
		if in := s.waiting[i]; in.Joins != 0 && in.Joins == s.turn.in.N && s.hub.Agent.Admits(in) {
			s.waiting = slices.Delete(s.waiting, i, i+1)
			s.waitsChange(&in, -1)
			s.handAside(in)
			continue
		}
		i++
	}
	for s.turn != nil && len(s.waiting) > 0 && s.hub.Agent.Admits(s.waiting[0]) {
		s.handAside(s.shift())
	}
}

func (s *session) handAside(in agent.Input) {
	if s.aside == nil {
		s.aside = map[int64]agent.Input{}
	}
	s.aside[in.N] = in
	s.hand(in)
}

func (s *session) hand(in agent.Input) {
	in.DeviceName, in.User, in.UserName = s.dev.Name, s.dev.Owner(), s.dev.UserName
	if in.Handed {
		for _, k := range s.cards {
			if k.row.N == in.N {
				in.Cards = append(in.Cards, k.Card)
			}
		}
	}
	s.hub.Agent.Hand(in, func(err error) { s.hub.post(s.id, &taken{n: in.N, err: err}) })
}

// taken: the agent said whether it took an input.
type taken struct {
	n   int64
	err error
}

func (e *taken) apply(s *session, b *batch) {
	if s.dev == nil {
		return
	}
	if e.err == nil {
		s.noteInput(b, func(tx *store.Tx) error { return tx.HandedOver(e.n) }, nil)
		return
	}
	if errors.Is(e.err, agent.ErrOwnTurn) {
		b.then(func() {
			if in, ok := s.aside[e.n]; ok {
				delete(s.aside, e.n)
				in.Joins, in.Steer = 0, false
				s.line(in)
				s.next()
			}
		})
		return
	}
	if !errors.Is(e.err, agent.ErrAway) {
		text := "The agent could not take this message: " + e.err.Error()
		if in := s.given(e.n); in != nil {
			s.final(b, agent.Say{ID: agent.NewID(), Text: text, Final: true, ReplyTo: in.ID}, false)
		}
		s.done(b, agent.Done{N: e.n})
		return
	}
	b.then(func() {
		in, ok := s.aside[e.n]
		switch {
		case ok:
			delete(s.aside, e.n)
		case s.turn != nil && s.turn.in.N == e.n:
			in = s.turn.in
			s.endTurn()
		default:
			return
		}
		if s.turn == nil || s.turn.in.N != in.Joins {
			in.Joins = 0
		}
		s.line(in)
		s.again()
	})
}

// noteInput stores what became of an input, and tries again and again where the store takes nothing. A later life would otherwise
// hand over what the agent has, and wait for what has ended.
func (s *session) noteInput(b *batch, op func(*store.Tx) error, after func(error)) {
	b.do(op, func(err error) {
		if err != nil {
			s.unnoted = append(s.unnoted, op)
			s.start(&s.timers.retry, retryAway, retryNow{})
		}
		if after != nil {
			after(err)
		}
	})
}

// noteHandover stores that the agent is about to give something to its backend, or that it did not.
func (s *session) noteHandover(b *batch, e agent.Given) {
	switch {
	case e.Card != "" && !e.Back:
		b.do(func(tx *store.Tx) error { return tx.Settle(e.Card) }, nil)
	case e.Card != "":
		b.do(func(tx *store.Tx) error { return tx.Unsettle(e.Card) }, nil)
	case !e.Back:
		b.do(func(tx *store.Tx) error { return tx.HandedOver(e.N) }, nil)
	default:
		b.do(func(tx *store.Tx) error { return tx.HandedBack(e.N) }, nil)
	}
}

// again makes another try in a while where the agent says that it is away and its status says otherwise: it was away for
// a moment, and the change was told before the hub knew that it matters.
func (s *session) again() {
	if s.hub.Agent.Status(s.id).Online && !s.hub.closing.Load() {
		s.start(&s.timers.retry, retryAway, retryNow{})
	}
}

type retryNow struct{}

func (retryNow) apply(s *session, b *batch) {
	s.timers.retry = nil
	b.flush()
	late := s.unnoted
	s.unnoted = nil
	for _, op := range late {
		s.noteInput(b, op, nil)
	}
	b.flush() // what waits is handed over whether that could be stored or not
	if s.hub.sharing.Load() {
		b.flush()
		s.takeShared(b)
	}
	b.then(func() { s.next(); s.tellDecisions() })
}

// given returns the input n that the agent has, nil if it has not.
func (s *session) given(n int64) *agent.Input {
	if s.turn != nil && s.turn.in.N == n {
		return &s.turn.in
	}
	if in, ok := s.aside[n]; ok {
		return &in
	}
	return nil
}

// said: the agent has something for this conversation.
type said struct {
	events []agent.Event
	done   func(error)
}

func (e *said) fail(_ *session, err error) {
	if e.done != nil {
		e.done(err)
	}
}

func (e *said) apply(s *session, b *batch) {
	if s.dev == nil || s.dev.Revoked || s.hub.thrownOut(s.dev.Owner()) {
		e.fail(s, agent.ErrNoDevice)
		return
	}
	if s.turn != nil {
		s.turn.sign = time.Now()
	}
	for _, ev := range e.events {
		switch ev := ev.(type) {
		case agent.Say:
			s.say(b, ev)
		case agent.SendFile:
			s.sendFile(b, ev)
		case agent.Ask:
			s.ask(b, ev.Card)
		case agent.CloseCard:
			s.closeCard(b, ev)
		case agent.Working:
			b.then(s.working)
		case agent.ToolStep:
			b.then(func() { s.tool(ev) })
		case agent.Home:
			if *s.hub.home.Load() != s.id { // a device that repeats it does not fill the audit log
				s.makeHome(s.acts(), b, nil)
			}
		case agent.Given:
			s.noteHandover(b, ev)
		case agent.Done:
			s.done(b, ev)
		}
	}
	if e.done != nil {
		b.do(nil, e.done)
	}
}

// done ends a turn: messages that have no end get one, the indicator goes off, and the next input is handed over.
func (s *session) done(b *batch, e agent.Done) {
	outcome := "done"
	if e.Interrupted {
		outcome = "interrupted"
	}
	s.hub.Metrics.Turns.WithLabelValues(outcome).Inc()
	for _, st := range slices.Clone(s.streams) {
		if st.say.N == e.N && !st.mirror {
			last := st.say
			last.Final, last.Interrupted = true, true
			s.final(b, last, true)
		}
	}
	s.noteInput(b, func(tx *store.Tx) error { return tx.TurnDone(e.N) }, func(err error) {
		delete(s.aside, e.N)
		if s.turn != nil && s.turn.in.N == e.N {
			s.endTurn()
			if err == nil {
				s.next()
			} else { // the agent thinks that it ended, or was silent for too long: what waits must not wait for ever
				s.start(&s.timers.retry, retryAway, retryNow{})
			}
		}
	})
}

// endTurn turns the indicator off.
func (s *session) endTurn() {
	s.turn = nil
	for i := range s.waiting {
		s.waiting[i].Joins = 0 // it was to join this turn, and no other
	}
	stop(&s.timers.lease)
	s.rest()
}

func (s *session) rest() {
	if s.typing {
		s.typing = false
		s.live(&frame.Typing{Stop: true})
	}
	defer s.passIndicators()
	if s.conn == nil && len(s.members) == 0 {
		s.avatar = avatarIdle
		return
	}
	stop(&s.timers.idle)
	s.start(&s.timers.idle, idleAfter, idleNow{})
}

// idleNow: a second has passed since the turn ended.
type idleNow struct{}

func (idleNow) apply(s *session, b *batch) {
	s.timers.idle = nil
	b.then(func() {
		if s.turn == nil && !s.typing && s.avatar != avatarIdle {
			s.avatar = avatarIdle
			s.live(&frame.Avatar{State: avatarIdle})
			s.passIndicators()
		}
	})
}

// leaseOver: a turn may have been without any sign of life for too long.
type leaseOver struct{}

func (leaseOver) apply(s *session, b *batch) {
	s.timers.lease = nil
	if s.turn == nil {
		return
	}
	until := s.turn.sign.Add(s.hub.TurnLease)
	for _, k := range s.cards { // a question may be answered until it expires
		if k.row.N == s.turn.in.N && k.row.Expires.After(until) {
			until = k.row.Expires.Add(time.Minute)
		}
	}
	if wait := time.Until(until); wait > 0 {
		s.start(&s.timers.lease, min(wait, s.hub.TurnLease), leaseOver{}) // a card may be answered long before it expires
		return
	}
	s.hub.log.Warn("a turn ended because the agent gave no sign of life", "device", s.id, "n", s.turn.in.N)
	s.done(b, agent.Done{N: s.turn.in.N, Interrupted: true})
}

// indicate shows what the agent does.
func (s *session) indicate(avatar string, typing bool) {
	stop(&s.timers.idle)
	if s.avatar != avatar {
		s.avatar = avatar
		s.live(&frame.Avatar{State: avatar})
	}
	if typing && !s.typing {
		s.typing = true
		s.live(&frame.Typing{})
	}
	s.passIndicators()
}

// speak shows that text of a turn has come.
func (s *session) speak() {
	if s.turn != nil && s.avatar != avatarSpeaking {
		s.indicate(avatarSpeaking, false)
	}
}

// working: the agent said that it works. Outside of a turn of ours that holds for a while only.
func (s *session) working() {
	if s.turn != nil {
		s.indicate(s.avatar, true)
		return
	}
	if s.avatar == avatarIdle {
		s.indicate(avatarThinking, true)
	} else {
		s.indicate(s.avatar, true)
	}
	stop(&s.timers.working)
	s.start(&s.timers.working, workingLease, workingOver{})
}

// workingOver: the agent has not said for a while that it works.
type workingOver struct{}

func (workingOver) apply(s *session, b *batch) {
	s.timers.working = nil
	b.then(func() {
		if s.turn == nil {
			s.rest()
		}
	})
}

// live sends a frame that means something only now. While the device is behind it is left out: when it has caught up it
// is told how things stand then.
func (s *session) live(f frame.Down) {
	if s.conn != nil && !s.behind {
		s.conn.send(f)
	}
}

// showAgain tells a device that has caught up how things stand: open cards that the backlog did not bring, indicators.
func (s *session) showAgain() {
	for _, k := range s.cards {
		if k.again {
			k.again = false
			p := k.prompt()
			p.Session, p.Seq, p.TimeoutSeconds = s.dev.Session(), k.row.Seq, left(p.ExpiresAt)
			s.conn.send(p)
		}
	}
	s.showOthersCards()
	if s.conn.told {
		return
	}
	s.conn.told = true
	if s.avatar != avatarIdle {
		s.conn.send(&frame.Avatar{State: s.avatar})
	}
	if s.typing {
		s.conn.send(&frame.Typing{})
	}
}

func (s *session) tool(e agent.ToolStep) {
	own := s.conn != nil && s.conn.tool
	if !own && len(s.members) == 0 {
		return
	}
	f := &frame.Tool{ID: e.ID, Name: e.Name, State: e.State, Title: e.Title, Text: e.Text}
	if in := s.given(e.N); in != nil {
		f.Turn = in.ID
	}
	if own {
		s.overtake()
		s.live(f)
	}
	s.pass(usedTool{f})
}

// shutdown: the server stops. Messages that are being streamed get their end now.
type shutdown struct{}

func (shutdown) apply(s *session, b *batch) {
	if s.dev == nil {
		return
	}
	for _, st := range slices.Clone(s.streams) {
		if st.mirror {
			continue
		}
		last := st.say
		last.Final, last.Interrupted = true, true
		last.N = 0 // it does not count as said, as after a crash: the turn is handed over again, and its answer is to come whole
		s.final(b, last, true)
	}
	b.then(func() {
		s.timers.stop()
		s.notes.Stop()
		for _, k := range s.cards {
			stop(&k.timer)
		}
		if s.conn != nil {
			s.noteWritten()
			s.noteSent()
			s.deliveriesSent()
		}
	})
}
