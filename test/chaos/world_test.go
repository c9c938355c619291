package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hermes-mobile/device"
	"hermes-mobile/frame"
	"hermes-mobile/test/gateway"
)

const (
	phones = 8
	// settleWithin is long: a server that was killed in the middle of a turn may take a minute to be sure of its end.
	settleWithin = 150 * time.Second
)

// delivery is what the sender of deliveries sent.
type delivery struct {
	id, to, text, sha string
	delivered         bool
	err               error
}

// world is everything in a test: the server, the gateway, the phones and a sender of deliveries.
type world struct {
	t    *testing.T
	seed uint64
	long bool // it may take minutes
	bad  bool // phones are behind networks that things are done to
	srv  *server
	gws  []*gateway.Gateway // mostly one

	clock    atomic.Int64 // how far the gateway's clock is ahead
	clockSet atomic.Bool  // the server's clock was set, and for a time or a moment not the gateway's

	phones []*phone
	sender *device.Device

	mu         sync.Mutex
	change     chan struct{} // closed at each change
	moments    map[string]chan struct{}
	hits       map[string]int // kinds of moments at which something was broken
	deliveries []*delivery
	// While the disk was slow: answers to a device that wrote nothing, and the longest time until one.
	slowPings   int
	slowestPing time.Duration

	stop  context.CancelFunc // of the load
	load  sync.WaitGroup
	over  chan struct{}  // closed when nothing more is to go wrong
	wrong sync.WaitGroup // of faults that take their time
	loops sync.WaitGroup
}

// newWorld starts everything and waits until all are connected.
func newWorld(t *testing.T, seed uint64, cfg gateway.Config) *world {
	t.Helper()
	return newWorldOn(t, startServer(t), seed, cfg, false)
}

// newWorldOn is newWorld for a server that runs; bad: each phone gets a network.
func newWorldOn(t *testing.T, srv *server, seed uint64, cfg gateway.Config, bad bool) *world {
	t.Helper()
	w := &world{t: t, seed: seed, bad: bad, srv: srv, over: make(chan struct{}), change: make(chan struct{}), moments: map[string]chan struct{}{}, hits: map[string]int{}}
	for _, kind := range allKinds {
		w.moments[kind] = make(chan struct{})
	}
	cfg.URL, cfg.ID, cfg.Secret = "http://"+w.srv.addr(), relayID, relaySecret
	cfg.Clock = func() time.Time { return time.Now().Add(time.Duration(w.clock.Load())) }
	cfg.OnOp = func(op string) {
		switch op {
		case "draft":
			w.moment("stream")
		case "send":
			w.moment("reply")
		case "prompt":
			w.moment("card")
		case "decision":
			w.moment("decision")
		case "upload", "send_media", "download":
			w.moment("file")
		}
	}
	w.gws = append(w.gws, gateway.New(cfg))
	if srv.gateways > 1 {
		cfg.ID, cfg.Secret = otherRelayID, otherRelaySecret
		w.gws = append(w.gws, gateway.New(cfg))
	}
	t.Cleanup(w.close)
	for n := range phones {
		p, err := newPhone(w, n)
		if err != nil {
			t.Fatal(err)
		}
		w.phones = append(w.phones, p)
	}
	var err error
	w.sender, err = device.Open(context.Background(), device.Config{URL: "ws://" + w.srv.addr() + "/ws", Token: appToken, Device: frame.Device{ID: "sender"},
		Backoff: device.Backoff{Min: 20 * time.Millisecond, Max: 200 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	w.loops.Go(func() {
		for _, err := range w.sender.Events(context.Background()) {
			if err != nil {
				return // closed
			}
			w.changed()
		}
	})
	w.connected()
	if bad {
		if err := w.srv.run("devices", "join", w.phones[sharedMember].id, w.phones[sharedLead].id); err != nil {
			t.Fatal(err)
		}
		member := w.phones[sharedMember]
		member.mu.Lock()
		member.mayTap = time.Now().Add(newcomer)
		member.mu.Unlock()
	}
	return w
}

// close ends everything that still runs.
func (w *world) close() {
	if w.stop != nil {
		w.stop()
	}
	w.load.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, p := range w.phones {
		p.app.close(ctx)
		p.taps.Wait()
		if p.net != nil {
			p.net.stop()
		}
	}
	if w.sender != nil {
		_ = w.sender.Close(ctx)
	}
	w.loops.Wait()
	for _, gw := range w.gws {
		gw.Close()
	}
}

// gwOf returns the gateway that serves a conversation.
func (w *world) gwOf(chat string) *gateway.Gateway {
	if len(w.gws) > 1 && slices.Contains(otherChats, chat) {
		return w.gws[1]
	}
	return w.gws[0]
}

// note puts a line into the traces of the gateways.
func (w *world) note(text string) {
	for _, gw := range w.gws {
		gw.Note(text)
	}
}

// changed wakes those who wait for a condition.
func (w *world) changed() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.change)
	w.change = make(chan struct{})
}

// wait waits for a condition over what the phones and the gateways know.
func (w *world) wait(ctx context.Context, ok func() bool) bool {
	for {
		w.mu.Lock()
		mine := w.change
		w.mu.Unlock()
		first, last := w.gws[0].Changed(), w.gws[len(w.gws)-1].Changed()
		if ok() {
			return true
		}
		select {
		case <-mine:
		case <-first:
		case <-last:
		case <-ctx.Done():
			return false
		}
	}
}

// kinds of moments at which something is to break, each in turn: those of allKinds unless a flag says otherwise.
var (
	kinds    = allKinds
	allKinds = []string{"accept", "stream", "reply", "card", "decision", "delivery", "file"}
)

// moment says that something of this kind is about to happen.
func (w *world) moment(kind string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.moments[kind])
	w.moments[kind] = make(chan struct{})
}

