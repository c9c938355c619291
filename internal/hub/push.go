package hub

import (
	"encoding/json"
	"slices"
	"time"

	"hermes-mobile/internal/push"
	"hermes-mobile/internal/store"
)

// A device that is away is notified of what is stored for it: a short while after the commit, so that several entries are
// one notification, and one that comes back at once gets none. The entries are noted before the notification is sent. So
// a crash may cost a notification and never doubles one; the entries themselves are in the outbox anyway.
//
// A notification is withdrawn when what it told of needs no attention any more: the device has it, another device of the
// conversation has shown it, or the card is decided.

// pushWait is how long a device has to come before it is notified.
const pushWait = 3 * time.Second

// maxNotified bounds the ids in one notification, and maxGiven those that a session remembers.
const (
	maxNotified = 32
	maxGiven    = 64
)

// pushState is what a session knows of its device's notifications.
type pushState struct {
	targets []push.Target
	shown   []store.Notice // not withdrawn
	done    []string       // ids that need no attention any more
	doubt   int64          // from this seq on, what was sent may not have arrived; 0: all has
	given   []store.Notice // what the live connection was given last, in a shared conversation
}

// readPush reads what the store has of a device's notifications.
func (s *session) readPush(dev *store.Device) (p pushState, err error) {
	if s.hub.Push == nil {
		return p, nil
	}
	bodies, err := s.hub.store.Push(s.hub.ctx, dev.N)
	if err != nil || len(bodies) == 0 {
		return p, err
	}
	for _, body := range bodies {
		var t push.Target
		if err := json.Unmarshal(body, &t); err != nil {
			s.hub.log.Error("a stored registration for notifications cannot be read", "device", s.id, "error", err)
			continue
		}
		p.targets = append(p.targets, t)
	}
	p.shown, err = s.hub.store.Notices(s.hub.ctx, dev.N)
	return p, err
}

// notified reports whether the device wants notifications and may have them.
func (s *session) notified() bool {
	return s.dev != nil && len(s.push.targets) > 0 && !s.dev.Revoked && !s.hub.closing.Load()
}

// pushEntry: an entry is stored for the device.
func (s *session) pushEntry(e *entry) {
	switch {
	case e.Done != nil:
		s.doneWith(e.Done.PromptID)
	case e.Message != nil, e.Media != nil, e.Prompt != nil, e.Notice != nil:
		s.noticeLater()
	}
}

// noticeLater makes the device hear of what waits for it, unless it comes by itself.
func (s *session) noticeLater() {
	if s.notified() && s.conn == nil && s.seq > s.unreadFrom() {
		s.start(&s.timers.notice, s.hub.PushWait, noticeDue{})
	}
}

// unreadFrom is the seq up to which the device was sent its outbox, as far as is known.
func (s *session) unreadFrom() int64 {
	sent := s.dev.Sent
	if s.push.doubt > 0 {
		sent = min(sent, s.push.doubt-1)
	}
	return max(sent, s.dev.Floor)
}

// lastMoments is how long before its end a connection may have been written to in vain: a page that is being closed does
// not read what is on its way. What it has read it acknowledges within that time, or as it goes.
const lastMoments = time.Second

// doubt is called when the live connection has ended after a silence. A phone that falls asleep says nothing, and what was
// written until that was noticed is lost: it is to be notified of that, too.
func (s *session) doubt(silence time.Duration) {
	if !s.notified() {
		return
	}
	seq, err := s.hub.store.FirstSince(s.hub.ctx, s.dev.N, time.Now().Add(-silence))
	if err != nil {
		s.hub.storeFailed("see what a silent device was sent", err)
		return
	}
	s.push.doubt = seq
}

// noticeDue: the device had the time to come.
type noticeDue struct{}

func (noticeDue) apply(s *session, b *batch) {
	s.flush(b)
	s.timers.notice = nil
	if !s.notified() || s.conn != nil || s.hub.thrownOut(s.dev.Owner()) {
		return
	}
	from := s.unreadFrom()
	u, err := s.hub.store.Unread(s.hub.ctx, s.dev.N, from, maxNotified)
	if err == nil && u.Fresh > 0 {
		err = s.notify(b, u, from)
	}
	if err != nil {
		s.hub.storeFailed("see what a device is to be notified of", err)
		s.noticeLater()
	}
}

