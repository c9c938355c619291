package strangers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hermes-mobile/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

const patience = 20 * time.Second

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func until(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// proxy is the address that stands for many clients in these tests.
var proxy = netip.MustParseAddr("127.0.0.1")

// each has every address but the proxy's count as a network.
func each(a netip.Addr) (netip.Prefix, bool) { return netip.PrefixFrom(a, a.BitLen()), a != proxy }

// world is an HTTP server behind a Listener. Its handler answers /slow when it is told to, hijacks /ws,
// and admits where the request has credentials.
type world struct {
	t        testing.TB
	l        *Listener
	bytes    atomic.Int64
	dropped  sync.Map // Reason to *atomic.Int64
	release  chan struct{}
	hijacked chan *taken
	addr     string

	mu  sync.Mutex
	all []*taken
}

// taken is a WebSocket without its frames.
type taken struct {
	net.Conn
	stranger *Stranger
}

func start(t testing.TB, o Options) *world {
	t.Helper()
	inner, err := net.Listen("tcp4", "127.0.0.1:0")
	ok(t, err)
	w := &world{t: t, release: make(chan struct{}), hijacked: make(chan *taken, 1000), addr: inner.Addr().String()}
	o.Changed = func(_ int, bytes int64) { w.bytes.Store(bytes) }
	o.Dropped = func(r Reason) {
		n, _ := w.dropped.LoadOrStore(r, &atomic.Int64{})
		n.(*atomic.Int64).Add(1)
	}
	w.l = Listen(inner, o)
	s := &http.Server{Handler: http.HandlerFunc(w.serve), ReadHeaderTimeout: patience}
	w.l.Watch(s, func(r *http.Request) netip.Addr {
		if a, err := netip.ParseAddr(r.Header.Get("X-Forwarded-For")); err == nil {
			return a
		}
		return Of(r.Context()).peer
	})
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(w.l) }()
	t.Cleanup(func() {
		_ = s.Close()
		<-done
		until(t, "all connections to be given back", func() bool {
			w.mu.Lock()
			for _, c := range w.all {
				_ = c.Close()
			}
			w.mu.Unlock()
			w.l.mu.Lock()
			defer w.l.mu.Unlock()
			return w.l.open == 0 && w.l.all.Len() == 0 && len(w.l.networks) == 0 && w.l.bytes == 0
		})
	})
	return w
}

func (w *world) serve(rw http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "" {
		Admit(r.Context())
	}
	switch r.URL.Path {
	case "/ws":
		c, _, err := http.NewResponseController(rw).Hijack()
		if err != nil {
			w.t.Error(err)
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\n\r\n")
		ws := &taken{c, Of(r.Context())}
		w.mu.Lock()
		w.all = append(w.all, ws)
		w.mu.Unlock()
		w.hijacked <- ws
	case "/slow":
		rw.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(rw).Flush()
		<-w.release
	}
}

func (w *world) count(r Reason) int64 {
	n, any := w.dropped.Load(r)
	if !any {
		return 0
	}
	return n.(*atomic.Int64).Load()
}

// client is a raw connection from an address of this machine.
type client struct {
	t testing.TB
	net.Conn
	in *bufio.Reader
}

// dial connects from 127.0.0.n.
func (w *world) dial(n byte, text string) *client {
	w.t.Helper()
	d := net.Dialer{Timeout: patience, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, n)}}
	c, err := d.DialContext(w.t.Context(), "tcp4", w.addr)
	if n > 1 && err != nil {
		w.t.Skipf("this system has one loopback address only: %v", err)
	}
	ok(w.t, err)
	w.t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	_, err = io.WriteString(c, text)
	ok(w.t, err)
	return &client{w.t, c, bufio.NewReader(c)}
}

// dials opens connections that say nothing, one after the other.
func (w *world) dials(n byte, many int) (list []*client) {
	w.t.Helper()
	for range many {
		before := w.accepted()
		list = append(list, w.dial(n, ""))
		until(w.t, "the connection to be accepted", func() bool { return w.accepted() > before })
	}
	return list
}

