// Package hub holds the connections and the device sessions. It is the only place where frames become the terms of package
// agent and back.
//
// Each device has a session (session.go): a serial queue with the parts that it is made of (device.go). The order is always
// the same: check, store, then tell. A message is acknowledged when the inbox has it. A reply is in the outbox before it is
// on the socket. The decision of a card is stored before the agent hears it. A session is in memory while its device is
// connected or something of it is unfinished. All of it can be read back from the store.
//
// doc/architecture.md draws the parts and the direction of their references.
package hub

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/access"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/notify"
	"hermes-mobile/internal/quota"
	"hermes-mobile/internal/store"
	"hermes-mobile/internal/wsconn"
)

// ErrUnknownDevice is returned for an id that no device has.
var ErrUnknownDevice = errors.New("no device has this id: hermes-mobile devices list shows the devices")

// Hub holds all sessions. Its methods may be called concurrently.
type Hub struct {
	services
	end context.CancelFunc

	shards    [64]shard
	seed      maphash.Seed
	conns     connections
	sockets   wsconn.Options
	arriving  *wsconn.Room // large frames that are being received
	replaced  *access.Limiter
	rejected  *access.Rejections
	grouping  sync.Mutex // held while devices join or leave a conversation
	admitting sync.Mutex // held while a pairing code is redeemed, and while the approval of a user ends
	approvals access.Approvals
	redeemed  access.Redeemed
	uses      tokenUses
}

// shard holds the sessions of a part of the devices.
type shard struct {
	mu       sync.Mutex
	sessions map[string]*device
}

// New returns a hub. Its Start must be called before connections come.
func New(o Options) *Hub {
	h := &Hub{seed: maphash.MakeSeed(), replaced: access.NewLimiter(time.Now), rejected: access.NewRejections(time.Now)}
	h.Options = o.withDefaults()
	h.store, h.log = o.Store, o.Log
	h.shares = quota.NewShares(nil)
	h.arriving, h.unapplied = wsconn.NewRoom(h.Room), wsconn.NewRoom(h.Room)
	h.sockets = wsconn.Options{MaxMessage: frame.MaxHello, MaxQueue: maxQueue, LowWater: softQueue / 2, WriteStall: writeStall, Keeper: h.Keeper, Room: h.arriving}
	h.conns.open = map[*reader]struct{}{}
	h.notifications = notify.New(notify.Options{Sender: h.Push, Key: h.PushActions, Wait: h.PushWait, Life: h.OutboxLife,
		Store: h.store, Read: readNote, Metrics: h.Metrics, Log: h.log, Unregister: h.unregister})
	h.calls.init()
	h.ctx, h.end = context.WithCancel(context.Background())
	for i := range h.shards {
		h.shards[i].sessions = map[string]*device{}
	}
	return h
}

// Start wakes the sessions in which something is unfinished: messages that wait, messages without an end, cards.
func (h *Hub) Start(ctx context.Context) error {
	ids, err := h.load(ctx)
	if err != nil {
		return fmt.Errorf("start hub: %w", err)
	}
	for _, id := range ids {
		h.post(id, &evWake{})
	}
	return nil
}

// load reads what all sessions share, and returns the devices for which something is unfinished.
func (h *Hub) load(ctx context.Context) ([]string, error) {
	home, err := h.store.Meta(ctx, metaHome)
	if err != nil {
		return nil, err
	}
	name := string(home)
	h.home.Store(&name)
	sharing, err := h.store.Sharing(ctx)
	if err != nil {
		return nil, err
	}
	h.sharing.Store(sharing)
	if err := h.loadShares(ctx); err != nil {
		return nil, err
	}
	passed, err := h.store.SharedAny(ctx)
	if err != nil {
		return nil, err
	}
	h.passed.Store(passed)
	ids, err := h.store.Work(ctx)
	if err != nil || h.Push == nil {
		return ids, err
	}
	due, err := h.store.NoticesDue(ctx)
	return append(ids, due...), err
}

func (h *Hub) shard(id string) *shard {
	return &h.shards[maphash.String(h.seed, id)%uint64(len(h.shards))]
}

// device returns the session of a device, and makes it if there is none.
func (h *Hub) device(id string) *device {
	sh := h.shard(id)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	d := sh.sessions[id]
	if d == nil {
		d = newDevice(h, id)
		sh.sessions[id] = d
	}
	return d
}

// inMemory returns the session of a device, nil if there is none.
func (h *Hub) inMemory(id string) *device {
	sh := h.shard(id)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.sessions[id]
}

// remove takes an idle session out. The caller holds the session's lock.
func (h *Hub) remove(d *device) bool {
	sh := h.shard(d.id)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.sessions[d.id] != d {
		return false
	}
	delete(sh.sessions, d.id)
	return true
}

// deviceEvent is an event that is posted by the id of its device.
type deviceEvent interface {
	event
	bind(d *device)
}

// post gives the session of a device an event.
func (h *Hub) post(id string, e deviceEvent) {
	for {
		d := h.device(id)
		e.bind(d)
		if d.session.post(e) {
			return
		}
	}
}

// run has the session of a device run f.
func (h *Hub) run(id string, f func(*device, *batch)) { h.post(id, &evDevice{f: f}) }

// each calls f for every session that is in memory.
func (h *Hub) each(f func(*device)) {
	for i := range h.shards {
		sh := &h.shards[i]
		sh.mu.Lock()
		list := make([]*device, 0, len(sh.sessions))
		for _, d := range sh.sessions {
			list = append(list, d)
		}
		sh.mu.Unlock()
		for _, d := range list {
			f(d)
		}
	}
}

// unregister makes a device forget an endpoint of notifications that is no longer valid, or that another device has.
func (h *Hub) unregister(id, endpoint string) {
	h.run(id, func(d *device, b *batch) {
		b.flush()
		if d.dev != nil {
			d.notes.Unregister(noteBatch{b}, endpoint, nil)
		}
	})
}

// Post implements agent.Host.
func (h *Hub) Post(device string, done func(error), events ...agent.Event) {
	h.post(device, &evAgentReply{events: events, done: done})
}

// Changed implements agent.Host.
func (h *Hub) Changed() {
	h.each(func(d *device) { d.session.run(d.agentChanged) })
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
		k, err := readCard(row)
		if err != nil {
			return nil, err
		}
		list = append(list, k.Card)
	}
	return list, nil
}

// StoreFailedAt returns when the store last failed; zero if it never did.
func (h *Hub) StoreFailedAt() time.Time {
	if ms := h.failing.Load(); ms != 0 {
		return time.UnixMilli(ms)
	}
	return time.Time{}
}

// Rejected returns the devices that were rejected again and again, and have not connected since.
func (h *Hub) Rejected() []access.Rejected { return h.rejected.Often() }

// Swept tells the hub that a sweep of the store begins or has ended: outboxes may hold less than their sessions count.
func (h *Hub) Swept() { h.sweeps.Add(1) }

// Close ends everything. Messages that are being streamed get their end, devices are told that the server goes away, and
// what is written to them is flushed until ctx ends. No connection may be added any more.
func (h *Hub) Close(ctx context.Context) {
	h.closing.Store(true)
	h.each(func(d *device) { d.session.run(d.shutdown) })
	wait(ctx, h.work.Wait)
	h.calls.close(ctx)
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
