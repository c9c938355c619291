package device

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"hermes-mobile/frame"
)

// Outgoing is something on its way to the server: a message, a file, an answer. Its methods may be called from any goroutine.
type Outgoing struct {
	ID string
	// Frame is what is sent, for display: *frame.Text, *frame.Audio, *frame.Answer, or the first *frame.Media of a file,
	// without data.
	Frame frame.Up

	data []byte // encoded; nil for a file
	kept bool   // in the store
	lane lane
	file *upload

	done    chan struct{}
	receipt Receipt

	// Under Device.mu.
	ended  bool
	sentOn *link // written on this link, for the last time at sentAt
	sentAt time.Time
	hold   time.Time // not before
	tries  int       // refusals that a wait may cure
}

type lane int

const (
	talk  lane = iota // one after the other
	files             // one after the other, behind all else
	aside             // each for itself
)

// Done is closed when the receipt is there.
func (o *Outgoing) Done() <-chan struct{} { return o.done }

// Wait returns the receipt: nil when the server has it, its *frame.Error when it never will, ErrClosed when the device
// was closed first (what is in the store is sent next time), or the error of ctx.
func (o *Outgoing) Wait(ctx context.Context) (Receipt, error) {
	select {
	case <-o.done:
		return o.receipt, o.receipt.Err
	case <-ctx.Done():
		return Receipt{ID: o.ID}, ctx.Err()
	}
}

func (o *Outgoing) finish(r Receipt) {
	o.ended = true
	o.receipt = r
	close(o.done)
}

// SendOption changes how something is sent.
type SendOption func(*sendOptions)

type sendOptions struct {
	id, replyTo string
	steer       bool
}

// WithID gives the message id, 1 to 128 printable characters, where the app has its own. Sending an id that is still on
// its way returns the same Outgoing.
func WithID(id string) SendOption { return func(o *sendOptions) { o.id = id } }

// InReplyTo names the message that this one answers.
func InReplyTo(id string) SendOption { return func(o *sendOptions) { o.replyTo = id } }

// Steer adds the text to the turn that runs when the server gets it: the agent reads it in the midst of its work. Where no turn
// runs, or the agent cannot (Capabilities.Steer), it is sent as any other and waits for its own turn. It may still be answered
// by a reply of its own, when the turn ended before it was read.
func Steer() SendOption { return func(o *sendOptions) { o.steer = true } }

func options(opts []SendOption) (sendOptions, error) {
	var o sendOptions
	for _, opt := range opts {
		opt(&o)
	}
	if o.id == "" {
		o.id = rand.Text()
	}
	if !frame.ValidMessageID(o.id) {
		return o, &frame.Error{Code: frame.BadFrame, Message: "a message id must be 1 to 128 printable characters"}
	}
	return o, nil
}

// Send takes a message for the agent: once it returns nil the message is in the store and is sent, again and again where
// needed, until the server has it; messages and voice messages stay in order. It does not wait for a connection. While
// the device is not approved, the first message is what makes the server give a pairing code (Status.Pairing); everything
// waits for the approval. Errors: *frame.Error for a text that no server takes (empty, over 1 MiB), ErrClosed, or the store's.
func (d *Device) Send(ctx context.Context, text string, opts ...SendOption) (*Outgoing, error) {
	o, err := options(opts)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(text) == "" {
		return nil, &frame.Error{Code: frame.BadFrame, Message: "the message is empty: write something", Ref: o.id}
	}
	if err := fits(text, o.id); err != nil {
		return nil, err
	}
	return d.add(ctx, &Outgoing{ID: o.id, lane: talk, kept: true, Frame: &frame.Text{ID: o.id, Text: text, ReplyTo: o.replyTo, Steer: o.steer}})
}

func fits(text, id string) error {
	if len(text) > frame.MaxText {
		return &frame.Error{Code: frame.TooBig, Message: "the text is longer than 1 MiB: send it as a file", Ref: id}
	}
	return nil
}

// SendVoice takes a voice message of at most 8 MiB, like Send. Format is wav (16 kHz mono, best understood), ogg, m4a, mp3
// or webm; text, where the app recognised the speech itself, goes with it. ErrUnsupported: the agent takes no voice now.
func (d *Device) SendVoice(ctx context.Context, format string, data []byte, text string, opts ...SendOption) (*Outgoing, error) {
	o, err := options(opts)
	if err != nil {
		return nil, err
	}
	switch {
	case !frame.AudioFormat(format) || len(data) == 0:
		return nil, &frame.Error{Code: frame.BadFrame, Message: "a voice message is wav, ogg, m4a, mp3 or webm, and not empty", Ref: o.id}
	case len(data) > frame.MaxAudio:
		return nil, &frame.Error{Code: frame.TooBig, Message: "the voice message is larger than 8 MiB: send it in several", Ref: o.id}
	}
	if err := fits(text, o.id); err != nil {
		return nil, err
	}
	if !d.offers(func(c *frame.Capabilities) bool { return c.Audio }) {
		return nil, fmt.Errorf("%w: voice messages", ErrUnsupported)
	}
	return d.add(ctx, &Outgoing{ID: o.id, lane: talk, kept: true, Frame: &frame.Audio{ID: o.id, Format: format, Data: data, Text: text}})
}