// accepted is how many connections came so far.
func (w *world) accepted() int64 {
	w.l.mu.Lock()
	open := int64(w.l.open)
	w.l.mu.Unlock()
	return open + w.count(Total) + w.count(Network) + w.count(Memory)
}

const get = "GET / HTTP/1.1\r\nHost: x\r\n"

// answered reads an answer, and reports whether one came.
func (c *client) answered() bool {
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return false
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		_, _ = io.Copy(io.Discard, resp.Body)
	}
	return true
}

// served reports whether the connection is still served, by a request on it.
func (c *client) served() bool {
	_, err := io.WriteString(c, get+"\r\n")
	return err == nil && c.answered()
}

// closed waits for the server to close.
func (c *client) closed() bool {
	_, err := io.Copy(io.Discard, c.in)
	return !errors.Is(err, context.DeadlineExceeded) && !isTimeout(err)
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

// The bound of all: the oldest goes, whatever it has sent, and the others stay.
func TestOldestGoes(t *testing.T) {
	t.Parallel()
	w := start(t, Options{Total: 4})
	silent := w.dials(1, 1)[0]
	half := w.dial(1, "GET / HTTP/1.1\r\nHost: x\r\nX-Half: ")
	ws := w.dial(1, "GET /ws HTTP/1.1\r\nHost: x\r\n\r\n")
	if !ws.answered() {
		t.Fatal("no upgrade")
	}
	until(t, "three strangers", func() bool { return w.l.Count() == 3 })
	last := w.dials(1, 1)[0]
	for i, old := range []*client{silent, half, ws} {
		if n := w.count(Total); n != int64(i) {
			t.Fatalf("%d went, want %d", n, i)
		}
		next := w.dials(1, 1)[0]
		if !old.closed() {
			t.Errorf("number %d is still open", i)
		}
		if i == 2 && !next.served() {
			t.Error("the newcomer is not served")
		}
	}
	if !last.served() {
		t.Error("a younger one went")
	}
	if n := w.l.Count(); n != 4 {
		t.Errorf("%d strangers", n)
	}
	d := w.l.Drops()
	if len(d) != 1 || d[0].Reason != Total || d[0].Count != 3 || d[0].Addr != proxy || d[0].First.IsZero() || d[0].Last.Before(d[0].First) {
		t.Errorf("%+v", d)
	}
}

// The bound of one network: its own oldest goes, and nobody of another.
func TestNetworkHurtsItselfOnly(t *testing.T) {
	t.Parallel()
	w := start(t, Options{Total: 100, PerNetwork: 3, NetworkOf: each})
	other := w.dials(2, 3)
	loud := w.dials(3, 20)
	for i, c := range loud[:17] {
		if !c.closed() {
			t.Fatalf("number %d is still open", i)
		}
	}
	for _, c := range append(loud[17:], other...) {
		if !c.served() {
			t.Error("one that may stay went")
		}
	}
	if total, network := w.count(Total), w.count(Network); total != 0 || network != 17 {
		t.Errorf("%d and %d", total, network)
	}
	for _, c := range w.dials(1, 20) { // whoever stands for many is not bounded like one
		if !c.served() {
			t.Error("a connection of the proxy went")
		}
	}
}

// Who is behind a proxy is known from the request, and bounded like everybody.
func TestClientsBehindAProxy(t *testing.T) {
	t.Parallel()
	w := start(t, Options{Total: 100, PerNetwork: 2, NetworkOf: each})
	upgrade := func(from string) *client {
		c := w.dial(1, "GET /ws HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: "+from+"\r\n\r\n")
		if !c.answered() {
			t.Fatal("no upgrade")
		}
		return c
	}
	other := upgrade("192.0.2.1")
	var loud []*client
	for range 5 {
		loud = append(loud, upgrade("192.0.2.2"))
	}
	for i, c := range loud[:3] {
		if !c.closed() {
			t.Errorf("number %d is still open", i)
		}
	}
	until(t, "three to stay", func() bool { return w.l.Count() == 3 && w.count(Network) == 3 })
	_ = other.Close()
	// A connection that is idle between two clients counts for neither.
	for i := range 10 {
		c := w.dial(1, get+"X-Forwarded-For: 192.0.2.3\r\n\r\n")
		if !c.answered() {
			t.Fatalf("request %d was not answered", i)
		}
	}
	if n := w.count(Network); n != 3 {
		t.Errorf("%d went", n)
	}
}

// Who has authenticated is not touched by any bound: a WebSocket for good, a request until it is answered.
func TestAdmittedStay(t *testing.T) {
	t.Parallel()
	w := start(t, Options{Total: 2, PerNetwork: 2, NetworkOf: each})
	ws := w.dial(2, "GET /ws HTTP/1.1\r\nHost: x\r\n\r\n")
	if !ws.answered() {
		t.Fatal("no upgrade")
	}
	(<-w.hijacked).stranger.Admit() // its hello
	relay := w.dial(2, "GET /ws HTTP/1.1\r\nHost: x\r\nAuthorization: x\r\n\r\n")
	if !relay.answered() {
		t.Fatal("no upgrade")
	}
	slow := w.dial(2, "GET /slow HTTP/1.1\r\nHost: x\r\nAuthorization: x\r\n\r\n")
	until(t, "all to be admitted", func() bool { return w.l.Count() == 0 && w.accepted() == 3 })
	crowd := w.dials(2, 10)
	if n := w.l.Count(); n != 2 {
		t.Errorf("%d strangers", n)
	}
	close(w.release)
	if !slow.answered() {
		t.Error("the request was cut off")
	}
	until(t, "the answered one to be a stranger again", func() bool { return w.count(Network) == 9 })
	for _, c := range crowd[:9] {
		if !c.closed() {
			t.Error("it is still open")
		}
	}
	if !slow.served() || !crowd[9].served() {
		t.Error("one of the two youngest went")
	}
	for _, c := range []*client{ws, relay} {
		_ = c.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
		if _, err := c.in.ReadByte(); !isTimeout(err) {
			t.Errorf("an admitted WebSocket ended: %v", err)
		}
	}
}

// A connection of its own does not stay young by asking now and then; one of a proxy is as old as its client.
func TestAge(t *testing.T) {
	t.Parallel()
	w := start(t, Options{Total: 3, PerNetwork: 100, NetworkOf: each})
	asks, proxied := w.dials(2, 1)[0], w.dials(1, 1)[0]
	w.dials(3, 1)
	for range 3 {
		if !asks.served() || !proxied.served() {
			t.Fatal("not served")
		}
	}
	w.dials(3, 1)
	if !asks.closed() {
		t.Error("it has stayed young")
	}
	w.dials(3, 1)
	if n := w.count(Total); n != 2 || !proxied.served() {
		t.Errorf("the proxy's went, of %d", n)
	}
}

// The memory budget: what strangers send counts, and the oldest goes when it is too much.
func TestMemory(t *testing.T) {
	t.Parallel()
	w := start(t, Options{Memory: 4*perStranger + 20<<10})
	list := w.dials(1, 4)
	if n := w.bytes.Load(); n != 4*perStranger {
		t.Errorf("4 strangers count %d bytes", n)
	}
	_, err := io.WriteString(list[3], get)
	ok(t, err)
	for i := range 3 {
		_, err := fmt.Fprintf(list[3], "X: %08187d\r\n", 1)
		ok(t, err)
		if i < 2 {
			until(t, "the bytes to be counted", func() bool { return w.bytes.Load() >= 4*perStranger+int64(i+1)<<13 })
		}
	}
	if !list[0].closed() {
		t.Error("the oldest stayed")
	}
	until(t, "it to be counted", func() bool { return w.count(Memory) > 0 }) // which is after it was closed
	if !list[1].served() || !list[2].served() || w.count(Memory) != 1 {
		t.Errorf("%d went", w.count(Memory))
	}
	_, err = io.WriteString(list[3], "\r\n")
	ok(t, err)
	if !list[3].answered() {
		t.Error("the one that sends was cut off")
	}
	until(t, "what was sent to be given back", func() bool { return w.bytes.Load() == 3*perStranger })
}

// One stranger cannot count for more than the server holds of it.
func TestOneCannotTakeTheBudget(t *testing.T) {
	t.Parallel()
	w := start(t, Options{Memory: 2*perStranger + maxCounted})
	quiet := w.dials(1, 1)[0]
	const body = 200 << 10 // as much as the server reads of a body that no handler wants
	close(w.release)
	c := w.dial(1, fmt.Sprintf("POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", body))
	_, err := c.Write(make([]byte, body))
	ok(t, err)
	if !c.answered() || !c.served() {
		t.Error("its own connection went")
	}
	if !quiet.served() || w.count(Memory) != 0 {
		t.Errorf("%d went", w.count(Memory))
	}
}

// All who come at one moment are served, though they are more than the bound: the others wait.
func TestGrace(t *testing.T) {
	t.Parallel()
	w := start(t, Options{Total: 5, Grace: time.Hour})
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			c := w.dial(1, "GET /ws HTTP/1.1\r\nHost: x\r\nAuthorization: x\r\n\r\n")
			if !c.answered() {
				t.Error("one was not served")
			}
		})
	}
	wg.Wait()
	if n := w.count(Total); n != 0 {
		t.Errorf("%d went", n)
	}
}

