package hub

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"hermes-mobile/frame"
	"hermes-mobile/internal/audit"
	"hermes-mobile/internal/store"
)

// Rights are what the owner lets a device do. They are the device's own, in whatever conversation it takes part.
type Rights = store.Rights

// RightNames are the names of the rights, in the order in which they are shown.
var RightNames = []string{"write", "answer", "call"}

// Why a device is refused what its owner does not let it do.
const (
	onlyReads    = "the owner lets this device only read: it may send no messages and files, and not stop the agent"
	noAnswers    = "the owner lets this device read questions only: another one must answer"
	noAgentCalls = "the owner does not let this device use the agent's calls: see capabilities.call"
)

// Right is the right of this name, nil where there is none.
func Right(r *Rights, name string) *bool {
	switch name {
	case "write":
		return &r.Write
	case "answer":
		return &r.Answer
	case "call":
		return &r.Call
	}
	return nil
}

// SetRights changes the rights that it is given, at once also for a live connection, and returns all of them.
func (h *Hub) SetRights(ctx context.Context, id string, change map[string]bool) (Rights, error) {
	for name := range change {
		if Right(&Rights{}, name) == nil {
			return Rights{}, fmt.Errorf("there is no right %q: the rights are %s", name, strings.Join(RightNames, ", "))
		}
	}
	var now Rights
	by := audit.From(ctx)
	err := h.ask(ctx, id, func(s *session, b *batch, done func(error)) {
		next := s.dev.Rights
		for name, on := range change {
			*Right(&next, name) = on
		}
		now = next
		if next == s.dev.Rights {
			done(nil)
			return
		}
		b.do(func(tx *store.Tx) error {
			if err := tx.SetRights(s.dev.N, next); err != nil {
				return err
			}
			return tx.AddAudit(entryOf(by, "device.rights", s.id, rightsChanged(s.dev.Rights, next)))
		}, func(err error) {
			if err == nil {
				s.entitle(next)
			}
			done(err)
		})
	})
	if err != nil {
		return Rights{}, err
	}
	return now, nil
}

// rightsChanged says how rights changed, as the command devices rights takes it.
func rightsChanged(from, to Rights) string {
	var words []string
	for _, name := range RightNames {
		switch before, after := *Right(&from, name), *Right(&to, name); {
		case after && !before:
			words = append(words, "+"+name)
		case before && !after:
			words = append(words, "-"+name)
		}
	}
	return strings.Join(words, " ")
}

// entitle makes new rights hold. What the device had sent before stays accepted.
func (s *session) entitle(r Rights) {
	s.dev.Rights = r
	if !r.Write && s.uploads != nil {
		s.uploads.Free()
		s.uploads = nil
		stop(&s.timers.uploads)
	}
	s.look()
	s.tellCapabilities()
	s.hub.log.Info("the rights of a device were changed", "device", s.id, "write", r.Write, "answer", r.Answer, "call", r.Call)
}

// forbids answers a frame that the device has no right to send. What was accepted before, and comes again, is told so.
func (s *session) forbids(b *batch, e *received) bool {
	var why string
	switch f := e.f.(type) {
	case *frame.Text:
		why = s.unsayable(f.Text)
	case *frame.Audio:
		why = s.unsayable(f.Text)
	case *frame.Media:
		why = s.unsayable(f.Caption)
	case *frame.Stop, *frame.Deliver:
		why = s.unsayable("")
	case *frame.Answer:
		if !s.dev.Rights.Answer {
			why = noAnswers
		}
	}
	if why == "" {
		return false
	}
	if !s.acceptedBefore(b, e) {
		b.then(func() { e.c.send(&frame.Error{Code: frame.Forbidden, Message: why, Ref: ref(e.f)}) })
	}
	return true
}

// acceptedBefore answers a frame that was accepted before, or cannot be looked up.
func (s *session) acceptedBefore(b *batch, e *received) bool {
	switch f := e.f.(type) {
	case *frame.Deliver:
		s.flush(b)
		queued, known, err := s.hub.store.Delivered(s.hub.ctx, s.id, f.ID)
		if err != nil {
			s.hub.storeFailed("look a delivery up", err)
			e.fail(s, err)
			return true
		}
		if known && f.ID != "" {
			e.c.send(&frame.Delivered{ID: f.ID, Queued: queued})
			return true
		}
		return false
	case *frame.Answer:
		return s.seen(b, e, f.ID)
	}
	return s.seen(b, e, ref(e.f))
}

// unsayable is why the device may not say this, empty where it may.
func (s *session) unsayable(text string) string {
	switch {
	case !s.dev.Rights.Write:
		return onlyReads
	case !s.dev.Rights.Answer && answersInWords(text):
		return noAnswers
	}
	return ""
}

// answersInWords reports whether a text is a command by which Hermes takes the answer to a question.
func answersInWords(text string) bool {
	words := strings.Fields(strings.ToLower(text))
	if len(words) == 0 {
		return false
	}
	word, _, _ := strings.Cut(words[0], "@")
	return slices.Contains([]string{"/approve", "/deny", "/always", "/cancel"}, word)
}
