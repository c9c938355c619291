package device

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"hermes-mobile/frame"
)

// Outgoing is a message, a file or an answer on its way to the server. Its methods are safe for
// concurrent use.
type Outgoing struct {
	// ID names the message on the wire.
	ID string
	// Frame is the frame for display: *frame.Text, *frame.Audio, *frame.Answer, or for a file the
	// first *frame.Media without data.
	Frame frame.Up

	data []byte // encoded; nil for a file
	kept bool   // in the store
	lane lane
	file *upload

	done    chan struct{}
	receipt Receipt

	// The queue's lock guards these.
	sentOn *link // the last connection that carried it, at sentAt
	sentAt time.Time
	hold   time.Time // not before
	tries  int       // rejections that a wait may cure
}

type lane int

const (
	talk  lane = iota // one after the other
	files             // one after the other, after everything else
	aside             // each on its own
)

// Done returns a channel that is closed when the receipt is there.
func (o *Outgoing) Done() <-chan struct{} { return o.done }

// Wait waits for the receipt. The error is nil when the server has the message, a [*frame.Error]
// when it rejected the message for good, [ErrClosed] when the device was closed first (the next
// process sends what is in the store), or the error of ctx.
func (o *Outgoing) Wait(ctx context.Context) (Receipt, error) {
	select {
	case <-o.done:
		if err := o.receipt.Err; err != nil && !isClosed(err) {
			return o.receipt, fmt.Errorf("device: send: %w", err)
		}
		return o.receipt, o.receipt.Err
	case <-ctx.Done():
		return Receipt{ID: o.ID}, fmt.Errorf("device: wait for the receipt: %w", ctx.Err())
	}
}

func (o *Outgoing) finish(r Receipt) {
	o.receipt = r
	close(o.done)
}

// resend makes the frame due again, a file from its first part on.
func (o *Outgoing) resend() {
	o.sentOn = nil
	if o.file != nil {
		o.file.next = 0
	}
}

// size returns the size of the largest frame, in bytes.
func (o *Outgoing) size() int {
	if o.file != nil {
		return o.file.partSize * 4 / 3
	}
	return len(o.data)
}

// SendOption changes how a message or file is sent.
type SendOption func(*sendOptions)

type sendOptions struct {
	id, replyTo string
	steer       bool
}

// WithID sets the message id, 1 to [frame.MaxID] printable characters. Sending an id that is still
// on its way returns the same Outgoing.
func WithID(id string) SendOption { return func(o *sendOptions) { o.id = id } }

// InReplyTo names the message that this one answers.
func InReplyTo(id string) SendOption { return func(o *sendOptions) { o.replyTo = id } }

// Steer adds the text to the running turn, so the agent reads it while it works. Without a running
// turn, or with an agent that cannot (Capabilities.Steer), the text waits for its own turn. The
// agent may answer it with a separate reply, when the turn ended before it read the text.
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
		return o, invalid("", frame.BadFrame, "a message id must be 1 to %d printable characters", frame.MaxID)
	}
	return o, nil
}

// invalid returns the error for a message that no server accepts.
func invalid(id string, code frame.Code, format string, args ...any) error {
	return fmt.Errorf("device: send: %w", &frame.Error{Code: code, Message: fmt.Sprintf(format, args...), Ref: id})
}

// Send queues a text for the agent. Once it returns nil, the text is in the store, and the device
// sends it until the server has it. Texts and voice messages stay in order. Send does not wait for
// a connection. While the device is not approved, the server answers the first message with an
// approval code (Status.Pairing), and everything waits for the approval.
//
// The error wraps a [*frame.Error] for a text that no server accepts (empty, or over
// [frame.MaxText]), or is [ErrClosed], or that of ctx or of the store.
func (d *Device) Send(ctx context.Context, text string, opts ...SendOption) (*Outgoing, error) {
	o, err := options(opts)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(text) == "" {
		return nil, invalid(o.id, frame.BadFrame, "the message is empty: write something")
	}
	if err := checkText(text, o.id); err != nil {
		return nil, err
	}
	return d.send(ctx, &Outgoing{ID: o.id, lane: talk, kept: true, Frame: &frame.Text{ID: o.id, Text: text, ReplyTo: o.replyTo, Steer: o.steer}})
}

func checkText(text, id string) error {
	if len(text) > frame.MaxText {
		return invalid(id, frame.TooBig, "the text exceeds the limit of %d MiB: send it as a file", frame.MaxText>>20)
	}
	return nil
}

// SendVoice queues a voice message of at most [frame.MaxAudio] bytes, as Send does for a text.
// Format is wav (16 kHz mono works best), ogg, m4a, mp3 or webm. Text is optional: where the app
// recognized the speech itself, the agent gets it, too. The error is that of Send, or
// [ErrUnsupported] when the agent accepts no voice messages now.
func (d *Device) SendVoice(ctx context.Context, format string, data []byte, text string, opts ...SendOption) (*Outgoing, error) {
	o, err := options(opts)
	if err != nil {
		return nil, err
	}
	switch {
	case !frame.AudioFormat(format) || len(data) == 0:
		return nil, invalid(o.id, frame.BadFrame, "a voice message must be wav, ogg, m4a, mp3 or webm, and not empty")
	case len(data) > frame.MaxAudio:
		return nil, invalid(o.id, frame.TooBig, "the voice message exceeds the limit of %d MiB: record several shorter ones", frame.MaxAudio>>20)
	}
	if err := checkText(text, o.id); err != nil {
		return nil, err
	}
	if !d.board.offers(func(c *frame.Capabilities) bool { return c.Audio }) {
		return nil, fmt.Errorf("%w: voice messages", ErrUnsupported)
	}
	return d.send(ctx, &Outgoing{ID: o.id, lane: talk, kept: true, Frame: &frame.Audio{ID: o.id, Format: format, Data: data, Text: text}})
}

// Answer answers a card with one of its options, or a clarify card with a text (then option is
// [frame.OtherOption] or empty). The device stores and sends it like a message. The receipt tells
// that the server has the answer; [CardDone] tells how the card ended. The error is that of Send.
func (d *Device) Answer(ctx context.Context, cardID, option, text string) (*Outgoing, error) {
	if cardID == "" || option == "" && strings.TrimSpace(text) == "" {
		return nil, invalid(cardID, frame.BadFrame, "an answer needs the id of its card, and an option or a text")
	}
	if err := checkText(text, cardID); err != nil {
		return nil, err
	}
	id := rand.Text()
	return d.send(ctx, &Outgoing{ID: id, lane: aside, kept: true, Frame: &frame.Answer{ID: id, PromptID: cardID, OptionID: option, Text: text}})
}

func (d *Device) send(ctx context.Context, o *Outgoing) (*Outgoing, error) {
	if d.ctx.Err() != nil {
		return nil, ErrClosed
	}
	return d.queue.add(ctx, o)
}

// Pending returns the messages, files and answers without a receipt. Each kind is in order. After
// Open it holds what an earlier process left in the store.
func (d *Device) Pending() []*Outgoing { return d.queue.pending() }

// Flush waits until everything that is pending now has its receipt. It returns [ErrClosed], or the
// error of ctx.
func (d *Device) Flush(ctx context.Context) error {
	for _, o := range d.Pending() {
		select {
		case <-o.done:
			if isClosed(o.receipt.Err) {
				return ErrClosed
			}
		case <-ctx.Done():
			return fmt.Errorf("device: flush: %w", ctx.Err())
		}
	}
	return nil
}
