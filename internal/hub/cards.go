package hub

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/store"
)

// card is a question that is open, or decided while the agent does not know the decision yet.
type card struct {
	agent.Card
	row     store.Card
	again   bool // to be shown after the backlog: the device saw it on an earlier connection
	telling bool // the agent is being told the decision
	expiry  timer
}

// readCard reads a stored card.
func readCard(row store.Card) (*card, error) {
	k := &card{row: row}
	if err := json.Unmarshal(row.Body, &k.Card); err != nil {
		return nil, fmt.Errorf("read card %s: %w", row.ID, err)
	}
	return k, nil
}

func (k *card) open() bool { return k.row.State == store.CardOpen }

// prompt returns the card as a frame.
func (k *card) prompt() *frame.Prompt {
	p := &frame.Prompt{ID: k.ID, Kind: k.Kind, Text: k.Text, Command: k.Command, Description: k.Description,
		ExpiresAt: k.row.Expires.UTC().Add(time.Second - 1).Truncate(time.Second)} // rounded up
	for _, o := range k.Options {
		p.Options = append(p.Options, frame.Option(o))
	}
	p.Odd = k.Cut || frame.Odd(p)
	return p
}

// safeOption is the option that stands for an unknown option and for no answer in time; empty if a kind has none.
func safeOption(kind string) string {
	switch kind {
	case frame.ExecApproval:
		return frame.DenyOption
	case frame.SlashConfirm:
		return frame.CancelOption
	}
	return ""
}

// choice returns what an answer means on the card.
func (k *card) choice(f *frame.Answer) (agent.Answer, *frame.Error) {
	bad := func(message string) (agent.Answer, *frame.Error) {
		return agent.Answer{}, &frame.Error{Code: frame.BadFrame, Message: message, Ref: ref(f)}
	}
	other := k.Kind == frame.Clarify && (f.OptionID == frame.OtherOption || f.OptionID == "" && f.Text != "")
	switch {
	case other && f.Text == "":
		return bad("send your own answer in \"text\" along with option_id other")
	case other:
		return agent.Answer{OptionID: frame.OtherOption, Text: f.Text}, nil
	case f.OptionID == "":
		return bad("choose one of the card's options by its option_id")
	}
	for _, o := range k.Options {
		if o.ID == f.OptionID {
			return agent.Answer{OptionID: f.OptionID}, nil
		}
	}
	if v := safeOption(k.Kind); v != "" {
		return agent.Answer{OptionID: v}, nil
	}
	return bad("the card has no such option: choose one of its option ids")
}

// maxCardLife bounds the time limit that an agent may ask for.
const maxCardLife = 30 * 24 * time.Hour

// cards are the cards of one conversation that are open, or decided while the agent does not know it.
//
// The store decides: whoever commits the first decision of a card wins, and everyone else hears that one. See decide.
type cards struct {
	*core
	group *group
	alive func() // is called at a sign of life of the agent

	list  []*card
	retry timer
}

func (c *cards) idle() bool { return len(c.list) == 0 && !c.retry.running() }

// close stops the timers.
func (c *cards) close() {
	c.retry.stop()
	for _, k := range c.list {
		k.expiry.stop()
	}
}

// reset forgets all cards.
func (c *cards) reset() {
	c.close()
	c.list = nil
}

func (c *cards) load(row store.Card) error {
	k, err := readCard(row)
	if err != nil {
		return err
	}
	c.list = append(c.list, k)
	c.watch(k)
	return nil
}

func (c *cards) find(id string) *card {
	for _, k := range c.list {
		if k.ID == id {
			return k
		}
	}
	return nil
}

// drop forgets a card whose decision the agent has acknowledged.
func (c *cards) drop(id string) {
	for i, k := range c.list {
		if k.ID == id {
			k.expiry.stop()
			c.list = append(c.list[:i:i], c.list[i+1:]...)
			return
		}
	}
}

// ofTurn returns the cards of a turn that are not acknowledged.
func (c *cards) ofTurn(n int64) (list []agent.Card) {
	for _, k := range c.list {
		if k.row.N == n {
			list = append(list, k.Card)
		}
	}
	return list
}

// openPrompts returns the open cards as frames.
func (c *cards) openPrompts() (list []*frame.Prompt) {
	for _, k := range c.list {
		if k.open() {
			p := k.prompt()
			p.Session = c.dev.Session()
			list = append(list, p)
		}
	}
	return list
}

