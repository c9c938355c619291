package hub

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/store"
)

// States of the avatar.
const (
	avatarIdle     = "idle"
	avatarThinking = "thinking"
	avatarSpeaking = "speaking"
)

const (
	idleDelay      = time.Second      // from the end of a turn to the avatar's idle state
	workingTimeout = 15 * time.Second // of agent.Working outside of a turn
	cardGrace      = time.Minute      // after the expiry of a card, in which the agent goes on
)

// turn is an input that the agent works on. Whatever happens to the agent, the idle timeout ends it.
type turn struct {
	in   agent.Input
	sign time.Time // the agent's last sign of life
}

// turns holds the inputs of one conversation: those that wait for the agent, the one whose turn is running, and those
// that were submitted out of band, in the middle of a turn. It also shows what the agent does: avatar and typing.
type turns struct {
	*core
	group   *group
	streams *streams
	cards   *cards

	waiting  []agent.Input // accepted and not submitted, in the order they were accepted
	waits    *waits        // their number and size
	arriving amount        // messages that are being stored, and wait then
	running  *turn
	oob      map[int64]agent.Input   // submitted out of band
	loadedTo int64                   // inputs up to here were read from the store
	unnoted  []func(*store.Tx) error // about inputs, to be stored again
	typing   bool                    // as the device was told
	avatar   string

	idleTimeout, resting, working, retry timer
}

// amount is a number of messages and their bytes.
type amount struct{ messages, bytes int64 }

// waits counts the inputs that wait. Sessions of devices that share the conversation read it.
type waits struct{ messages, bytes atomic.Int64 }

func (t *turns) idle() bool {
	return t.running == nil && len(t.waiting) == 0 && len(t.oob) == 0 &&
		!t.idleTimeout.running() && !t.resting.running() && !t.working.running() && !t.retry.running()
}

// close stops the timers.
func (t *turns) close() {
	t.idleTimeout.stop()
	t.resting.stop()
	t.working.stop()
	t.retry.stop()
}

// reset forgets all inputs. It reports whether a turn was running.
func (t *turns) reset() (running bool) {
	running = t.running != nil
	for i := range t.waiting {
		t.countWaiting(&t.waiting[i], -1)
	}
	t.waiting, t.oob, t.running = nil, nil, nil
	t.close()
	t.typing, t.avatar = false, avatarIdle
	return running
}

// load reads a stored message.
func (t *turns) load(e store.Entry) {
	in := agent.Input{}
	if err := json.Unmarshal(e.Body, &in); err != nil {
		t.log.Error("stored message corrupt", "device", t.id, "n", e.N, "err", err)
		return
	}
	in.N, in.Device, in.Handed, in.Texts = e.N, t.id, e.State == store.Handed, e.Texts
	t.enqueue(in)
}

// inputBytes is the size of a waiting input.
func inputBytes(in *agent.Input) int64 { return int64(len(in.Text)+len(in.Quote)) + rowBytes }

// isCommand reports whether an input is a command, which may pass the messages that wait: it may stop what they wait for.
func isCommand(in *agent.Input) bool {
	return in.Kind == agent.Text && strings.HasPrefix(strings.TrimSpace(in.Text), "/")
}

// countWaiting notes that an input waits (by 1), or waits no more (by -1).
func (t *turns) countWaiting(in *agent.Input, by int64) {
	n := by * inputBytes(in)
	t.waits.messages.Add(by)
	t.waits.bytes.Add(n)
	t.services.waiting.Add(n)
}

// enqueue makes an input wait, in the order in which inputs were accepted.
func (t *turns) enqueue(in agent.Input) {
	at, _ := slices.BinarySearchFunc(t.waiting, in.N, func(w agent.Input, n int64) int { return cmp.Compare(w.N, n) })
	t.waiting = slices.Insert(t.waiting, at, in)
	t.countWaiting(&in, 1)
}

// dequeue removes the oldest input that waits.
func (t *turns) dequeue() agent.Input {
	in := t.waiting[0]
	t.waiting = t.waiting[1:]
	t.countWaiting(&in, -1)
	return in
}

// enter submits an accepted input to the agent, now or when its turn has come.
func (t *turns) enter(in agent.Input, offline bool) {
	if in.Steer && t.running != nil && !offline {
		in.Joins = t.running.in.N
	}
	if t.running != nil && !offline && (len(t.waiting) == 0 || isCommand(&in) || in.Joins != 0) && t.Agent.Admits(in) {
		t.submitOutOfBand(in)
		return
	}
	t.enqueue(in)
	if !offline {
		t.admit() // inputs that wait longer go first
	}
	t.next()
}