// After the grace the oldest goes all the same, so strangers cannot keep others out.
func TestGraceEnds(t *testing.T) {
	t.Parallel()
	const grace = 50 * time.Millisecond
	w := start(t, Options{Total: 5, Grace: grace})
	first := w.dials(1, 5)
	began := time.Now()
	last := w.dial(1, "")
	if !last.served() || !first[0].closed() {
		t.Error("the bound is passed, or the newcomer not served")
	}
	if d := time.Since(began); d > patience/2 {
		t.Errorf("it took %v", d)
	}
}

// No more connections than there are files for: strangers give way, and where there are none the next one waits
// for the end of another.
func TestOpenConnections(t *testing.T) {
	t.Parallel()
	w := start(t, Options{Open: 3})
	var admitted []*taken
	for range 2 {
		c := w.dial(1, "GET /ws HTTP/1.1\r\nHost: x\r\nAuthorization: x\r\n\r\n")
		if !c.answered() {
			t.Fatal("no upgrade")
		}
		admitted = append(admitted, <-w.hijacked)
	}
	stranger := w.dials(1, 1)[0]
	third := w.dial(1, "GET /ws HTTP/1.1\r\nHost: x\r\nAuthorization: x\r\n\r\n")
	if !third.answered() || !stranger.closed() {
		t.Error("the stranger did not give way")
	}
	admitted = append(admitted, <-w.hijacked)
	waits := w.dial(1, get+"\r\n")
	_ = waits.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if _, err := waits.in.Peek(1); !isTimeout(err) {
		t.Errorf("more than there are files for: %v", err)
	}
	_ = waits.SetReadDeadline(time.Now().Add(patience))
	waits.in.Reset(waits)
	ok(t, admitted[0].Close())
	_ = admitted[0].Close() // gives no room a second time
	if !waits.answered() {
		t.Error("it was not served when there was room")
	}
	w.l.mu.Lock()
	if w.l.open != 3 {
		t.Errorf("%d are open", w.l.open)
	}
	w.l.mu.Unlock()
	for _, c := range admitted {
		_ = c.Close()
	}
}

