package notify

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/push"
	"hermes-mobile/internal/store"
)

// maxNotified bounds the ids in one notification.
const maxNotified = 32

// Batch collects what a session stores in one transaction, and what follows from it.
type Batch interface {
	// Do stores something, then calls after with the outcome.
	Do(op func(*store.Tx) error, after func(error))
	// Then calls f once everything that was added before is stored. It does not call f if storing
	// failed.
	Then(f func())
	// Flush stores what was added so far.
	Flush()
}

// State describes a session at one moment.
type State struct {
	Context   context.Context // of reads from the store
	ID        string          // of the device
	N         int64           // number of the device in the store, 0 if there is no device
	User      string
	Epoch     string
	Connected bool
	Muted     bool  // the device must not be notified: it is revoked, or the server stops
	Sent      int64 // the device was sent its outbox up to here
	Floor     int64 // the outbox begins after this seq
	Newest    int64 // seq of the newest entry
}

// Host is the session of a device, as its notifications see it.
type Host interface {
	// Post runs f in the session. It does nothing if the session has ended.
	Post(f func(Batch))
	// State describes the session now.
	State() State
	// Rejected reports whether the device's user has lost the access to the agent.
	Rejected() bool
	// MayAnswer reports whether the device may answer cards now.
	MayAnswer() bool
	// StoreFailed reports an operation of the store that failed.
	StoreFailed(op string, err error)
}

// Note is an entry of an outbox that a person should see. One of the fields is set.
type Note struct {
	Message *frame.Message
	Media   *frame.Media
	Prompt  *frame.Prompt
	Notice  *frame.Notice
}

// Device holds the notifications of one device: the endpoints it has registered, and what it is
// shown. Its methods must be called in the device's session.
type Device struct {
	service *Service
	host    Host
	*state  // nil: the device has no endpoints
}

// state is what is kept of a device that wants notifications.
type state struct {
	targets []push.Target
	shown   []store.Notice // that are not withdrawn
	over    []string       // ids that need no attention any more
	unsure  int64          // entries from this seq on may not have arrived although they were sent; 0: all have

	due, withdrawal *time.Timer // nil: not running
}

// NewDevice returns the notifications of a device. [Device.Load] reads them.
func (s *Service) NewDevice(host Host) Device { return Device{service: s, host: host} }

// Load reads the endpoints and the notifications of a device from the store.
func (d *Device) Load(ctx context.Context, n int64) error {
	d.Reset()
	if !d.service.Enabled() {
		return nil
	}
	bodies, err := d.service.Store.Notices().Endpoints(ctx, n)
	if err != nil || len(bodies) == 0 {
		return err
	}
	var targets []push.Target
	for _, body := range bodies {
		var t push.Target
		if err := json.Unmarshal(body, &t); err != nil {
			d.service.Log.Error("stored push endpoint corrupt", "device", d.host.State().ID, "err", err)
			continue
		}
		targets = append(targets, t)
	}
	shown, err := d.service.Store.Notices().Shown(ctx, n)
	if err != nil {
		return err
	}
	d.state = &state{targets: targets, shown: shown}
	return nil
}

// Reset forgets everything, as after the device was revoked.
func (d *Device) Reset() {
	d.Stop()
	d.state = nil
}

// Idle reports whether no timer is running.
func (d *Device) Idle() bool { return d.state == nil || d.due == nil && d.withdrawal == nil }

// Stop stops the timers.
func (d *Device) Stop() {
	if d.state == nil {
		return
	}
	stop(&d.due)
	stop(&d.withdrawal)
}

func stop(t **time.Timer) {
	if *t != nil {
		(*t).Stop()
		*t = nil
	}
}

// start arms a timer that runs f in the session, unless it is running. f does not run if the device
// was reset meanwhile.
func (d *Device) start(t **time.Timer, wait time.Duration, f func(Batch)) {
	st := d.state
	if *t == nil {
		*t = time.AfterFunc(max(wait, 0), func() {
			d.host.Post(func(b Batch) {
				if d.state == st {
					f(b)
				}
			})
		})
	}
}

