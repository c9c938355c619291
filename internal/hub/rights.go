package hub

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

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
		at := time.Now()
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
			if err := tx.AddAudit(entryOf(by, "device.rights", s.id, rightsChanged(s.dev.Rights, next))); err != nil {
				return err
			}
			given := rightsGiven(s.dev.Rights, next)
			if len(given) == 0 || !s.dev.Bound() {
				return nil
			}
			if slices.Contains(given, "answer") {
				if err := h.restrain(tx, s.dev.N, at); err != nil {
					return err
				}
			}
			n := noticeOf(s.dev, frame.RightsChanged, at)
			n.Rights = given
			return h.announce(tx, n, s.dev.N)
		}, func(err error) {
			if err == nil {
				s.restrained()
				s.entitle(next)
				h.tell(s.dev.UserID, s.id)
			}
			done(err)
		})
	})
	if err != nil {
		return Rights{}, err
	}
	return now, nil
}

// rightsGiven are the names of the rights that are new.
func rightsGiven(from, to Rights) (list []string) {
	for _, name := range RightNames {
		if *Right(&to, name) && !*Right(&from, name) {
			list = append(list, name)
		}
	}
	return list
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
	s.awaitAnswers()
	s.hub.log.Info("the rights of a device were changed", "device", s.id, "write", r.Write, "answer", r.Answer, "call", r.Call)
}

// forbids answers a frame that the device has no right to send, or not yet. What was accepted before, and comes again, is told so.
func (s *session) forbids(b *batch, e *received) bool {
	var refusal *frame.Error
	switch f := e.f.(type) {
	case *frame.Text:
		refusal = s.unsayable(f.Text)
	case *frame.Audio:
		refusal = s.unsayable(f.Text)
	case *frame.Media:
		refusal = s.unsayable(f.Caption)
	case *frame.Stop, *frame.Deliver:
		refusal = s.unsayable("")
	case *frame.Answer:
		refusal = s.unanswerable()
	}
	if refusal == nil {
		return false
	}
	refusal.Ref = ref(e.f)
	if !s.acceptedBefore(b, e) {
		if f, ok := e.f.(*frame.Media); ok {
			s.dropUpload(f.ID, refusal)
		}
		b.then(func() { e.c.send(refusal) })
	}
	return true
}

// unanswerable is why the device may answer no cards now, nil where it may. It is the one place that says so: frames, words and the
// buttons of notifications ask it.
func (s *session) unanswerable() *frame.Error {
	if !s.dev.Rights.Answer {
		return &frame.Error{Code: frame.Forbidden, Message: noAnswers}
	}
	if wait := s.patient(time.Now()); wait > 0 {
		return tooNew(wait, "")
	}
	return nil
}

// acceptedBefore answers a frame that was accepted before, or cannot be looked up.
func (s *session) acceptedBefore(b *batch, e *received) bool {
	switch f := e.f.(type) {
	case *frame.Deliver:
		b.flush()
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

// unsayable is why the device may not say this, nil where it may.
func (s *session) unsayable(text string) *frame.Error {
	switch {
	case !s.dev.Rights.Write:
		return &frame.Error{Code: frame.Forbidden, Message: onlyReads}
	case answersInWords(text):
		return s.unanswerable()
	}
	return nil
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
