// Package hub holds the connections and the device sessions. It is the only place where frames become the words of
// package chat and back.
//
// Each device has a session, a serial queue that owns its state (session.go). The order of things is always: check,
// store, then tell. A message is accepted when the inbox has it; a reply goes to the outbox before the socket; a card's
// decision is stored before the agent hears it. A session is in memory while its device is connected or something of it
// is unfinished; all of it can be read back from the store.
package hub

import (
	"context"
	"fmt"
	"hash/maphash"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"hermes-mobile/frame"
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

// Options is what a hub is made of. All fields are needed unless they say otherwise.
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
	PublicURL      string // may be empty: the Host of the request
	AllowAllUsers  bool
	AllowedUsers   access.List // empty: no list
	AllowedDevices access.List // empty: no list
	Named          access.List // devices, and users as user:ID, that the settings give something to, such as a gateway
	PromptLife     time.Duration
	MaxMedia       int64
	OutboxEntries  int
	OutboxBytes    int64 // of the bodies that wait for one device; 0: outboxBytes
	RejectOffline  bool  // deliveries to devices that are away are refused
	TurnLease      time.Duration
	HelloTimeout   time.Duration

	AnswerWait  time.Duration // for which a new device may not answer cards; 0: answerWait, negative: none
	Push        *push.Sender  // nil: devices that are away are not notified
	PushActions []byte        // key of the tokens by which a notification answers a card; nil: it cannot
	PushWait    time.Duration // that a device has to connect before it is notified; 0: notify.DefaultWait
	CallLife    time.Duration // that the agent has to answer a call; 0: callLife
	LastMoments time.Duration // before the end of a connection, in which what was written may not have been read; 0: lastMoments
	Room        int64         // see roomBytes; 0: that
	OutboxLife  time.Duration // how long an entry waits for its device; 0: a week

	Budget      *quota.Budget // of the data folder; nil: it has no bound
	DeviceShare int64         // bytes that a device or a sender may store in a day; 0: any number
	TokenShare  int64         // the same for all devices of one app token together
	InboxWaits  int           // messages that may wait for the agent in one conversation; 0: inboxWaits
	InboxBytes  int64         // bytes of these; 0: inboxBytes
	InboxAll    int64         // bytes of these in all conversations together; 0: inboxAll
}

// Hub holds all sessions. Its methods may be called from several goroutines at once.
type Hub struct {
	Options
	store *store.Store
	log   *slog.Logger
	ctx   context.Context
	end   context.CancelFunc

	shards        [64]shard
	seed          maphash.Seed
	conns         connections // all that are open
	sockets       wsconn.Options
	work          tally
	finish        finisher
	replaced      *access.Limiter
	rejections    *access.Rejections
	closing       atomic.Bool
	home          atomic.Pointer[string]
	failing       atomic.Int64 // unix ms of the last failure of the store
	sharing       atomic.Bool  // some conversation is shared, or was
	passed        atomic.Bool  // something is stored for devices to take, or was
	grouping      sync.Mutex   // held while devices join or leave a conversation
	admitting     sync.Mutex   // held while a pairing code is redeemed, and while the approval of a user is taken away
	approvals     access.Approvals
	redeemed      access.Redeemed
	uses          tokenUses
	notifications *notify.Service
	asking        asking
	shares        *quota.Shares
	waiting       atomic.Int64 // bytes of the messages that wait for the agent
	growth        atomic.Int64 // bytes of messages since the database was last measured
	sweeps        atomic.Int64 // counts the beginnings and ends of sweeps

	coming, unapplied *wsconn.Room // see roomBytes
}

type shard struct {
	mu       sync.Mutex
	sessions map[string]*session
}