// connected notes which open cards a replay after seq does not bring.
func (c *cards) connected(seq int64) {
	for _, k := range c.list {
		if k.open() {
			k.again = k.row.Seq <= seq
		}
	}
}

// given notes that the connection was given a card.
func (c *cards) given(id string) {
	if k := c.find(id); k != nil {
		k.again = false
	}
}

// showAgain shows the open cards that the backlog did not bring.
func (c *cards) showAgain(conn *conn) {
	for _, k := range c.list {
		if k.again {
			k.again = false
			p := k.prompt()
			p.Session, p.Seq, p.TimeoutSeconds = c.dev.Session(), k.row.Seq, secondsLeft(p.ExpiresAt)
			conn.send(p)
		}
	}
}

// watch arms the expiry of an open card.
func (c *cards) watch(k *card) {
	if k.open() {
		k.expiry.start(c, time.Until(k.row.Expires), func(b *batch) { c.expire(b, k.ID) })
	}
}

// ask shows a card of the agent.
func (c *cards) ask(b *batch, ask agent.Card) {
	if c.find(ask.ID) != nil { // shown already; a second row of its id would fail everything it is stored with
		return
	}
	life := ask.Life
	if life <= 0 {
		life = c.PromptLife
	}
	life = min(life, maxCardLife)
	body, err := json.Marshal(ask)
	if err != nil {
		panic(fmt.Sprintf("hub: encode card: %v", err))
	}
	k := &card{Card: ask, row: store.Card{ID: ask.ID, Device: c.dev.N, N: ask.N, Seq: c.group.out.seq + 1, Body: body, Expires: time.Now().Add(life)}}
	p := k.prompt()
	p.Session = c.dev.Session()
	c.list = append(c.list, k) // now, because a later event of the same post may close it
	c.watch(k)
	c.group.append(b, &entry{Prompt: p}, func(tx *store.Tx) error { return tx.AddCard(k.row) }, func(err error) {
		if err != nil {
			c.drop(ask.ID)
			return
		}
		c.Metrics.Cards.WithLabelValues("asked").Inc()
	})
}

// verdict is what became of a decision.
type verdict struct {
	first bool  // it counts; otherwise the card was decided before, and the session knows how
	err   error // nothing was decided: the store failed, or ErrTooNew
}

// decide proposes a decision of an open card. by is the device that decides, nil if none does. op is stored along with the
// decision. done is called with the verdict, in the session.
//
// The decision is one conditional update of the store. If it changes the row, this is the decision, and it is stored
// together with its prompt_done. If another decision was stored before, the session adopts that one and tells it to the
// devices and the agent. The verdict is store.ErrTooNew if the device may not answer yet.
func (c *cards) decide(b *batch, k *card, a agent.Answer, by *frame.Peer, op func(*store.Tx) error, done func(b *batch, v verdict)) {
	k.expiry.stop()
	who, allowed, now := "", none, time.Now()
	if by != nil {
		id := by.ID
		allowed = func(tx *store.Tx) error { return tx.MayAnswer(id, now) }
	}
	if len(c.group.participants) == 0 {
		by = nil
	} else if by != nil {
		who = by.ID
	}
	k.row.State, k.row.OptionID, k.row.Text, k.row.Expired = store.CardDecided, a.OptionID, a.Text, a.Expired
	c.group.append(b, &entry{Done: &frame.PromptDone{PromptID: k.ID, ID: k.ID, OptionID: a.OptionID, Expired: a.Expired, By: by}}, func(tx *store.Tx) error {
		if err := allowed(tx); err != nil {
			return err
		}
		first, err := tx.Decide(k.ID, a.OptionID, a.Text, a.Expired, who)
		if err != nil {
			return err
		}
		if !first {
			return errDecided
		}
		return op(tx)
	}, func(err error) {
		switch {
		case err == nil:
			done(b, verdict{first: true})
		case errors.Is(err, errDecided):
			k.telling = true // until the stored decision is known
			c.adoptLater(k.ID, func(b *batch) { done(b, verdict{}) })
		default:
			if c.find(k.ID) == k { // it stays open, unless it was asked in the same batch
				k.row.State = store.CardOpen
				c.watch(k)
			}
			done(b, verdict{err: err})
		}
	})
}

