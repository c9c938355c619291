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

// card is a question that is open, or decided while the agent does not know it yet.
type card struct {
	agent.Card
	row   store.Card
	again bool // to be shown after the backlog: the device saw it on an earlier connection
	told  bool // the agent is being told the decision
	timer *time.Timer
}

// readCard reads a stored card.
func readCard(row store.Card) (*card, error) {
	k := &card{row: row}
	if err := json.Unmarshal(row.Body, &k.Card); err != nil {
		return nil, fmt.Errorf("read card: %w", err)
	}
	return k, nil
}

func (s *session) loadCard(row store.Card) error {
	k, err := readCard(row)
	if err != nil {
		return err
	}
	s.cards = append(s.cards, k)
	s.watch(k)
	return nil
}

// watch arms the expiry of an open card.
func (s *session) watch(k *card) {
	if k.row.State == store.CardOpen {
		id := k.ID
		k.timer = time.AfterFunc(max(0, time.Until(k.row.Expires)), func() { s.hub.post(s.id, expired{id}) })
	}
}

func (s *session) card(id string) *card {
	for _, k := range s.cards {
		if k.ID == id {
			return k
		}
	}
	return nil
}

// drop forgets a card that is settled.
func (s *session) drop(id string) {
	for i, k := range s.cards {
		if k.ID == id {
			stop(&k.timer)
			s.cards = append(s.cards[:i:i], s.cards[i+1:]...)
			return
		}
	}
}

// prompt is the card as a frame.
func (k *card) prompt() *frame.Prompt {
	p := &frame.Prompt{ID: k.ID, Kind: k.Kind, Text: k.Text, Command: k.Command, Description: k.Description,
		ExpiresAt: k.row.Expires.UTC().Add(time.Second - 1).Truncate(time.Second)} // rounded up
	for _, o := range k.Options {
		p.Options = append(p.Options, frame.Option(o))
	}
	p.Odd = k.Cut || frame.Odd(p)
	return p
}

// maxCardLife bounds what an agent may ask for.
const maxCardLife = 30 * 24 * time.Hour

// ask shows a card of the agent.
func (s *session) ask(b *batch, c agent.Card) {
	if s.card(c.ID) != nil { // asked already; a second row of its id would fail everything it is stored with
		return
	}
	life := c.Life
	if life <= 0 {
		life = s.hub.PromptLife
	}
	life = min(life, maxCardLife)
	body, err := json.Marshal(c)
	if err != nil {
		panic(fmt.Sprintf("hub: encode a card: %v", err))
	}
	k := &card{Card: c, row: store.Card{ID: c.ID, Device: s.dev.N, N: c.N, Seq: s.seq + 1, Body: body, Expires: time.Now().Add(life)}}
	p := k.prompt()
	p.Session = s.dev.Session()
	s.cards = append(s.cards, k) // now, for a later event of the same post may close it
	s.watch(k)
	s.appendAll(b, &entry{Prompt: p}, func(tx *store.Tx) error { return tx.AddCard(k.row) }, func(err error) {
		if err != nil {
			s.drop(c.ID)
			return
		}
		s.hub.Metrics.Cards.WithLabelValues("asked").Inc()
	})
}

// safe is the value that stands for an invented option and for no answer in time; empty where a kind has none.
func safe(kind string) string {
	switch kind {
	case frame.ExecApproval:
		return frame.DenyOption
	case frame.SlashConfirm:
		return frame.CancelOption
	}
	return ""
}

// choice works out what an answer means on a card.
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
	if v := safe(k.Kind); v != "" {
		return agent.Answer{OptionID: v}, nil
	}
	return bad("the card has no such option: choose one of its option ids")
}

// answer decides a card. Exactly one answer counts; a later one is told what was decided.
func (s *session) answer(b *batch, e *received, f *frame.Answer) {
	b.flush()
	if s.seen(b, e, f.ID) {
		return
	}
	if s.joined() && s.card(f.PromptID) == nil {
		row, found, err := s.hub.store.Card(s.hub.ctx, f.PromptID)
		switch {
		case err != nil:
			s.hub.storeFailed("look a card up", err)
			e.fail(s, err)
			return
		case found && row.Device == s.lead:
			s.hub.post(s.dev.Conversation, &answered{e: e, f: f, member: s.peer(), device: s.dev.N})
			return
		}
	}
	s.take(b, e, f, s.dev.N, s.peer())
}