// New makes a hub. Its Start must be called before connections come.
func New(o Options) *Hub {
	h := &Hub{Options: o, store: o.Store, log: o.Log, seed: maphash.MakeSeed(), replaced: access.NewLimiter(time.Now),
		rejections: access.NewRejections(time.Now)}
	if h.PushWait <= 0 {
		h.PushWait = notify.DefaultWait
	}
	switch {
	case h.AnswerWait == 0:
		h.AnswerWait = answerWait
	case h.AnswerWait < 0:
		h.AnswerWait = 0
	}
	if h.LastMoments <= 0 {
		h.LastMoments = lastMoments
	}
	if h.OutboxLife <= 0 {
		h.OutboxLife = 7 * 24 * time.Hour
	}
	if h.CallLife <= 0 {
		h.CallLife = callLife
	}
	if h.Room <= 0 {
		h.Room = roomBytes
	}
	if h.OutboxBytes <= 0 {
		h.OutboxBytes = outboxBytes
	}
	if h.InboxWaits <= 0 {
		h.InboxWaits = inboxWaits
	}
	if h.InboxBytes <= 0 {
		h.InboxBytes = inboxBytes
	}
	if h.InboxAll <= 0 {
		h.InboxAll = inboxAll
	}
	h.shares = quota.NewShares(nil)
	h.coming, h.unapplied = wsconn.NewRoom(h.Room), wsconn.NewRoom(h.Room)
	h.sockets = wsconn.Options{MaxMessage: frame.MaxHello, MaxQueue: maxQueue, LowWater: softQueue / 2, WriteStall: writeStall, Keeper: h.Keeper, Room: h.coming}
	h.conns.open = map[*conn]struct{}{}
	h.notifications = notify.New(notify.Options{Sender: h.Push, Key: h.PushActions, Wait: h.PushWait, Life: h.OutboxLife, Store: h.store, Read: readNote, Metrics: h.Metrics, Log: h.log, Unregister: h.unregister})
	h.asking.init()
	h.ctx, h.end = context.WithCancel(context.Background())
	for i := range h.shards {
		h.shards[i].sessions = map[string]*session{}
	}
	return h
}

// Start wakes the sessions in which something is unfinished: messages that wait, messages without an end, cards.
func (h *Hub) Start(ctx context.Context) error {
	home, err := h.store.Meta(ctx, metaHome)
	if err != nil {
		return fmt.Errorf("start hub: %w", err)
	}
	name := string(home)
	h.home.Store(&name)
	sharing, err := h.store.Sharing(ctx)
	if err != nil {
		return fmt.Errorf("start hub: %w", err)
	}
	h.sharing.Store(sharing)
	if err := h.loadShares(ctx); err != nil {
		return fmt.Errorf("start hub: %w", err)
	}
	passed, err := h.store.SharedAny(ctx)
	if err != nil {
		return fmt.Errorf("start hub: %w", err)
	}
	h.passed.Store(passed)
	ids, err := h.store.Work(ctx)
	if err != nil {
		return fmt.Errorf("start hub: %w", err)
	}
	if h.Push != nil {
		due, err := h.store.NoticesDue(ctx)
		if err != nil {
			return fmt.Errorf("start hub: %w", err)
		}
		ids = append(ids, due...)
	}
	for _, id := range ids {
		h.post(id, wake{})
	}
	return nil
}

const metaHome = "home"

// wake only makes a session read what was left.
type wake struct{}

func (wake) apply(*session, *batch) {}

// fail makes another try later: what waits must not wait for somebody to write.
func (e wake) fail(s *session, _ error) {
	time.AfterFunc(wakeAgain, func() {
		if !s.hub.closing.Load() {
			s.hub.post(s.id, e)
		}
	})
}

const wakeAgain = 5 * time.Second

func (h *Hub) shard(id string) *shard {
	return &h.shards[maphash.String(h.seed, id)%uint64(len(h.shards))]
}

// session returns the session of a device, and makes it where there is none.
func (h *Hub) session(id string) *session {
	sh := h.shard(id)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	s := sh.sessions[id]
	if s == nil {
		s = &session{hub: h, id: id}
		s.notes = h.notifications.NewDevice(id, noteHost{s})
		sh.sessions[id] = s
	}
	return s
}

// remove takes an idle session out. It is called with the session's lock held.
func (h *Hub) remove(s *session) bool {
	sh := h.shard(s.id)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.sessions[s.id] != s {
		return false
	}
	delete(sh.sessions, s.id)
	return true
}

func (h *Hub) post(id string, e event) {
	for !h.session(id).post(e) {
	}
}