// adoptLater adopts the stored decision of a card with the next event, then calls done, which may be nil.
func (c *cards) adoptLater(id string, done func(*batch)) {
	c.run(func(b *batch) {
		b.flush()
		if k := c.find(id); c.dev != nil && k != nil {
			c.adopt(b, k)
		}
		if done != nil {
			done(b)
		}
	})
}

// adopt tells the devices and the agent the decision of a card that the store has. b must be empty.
func (c *cards) adopt(b *batch, k *card) {
	k.expiry.stop()
	row, found, err := c.store.Card(c.ctx, k.ID)
	switch {
	case err != nil:
		c.storeFailed("look up a card", err)
		k.row.State, k.telling = store.CardOpen, false // the next answer, or the expiry, tries again
		c.watch(k)
		return
	case !found:
		c.drop(k.ID)
		return
	}
	k.row, k.telling = row, false
	if row.State == store.CardSettled {
		c.drop(k.ID)
	}
	c.group.append(b, &entry{Done: &frame.PromptDone{PromptID: k.ID, ID: k.ID, OptionID: row.OptionID, Expired: row.Expired, By: c.decidedBy(row)}}, nil, func(error) {
		c.tell() // a device that misses this entry learns the decision with its next answer
	})
}

// decidedBy returns the device that answered a card of a shared conversation, nil if none did.
func (c *cards) decidedBy(row store.Card) *frame.Peer {
	if row.By == "" {
		return nil
	}
	by := &frame.Peer{ID: row.By}
	if dev, err := c.store.Device(c.ctx, row.By); err == nil && dev != nil {
		by.Name = dev.Name
	}
	return by
}

// expire decides a card that nobody answered in time.
func (c *cards) expire(b *batch, id string) {
	b.flush()
	k := c.find(id)
	if c.dev == nil || k == nil || !k.open() {
		return
	}
	c.decide(b, k, agent.Answer{OptionID: safeOption(k.Kind), Expired: true}, nil, none, func(_ *batch, v verdict) {
		if v.first {
			c.Metrics.Cards.WithLabelValues("expired").Inc()
			c.tell()
		}
	})
}

// closeByAgent decides a card that the agent has decided by itself, or waits for no longer.
func (c *cards) closeByAgent(b *batch, e agent.CloseCard) {
	k := c.find(e.ID) // without a flush: a post is one transaction
	if k == nil || !k.open() {
		return
	}
	k.telling = true                                                                                      // the agent knows it
	if row, found, err := c.store.Card(c.ctx, e.ID); err == nil && found && row.State != store.CardOpen { // the rest of the agent's post is stored
		c.adoptLater(e.ID, nil)
		return
	}
	settle := func(tx *store.Tx) error { return tx.Settle(e.ID) }
	c.decide(b, k, agent.Answer{OptionID: e.OptionID, Expired: e.Expired}, nil, settle, func(_ *batch, v verdict) {
		switch {
		case v.first:
			c.Metrics.Cards.WithLabelValues("closed").Inc()
			c.drop(e.ID)
		case v.err != nil:
			k.telling = false
		}
	})
}

// tell tells the agent the decisions that it does not know, while it is online.
func (c *cards) tell() {
	if c.dev == nil || !c.Agent.Status(c.id).Online {
		return
	}
	for _, k := range c.list {
		if k.row.State != store.CardDecided || k.telling {
			continue
		}
		k.telling = true
		id := k.ID
		c.Agent.Answer(k.Card, agent.Answer{OptionID: k.row.OptionID, Text: k.row.Text, Expired: k.row.Expired}, func(err error) {
			c.run(func(b *batch) { c.acked(b, id, err) })
		})
	}
}

// acked is called when the agent has acknowledged a decision, or could not take it.
func (c *cards) acked(b *batch, id string, err error) {
	k := c.find(id)
	if k == nil {
		return
	}
	if err != nil {
		k.telling = false // it is told again when the agent is back
		if c.Agent.Status(c.id).Online && !c.closing.Load() {
			c.retry.start(c, retryAfter, func(b *batch) { b.then(c.tell) })
		}
		return
	}
	c.alive()
	b.do(func(tx *store.Tx) error { return tx.Settle(id) }, func(err error) {
		if err == nil {
			c.drop(id)
		}
	})
}
