package device

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"

	"hermes-mobile/frame"
)

// Device is one installation and its connection. [Open] creates it. All methods are safe for
// concurrent use.
//
// A device runs at most three goroutines: one dials, reads and decides, and for a live connection
// one writes and one pings. Each part below owns its state, behind a lock that it holds for moments
// and never during I/O.
type Device struct {
	cfg    Config
	target *url.URL
	client *http.Client
	own    bool // client is ours: end its idle connections

	ctx    context.Context // until Close
	cancel context.CancelFunc
	ended  chan struct{} // the connector returned
	loop   sync.Mutex    // held by the Events loop or the waiting NextEvent

	in        *inbox     // events that wait for the loop
	board     *board     // the status, and who waits for it
	acks      *acks      // the cursor, and what the server must hear of it
	queue     *sendQueue // messages, files and answers without an ack
	calls     *calls     // frames that only a live connection carries
	indicator *indicator // typing and avatar
	connector *connector // the connection
}

// Open checks the configuration, loads the store and starts to connect. It does not wait for the
// connection: see [Device.WaitOnline]. Canceling ctx ends Open only; a device lives until
// [Device.Close]. The error says which setting is wrong, or comes from the store.
func Open(ctx context.Context, cfg Config) (*Device, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("device: open: %w", err)
	}
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	target, err := parseURL(cfg.URL)
	if err != nil {
		return nil, err
	}
	client, own, err := cfg.client()
	if err != nil {
		return nil, err
	}
	saved, err := cfg.Store.Load()
	if err != nil {
		return nil, fmt.Errorf("device: load store: %w", err)
	}
	d := &Device{cfg: cfg, target: target, client: client, own: own, ended: make(chan struct{})}
	d.ctx, d.cancel = context.WithCancel(context.WithoutCancel(ctx))
	wake := make(chan struct{}, 1)
	d.in = newInbox(cfg.QueueBytes)
	d.board = newBoard(d.in)
	d.acks = newAcks(cfg.Store, d.in, wake, saved.Cursor)
	d.queue = newSendQueue(cfg.Store, d.in, d.board, wake, cfg.AckTimeout)
	d.calls = newCalls(d.ctx, wake)
	d.indicator = newIndicator(d.in, cfg.TypingTimeout)
	for _, e := range saved.Queue {
		d.queue.restore(e)
	}
	d.connector = &connector{
		cfg: &d.cfg, target: target, client: client, ctx: d.ctx, wake: wake, retry: make(chan struct{}, 1),
		in: d.in, board: d.board, acks: d.acks, queue: d.queue, calls: d.calls, indicator: d.indicator,
		login: newLogin(&d.cfg, saved.Token),
		receiver: &receiver{
			maxFile: cfg.MaxFileBytes, roomWait: cfg.roomWait,
			in: d.in, board: d.board, queue: d.queue, calls: d.calls, indicator: d.indicator,
			epoch: saved.Cursor.Epoch, position: newPosition(saved.Cursor.Seq),
			replies: map[string]*reply{}, files: map[string]*incoming{}, cards: map[string]bool{},
		},
	}
	go d.run()
	return d, nil
}

// run keeps the device connected until Close, then lets go of everybody who waits.
func (d *Device) run() {
	defer close(d.ended)
	d.connector.run()
	d.board.update(func(s *Status) { s.State = Closed })
	d.indicator.stop()
	d.queue.close()
	if d.own {
		d.client.CloseIdleConnections()
	}
}

// Close acknowledges the events that the loop handled, closes the connection, and ends every
// goroutine of the device. Events loops and waiting calls return [ErrClosed]. Messages without an
// ack stay in the store. When ctx ends first, Close returns its error, and the rest happens in the
// background. Closing twice is harmless.
func (d *Device) Close(ctx context.Context) error {
	if l := d.connector.current(); l != nil && d.ctx.Err() == nil {
		var ack []byte
		if a := d.acks.take(); a != nil && d.board.get().Capabilities.Resume {
			ack = frame.EncodeUp(a)
		}
		l.sayGoodbye(ctx, ack)
	}
	d.cancel()
	select {
	case <-d.ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("device: close: %w", ctx.Err())
	}
}

// Reconnect connects now, while Waiting and after NoAccess or Replaced. While Online it checks
// whether the connection still works; call it when the network changed or the screen came on.
func (d *Device) Reconnect() { d.connector.reconnect() }

// Status returns the current status. Each change also comes as a [StatusChanged].
func (d *Device) Status() Status { return d.board.get() }

// WaitOnline waits until the device is Online. It returns the [*NoAccessError] or [ErrReplaced]
// that ended the attempts, [ErrClosed], or the error of ctx together with the error of the last
// attempt, such as [ErrFingerprint].
func (d *Device) WaitOnline(ctx context.Context) error { return d.board.waitOnline(ctx) }

// Activity returns what the typing indicator and the avatar show now.
func (d *Device) Activity() Activity { return d.indicator.get() }

// closed returns [ErrClosed] once Close was called, otherwise the error of ctx.
func (d *Device) closed(ctx context.Context, op string) error {
	if d.ctx.Err() != nil {
		return ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("device: %s: %w", op, err)
	}
	return nil
}

// isClosed reports whether an error is that of a closed device.
func isClosed(err error) bool { return errors.Is(err, ErrClosed) }