// The end of the listener ends an Accept that waits for room.
func TestCloseEndsTheWait(t *testing.T) {
	t.Parallel()
	inner, err := net.Listen("tcp4", "127.0.0.1:0")
	ok(t, err)
	l := Listen(inner, Options{Total: 1, Grace: time.Hour})
	ended := make(chan error)
	accepted := make(chan net.Conn, 2)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				ended <- err
				return
			}
			accepted <- c
		}
	}()
	for range 2 {
		c, err := net.Dial("tcp4", inner.Addr().String())
		ok(t, err)
		defer c.Close()
	}
	defer (<-accepted).Close()
	ok(t, l.Close())
	select {
	case err := <-ended:
		if !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("Accept still waits")
	}
	if err := l.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a second end: %v", err)
	}
}

// The counts of drops are those of the last hour.
func TestDropsForget(t *testing.T) {
	w := start(t, Options{Total: 1})
	w.dials(1, 3)
	if d := w.l.Drops(); len(d) != 1 || d[0].Count != 2 {
		t.Errorf("%+v", d)
	}
	w.l.mu.Lock()
	d := w.l.drops[Total]
	d.Last = d.Last.Add(-2 * dropsPause)
	w.l.drops[Total] = d
	w.l.mu.Unlock()
	if d := w.l.Drops(); len(d) != 0 {
		t.Errorf("%+v", d)
	}
	w.dials(1, 1)
	if d := w.l.Drops(); len(d) != 1 || d[0].Count != 1 {
		t.Errorf("%+v", d)
	}
}