// notify notes that the device is notified of all that waits after from, then does it.
func (s *session) notify(b *batch, u store.Unread, from int64) error {
	newest := slices.IndexFunc(u.List, func(e store.UnreadEntry) bool { return e.Kind == store.KindPrompt && !e.Known }) // a card waits for an answer
	if newest < 0 {
		newest = slices.IndexFunc(u.List, func(e store.UnreadEntry) bool { return !e.Known })
	}
	if newest < 0 { // known are the newer ones only
		return nil
	}
	rows, err := s.hub.store.Outbox(s.hub.ctx, s.dev.N, u.List[newest].Seq-1, 1)
	if err != nil || len(rows) == 0 {
		return err
	}
	e, err := readEntry(rows[0].Body)
	if err != nil {
		return err
	}
	now := time.Now()
	targets := s.loud(now)
	n := notice{entry: e, id: u.List[newest].ID, count: u.Count, life: s.hub.OutboxLife - now.Sub(rows[0].At)}
	for _, unread := range u.List {
		n.ids = append(n.ids, unread.ID)
	}
	slices.Reverse(n.ids) // the oldest first
	if e.Prompt != nil {
		n.life = time.Until(e.Prompt.ExpiresAt)
	}
	device, shown := s.dev.N, len(targets) > 0
	b.do(func(tx *store.Tx) error { return tx.AddNotices(device, from, shown, now) }, func(err error) {
		if err != nil {
			s.noticeLater()
		}
		if err != nil || !shown {
			return
		}
		for _, unread := range slices.Backward(u.List) { // the oldest first, as they are read back
			if !unread.Known {
				s.push.shown = append(s.push.shown, unread.Notice)
			}
		}
		for _, t := range targets {
			s.hub.send(s, t, s.note(n, t))
		}
	})
	return nil
}

// loud are the targets that are not quiet now.
func (s *session) loud(now time.Time) []push.Target {
	var list []push.Target
	for _, t := range s.push.targets {
		if !t.Quiet.At(now) {
			list = append(list, t)
		}
	}
	return list
}

// doneWith: a message, file or card needs no attention any more.
func (s *session) doneWith(ids ...string) {
	for _, n := range s.push.shown {
		if slices.Contains(ids, n.ID) && !slices.Contains(s.push.done, n.ID) {
			s.push.done = append(s.push.done, n.ID)
		}
	}
	s.withdrawLater()
}

// over reports whether a notification needs no attention any more.
func (s *session) over(n store.Notice) bool {
	return n.Seq <= s.dev.Floor || slices.Contains(s.push.done, n.ID)
}

// withdrawLater withdraws what is over, with what else is so in a moment.
func (s *session) withdrawLater() {
	if s.notified() && slices.ContainsFunc(s.push.shown, s.over) {
		s.start(&s.timers.withdraw, s.hub.PushWait/3, withdrawDue{})
	}
}

// withdrawDue: what is over is to be withdrawn.
type withdrawDue struct{}

func (withdrawDue) apply(s *session, b *batch) {
	s.flush(b)
	s.timers.withdraw = nil
	if !s.notified() {
		return
	}
	var over []store.Notice
	for _, n := range s.push.shown {
		if s.over(n) {
			over = append(over, n)
		}
	}
	if len(over) == 0 {
		return
	}
	device := s.dev.N
	b.do(func(tx *store.Tx) error {
		for _, n := range over {
			if err := tx.Withdraw(device, n.Seq); err != nil {
				return err
			}
		}
		return tx.DropNotices(device)
	}, func(err error) {
		if err != nil {
			s.withdrawLater()
			return
		}
		ids := make([]string, 0, len(over))
		for _, n := range over {
			ids = append(ids, n.ID)
		}
		s.push.shown = slices.DeleteFunc(s.push.shown, func(n store.Notice) bool { return slices.Contains(over, n) })
		s.push.done = slices.DeleteFunc(s.push.done, func(id string) bool { return slices.Contains(ids, id) })
		for _, t := range s.loud(time.Now()) {
			if t.Encrypted() { // one that cannot be told what to withdraw would only ring again
				s.hub.send(s, t, s.withdrawal(ids))
			}
		}
	})
}

// noteGiven remembers what the connection was given, since the outbox forgets it before a person has seen it.
func (s *session) noteGiven(e *entry) {
	if s.hub.Push == nil || !s.shares() {
		return
	}
	n := store.Notice{Seq: e.seq}
	switch {
	case e.Message != nil:
		n.ID = e.Message.ID
	case e.Media != nil:
		n.ID = e.Media.ID
	default:
		return // a card is over when it is decided
	}
	if s.push.given = append(s.push.given, n); len(s.push.given) > maxGiven {
		s.push.given = slices.Delete(s.push.given, 0, 1)
	}
}

// tellSeen tells the other devices of the conversation that a person has seen what this one has up to seq.
func (s *session) tellSeen(seq int64) {
	var ids []string
	s.push.given = slices.DeleteFunc(s.push.given, func(n store.Notice) bool {
		if n.Seq <= seq {
			ids = append(ids, n.ID)
		}
		return n.Seq <= seq
	})
	switch {
	case len(ids) == 0:
	case s.joined():
		s.hub.post(s.dev.Conversation, seenElsewhere{ids, s.id})
	default:
		seenElsewhere{ids, s.id}.pass(s)
	}
}

// seenElsewhere: a device of the conversation has shown messages to a person.
type seenElsewhere struct {
	ids []string
	by  string
}

func (e seenElsewhere) apply(s *session, b *batch) {
	s.flush(b)
	b.then(func() {
		if s.dev == nil {
			return
		}
		e.pass(s)
		s.doneWith(e.ids...)
	})
}

// pass tells the members, where the session is their lead.
func (e seenElsewhere) pass(s *session) {
	for _, id := range s.members {
		if id != e.by {
			s.hub.post(id, e)
		}
	}
}
