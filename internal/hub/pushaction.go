package hub

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/store"
)

// A notification of an approval may hold a token for each option, with which the device answers the card without saying
// hello. A token is good for that device, card and option, until the card expires, and since exactly one answer counts, once.

// Reasons why a token decides nothing.
var (
	ErrActionForged  = errors.New("this button does not belong to a notification of this server")
	ErrActionExpired = errors.New("the time for an answer is over: open the app to see what became of the question")
	ErrActionRefused = errors.New("this device may not answer the question any more: open the app to see what is wrong")
	// ErrActionUnread: the notification could not show all that the option allows.
	ErrActionUnread = errors.New("a notification cannot show all of this question: open the app to read and answer it")
	ErrActionTooNew = errors.New("this device is new and may not answer questions for its first minute: try again then, or answer on another device")
)

// actionToken is what the token of an option says.
type actionToken struct {
	Device  string `json:"d"`
	Card    string `json:"c"`
	Option  string `json:"o"`
	Expires int64  `json:"e"` // unix seconds
}

// offered are the options of an approval or confirmation that a notification may choose: the safe one and, where the
// notification shows the whole question as it is, those that let the agent do something.
func offered(p *frame.Prompt) (list []frame.Option) {
	if safe(p.Kind) == "" {
		return nil
	}
	_, all := question(p)
	for _, o := range p.Options {
		label := clip(frame.Visible(o.Label).String(), maxTitle)
		if frame.Grants(p.Kind, o.ID) && !(all && label == o.Label) {
			continue
		}
		o.Label = label
		list = append(list, o)
	}
	return list
}

// actions makes the tokens for the options that a notification of a card may choose.
func (s *session) actions(p *frame.Prompt) (list []noticeAction) {
	for _, o := range offered(p) {
		token := s.hub.sign(actionToken{s.id, p.ID, o.ID, p.ExpiresAt.Unix()})
		list = append(list, noticeAction{o.ID, o.Label, token})
	}
	return list
}

func (h *Hub) sign(t actionToken) string {
	text, err := json.Marshal(t)
	if err != nil {
		panic(fmt.Sprintf("hub: encode a token: %v", err)) // strings and numbers only
	}
	return base64.RawURLEncoding.EncodeToString(text) + "." + base64.RawURLEncoding.EncodeToString(h.mac(text))
}

func (h *Hub) mac(text []byte) []byte {
	m := hmac.New(sha256.New, h.PushActions)
	m.Write([]byte("hermes-mobile push action\n"))
	m.Write(text)
	return m.Sum(nil)
}

func (h *Hub) verify(token string, now time.Time) (t actionToken, err error) {
	head, tail, _ := strings.Cut(token, ".")
	text, err1 := base64.RawURLEncoding.Strict().DecodeString(head)
	sum, err2 := base64.RawURLEncoding.Strict().DecodeString(tail)
	// Strict, the decoder still passes over line ends: a token has one form only.
	if err1 != nil || err2 != nil || strings.ContainsAny(token, "\r\n") || h.PushActions == nil || !hmac.Equal(sum, h.mac(text)) || json.Unmarshal(text, &t) != nil {
		return t, ErrActionForged
	}
	if now.Unix() >= t.Expires {
		return t, ErrActionExpired
	}
	return t, nil
}

// ActionOutcome is how a card was decided.
type ActionOutcome struct {
	OptionID string
	Before   bool // it was decided before
	Expired  bool // since nobody answered in time
}

// Act answers a card with the token of one of its options, as the device's own answer would.
func (h *Hub) Act(ctx context.Context, token string) (ActionOutcome, error) {
	t, err := h.verify(token, time.Now())
	if err != nil {
		return ActionOutcome{}, err
	}
	type answer struct {
		outcome ActionOutcome
		err     error
	}
	got := make(chan answer, 1)
	h.post(t.Device, &acted{token: t, done: func(o ActionOutcome, err error) { got <- answer{o, err} }})
	select {
	case a := <-got:
		return a.outcome, a.err
	case <-ctx.Done():
		return ActionOutcome{}, ctx.Err()
	}
}

// acted: a notification's button was pressed.
type acted struct {
	token actionToken
	done  func(ActionOutcome, error)
	by    *frame.Peer // a member of the conversation, whose session has passed it on; nil: the device itself
}

func (e *acted) fail(_ *session, err error) { e.done(ActionOutcome{}, err) }

func (e *acted) apply(s *session, b *batch) {
	s.flush(b)
	if s.dev == nil || e.by == nil && (s.dev.Revoked || !s.dev.Rights.Answer || !s.hub.approved(s.dev.UserID)) || e.by != nil && !slices.Contains(s.members, e.by.ID) {
		e.done(ActionOutcome{}, ErrActionRefused)
		return
	}
	if e.by == nil && s.unanswerable() != nil {
		e.done(ActionOutcome{}, ErrActionTooNew)
		return
	}
	by := s.peer()
	if e.by != nil {
		by = *e.by
	}
	k := s.card(e.token.Card)
	if k == nil || k.row.State != store.CardOpen {
		e.elsewhere(s, by)
		return
	}
	if !slices.ContainsFunc(offered(k.prompt()), func(o frame.Option) bool { return o.ID == e.token.Option }) {
		e.done(ActionOutcome{}, ErrActionUnread) // also of a token that an earlier version of the server signed
		return
	}
	s.decide(b, k, agent.Answer{OptionID: e.token.Option}, &by, none, func(err error) {
		if errors.Is(err, errDecided) {
			s.hub.post(s.id, &overruled{id: k.ID, then: func(*batch) { e.elsewhere(s, by) }})
			return
		}
		if errors.Is(err, store.ErrTooNew) {
			err = ErrActionTooNew
		}
		if err != nil {
			e.done(ActionOutcome{}, err)
			return
		}
		s.hub.Metrics.Cards.WithLabelValues("answered").Inc()
		e.done(ActionOutcome{OptionID: e.token.Option}, nil)
		s.tellDecisions()
	})
}

// elsewhere: the card is decided, of the lead's conversation, or none of the device's.
func (e *acted) elsewhere(s *session, by frame.Peer) {
	row, found, err := s.hub.store.Card(s.hub.ctx, e.token.Card)
	switch {
	case err != nil:
		s.hub.storeFailed("look a card up", err)
		e.done(ActionOutcome{}, err)
	case !found:
		e.done(ActionOutcome{}, ErrActionExpired)
	case s.joined() && row.Device == s.lead && row.State == store.CardOpen:
		s.hub.post(s.dev.Conversation, &acted{token: e.token, done: e.done, by: &by})
	case row.Device != s.dev.N && row.Device != s.lead:
		e.done(ActionOutcome{}, ErrActionRefused)
	case row.State == store.CardOpen: // stored as open and not known here: this cannot be answered
		e.done(ActionOutcome{}, ErrActionExpired)
	default:
		e.done(ActionOutcome{OptionID: row.OptionID, Before: true, Expired: row.Expired}, nil)
	}
}