// next submits the oldest waiting input, if no turn is running and the agent is online.
func (t *turns) next() {
	if t.running != nil || len(t.waiting) == 0 || t.closing.Load() {
		return
	}
	if !t.Agent.Status(t.id).Online {
		if w, sleeps := t.Agent.(agent.Waker); sleeps {
			w.Waits(t.id)
		}
		return
	}
	in := t.dequeue()
	t.running = &turn{in: in, sign: time.Now()}
	t.idleTimeout.start(t, t.IdleTimeout, t.idleTimeoutDue)
	t.indicate(avatarThinking, true)
	t.submit(in)
}

// admit submits waiting inputs that the agent accepts in the middle of a turn now.
func (t *turns) admit() {
	for i := 0; t.running != nil && i < len(t.waiting); { // an input that joins the turn passes those that wait for their own
		if in := t.waiting[i]; in.Joins != 0 && in.Joins == t.running.in.N && t.Agent.Admits(in) {
			t.waiting = slices.Delete(t.waiting, i, i+1)
			t.countWaiting(&in, -1)
			t.submitOutOfBand(in)
			continue
		}
		i++
	}
	for t.running != nil && len(t.waiting) > 0 && t.Agent.Admits(t.waiting[0]) {
		t.submitOutOfBand(t.dequeue())
	}
}

func (t *turns) submitOutOfBand(in agent.Input) {
	if t.oob == nil {
		t.oob = map[int64]agent.Input{}
	}
	t.oob[in.N] = in
	t.submit(in)
}

func (t *turns) submit(in agent.Input) {
	in.DeviceName, in.User, in.UserName = t.dev.Name, t.dev.Owner(), t.dev.UserName
	if in.Handed {
		in.Cards = t.cards.ofTurn(in.N)
	}
	n := in.N
	t.Agent.Hand(in, func(err error) { t.run(func(b *batch) { t.acked(b, n, err) }) })
}

// acked is called when the agent has acknowledged an input, or could not take it.
func (t *turns) acked(b *batch, n int64, err error) {
	if t.dev == nil {
		return
	}
	switch {
	case err == nil:
		t.noteInput(b, func(tx *store.Tx) error { return tx.HandedOver(n) }, nil)
	case errors.Is(err, agent.ErrOwnTurn):
		b.then(func() {
			if in, ok := t.oob[n]; ok {
				delete(t.oob, n)
				in.Joins, in.Steer = 0, false
				t.enqueue(in)
				t.next()
			}
		})
	case errors.Is(err, agent.ErrAway):
		b.then(func() { t.takeBack(n) })
	default:
		if in := t.submitted(n); in != nil {
			text := "The agent could not take this message: " + err.Error()
			t.streams.final(b, agent.Say{ID: agent.NewID(), Text: text, Final: true, ReplyTo: in.ID}, false)
		}
		t.done(b, agent.Done{N: n})
	}
}

// takeBack makes a submitted input wait again: the agent is offline.
func (t *turns) takeBack(n int64) {
	in, ok := t.oob[n]
	switch {
	case ok:
		delete(t.oob, n)
	case t.running != nil && t.running.in.N == n:
		in = t.running.in
		t.endTurn()
	default:
		return
	}
	if t.running == nil || t.running.in.N != in.Joins {
		in.Joins = 0
	}
	t.enqueue(in)
	if t.Agent.Status(t.id).Online && !t.closing.Load() {
		// It was offline for a moment, and told so before the hub knew that it matters.
		t.retry.start(t, retryAfter, t.retryDue)
	}
}

// noteInput stores what became of an input, and tries again until it is stored. A later process would otherwise submit an
// input that the agent has, and wait for a turn that has ended.
func (t *turns) noteInput(b *batch, op func(*store.Tx) error, after func(error)) {
	b.do(op, func(err error) {
		if err != nil {
			t.unnoted = append(t.unnoted, op)
			t.retry.start(t, retryAfter, t.retryDue)
		}
		if after != nil {
			after(err)
		}
	})
}

// retryDue stores again what could not be stored, and submits the next input whether that succeeds or not.
func (t *turns) retryDue(b *batch) {
	b.flush()
	late := t.unnoted
	t.unnoted = nil
	for _, op := range late {
		t.noteInput(b, op, nil)
	}
	b.flush()
	b.then(t.next)
}

// submitted returns the input n if the agent has it, and nil otherwise.
func (t *turns) submitted(n int64) *agent.Input {
	if t.running != nil && t.running.in.N == n {
		return &t.running.in
	}
	if in, ok := t.oob[n]; ok {
		return &in
	}
	return nil
}

// alive notes a sign of life of the agent.
func (t *turns) alive() {
	if t.running != nil {
		t.running.sign = time.Now()
	}
}

// stop interrupts the running turn.
func (t *turns) stop() {
	if t.running != nil {
		t.Agent.Stop(t.id)
	}
}