// take takes the answer that a device of the conversation gave to one of its cards.
func (s *session) take(b *batch, e *received, f *frame.Answer, device int64, by frame.Peer) {
	k := s.card(f.PromptID)
	if k == nil || k.row.State != store.CardOpen {
		s.late(b, e, f, device)
		return
	}
	choice, refusal := k.choice(f)
	if refusal != nil {
		e.c.send(refusal)
		return
	}
	s.decide(b, k, choice, &by, func(tx *store.Tx) error {
		if f.ID == "" {
			return nil
		}
		_, _, err := tx.Accept(device, f.ID, store.Done, nil, "", time.Now())
		return err
	}, func(err error) {
		switch {
		case errors.Is(err, errDecided):
			s.hub.post(s.id, &overruled{id: k.ID, then: func(b *batch) { s.late(b, e, f, device) }})
			return
		case errors.Is(err, store.ErrTooNew): // it became so meanwhile
			e.c.send(tooNew(s.hub.AnswerWait, ref(f)))
			return
		case err != nil:
			e.fail(s, err)
			return
		}
		s.hub.Metrics.Cards.WithLabelValues("answered").Inc()
		if f.ID != "" {
			e.c.send(&frame.Accepted{ID: f.ID})
		}
		s.tellDecisions()
	})
}

// errDecided: the card was decided before, whatever this session knew of it.
var errDecided = errors.New("the card was decided before")

// decide stores the decision of an open card with its prompt_done. by is who decided, nil if that was no device. The store has the last
// word: it is errDecided where the card was decided before, and the caller posts overruled then. It is store.ErrTooNew where that device
// may not answer yet.
func (s *session) decide(b *batch, k *card, a agent.Answer, by *frame.Peer, op func(*store.Tx) error, after func(error)) {
	stop(&k.timer)
	who, allowed, now := "", none, time.Now()
	if by != nil {
		id := by.ID
		allowed = func(tx *store.Tx) error { return tx.MayAnswer(id, now) }
	}
	if len(s.members) == 0 {
		by = nil
	} else if by != nil {
		who = by.ID
	}
	k.row.State, k.row.OptionID, k.row.Text, k.row.Expired = store.CardDecided, a.OptionID, a.Text, a.Expired
	s.appendAll(b, &entry{Done: &frame.PromptDone{PromptID: k.ID, ID: k.ID, OptionID: a.OptionID, Expired: a.Expired, By: by}}, func(tx *store.Tx) error {
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
		case errors.Is(err, errDecided):
			k.told = true // nobody is told what did not become the decision
		case err != nil && s.card(k.ID) == k: // it stays open, unless it was asked in the same batch
			k.row.State = store.CardOpen
			s.watch(k)
		}
		after(err)
	})
}

// overruled: the store has another decision of a card than this session meant to make.
type overruled struct {
	id   string
	then func(*batch) // nil, or what is to be done when the session knows the decision
}

func (e *overruled) apply(s *session, b *batch) {
	b.flush()
	if k := s.card(e.id); s.dev != nil && k != nil {
		s.adopt(b, k)
	}
	if e.then != nil {
		e.then(b)
	}
}

// adopt makes the decision that the store has the one that devices and the agent are told. Nothing may be waiting in b.
func (s *session) adopt(b *batch, k *card) {
	stop(&k.timer)
	row, found, err := s.hub.store.Card(s.hub.ctx, k.ID)
	switch {
	case err != nil:
		s.hub.storeFailed("look a card up", err)
		k.row.State, k.told = store.CardOpen, false // the next answer, or the end of its time, tries again
		s.watch(k)
		return
	case !found:
		s.drop(k.ID)
		return
	}
	k.row, k.told = row, false
	if row.State == store.CardSettled {
		s.drop(k.ID)
	}
	s.appendAll(b, &entry{Done: &frame.PromptDone{PromptID: k.ID, ID: k.ID, OptionID: row.OptionID, Expired: row.Expired, By: s.decidedBy(row)}}, nil, func(error) {
		s.tellDecisions() // what was lost here a device learns with its next answer
	})
}

