package hub

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"hermes-mobile/frame"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/store"
)

// Devices of one user may share the conversation of one of them, the primary. The others, the
// participants, have joined it. The primary's session is the conversation: it has the turn, the
// cards and the waiting inputs. Every device keeps its own outbox, connection and acks. Messages
// from a participant are stored as inputs of the primary's conversation. Durable frames down are
// stored for all devices at once, and each session takes its own copy into its outbox, so that a
// crash at any moment leaves no device without them. Live frames are only passed on to the devices
// that are connected (mirror.go).

// group is a device's part in a shared conversation.
type group struct {
	*core
	out   *outbox
	peers peers

	participants []string        // that have joined this device's conversation
	primary      int64           // number of the device whose conversation this one has joined, 0 if none
	taken        int64           // shared entries were taken up to here
	resumed      int64           // cursor at which the live connection began
	cards        []*frame.Prompt // open cards of the primary, to be shown after the backlog
	given        []store.Notice  // entries that the live connection was given last
	retry        timer
}

// peers are the sessions of other devices.
type peers interface {
	// takeShared makes a device take what is stored for it.
	takeShared(device string)
	// regroup makes a device read with whom it shares a conversation.
	regroup(device string)
	// seen tells a device that another one of its conversation has shown messages to a person.
	seen(device string, ids []string, by string)
	// catchUp asks the primary how things stand, for a participant that has connected.
	catchUp(primary, participant string)

	// input submits a message of a participant, which is stored, to the primary's conversation.
	input(primary string, in agent.Input, offline bool, participant string)
	// answer has the primary's conversation answer one of its cards.
	answer(primary string, c *conn, f *frame.Answer, device int64, by frame.Peer)
	// stop interrupts the running turn of the primary's conversation.
	stop(primary string)
	// waits returns the counts of the inputs that wait in a conversation, nil if its session is not
	// in memory.
	waits(device string) *waits

	// What follows is passed on to devices whose session is in memory.
	passStep(devices []string, s agent.Say)
	passIndicators(devices []string, avatar string, typing bool)
	passTool(devices []string, f *frame.Tool)
}

// maxParticipants bounds the devices that may join one conversation.
const maxParticipants = 16

// maxGiven bounds the entries that a group remembers after the connection was given them.
const maxGiven = 64

func (g *group) idle() bool { return !g.retry.running() }
func (g *group) close()     { g.retry.stop() }

// load reads who has joined this conversation, and the primary of the one that this device has
// joined.
func (g *group) load(conversation string) error {
	g.participants, g.primary = nil, 0
	if !g.sharing.Load() {
		return nil
	}
	participants, err := g.store.Members(g.ctx, g.id)
	if err != nil {
		return err
	}
	g.participants = participants
	if conversation == "" {
		return nil
	}
	primary, err := g.store.Device(g.ctx, conversation)
	if err != nil || primary == nil {
		return errors.Join(err, ErrUnknownDevice)
	}
	g.primary = primary.N
	return nil
}

// unload forgets everything.
func (g *group) unload() {
	g.participants, g.primary, g.taken, g.resumed, g.cards = nil, 0, 0, 0, nil
}

// joined reports whether the device takes part in the conversation of another.
func (g *group) joined() bool { return g.dev.Conversation != "" }

// shares reports whether several devices share the conversation.
func (g *group) shares() bool { return g.joined() || len(g.participants) > 0 }

// reflects reports whether the device shows the conversation of another now.
func (g *group) reflects() bool { return g.out.conn != nil && g.joined() }

// conversation returns the number of the device whose conversation this one takes part in.
func (g *group) conversation() int64 {
	if g.joined() {
		return g.primary
	}
	return g.dev.N
}

// part tells those who shared something with the device that they no longer do. It must be called
// after Tx.Part.
func (g *group) part() {
	for _, id := range g.participants {
		g.peers.regroup(id)
	}
	if g.joined() {
		g.peers.regroup(g.dev.Conversation)
	}
	g.participants, g.primary, g.dev.Conversation = nil, 0, ""
}

// append is outbox.append for an entry that all devices of the conversation get.
func (g *group) append(b *batch, e *entry, op func(*store.Tx) error, after func(error)) {
	if len(g.participants) == 0 {
		g.out.append(b, e, op, after)
		return
	}
	share := g.share(e)
	g.out.append(b, e, func(tx *store.Tx) error {
		if err := share(tx); err != nil || op == nil {
			return err
		}
		return op(tx)
	}, func(err error) {
		if err == nil {
			g.wake("")
		}
		if after != nil {
			after(err)
		}
	})
}