// done ends a turn: messages without an end get one, the indicators go off, and the next input is submitted.
func (t *turns) done(b *batch, e agent.Done) {
	outcome := "done"
	if e.Interrupted {
		outcome = "interrupted"
	}
	t.Metrics.Turns.WithLabelValues(outcome).Inc()
	for _, st := range t.streams.own() {
		if st.say.N == e.N {
			t.streams.interrupt(b, st.say)
		}
	}
	t.noteInput(b, func(tx *store.Tx) error { return tx.TurnDone(e.N) }, func(err error) {
		delete(t.oob, e.N)
		if t.running != nil && t.running.in.N == e.N {
			t.endTurn()
			if err == nil {
				t.next()
			} else { // for the agent the turn has ended, or it was silent for too long: waiting inputs must not wait for ever
				t.retry.start(t, retryAfter, t.retryDue)
			}
		}
	})
}

func (t *turns) endTurn() {
	t.running = nil
	for i := range t.waiting {
		t.waiting[i].Joins = 0 // it was to join this turn and no other
	}
	t.idleTimeout.stop()
	t.rest()
}

// idleTimeoutDue ends a turn that had no sign of life for too long.
func (t *turns) idleTimeoutDue(b *batch) {
	if t.running == nil {
		return
	}
	until := t.running.sign.Add(t.IdleTimeout)
	for _, k := range t.cards.list { // a question may be answered until it expires
		if k.row.N == t.running.in.N && k.row.Expires.After(until) {
			until = k.row.Expires.Add(cardGrace)
		}
	}
	if wait := time.Until(until); wait > 0 {
		t.idleTimeout.start(t, min(wait, t.IdleTimeout), t.idleTimeoutDue) // a card may be answered long before it expires
		return
	}
	t.log.Warn("turn timed out", "device", t.id, "n", t.running.in.N)
	t.done(b, agent.Done{N: t.running.in.N, Interrupted: true})
}

// show sets avatar and typing as another device's conversation has them.
func (t *turns) show(avatar string, typing bool) {
	if t.avatar != avatar {
		t.avatar = avatar
		t.group.out.live(&frame.Avatar{State: avatar})
	}
	if t.typing != typing {
		t.typing = typing
		t.group.out.live(&frame.Typing{Stop: !typing})
	}
}

// indicate shows what the agent does.
func (t *turns) indicate(avatar string, typing bool) {
	t.resting.stop()
	t.show(avatar, typing || t.typing)
	t.pass()
}

// pass tells the participants what the agent does.
func (t *turns) pass() {
	if len(t.group.participants) > 0 {
		t.group.peers.passIndicators(t.group.participants, t.avatar, t.typing)
	}
}

// rest shows that the agent has stopped working.
func (t *turns) rest() {
	if t.typing {
		t.typing = false
		t.group.out.live(&frame.Typing{Stop: true})
	}
	defer t.pass()
	if t.group.out.conn == nil && len(t.group.participants) == 0 {
		t.avatar = avatarIdle
		return
	}
	t.resting.stop()
	t.resting.start(t, idleDelay, t.restingDue)
}

// restingDue shows the avatar's idle state, a second after the turn.
func (t *turns) restingDue(b *batch) {
	b.then(func() {
		if t.running == nil && !t.typing && t.avatar != avatarIdle {
			t.avatar = avatarIdle
			t.group.out.live(&frame.Avatar{State: avatarIdle})
			t.pass()
		}
	})
}

// speak shows that text of a turn has come.
func (t *turns) speak() {
	if t.running != nil && t.avatar != avatarSpeaking {
		t.indicate(avatarSpeaking, false)
	}
}

// work shows that the agent says it works. Outside of a turn this holds for a while only.
func (t *turns) work() {
	if t.running != nil {
		t.indicate(t.avatar, true)
		return
	}
	if t.avatar == avatarIdle {
		t.indicate(avatarThinking, true)
	} else {
		t.indicate(t.avatar, true)
	}
	t.working.stop()
	t.working.start(t, workingTimeout, func(b *batch) {
		b.then(func() {
			if t.running == nil {
				t.rest()
			}
		})
	})
}

// catchUp tells a connection that has caught up what the agent does.
func (t *turns) catchUp(c *conn) {
	if t.avatar != avatarIdle {
		c.send(&frame.Avatar{State: t.avatar})
	}
	if t.typing {
		c.send(&frame.Typing{})
	}
}

// disconnected is called when the live connection has ended.
func (t *turns) disconnected() {
	if t.resting.stop(); !t.typing {
		t.avatar = avatarIdle
	}
}

// unmirror forgets what the agent does in another device's conversation.
func (t *turns) unmirror() {
	if t.running == nil {
		t.typing, t.avatar = false, avatarIdle
	}
}