// late answers an answer to a card that is decided, unknown, or another device's.
func (s *session) late(b *batch, e *received, f *frame.Answer, device int64) {
	row, found, err := s.hub.store.Card(s.hub.ctx, f.PromptID)
	if err != nil {
		s.hub.storeFailed("look a card up", err)
		e.fail(s, err)
		return
	}
	if found && row.Device != s.dev.N {
		e.c.send(&frame.Error{Code: frame.Forbidden, Message: "this card was shown to another device, which alone may answer it", Ref: ref(f)})
		return
	}
	done := &frame.PromptDone{PromptID: f.PromptID, ID: f.PromptID, OptionID: row.OptionID, Expired: !found || row.Expired, By: s.decidedBy(row)}
	if !s.remembers(f.ID) {
		e.c.send(done)
		if f.ID != "" {
			e.c.send(&frame.Accepted{ID: f.ID})
		}
		return
	}
	size := s.countID(f.ID)
	b.do(func(tx *store.Tx) error {
		if _, _, err := tx.Accept(device, f.ID, store.Done, nil, "", time.Now()); err != nil {
			return err
		}
		return size.save(tx)
	}, func(err error) {
		if err != nil {
			size.undo()
			e.fail(s, err)
			return
		}
		e.c.send(done)
		e.c.send(&frame.Accepted{ID: f.ID})
	})
}

// decidedBy is the device that answered a card of a shared conversation, nil if none did.
func (s *session) decidedBy(row store.Card) *frame.Peer {
	if row.By == "" {
		return nil
	}
	by := &frame.Peer{ID: row.By}
	if dev, err := s.hub.store.Device(s.hub.ctx, row.By); err == nil && dev != nil {
		by.Name = dev.Name
	}
	return by
}

// expired: nobody answered a card in time.
type expired struct{ id string }

func (e expired) apply(s *session, b *batch) {
	b.flush()
	k := s.card(e.id)
	if s.dev == nil || k == nil || k.row.State != store.CardOpen {
		return
	}
	s.decide(b, k, agent.Answer{OptionID: safe(k.Kind), Expired: true}, nil, none, func(err error) {
		if errors.Is(err, errDecided) {
			s.hub.post(s.id, &overruled{id: k.ID})
		}
		if err == nil {
			s.hub.Metrics.Cards.WithLabelValues("expired").Inc()
			s.tellDecisions()
		}
	})
}

func none(*store.Tx) error { return nil }

// closeCard: the agent decided by itself, or waits no longer.
func (s *session) closeCard(b *batch, e agent.CloseCard) {
	k := s.card(e.ID) // without a flush: a post is one transaction
	if k == nil || k.row.State != store.CardOpen {
		return
	}
	if row, found, err := s.hub.store.Card(s.hub.ctx, e.ID); err == nil && found && row.State != store.CardOpen { // what else the agent posted is stored
		k.told = true
		s.hub.post(s.id, &overruled{id: e.ID})
		return
	}
	k.told = true // by itself
	s.decide(b, k, agent.Answer{OptionID: e.OptionID, Expired: e.Expired}, nil, func(tx *store.Tx) error { return tx.Settle(e.ID) }, func(err error) {
		switch {
		case err == nil:
			s.hub.Metrics.Cards.WithLabelValues("closed").Inc()
			s.drop(e.ID)
		case errors.Is(err, errDecided):
			s.hub.post(s.id, &overruled{id: e.ID})
		default:
			k.told = false
		}
	})
}

// tellDecisions tells the agent how cards were decided, while it is there.
func (s *session) tellDecisions() {
	if s.dev == nil || !s.hub.Agent.Status(s.id).Online {
		return
	}
	for _, k := range s.cards {
		if k.row.State != store.CardDecided || k.told {
			continue
		}
		k.told = true
		id := k.ID
		s.hub.Agent.Answer(k.Card, agent.Answer{OptionID: k.row.OptionID, Text: k.row.Text, Expired: k.row.Expired}, func(err error) {
			s.hub.post(s.id, settled{id: id, err: err})
		})
	}
}

// settled: the agent said whether it knows a decision.
type settled struct {
	id  string
	err error
}

func (e settled) apply(s *session, b *batch) {
	k := s.card(e.id)
	if k == nil {
		return
	}
	if e.err != nil {
		k.told = false // told again when the agent is back
		s.again()
		return
	}
	if s.turn != nil {
		s.turn.sign = time.Now()
	}
	b.do(func(tx *store.Tx) error { return tx.Settle(e.id) }, func(err error) {
		if err == nil {
			s.drop(e.id)
		}
	})
}