// await waits a random time and then for a moment of this kind, and returns a little after it began, in its midst.
func (w *world) await(rng *rand.Rand, kind string, low, high time.Duration) {
	time.Sleep(low + time.Duration(rng.Int64N(int64(high-low))))
	w.mu.Lock()
	c := w.moments[kind]
	w.mu.Unlock()
	t := time.NewTimer(time.Second)
	defer t.Stop()
	select {
	case <-c:
		w.hits[kind]++
	case <-t.C:
		w.hits["none"]++
	}
	// Most things take about a millisecond; a few, such as files, take longer.
	time.Sleep(time.Duration(rng.Int64N(1_000<<rng.IntN(5))) * time.Microsecond)
}

// begin puts everything under load.
func (w *world) begin() {
	ctx, cancel := context.WithCancel(context.Background())
	w.stop = cancel
	for _, p := range w.phones {
		w.load.Go(func() { p.load(ctx) })
	}
	w.load.Go(func() { w.deliver(ctx) })
}

// deliver sends deliveries until ctx ends. The last one is waited for.
func (w *world) deliver(ctx context.Context) {
	rng := rand.New(rand.NewPCG(w.seed, 1000))
	for n := 1; ; n++ {
		t := time.NewTimer(10*time.Millisecond + time.Duration(rng.IntN(150))*time.Millisecond)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return
		}
		d := &delivery{id: fmt.Sprintf("d-%d", n), to: w.phones[rng.IntN(len(w.phones))].id, text: fmt.Sprintf("delivery %d", n)}
		f := frame.Deliver{ID: d.id, To: d.to, Text: d.text}
		if rng.IntN(5) == 0 {
			f.Kind, f.Mime, f.Filename, f.Data = "document", "application/octet-stream", d.id+".bin", gateway.FileOf(d.id)
			d.sha = gateway.SHA(f.Data)
		}
		w.mu.Lock()
		w.deliveries = append(w.deliveries, d)
		w.mu.Unlock()
		w.moment("delivery")
		patience, cancel := context.WithTimeout(context.Background(), 90*time.Second)
		_, err := w.sender.Deliver(patience, f)
		for full := (*frame.Error)(nil); errors.As(err, &full) && full.Code == frame.NoSpace && patience.Err() == nil; { // the disk is full: it is sent again
			select {
			case <-time.After(200 * time.Millisecond):
			case <-patience.Done():
			}
			_, err = w.sender.Deliver(patience, f)
		}
		cancel()
		w.mu.Lock()
		d.delivered, d.err = err == nil, err
		w.mu.Unlock()
	}
}

// quiet reports whether everything has come to its end.
func (w *world) quiet() bool {
	for _, p := range w.phones {
		if !p.quiet() {
			return false
		}
	}
	return !slices.ContainsFunc(w.gws, func(gw *gateway.Gateway) bool { return !gw.Idle() })
}

// connected waits until everybody is.
func (w *world) connected() {
	w.t.Helper()
	w.online(w.phones...)
}

// online waits until phones, and the sender where there is one, are connected.
func (w *world) online(phones ...*phone) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 30*time.Second)
	defer cancel()
	online := func() bool {
		for _, p := range phones {
			if !p.app.online() {
				return false
			}
		}
		return w.sender == nil || w.sender.Status().State == device.Online
	}
	if !w.wait(ctx, online) {
		w.t.Fatalf("not everybody was connected in time\n%s", w.srv.tail(60))
	}
}

// settle ends the load and waits until everything has come to its end; then a last message of each phone goes the whole way,
// so that whatever was before it in the outboxes has come, doubles too.
func (w *world) settle() error {
	w.stop()
	w.load.Wait()
	ctx, cancel := context.WithTimeout(w.t.Context(), settleWithin)
	defer cancel()
	if !w.wait(ctx, w.quiet) {
		return errors.New("it did not come to rest within " + settleWithin.String())
	}
	for _, p := range w.phones {
		p.text(p.id+".last", "echo "+p.id+".last", "reply "+p.id+".last")
	}
	if !w.wait(ctx, func() bool { return w.quiet() && w.heardLast() }) {
		return errors.New("a last message of each phone was not answered in time")
	}
	return nil
}

// heardLast reports whether each phone has the answers to the last messages of all phones of its conversation: the one who
// asked may have its answer a moment before the others do.
func (w *world) heardLast() bool {
	for _, p := range w.phones {
		for _, o := range w.phones {
			if o.chat == p.chat && !p.has("reply "+o.id+".last") {
				return false
			}
		}
	}
	return true
}
