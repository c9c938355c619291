package relay

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// sleeper is what an owner's wake address leads to.
type sleeper struct {
	*httptest.Server
	asked  atomic.Int64
	answer atomic.Pointer[http.HandlerFunc]
	mu     sync.Mutex
	last   *http.Request
}

func newSleeper(t *testing.T) *sleeper {
	s := &sleeper{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.last = r
		s.mu.Unlock()
		s.asked.Add(1)
		if h := s.answer.Load(); h != nil {
			(*h)(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *sleeper) answers(h http.HandlerFunc) { s.answer.Store(&h) }

// lockedLog is a log that several goroutines write.
type lockedLog struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newWakeRig(t *testing.T, url string, again time.Duration) (*rig, *lockedLog) {
	log := &lockedLog{}
	r := unbegun(t, func(o *Options) {
		o.Gateways[0].WakeURL = url
		o.Log = slog.New(slog.NewTextHandler(log, nil))
	})
	r.a.serves("tel").waker.again = again
	r.begin()
	return r, log
}

// TestWake: a gateway that is away is woken once something waits, again and again until it is there, and not while it is. One that
// says that it goes to sleep is woken, too. Nothing of ours is sent along, and the query is in no log.
func TestWake(t *testing.T) {
	s := newSleeper(t)
	r, log := newWakeRig(t, s.URL+"/start?key=query-secret", 2*time.Millisecond)
	for range 50 {
		r.a.Waits("tel")
	}
	r.until("asked again", func() bool { return s.asked.Load() >= 3 })
	s.mu.Lock()
	last := s.last
	s.mu.Unlock()
	if last.Method != "GET" || last.URL.RawQuery != "key=query-secret" || last.Header.Get("Authorization")+last.Header.Get("Cookie")+last.Header.Get("Referer") != "" || last.ContentLength > 0 {
		t.Errorf("it was asked with %s %s %v", last.Method, last.URL, last.Header)
	}
	p := r.dial()
	r.until("nobody wakes it", func() bool { g := r.a.serves("tel"); g.seq.Lock(); defer g.seq.Unlock(); return g.waker.came == nil })
	before := s.asked.Load()
	for range 50 {
		r.a.Waits("tel")
	}
	p.turn("tel", 1, "hi")                 // time passes
	if n := s.asked.Load(); n > before+1 { // one may have been on its way
		t.Errorf("a gateway that is there was woken %d times", n-before)
	}
	p.send(obj("type", "going_idle"))
	p.expect("going_idle_ack")
	before = s.asked.Load()
	r.a.Waits("tel")
	r.until("woken from its sleep", func() bool { return s.asked.Load() > before })
	r.stop()
	if text := log.String(); strings.Contains(text, "query-secret") || !strings.Contains(text, "gateway woken") || !strings.Contains(text, s.URL+"/start") {
		t.Errorf("the log is\n%s", text)
	}
}

// TestWakePauses: the pauses grow, also over several messages, so that nobody makes the server hammer the address.
func TestWakePauses(t *testing.T) {
	s := newSleeper(t)
	r, _ := newWakeRig(t, s.URL, time.Hour)
	r.a.Waits("tel")
	r.until("asked", func() bool { return s.asked.Load() == 1 })
	for range 20 {
		p := r.dial() // it comes, and falls asleep again
		p.send(obj("type", "going_idle"))
		p.expect("going_idle_ack")
		r.a.Waits("tel")
		p.conn.CloseNow()
		r.until("away", func() bool { return !r.a.Status("tel").Online })
		r.a.Waits("tel")
	}
	if n := s.asked.Load(); n != 1 {
		t.Errorf("asked %d times within the first pause", n)
	}
}

// TestWakeTroubles: whatever the address answers costs a bounded time and no more than a line in the log, and is told to the owner.
func TestWakeTroubles(t *testing.T) {
	var elsewhere atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	s := newSleeper(t)
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		says   string
	}{
		"refuses":   {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, "status 403"},
		"redirects": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, http.StatusFound) }, ""},
		"endless": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 32<<10)); err != nil {
					return
				}
			}
		}, ""},
		"hangs up": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			s.answers(c.answer)
			before := s.asked.Load()
			r, log := newWakeRig(t, s.URL+"?key=query-secret", time.Millisecond)
			r.a.Waits("tel")
			r.until("asked again", func() bool { return s.asked.Load() > before+1 })
			r.until("told", func() bool { return strings.Contains(r.a.State().Gateways[0].WakeErr, c.says) })
			r.stop() // also while it is asked
			if strings.Contains(log.String(), "query-secret") || strings.Contains(r.a.State().Gateways[0].WakeErr, "query-secret") {
				t.Errorf("the query is told:\n%s", log)
			}
		})
	}
	if elsewhere.Load() > 0 {
		t.Error("a redirect was followed")
	}

	gone := httptest.NewServer(nil)
	gone.Close()
	r, log := newWakeRig(t, gone.URL+"?key=query-secret", time.Millisecond)
	r.a.Waits("tel")
	r.until("told", func() bool { return r.a.State().Gateways[0].WakeErr != "" })
	if text := r.a.State().Gateways[0].WakeErr + log.String(); strings.Contains(text, "query-secret") {
		t.Errorf("the query is told: %s", text)
	}
	// One without an address, and one of a device that nobody serves, is left alone.
	plain := newRig(t, nil)
	plain.a.Waits("tel")
	plain.a.SetGateways(nil)
	plain.a.Waits("tel")
	if plain.a.serves("tel") != nil {
		t.Error("a gateway is left")
	}
}
