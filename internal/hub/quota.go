package hub

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/quota"
	"hermes-mobile/internal/store"
)

// What devices and senders make the server store is counted on accounts: the device's own, and that of the app token by
// which it came in, so that many devices of one token have no more than a part of the whole. Files have two bounds, the
// share of the account and the budget of the data folder. Messages go on when files do not.

// Bounds of what waits for the agent. Each message is in memory, too.
const (
	inboxWaits = 10_000    // messages in one conversation
	inboxBytes = 8 << 20   // their bytes
	inboxAll   = 128 << 20 // of all conversations together
	// inboxLittle may wait in a conversation whatever waits in others.
	inboxLittle = 64 << 10
	// inboxSpare is for commands: /stop must get through where messages are too many.
	inboxSpare = 100
	// inboxRetry is when a device may try again.
	inboxRetry = 30 * time.Second
)

const (
	// rowBytes is what a row of the inbox, and deliveryBytes what a record of a delivery takes beside what was said.
	rowBytes      = 250
	deliveryBytes = 400
	// measureEvery is after how many bytes of messages the database is measured.
	measureEvery = 1 << 20
)

// loadShares reads what was counted today.
func (h *Hub) loadShares(ctx context.Context) error {
	list, err := h.store.Uploaded(ctx, quota.Day(time.Now())-1)
	if err != nil {
		return err
	}
	rows := make([]quota.Row, len(list))
	for i, u := range list {
		rows[i] = quota.Row(u)
	}
	h.shares = quota.NewShares(rows)
	return nil
}

// deviceAccount and tokenAccount are the names of accounts.
func deviceAccount(id string) string   { return ownLabel(id) }
func tokenAccount(label string) string { return "token:" + label }

// accounts are those on which what the device sends is counted.
func (s *session) accounts() []quota.Account {
	own := quota.Account{Name: deviceAccount(s.id), Limit: s.hub.DeviceShare}
	if s.dev.Label == "" || s.dev.Label == ownLabel(s.id) {
		return []quota.Account{own}
	}
	return []quota.Account{own, {Name: tokenAccount(s.dev.Label), Limit: s.hub.TokenShare}}
}

// senderAccount is the one of a delivery token: whoever holds it may name any device id.
func (h *Hub) senderAccount(label string) []quota.Account {
	return []quota.Account{{Name: tokenAccount(label), Limit: h.DeviceShare}}
}

// fileFits returns why a file of a size cannot be stored, nil where it can.
func (h *Hub) fileFits(size int64, accounts []quota.Account) error {
	n := quota.Cost(size)
	if err := h.shares.FileFits(n, time.Now(), accounts...); err != nil {
		return err
	}
	return h.Budget.Fits(n)
}

// noRoom is the answer to something that was not stored for want of room, nil where err is something else. file: it is a
// file, which the device sends again when its user says so; a message is sent again by the device itself.
func (h *Hub) noRoom(err error, file bool, ref string) *frame.Error {
	why := quota.Why(err)
	if why == "" {
		return nil
	}
	h.Metrics.NoSpace.WithLabelValues(string(why)).Inc()
	full := &quota.Full{Reason: why} // where it is the system that says so
	errors.As(err, &full)
	e := &frame.Error{Code: frame.NoSpace, Message: full.Error(), Ref: ref, RetryAfter: int(full.Retry.Seconds())}
	switch {
	case why == quota.Inbox, why == quota.Share && !file:
		e.Code = frame.RateLimited
	case !file:
		e.Code = frame.Internal
		e.Message = "the server's storage limit is reached (MOBILE_MAX_DATA), nothing was taken: send it again later, or ask the owner to raise the limit"
	}
	return e
}

// counted is what was counted for something that is being stored.
type counted struct {
	shares   *quota.Shares
	n        int64
	at       time.Time
	accounts []quota.Account
	rows     []quota.Row
}

// countFile counts a file and what stands beside it. It is called when the file is stored and before its message is.
func (h *Hub) countFile(size, beside int64, accounts []quota.Account) counted {
	c := counted{shares: h.shares, n: quota.Cost(size) + beside, at: time.Now(), accounts: accounts}
	c.rows = h.shares.AddFile(c.n, c.at, accounts...)
	return c
}