// share returns what stores an entry for all other devices of the conversation.
func (g *group) share(e *entry) func(*store.Tx) error {
	body, err := json.Marshal(e)
	if err != nil {
		panic(fmt.Sprintf("hub: encode shared entry: %v", err))
	}
	conversation, self := g.dev.Talks(), g.dev.N
	return func(tx *store.Tx) error { return tx.Share(conversation, self, e.kind(), body, e.Hash) }
}

// wake makes the participants take what is stored for them.
func (g *group) wake(except string) {
	for _, id := range g.participants {
		if id != except {
			g.peers.takeShared(id)
		}
	}
}

// sharedRows bounds the entries of one read.
const sharedRows = 32

// take puts what is stored for this device into its outbox.
func (g *group) take(b *batch) {
	b.flush()
	if g.dev == nil {
		return
	}
	rows, err := g.store.Shared(g.ctx, g.dev.N, g.taken, sharedRows)
	if err != nil {
		g.storeFailed("read shared entries", err)
		g.retry.start(g, retryAfter, g.take)
		return
	}
	for _, row := range rows {
		n := row.N
		take := func(tx *store.Tx) error { return tx.TakeShared(n) }
		g.taken = n
		e, err := readEntry(row.Body)
		if err != nil {
			g.log.Error("shared entry corrupt", "device", g.id, "err", err)
			b.do(take, nil)
			continue
		}
		if e.Done != nil {
			g.cards = slices.DeleteFunc(g.cards, func(p *frame.Prompt) bool { return p.ID == e.Done.ID })
		}
		g.out.observer.beforeTaking(e)
		g.out.append(b, e, take, func(err error) {
			if err != nil { // read it again
				g.taken = min(g.taken, n-1)
				g.retry.start(g, retryAfter, g.take)
			}
		})
	}
	b.flush() // its failure must not fail other events
	if len(rows) == sharedRows {
		g.run(g.take)
	}
}

// connected is called when a connection has become the live one, with everything up to seq.
func (g *group) connected(seq int64) { g.resumed, g.cards = seq, nil }

// disconnected is called when the live connection has ended.
func (g *group) disconnected() { g.given = nil }

// show notes which cards are open in the primary's conversation, and shows those that the backlog
// did not bring.
func (g *group) show(b *batch, open []*frame.Prompt) {
	b.flush()
	if g.dev == nil || !g.reflects() || len(open) == 0 {
		return
	}
	rows, err := g.store.OutboxCards(g.ctx, g.dev.N)
	if err != nil {
		g.storeFailed("look up cards", err)
		return
	}
	for _, p := range open {
		again := *p
		brought := false // by the replay
		for _, row := range rows {
			if shown := readPrompt(row.Body); shown != nil && shown.ID == p.ID {
				again.Seq, brought = row.Seq, row.Seq > g.resumed
			}
		}
		if !brought {
			g.cards = append(g.cards, &again)
		}
	}
	if !g.out.lagging {
		g.showCards()
	}
}

// showCards shows the open cards of the primary's conversation that the backlog did not bring.
func (g *group) showCards() {
	for _, p := range g.cards {
		p.TimeoutSeconds = secondsLeft(p.ExpiresAt)
		g.out.conn.send(p)
	}
	g.cards = nil
}

// noteGiven remembers an entry that the connection was given, until a person has seen it. The
// outbox forgets it earlier.
func (g *group) noteGiven(e *entry) {
	if g.Push == nil || !g.shares() {
		return
	}
	n := store.Notice{Seq: e.seq}
	switch {
	case e.Message != nil:
		n.ID = e.Message.ID
	case e.Media != nil:
		n.ID = e.Media.ID
	default:
		return // a card needs no attention once it is decided
	}
	if g.given = append(g.given, n); len(g.given) > maxGiven {
		g.given = slices.Delete(g.given, 0, 1)
	}
}

// tellSeen tells the other devices of the conversation that this one has shown its entries up to
// seq to a person.
func (g *group) tellSeen(seq int64) {
	var ids []string
	g.given = slices.DeleteFunc(g.given, func(n store.Notice) bool {
		if n.Seq <= seq {
			ids = append(ids, n.ID)
		}
		return n.Seq <= seq
	})
	switch {
	case len(ids) == 0:
	case g.joined():
		g.peers.seen(g.dev.Conversation, ids, g.id)
	default:
		g.passSeen(ids, g.id)
	}
}

// passSeen tells the participants, if the device is their primary.
func (g *group) passSeen(ids []string, by string) {
	for _, id := range g.participants {
		if id != by {
			g.peers.seen(id, ids, by)
		}
	}
}
