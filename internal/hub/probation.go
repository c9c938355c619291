package hub

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/store"
)

// A device that is new for a user, that joins a conversation, or that is given more rights is announced to the user's other
// devices, which may revoke it (announce.go). For a minute it may not answer cards: whoever got in with a stolen code or
// token is seen before an agent obeys. The first device of a user does not wait, nor does one whose code the owner marked
// as trusted.
//
// The time is checked where frames come in (intake.go), where a notification's button is pressed (action.go), and once
// more in the transaction that decides the card, which nothing can bypass.

// Reasons for which a device may not do something that its owner did not permit.
const (
	readOnly     = "the owner lets this device only read: it may not send messages and files, or stop the agent"
	noAnswers    = "the owner lets this device read questions only: another device must answer"
	noAgentCalls = "the owner does not let this device use the agent's calls: see capabilities.call"
)

// probation says what a device may do, and when a new one may answer cards.
type probation struct {
	*core
	over timer
}

func (p *probation) idle() bool { return !p.over.running() }
func (p *probation) close()     { p.over.stop() }

// left returns the time until the device may answer cards, 0 if it may now.
func (p *probation) left(now time.Time) time.Duration { return max(p.dev.AnswersAt.Sub(now), 0) }

// steady makes the end of the probation a time of the monotonic clock, so that a clock that was set back does not make the
// probation longer.
func (p *probation) steady() {
	now := time.Now()
	wait := p.left(now)
	if wait == 0 {
		p.dev.AnswersAt = time.Time{}
		return
	}
	if wait > p.AnswerWait {
		wait = p.AnswerWait
		n, until := p.dev.N, now.Add(wait)
		p.later("shorten a probation", func(tx *store.Tx) error { return tx.ShortenWait(n, until) }, nil)
	}
	p.dev.AnswersAt = now.Add(wait)
}

// reload reads the end of the probation after it was stored.
func (p *probation) reload() {
	row, err := p.store.Device(p.ctx, p.id)
	if err == nil && row == nil {
		err = ErrUnknownDevice
	}
	if err != nil { // the transaction that decides a card knows it all the same
		p.storeFailed("read a probation", err)
		return
	}
	p.dev.AnswersAt, p.dev.CreatedAt = row.AnswersAt, row.CreatedAt
	p.steady()
}

// await runs f when the probation is over.
func (p *probation) await(f func()) {
	p.over.stop()
	wait := p.left(time.Now())
	if wait <= 0 {
		return
	}
	p.over.start(p, wait, func(b *batch) {
		b.then(func() {
			if p.dev == nil {
				return
			}
			if p.left(time.Now()) > 0 { // a timer may be a moment early
				p.await(f)
				return
			}
			f()
		})
	})
}

// answerRefusal returns why the device may not answer cards now, nil if it may. Frames, words and the buttons of
// notifications all ask it.
func (p *probation) answerRefusal() *frame.Error {
	if !p.dev.Rights.Answer {
		return &frame.Error{Code: frame.Forbidden, Message: noAnswers}
	}
	if wait := p.left(time.Now()); wait > 0 {
		return tooNew(wait, "")
	}
	return nil
}

// tooNew is the error for an answer of a device on probation.
func tooNew(wait time.Duration, ref string) *frame.Error {
	n := seconds(wait)
	return &frame.Error{Code: frame.Forbidden, Ref: ref, RetryAfter: n,
		Message: fmt.Sprintf("this device is new and may answer questions in %d seconds: another device of its user can answer now", n)}
}

// textRefusal returns why the device may not send a text, nil if it may.
func (p *probation) textRefusal(text string) *frame.Error {
	switch {
	case !p.dev.Rights.Write:
		return &frame.Error{Code: frame.Forbidden, Message: readOnly}
	case answersInWords(text):
		return p.answerRefusal()
	}
	return nil
}

// answersInWords reports whether a text is a command that Hermes takes as the answer to a question.
func answersInWords(text string) bool {
	words := strings.Fields(strings.ToLower(text))
	if len(words) == 0 {
		return false
	}
	word, _, _ := strings.Cut(words[0], "@")
	return slices.Contains([]string{"/approve", "/deny", "/always", "/cancel"}, word)
}

// refusal returns why the device may not send a frame, nil if it may.
func (p *probation) refusal(f frame.Up) *frame.Error {
	var refusal *frame.Error
	switch f := f.(type) {
	case *frame.Text:
		refusal = p.textRefusal(f.Text)
	case *frame.Audio:
		refusal = p.textRefusal(f.Text)
	case *frame.Media:
		refusal = p.textRefusal(f.Caption)
	case *frame.Stop, *frame.Deliver:
		refusal = p.textRefusal("")
	case *frame.Answer:
		refusal = p.answerRefusal()
	}
	if refusal != nil {
		refusal.Ref = ref(f)
	}
	return refusal
}