// each calls f for every session that is in memory.
func (h *Hub) each(f func(*session)) {
	for i := range h.shards {
		sh := &h.shards[i]
		sh.mu.Lock()
		list := make([]*session, 0, len(sh.sessions))
		for _, s := range sh.sessions {
			list = append(list, s)
		}
		sh.mu.Unlock()
		for _, s := range list {
			f(s)
		}
	}
}

// lastMoments is how long before its end a connection may have been written to in vain: a page that is being closed does
// not read what is on its way. What it has read it acknowledges within that time, or as it goes.
const lastMoments = time.Second

// Post implements agent.Host.
func (h *Hub) Post(device string, done func(error), events ...agent.Event) {
	h.post(device, &said{events: events, done: done})
}

// Changed implements agent.Host.
func (h *Hub) Changed() {
	h.each(func(s *session) { s.post(statusChanged{}) })
}

// OpenCards implements agent.Host.
func (h *Hub) OpenCards(ctx context.Context, device string) ([]agent.Card, error) {
	dev, err := h.store.Device(ctx, device)
	if err != nil || dev == nil {
		return nil, err
	}
	rows, err := h.store.Cards(ctx, dev.N)
	if err != nil {
		return nil, err
	}
	var list []agent.Card
	for _, row := range rows {
		if row.State != store.CardOpen {
			continue
		}
		c, err := readCard(row)
		if err != nil {
			return nil, err
		}
		list = append(list, c.Card)
	}
	return list, nil
}

// approved reports whether a user may talk to the agent.
func (h *Hub) approved(user string) bool {
	return h.AllowAllUsers || h.AllowedUsers.Has(user) || h.Pairing.Approved(user)
}

// thrownOut reports whether a user is known not to be approved, so that what the agent still says to it is dropped. While
// the pairing files cannot be read nobody is: a fault of the disk is no reason to lose a reply.
func (h *Hub) thrownOut(user string) bool { return !h.approved(user) && h.Pairing.Check() == nil }

// storeFailed notes that the store could not do its work. What was asked is refused by those who asked.
func (h *Hub) storeFailed(what string, err error) {
	h.failing.Store(time.Now().UnixMilli())
	h.Metrics.StoreErrors.Inc()
	h.log.Error("the store failed: "+what, "error", err)
}

// StoreFailedAt returns when the store last failed; zero if it never did.
func (h *Hub) StoreFailedAt() time.Time {
	if ms := h.failing.Load(); ms != 0 {
		return time.UnixMilli(ms)
	}
	return time.Time{}
}

// Close ends everything: messages that are being streamed get their end, devices are told that the server goes away, and
// what is written to them is flushed until ctx ends. No connection may be added any more.
func (h *Hub) Close(ctx context.Context) {
	h.closing.Store(true)
	h.each(func(s *session) { s.post(shutdown{}) })
	wait(ctx, h.work.Wait)
	h.asking.close(ctx)
	h.notifications.Close(ctx)
	for _, c := range h.conns.list() {
		c.end(frame.CloseGoingAway, "the server stops: connect again")
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for h.conns.count() > 0 && ctx.Err() == nil {
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	for _, c := range h.conns.list() {
		c.ws.CloseNow()
	}
	h.end()
	h.work.Wait()
}

// tally counts what is being done. Unlike a sync.WaitGroup it may rise from zero while somebody waits: sessions begin to
// work for whoever posts to them, also while the hub is being closed.
type tally struct {
	mu   sync.Mutex
	n    int
	zero chan struct{} // closed when n falls to zero; nil while nobody waits
}

func (t *tally) Add(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n += n; t.n == 0 && t.zero != nil {
		close(t.zero)
		t.zero = nil
	}
}

func (t *tally) Done() { t.Add(-1) }

// Wait returns when the count has been zero once.
func (t *tally) Wait() {
	t.mu.Lock()
	if t.n == 0 {
		t.mu.Unlock()
		return
	}
	if t.zero == nil {
		t.zero = make(chan struct{})
	}
	zero := t.zero
	t.mu.Unlock()
	<-zero
}

func wait(ctx context.Context, f func()) {
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// Rejected returns the devices that were rejected again and again, and have not connected since.
func (h *Hub) Rejected() []access.Rejected { return h.rejections.Often() }
