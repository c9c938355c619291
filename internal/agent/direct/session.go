package direct

import (
	"context"
	"slices"

	"hermes-mobile/gateway"
)

// session returns the session of a conversation, and makes one where there is none.
func (a *Agent) session(ctx context.Context, device string, known conversation) (string, error) {
	if known.Session != "" {
		return known.Session, nil
	}
	return a.newSession(ctx, device, "")
}

// newSession makes a session and has the conversation go on in it.
func (a *Agent) newSession(ctx context.Context, device, title string) (string, error) {
	s, err := a.Client.Sessions.Create(ctx, gateway.SessionParams{Title: title})
	if err != nil {
		return "", err
	}
	return s.ID, a.memory.change(ctx, device, func(c *conversation) {
		c.Session = s.ID
		c.addSession(s.ID)
	})
}

// open has the conversation go on in a session. What was said without one is forgotten.
func (a *Agent) switchSession(ctx context.Context, device, session string) error {
	return a.memory.change(ctx, device, func(c *conversation) {
		c.Session, c.History, c.Response = session, nil, ""
	})
}

// sees reports whether a conversation may see a session.
func (a *Agent) maySee(known conversation, session string) bool {
	return a.AllSessions || session == known.Session || slices.Contains(known.Sessions, session)
}

// Bounds of the history of a conversation without a session.
const (
	maxHistory      = 100
	maxHistoryBytes = 256 << 10
)

// learn keeps what the next turn needs of this one, and what it cost, once.
func (a *Agent) recordOutcome(t *turn, o gateway.Outcome) {
	err := a.memory.change(context.WithoutCancel(t.ctx), t.in.Device, func(c *conversation) {
		if c.Turn != nil && c.Turn.N == t.in.N {
			if c.Turn.Learned {
				return
			}
			next := *c.Turn
			next.Learned = true
			c.Turn = &next
		}
		if o.Usage.Total > 0 {
			c.Usage = append(slices.Clone(c.Usage), usage{ID: t.in.ID, Input: int64(o.Usage.Input), Output: int64(o.Usage.Output), Total: int64(o.Usage.Total), Model: t.model})
		}
		if c.Session != "" {
			// The gateway may have gone on in another session (api-facts §12.11).
			if o.SessionID != "" && o.SessionID != c.Session && t.session == c.Session {
				c.Session = o.SessionID
				c.addSession(o.SessionID)
			}
			return
		}
		if o.State != gateway.Completed {
			return
		}
		c.Response = o.ResponseID
		c.History = append(slices.Clone(c.History), gateway.ChatMessage{Role: "user", Text: t.text("")}, gateway.ChatMessage{Role: "assistant", Text: o.Text()})
		size := 0
		for i := len(c.History) - 1; i >= 0; i-- {
			if size += len(c.History[i].Text); size > maxHistoryBytes || len(c.History)-i > maxHistory {
				c.History = c.History[i+1:]
				break
			}
		}
	})
	if err != nil {
		a.Log.Error("what a turn left could not be written down", "device", t.in.Device, "error", err)
	}
}
