package store

import (
	"context"
	"database/sql"
	"time"
)

// CardState is the progress of a card.
type CardState int

// A card is open, then decided, then acknowledged: the agent knows the decision.
const (
	CardOpen CardState = iota
	CardDecided
	CardSettled
)

// Card is a question and its decision.
type Card struct {
	ID       string
	Device   int64
	N        int64 // the message whose turn asks; 0: none
	Seq      int64
	Body     []byte
	Expires  time.Time
	State    CardState
	OptionID string
	Text     string
	Expired  bool
	By       string // id of the device that answered; empty: the agent, nobody, or the only device of the conversation
}

// AddCard stores an open card.
func (t *Tx) AddCard(c Card) error {
	return t.must("card.add", c.ID, c.Device, c.N, c.Seq, c.Body, c.Expires.UnixMilli())
}

// Decide decides an open card. If it was already decided, first is false and nothing changes.
func (t *Tx) Decide(id, optionID, text string, expired bool, by string) (first bool, err error) {
	changed, _, err := t.exec("card.decide", optionID, text, expired, by, id)
	return changed > 0, err
}

// Settle records that the agent knows the decision.
func (t *Tx) Settle(id string) error { return t.must("card.settle", id) }

// Unsettle records that the agent doesn't know it after all.
func (t *Tx) Unsettle(id string) error { return t.must("card.unsettle", id) }

func (s *Store) cards(ctx context.Context, name string, args ...any) ([]Card, error) {
	var list []Card
	err := s.rows(ctx, name, func(r *sql.Rows) error {
		var c Card
		var expires int64
		err := r.Scan(&c.ID, &c.Device, &c.N, &c.Seq, &c.Body, &expires, &c.State, &c.OptionID, &c.Text, &c.Expired, &c.By)
		c.Expires = time.UnixMilli(expires)
		list = append(list, c)
		return err
	}, args...)
	return list, err
}

// Card returns the card with an id. ok is false if there is none.
func (s *Store) Card(ctx context.Context, id string) (c Card, ok bool, err error) {
	list, err := s.cards(ctx, "card.id", id)
	if err != nil || len(list) == 0 {
		return Card{}, false, err
	}
	return list[0], true, nil
}

// Cards returns the cards of a device that aren't acknowledged, oldest first.
func (s *Store) Cards(ctx context.Context, device int64) ([]Card, error) {
	return s.cards(ctx, "card.live", device)
}