// wanted reports whether the device wants notifications and may have them.
func (d *Device) wanted() bool {
	if d.state == nil || len(d.targets) == 0 {
		return false
	}
	st := d.host.State()
	return st.N != 0 && !st.Muted
}

// Connected is called when the device has connected. It gets what waits over the connection.
func (d *Device) Connected() {
	if d.state == nil {
		return
	}
	d.unsure = 0
	stop(&d.due)
}

// Lost is called when a connection ended after a silence. A phone that falls asleep says nothing,
// and what was written until the server noticed is lost. So the device must be notified of that,
// too.
func (d *Device) Lost(silence time.Duration) {
	if !d.wanted() {
		return
	}
	st := d.host.State()
	seq, err := d.service.Store.FirstSince(st.Context, st.N, time.Now().Add(-silence))
	if err != nil {
		d.host.StoreFailed("read what was sent to a silent device", err)
		return
	}
	d.unsure = seq
}

// Update arms a notification of the entries that wait, unless the device is connected.
func (d *Device) Update() {
	if !d.wanted() {
		return
	}
	if st := d.host.State(); !st.Connected && st.Newest > d.unread(st) {
		d.start(&d.due, d.service.Wait, d.notifyDue)
	}
}

// unread is the seq up to which the device was sent its outbox, as far as is known.
func (d *Device) unread(st State) int64 {
	sent := st.Sent
	if d.unsure > 0 {
		sent = min(sent, d.unsure-1)
	}
	return max(sent, st.Floor)
}

// notifyDue notifies the device, which had the time to connect.
func (d *Device) notifyDue(b Batch) {
	d.due = nil
	b.Flush()
	st := d.host.State()
	if !d.wanted() || st.Connected || d.host.Rejected() {
		return
	}
	from := d.unread(st)
	u, err := d.service.Store.Notices().Unread(st.Context, st.N, from, maxNotified)
	if err == nil && u.Fresh > 0 {
		err = d.notify(b, st, u, from)
	}
	if err != nil {
		d.host.StoreFailed("read what waits for a device", err)
		d.Update()
	}
}

// notify marks all entries after from as notified, then sends the notification.
func (d *Device) notify(b Batch, st State, u store.Unread, from int64) error {
	newest := slices.IndexFunc(u.List, func(e store.UnreadEntry) bool { return e.Kind == store.KindPrompt && !e.Known }) // a card waits for an answer
	if newest < 0 {
		newest = slices.IndexFunc(u.List, func(e store.UnreadEntry) bool { return !e.Known })
	}
	if newest < 0 { // the device was notified of all but older entries
		return nil
	}
	rows, err := d.service.Store.Outbox(st.Context, st.N, u.List[newest].Seq-1, 1)
	if err != nil || len(rows) == 0 {
		return err
	}
	note, err := d.service.Read(rows[0].Body)
	if err != nil {
		return err
	}
	now := time.Now()
	targets := d.loud(now)
	n := summary{Note: note, id: u.List[newest].ID, count: u.Count, life: d.service.Life - now.Sub(rows[0].At)}
	for _, unread := range slices.Backward(u.List) { // the oldest first
		n.ids = append(n.ids, unread.ID)
	}
	if note.Prompt != nil {
		n.life = time.Until(note.Prompt.ExpiresAt)
	}
	own, shown := d.state, len(targets) > 0
	b.Do(func(tx *store.Tx) error { return tx.Notices().Add(st.N, from, shown, now) }, func(err error) {
		if err != nil {
			d.Update()
		}
		if err != nil || !shown {
			return
		}
		for _, unread := range slices.Backward(u.List) { // the oldest first, as Load reads them
			if !unread.Known {
				own.shown = append(own.shown, unread.Notice)
			}
		}
		for _, t := range targets {
			d.service.send(d.host.State().ID, t, d.compose(n, t))
		}
	})
	return nil
}

// loud returns the endpoints that have no quiet hours now.
func (d *Device) loud(now time.Time) []push.Target {
	if d.state == nil {
		return nil
	}
	var list []push.Target
	for _, t := range d.targets {
		if !t.Quiet.At(now) {
			list = append(list, t)
		}
	}
	return list
}