// countMessage counts a message.
func (h *Hub) countMessage(n int64, accounts []quota.Account) counted {
	if h.growth.Add(n) >= measureEvery {
		h.growth.Store(0)
		h.Budget.Measure()
	}
	c := counted{shares: h.shares, n: n, at: time.Now(), accounts: accounts}
	c.rows = h.shares.AddMessage(n, c.at, accounts...)
	return c
}

// measures reports whether counting n bytes more measures the database, which may take a moment.
func (h *Hub) measures(n int64) bool {
	return h.Budget != nil && (h.growth.Load()+n >= measureEvery || h.Budget.Full())
}

// save stores the counts, in the transaction that stores what they count.
func (c *counted) save(tx *store.Tx) error {
	for _, r := range c.rows {
		if err := tx.SetUploaded(store.Uploaded(r)); err != nil {
			return err
		}
	}
	return nil
}

// undo takes the count back: it was not stored.
func (c *counted) undo() { c.shares.Return(c.n, c.at, c.accounts...) }

// messageFits returns why a message of so many bytes cannot be stored, nil where it can.
func (h *Hub) messageFits(n int64, accounts []quota.Account) error {
	if err := h.shares.MessageFits(n, time.Now(), accounts...); err != nil {
		return err
	}
	if h.Budget.Full() {
		if h.Budget.Measure(); h.Budget.Full() { // what was refused measures nothing later
			return &quota.Full{Reason: quota.Total}
		}
	}
	return nil
}

// weighed is a number of messages and their bytes.
type weighed struct{ messages, bytes int64 }

// waits counts what waits for the agent. Sessions of devices that share the conversation read it.
type waits struct{ messages, bytes atomic.Int64 }

// inputBytes is what an input that waits is counted as.
func inputBytes(in *agent.Input) int64 { return int64(len(in.Text)+len(in.Quote)) + rowBytes }

// waitsChange notes that an input waits (by 1), or waits no more (by -1).
func (s *session) waitsChange(in *agent.Input, by int64) {
	n := by * inputBytes(in)
	s.waits.messages.Add(by)
	s.waits.bytes.Add(n)
	s.hub.waiting.Add(n)
}

// shift takes the oldest of those that wait.
func (s *session) shift() agent.Input {
	in := s.waiting[0]
	s.waiting = s.waiting[1:]
	s.waitsChange(&in, -1)
	return in
}

// waitsNoMore notes that none of those that wait does any longer.
func (s *session) waitsNoMore() {
	for i := range s.waiting {
		s.waitsChange(&s.waiting[i], -1)
	}
}

// inboxFits returns why a message cannot wait for the agent beside those that do, nil where it can.
func (s *session) inboxFits(in *agent.Input) error {
	h := s.hub
	messages, bytes, most, mostBytes := s.coming.messages, s.coming.bytes, int64(h.InboxWaits), h.InboxBytes
	of := s
	if s.joined() {
		of = h.inMemory(s.dev.Conversation)
	}
	if of != nil { // else nothing waits there
		messages += of.waits.messages.Load()
		bytes += of.waits.bytes.Load()
	}
	all := h.waiting.Load() + s.coming.bytes + inputBytes(in)
	bytes += inputBytes(in)
	if commands(*in) {
		most, mostBytes = most+inboxSpare, mostBytes+inboxLittle
	}
	if messages < most && bytes <= mostBytes && (bytes <= inboxLittle || all <= h.InboxAll) {
		return nil
	}
	return &quota.Full{Reason: quota.Inbox, Retry: inboxRetry}
}

// inMemory returns the session of a device where there is one.
func (h *Hub) inMemory(id string) *session {
	sh := h.shard(id)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.sessions[id]
}

// remembers reports whether the id of something that is done at once can be kept, to know it again. That of a device which
// has used up its share cannot: it could fill the disk with ids.
func (s *session) remembers(id string) bool {
	return id != "" && s.hub.messageFits(rowBytes+2*int64(len(id)), s.accounts()) == nil
}

// countID counts the id of something that is done at once.
func (s *session) countID(id string) counted {
	return s.hub.countMessage(rowBytes+2*int64(len(id)), s.accounts())
}
