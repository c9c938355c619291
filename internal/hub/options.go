package hub

import (
	"log/slog"
	"time"

	"hermes-mobile/internal/access"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/media"
	"hermes-mobile/internal/metrics"
	"hermes-mobile/internal/notify"
	"hermes-mobile/internal/push"
	"hermes-mobile/internal/quota"
	"hermes-mobile/internal/store"
	"hermes-mobile/internal/wsconn"
)

// Options configures a Hub. All fields are required unless they say otherwise.
type Options struct {
	Store   *store.Store
	Files   *media.Store
	Links   *media.Signer
	Agent   agent.Agent
	Tokens  *access.Tokens
	Pairing *access.Pairing
	Guard   *access.Guard
	Keeper  *wsconn.Keeper
	Metrics *metrics.Set
	Log     *slog.Logger

	Version        string
	AvatarURL      string // may be empty
	PublicURL      string // may be empty: links use the Host of the request
	AllowAllUsers  bool
	AllowedUsers   access.List // empty: no list
	AllowedDevices access.List // empty: no list
	Named          access.List // devices, and users as user:ID, that the settings name, such as a gateway
	PromptLife     time.Duration
	MaxMedia       int64
	OutboxEntries  int
	OutboxBytes    int64 // of the bodies that wait for one device; 0: defaultOutboxBytes
	RejectOffline  bool  // deliveries to offline devices are rejected
	IdleTimeout    time.Duration
	HelloTimeout   time.Duration

	AnswerWait  time.Duration // before a new device may answer cards; 0: defaultAnswerWait, negative: none
	Push        *push.Sender  // nil: offline devices are not notified
	PushActions []byte        // key of the tokens with which a notification answers a card; nil: it cannot
	PushWait    time.Duration // that a device has to connect before it is notified; 0: notify.DefaultWait
	CallLife    time.Duration // that the agent has to answer a call; 0: defaultCallTimeout
	LastMoments time.Duration // before the end of a connection, in which writes may have been lost; 0: defaultLastMoments
	Room        int64         // memory budget of large frames; 0: defaultFrameBudget
	OutboxLife  time.Duration // how long an entry waits for its device; 0: a week

	Budget      *quota.Budget // of the data folder; nil: no limit
	DeviceShare int64         // bytes that a device or a sender may store in a day; 0: no limit
	TokenShare  int64         // the same for all devices of one app token together
	InboxWaits  int           // messages that may wait for the agent in one conversation; 0: defaultInboxMessages
	InboxBytes  int64         // bytes of these; 0: defaultInboxBytes
	InboxAll    int64         // bytes of these in all conversations; 0: defaultInboxTotal
}

// Defaults of Options.
const (
	defaultOutboxBytes   = 64 << 20
	defaultOutboxLife    = 7 * 24 * time.Hour
	defaultAnswerWait    = time.Minute
	defaultCallTimeout   = 30 * time.Second
	defaultInboxMessages = 10_000
	defaultInboxBytes    = 8 << 20
	defaultInboxTotal    = 128 << 20

	// defaultFrameBudget bounds the large frames of all connections: once while they arrive, and once until they are
	// applied. A connection that exceeds it waits a little, then is told to try later.
	defaultFrameBudget = 64 << 20

	// defaultLastMoments is for a page that is being closed: it does not read what was written to it then. A page
	// acknowledges what it has read within that time, or as it closes.
	defaultLastMoments = time.Second
)

// withDefaults returns the options with defaults for the fields that are zero.
func (o Options) withDefaults() Options {
	o.OutboxBytes = positive(o.OutboxBytes, defaultOutboxBytes)
	o.OutboxLife = positive(o.OutboxLife, defaultOutboxLife)
	o.PushWait = positive(o.PushWait, notify.DefaultWait)
	o.CallLife = positive(o.CallLife, defaultCallTimeout)
	o.LastMoments = positive(o.LastMoments, defaultLastMoments)
	o.Room = positive(o.Room, defaultFrameBudget)
	o.InboxWaits = positive(o.InboxWaits, defaultInboxMessages)
	o.InboxBytes = positive(o.InboxBytes, defaultInboxBytes)
	o.InboxAll = positive(o.InboxAll, defaultInboxTotal)
	switch {
	case o.AnswerWait == 0:
		o.AnswerWait = defaultAnswerWait
	case o.AnswerWait < 0:
		o.AnswerWait = 0
	}
	return o
}

// positive returns v if it is greater than zero, and otherwise a default.
func positive[T int | int64 | time.Duration](v, otherwise T) T {
	if v > 0 {
		return v
	}
	return otherwise
}