// Everything at once: the bounds hold at every moment, and all is given back.
func TestEverythingAtOnce(t *testing.T) {
	t.Parallel()
	w := start(t, Options{Total: 20, PerNetwork: 5, NetworkOf: each, Memory: 20 * perStranger, Open: 40, Grace: time.Millisecond})
	stop := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			w.l.mu.Lock()
			n, sum, bytes := w.l.all.Len(), 0, int64(0)
			for e := w.l.all.Front(); e != nil; e = e.Next() {
				bytes += e.Value.(*Stranger).cost()
			}
			for network, of := range w.l.networks {
				if of.Len() > 5 || of.Len() == 0 {
					t.Errorf("%v has %d", network, of.Len())
				}
				sum += of.Len()
			}
			if n > 20 || sum > n || bytes != w.l.bytes || bytes > 20*perStranger || w.l.open > 41 {
				t.Errorf("%d strangers, %d in networks, %d bytes counted as %d, %d open", n, sum, bytes, w.l.bytes, w.l.open)
			}
			w.l.mu.Unlock()
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
		}
	})
	var taking sync.WaitGroup
	taking.Go(func() {
		for i := 0; ; i++ {
			select {
			case c := <-w.hijacked:
				if i%2 == 0 {
					c.stranger.Admit()
				}
				if i%5 != 0 {
					_ = c.Close()
				} else {
					defer c.Close()
				}
			case <-stop:
				return
			}
		}
	})
	close(w.release)
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			for i := range 60 {
				c := w.dial(byte(1+n), "")
				from := fmt.Sprintf("X-Forwarded-For: 192.0.2.%d\r\n", i%7)
				switch (i + n) % 6 {
				case 0:
					_, _ = io.WriteString(c, get+from+"\r\n"+get+from+"Authorization: x\r\n\r\n")
					if c.answered() {
						c.answered()
					}
				case 1:
					_, _ = io.WriteString(c, "GET /ws HTTP/1.1\r\nHost: x\r\n"+from+"\r\n")
					c.answered()
				case 2:
					_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n"+from)
				case 3:
					_, _ = io.WriteString(c, "POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n"+from+"\r\n")
				case 4:
					_, _ = io.WriteString(c, "\x16\x03\x01 nonsense\r\n\r\n")
				}
				if i%3 == 0 {
					_ = c.Close()
				}
			}
		})
	}
	wg.Wait()
	close(stop)
	watching.Wait()
	taking.Wait()
}