// Answer answers a card with one of its options, or a clarify card with text (option then frame.OtherOption or empty). It
// is kept and sent like a message. The receipt says that it arrived; what was done is said by [CardDone].
func (d *Device) Answer(ctx context.Context, cardID, option, text string) (*Outgoing, error) {
	if cardID == "" || option == "" && strings.TrimSpace(text) == "" {
		return nil, &frame.Error{Code: frame.BadFrame, Message: "an answer names its card, and has an option or a text"}
	}
	if err := fits(text, cardID); err != nil {
		return nil, err
	}
	id := rand.Text()
	return d.add(ctx, &Outgoing{ID: id, lane: aside, kept: true, Frame: &frame.Answer{ID: id, PromptID: cardID, OptionID: option, Text: text}})
}

// offers reports whether the agent can do something, or may: before the first ready nothing is known.
func (d *Device) offers(can func(*frame.Capabilities) bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.status.Agent == "" || can(&d.status.Capabilities)
}

// Pending returns what has no receipt yet, in no particular order between messages, files and answers. After Open it
// holds what an earlier process left in the store.
func (d *Device) Pending() []*Outgoing {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Concat(d.aside, d.talk, d.files)
}

// Flush waits until nothing is without receipt.
func (d *Device) Flush(ctx context.Context) error {
	for _, o := range d.Pending() {
		select {
		case <-o.done:
			if o.receipt.Err == ErrClosed {
				return ErrClosed
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// add stores and queues. The store comes first: what is in the queue is sent at any moment.
func (d *Device) add(ctx context.Context, o *Outgoing) (*Outgoing, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if d.ctx.Err() != nil {
		return nil, ErrClosed
	}
	d.adding.Lock()
	defer d.adding.Unlock()
	d.mu.Lock()
	old := d.out[o.ID]
	d.mu.Unlock()
	if old != nil {
		return old, nil
	}
	if o.file == nil {
		o.data = frame.EncodeUp(o.Frame)
	}
	if o.kept {
		if err := d.store.Add(Entry{ID: o.ID, Frame: o.data}); err != nil {
			return nil, err
		}
	}
	o.done = make(chan struct{})
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.status.State == Closed {
		return nil, ErrClosed
	}
	d.queueLocked(o)
	d.changeLocked(func(*Status) {})
	signal(d.wake)
	return o, nil
}

func (d *Device) queueLocked(o *Outgoing) {
	d.out[o.ID] = o
	switch o.lane {
	case talk:
		d.talk = append(d.talk, o)
	case files:
		d.files = append(d.files, o)
	case aside:
		d.aside = append(d.aside, o)
	}
}

// restore queues what an earlier process left. A frame of a later version is sent as it is, each for itself.
func (d *Device) restore(e Entry) {
	o := &Outgoing{ID: e.ID, data: e.Frame, kept: true, done: make(chan struct{})}
	o.Frame, _ = frame.DecodeUp(e.Frame)
	switch o.Frame.(type) {
	case *frame.Text, *frame.Audio:
		o.lane = talk
	default:
		o.lane = aside
	}
	d.queueLocked(o)
}

// settle ends an outgoing frame with its receipt. The one that is not there any more had its receipt before.
func (d *Device) settle(r Receipt) {
	d.mu.Lock()
	o := d.out[r.ID]
	if o == nil {
		d.mu.Unlock()
		return
	}
	d.dropLocked(o)
	o.finish(r)
	d.in.push(queued{ev: r})
	d.changeLocked(func(*Status) {})
	d.mu.Unlock()
	signal(d.wake)
	if o.kept {
		if err := d.store.Remove(o.ID); err != nil {
			// It is sent once more by the next process, and the server drops it as a double.
			d.in.push(queued{ev: Problem{err}, key: "store"})
		}
	}
}

func (d *Device) dropLocked(o *Outgoing) {
	delete(d.out, o.ID)
	is := func(p *Outgoing) bool { return p == o }
	d.talk = slices.DeleteFunc(d.talk, is)
	d.files = slices.DeleteFunc(d.files, is)
	d.aside = slices.DeleteFunc(d.aside, is)
}

// refused takes an error frame that names something of ours: it is final, or a wait may cure it.
func (d *Device) refused(e *frame.Error) {
	switch e.Code {
	case frame.RateLimited, frame.Internal:
		d.mu.Lock()
		defer d.mu.Unlock()
		if o := d.out[e.Ref]; o != nil {
			wait := min(time.Second<<min(o.tries, 6), 30*time.Second)
			o.tries++
			o.hold = time.Now().Add(max(wait, seconds(e.RetryAfter)))
			o.sentOn = nil
			if o.file != nil {
				o.file.next = 0
			}
		}
		signal(d.wake)
	default:
		if e.Code == frame.Forbidden && !d.Status().Approved {
			return // for want of approval: it is sent again after that
		}
		d.settle(Receipt{ID: e.Ref, Err: e})
	}
}

// tooBig ends what made the server close with 1009: the largest frame without receipt on that link. Sending it again
// would end every connection.
func (d *Device) tooBig() {
	d.mu.Lock()
	var worst *Outgoing
	size := func(o *Outgoing) int {
		if o.file != nil {
			return o.file.partSize * 4 / 3
		}
		return len(o.data)
	}
	for _, o := range d.out {
		if !o.sentAt.IsZero() && (worst == nil || size(o) > size(worst)) {
			worst = o
		}
	}
	d.mu.Unlock()
	if worst != nil {
		d.settle(Receipt{ID: worst.ID, Err: &frame.Error{Code: frame.TooBig, Message: "the server takes no frame of this size", Ref: worst.ID}})
	}
}

// againLocked makes everything without receipt due again, on a new link or after approval.
func (d *Device) againLocked() {
	for _, o := range d.out {
		o.sentOn = nil
		if o.file != nil {
			o.file.next = 0
		}
	}
	signal(d.wake)
}
