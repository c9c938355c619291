package hub

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"hermes-mobile/internal/notify"
	"hermes-mobile/internal/quota"
	"hermes-mobile/internal/store"
	"hermes-mobile/internal/wsconn"
)

// services is what all sessions share. It is safe for concurrent use.
type services struct {
	Options
	store *store.Store
	log   *slog.Logger
	ctx   context.Context // ends when the hub is closed

	work          tally // of sessions
	finish        finisher
	notifications *notify.Service
	calls         callLimit
	shares        *quota.Shares
	unapplied     *wsconn.Room // large frames that are not applied yet

	home    atomic.Pointer[string] // id of the home channel; empty: there is none
	closing atomic.Bool
	failing atomic.Int64 // Unix milliseconds of the last failure of the store
	sharing atomic.Bool  // a conversation is shared, or was
	passed  atomic.Bool  // entries are stored for devices to take, or were
	waiting atomic.Int64 // bytes of the messages that wait for the agent
	growth  atomic.Int64 // bytes of messages since the database was last measured
	sweeps  atomic.Int64 // counts the beginnings and ends of sweeps
}

// approved reports whether a user may talk to the agent.
func (sv *services) approved(user string) bool {
	return sv.AllowAllUsers || sv.AllowedUsers.Has(user) || sv.Pairing.Approved(user)
}

// rejects reports whether a user is known to have no approval. The agent's replies to such a user are dropped. While the
// pairing files cannot be read no user is rejected: a failing disk is no reason to lose a reply.
func (sv *services) rejects(user string) bool { return !sv.approved(user) && sv.Pairing.Check() == nil }

// storeFailed reports an operation of the store that failed. The caller answers whoever asked for it.
func (sv *services) storeFailed(op string, err error) {
	sv.failing.Store(time.Now().UnixMilli())
	sv.Metrics.StoreErrors.Inc()
	sv.log.Error("store failed", "op", op, "err", err)
}

// isHome reports whether a device is the home channel.
func (sv *services) isHome(id string) bool { return id != "" && id == *sv.home.Load() }

// none stores nothing.
func none(*store.Tx) error { return nil }
