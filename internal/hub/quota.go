package hub

import (
	"context"
	"errors"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/quota"
	"hermes-mobile/internal/store"
)

// What devices and senders store on the server is counted on accounts: the device's own, and that of the app token it
// connected with, so that many devices of one token have no more than a part of the whole. Files have two limits, the share
// of the account and the budget of the data folder. Messages are accepted when files are not.

// measureEvery is after how many bytes of messages the database is measured.
const measureEvery = 1 << 20

// inboxRetry is when a device may try again to send a message that the inbox had no room for.
const inboxRetry = 30 * time.Second

// loadShares reads the counts of today.
func (sv *services) loadShares(ctx context.Context) error {
	list, err := sv.store.Uploaded(ctx, quota.Day(time.Now())-1)
	if err != nil {
		return err
	}
	rows := make([]quota.Row, len(list))
	for i, u := range list {
		rows[i] = quota.Row(u)
	}
	sv.shares = quota.NewShares(rows)
	return nil
}

// deviceAccount and tokenAccount return the names of accounts.
func deviceAccount(id string) string   { return ownLabel(id) }
func tokenAccount(label string) string { return "token:" + label }

// senderAccount returns the account of a delivery token: whoever holds it may name any device id.
func (sv *services) senderAccount(label string) []quota.Account {
	return []quota.Account{{Name: tokenAccount(label), Limit: sv.DeviceShare}}
}

// fileFits returns an error if a file of a size cannot be stored.
func (sv *services) fileFits(size int64, accounts []quota.Account) error {
	n := quota.Cost(size)
	if err := sv.shares.FileFits(n, time.Now(), accounts...); err != nil {
		return err
	}
	return sv.Budget.Fits(n)
}

// noRoom returns the answer to something that was not stored for want of room, nil if err is another error. file: it is a
// file, which the device sends again when its user says so; a message is sent again by the device itself.
func (sv *services) noRoom(err error, file bool, ref string) *frame.Error {
	why := quota.Why(err)
	if why == "" {
		return nil
	}
	sv.Metrics.NoSpace.WithLabelValues(string(why)).Inc()
	full := &quota.Full{Reason: why} // of the system
	errors.As(err, &full)
	e := &frame.Error{Code: frame.NoSpace, Message: full.Error(), Ref: ref, RetryAfter: int(full.Retry.Seconds())}
	switch {
	case why == quota.Inbox, why == quota.Share && !file:
		e.Code = frame.RateLimited
	case !file:
		e.Code = frame.Internal
		e.Message = "the server's storage limit is reached (MOBILE_MAX_DATA), nothing was accepted: send it again later, or ask the owner to raise the limit"
	}
	return e
}

// counted is the count of something that is being stored.
type counted struct {
	shares   *quota.Shares
	n        int64
	at       time.Time
	accounts []quota.Account
	rows     []quota.Row
}

// countFile counts a file and its message. It must be called when the file is stored and before its message is.
func (sv *services) countFile(size, beside int64, accounts []quota.Account) counted {
	c := counted{shares: sv.shares, n: quota.Cost(size) + beside, at: time.Now(), accounts: accounts}
	c.rows = sv.shares.AddFile(c.n, c.at, accounts...)
	return c
}

// countMessage counts a message.
func (sv *services) countMessage(n int64, accounts []quota.Account) counted {
	if sv.growth.Add(n) >= measureEvery {
		sv.growth.Store(0)
		sv.Budget.Measure()
	}
	c := counted{shares: sv.shares, n: n, at: time.Now(), accounts: accounts}
	c.rows = sv.shares.AddMessage(n, c.at, accounts...)
	return c
}

// measures reports whether counting n more bytes measures the database, which may take a moment.
func (sv *services) measures(n int64) bool {
	return sv.Budget != nil && (sv.growth.Load()+n >= measureEvery || sv.Budget.Full())
}

// save stores the counts in the transaction that stores what they count.
func (c *counted) save(tx *store.Tx) error {
	for _, r := range c.rows {
		if err := tx.SetUploaded(store.Uploaded(r)); err != nil {
			return err
		}
	}
	return nil
}

// undo takes the count back, because nothing was stored.
func (c *counted) undo() { c.shares.Return(c.n, c.at, c.accounts...) }

// messageFits returns an error if a message of a size cannot be stored.
func (sv *services) messageFits(n int64, accounts []quota.Account) error {
	if err := sv.shares.MessageFits(n, time.Now(), accounts...); err != nil {
		return err
	}
	if sv.Budget.Full() {
		if sv.Budget.Measure(); sv.Budget.Full() { // a message that is refused does not measure again
			return &quota.Full{Reason: quota.Total}
		}
	}
	return nil
}
