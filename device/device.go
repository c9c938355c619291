package device

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"sync"
	"time"

	"hermes-mobile/frame"
)

// Device is one installation and its connection. Make it with [Open]; its methods may be called from any goroutine.
//
// Three goroutines at most belong to it: one that dials, reads and decides, and for a live connection one that writes and
// one that pings. State is behind one mutex, held for moments and never during I/O.
type Device struct {
	cfg    Config
	target *url.URL
	client *http.Client
	own    bool // client is ours: end its idle connections
	store  Store
	in     *inbox

	ctx    context.Context // until Close
	cancel context.CancelFunc
	ended  chan struct{} // run returned
	retry  chan struct{} // 1 slot: Reconnect
	wake   chan struct{} // 1 slot: the writer has something to look at
	loop   sync.Mutex    // one Events loop at a time
	adding sync.Mutex    // Store.Add and the queue see the same order

	mu      sync.Mutex
	status  Status
	changed chan struct{} // closed at each change of status
	token   string        // from the store
	pairing bool          // use the pair code next
	paired  bool          // the pair code was used up in this process

	cursor frame.Cursor // handled by the app and stored
	epoch  string       // of pos
	pos    position     // given to the inbox
	ack    ackState

	link *link // nil while not Online

	out    map[string]*Outgoing // all without receipt
	talk   []*Outgoing          // texts and voice messages, one after the other
	files  []*Outgoing          // files, one after the other
	aside  []*Outgoing          // answers and deliveries, each for itself
	urgent []*urgent            // for the live link only
	calls  map[string]chan<- frame.Down

	cards    map[string]bool // id to whether it is open
	replies  map[string]*reply
	uploads  map[string]*incoming // files coming down
	activity Activity
	lease    *time.Timer
}

// ackState is what the server is still to be told about the cursor.
type ackState struct {
	seq   int64 // to be sent; 0: nothing
	count int   // events since the last ack
	since time.Time
	seen  bool
}

// Open checks the configuration, loads the store and starts to connect; it does not wait for the connection: see
// [Device.WaitOnline]. The context bounds Open only; a device lives until [Device.Close].
func Open(ctx context.Context, cfg Config) (*Device, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
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
		return nil, err
	}
	d := &Device{
		cfg: cfg, target: target, client: client, own: own, store: cfg.Store, in: newInbox(cfg.QueueBytes),
		ended: make(chan struct{}), retry: make(chan struct{}, 1), wake: make(chan struct{}, 1),
		changed: make(chan struct{}), status: Status{Since: time.Now()},
		token: saved.Token, cursor: saved.Cursor, epoch: saved.Cursor.Epoch, pos: newPosition(saved.Cursor.Seq),
		out: map[string]*Outgoing{}, calls: map[string]chan<- frame.Down{}, cards: map[string]bool{},
		replies: map[string]*reply{}, uploads: map[string]*incoming{}, activity: Activity{Avatar: "idle"},
	}
	d.pairing = d.token == ""
	for _, e := range saved.Queue {
		d.restore(e)
	}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	go d.run()
	return d, nil
}

// Close tells the server how far the app got, closes the connection, and ends every goroutine of the device. Events loops
// end, waiting calls return ErrClosed, messages without receipt stay in the store. It returns the error of ctx when that
// ends first; the rest then still happens. Closing twice is harmless.
func (d *Device) Close(ctx context.Context) error {
	d.mu.Lock()
	l := d.link
	ack := d.takeAckLocked()
	d.mu.Unlock()
	if l != nil && d.ctx.Err() == nil {
		l.sayGoodbye(ctx, ack)
	}
	d.cancel()
	select {
	case <-d.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Reconnect tries again now: while Waiting, and after NoAccess and Replaced. While Online it checks whether the connection
// still lives, which an app does when the network changed or the screen came on.
func (d *Device) Reconnect() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.link != nil {
		signal(d.link.probe)
		return
	}
	switch d.status.State {
	case Waiting, NoAccess, Replaced: // at once, so that WaitOnline does not see the old end
		d.changeLocked(func(s *Status) { s.State, s.Until = Connecting, time.Time{} })
		signal(d.retry)
	}
}

// Events returns what happens, one event after the other, until ctx ends or the device is closed. An event is handled when
// the body of the loop has ended for it, by break or return too, but not by a panic: only then the cursor moves and the
// server may forget it. There is one loop at a time (a second one panics); a later one goes on where the earlier stopped.
//
// A slow loop loses nothing durable. Up to Config.QueueBytes wait in memory, of steps and states only the newest; after
// that the connection is not read for some seconds, then durable frames are left to the server, and fetched by a new
// connection when the loop has caught up. Receipts go on all the time.
func (d *Device) Events(ctx context.Context) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		if !d.loop.TryLock() {
			panic("device: two Events loops at once")
		}
		defer d.loop.Unlock()
		for {
			q, ok := d.in.take(ctx, d.ctx.Done())
			if !ok || !d.handle(q, yield) {
				return
			}
		}
	}
}

// handle runs the body of the loop for one event and then moves the cursor.
func (d *Device) handle(q queued, yield func(Event) bool) (more bool) {
	handled := false
	defer func() {
		empty := d.in.settle(handled)
		if handled {
			d.advance(q, empty)
		}
	}()
	more = yield(q.ev)
	handled = true
	return more
}

// NextEvent is Events for a program whose handling ends elsewhere, on its user interface's thread for example. It waits
// for the next event and returns it with the function to call once it is handled; without that call the next NextEvent
// returns the same event again. One goroutine at a time, and no Events loop beside it. Errors: ErrClosed, or that of ctx.
func (d *Device) NextEvent(ctx context.Context) (ev Event, handled func(), err error) {
	q, ok := d.in.take(ctx, d.ctx.Done())
	if !ok {
		if d.ctx.Err() != nil {
			return nil, nil, ErrClosed
		}
		return nil, nil, ctx.Err()
	}
	return q.ev, sync.OnceFunc(func() { d.advance(q, d.in.settle(true)) }), nil
}

// advance stores the cursor of a handled event and lets the server know in time.
func (d *Device) advance(q queued, empty bool) {
	d.mu.Lock()
	current := q.seq > 0 && q.epoch == d.epoch && (q.seq > d.cursor.Seq || q.epoch != d.cursor.Epoch)
	l := d.link
	d.mu.Unlock()
	if current {
		// Stored first, then told: the server forgets what it is told.
		c := frame.Cursor{Epoch: q.epoch, Seq: q.seq}
		if err := d.store.SetCursor(c); err != nil {
			d.in.push(queued{ev: Problem{err}, key: "store"})
		} else {
			d.mu.Lock()
			if d.epoch == q.epoch {
				d.cursor = c
				d.ackLocked(c.Seq)
			}
			d.mu.Unlock()
		}
	}
	if empty && l != nil && l.behind.Load() {
		l.end(errCatchUp)
	}
}

// Acks go out when so many events were handled, or so long after the first of them.
const (
	ackEvery = 50
	ackAfter = 250 * time.Millisecond
)

func (d *Device) ackLocked(seq int64) {
	if d.ack.count == 0 {
		d.ack.since = time.Now()
	}
	d.ack.seq = seq
	d.ack.count++
	if d.ack.count == 1 || d.ack.count >= ackEvery {
		signal(d.wake)
	}
}

// Seen tells the server that a person was shown everything the loop has handled so far (ack with seen, §3).
func (d *Device) Seen() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cursor.Seq > 0 {
		d.ack.seen = true
		d.ackLocked(d.cursor.Seq)
	}
}
