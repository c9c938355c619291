package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"
)

const (
	wakeTime  = 10 * time.Second // for one request
	wakeAgain = 30 * time.Second // until the next request, and twice as long each time
	wakeSlow  = 15 * time.Minute // at most
	wakeTries = 24               // requests, about five hours; the next message starts again
	wakeBody  = 4 << 10          // bytes of the response that are read and discarded
)

// waker wakes a gateway that sleeps, by a GET of an address that its owner has set, while messages wait
// for it. Whatever is behind the address is the owner's, so it may be private. The request carries
// nothing, and nothing of the response is used.
type waker struct {
	lock  sync.Locker // of the gateway
	log   *slog.Logger
	run   func(func(ctx context.Context)) bool // runs a function in a goroutine of the agent
	url   func() string                        // empty: the gateway is not woken
	again time.Duration                        // between the first two requests

	came chan struct{} // closed when the gateway has come; nil: nobody wakes it
	next time.Time     // before which it is not woken again
	err  string        // why the last request failed
}

// start begins to wake the gateway unless that is under way. The lock must be held.
func (w *waker) start() {
	if w.came != nil {
		return
	}
	came := make(chan struct{})
	if w.run(func(ctx context.Context) { w.loop(ctx, came) }) {
		w.came = came
	}
}

// stop ends the waking. The lock must be held.
func (w *waker) stop() {
	if w.came != nil {
		close(w.came)
		w.came = nil
	}
	w.err = ""
}

// loop sends requests, ever more rarely, until the gateway has come. If it was woken shortly before,
// the first request waits as long as the next one then would have: a gateway that falls asleep at once
// is not woken in a loop.
func (w *waker) loop(ctx context.Context, came chan struct{}) {
	w.lock.Lock()
	pause := max(0, time.Until(w.next))
	w.lock.Unlock()
	for try := range wakeTries {
		select {
		case <-time.After(pause):
		case <-came:
			return
		case <-ctx.Done():
			return
		}
		address := w.url()
		if address == "" { // the owner has removed it
			break
		}
		pause = min(w.again<<min(try, 10), wakeSlow)
		w.lock.Lock()
		w.next = time.Now().Add(pause) // before the request: the gateway may come, and sleep again, before it is answered
		w.lock.Unlock()
		err := wakeOnce(ctx, address)
		if ctx.Err() != nil {
			return
		}
		w.lock.Lock()
		w.err = ""
		if err != nil {
			w.err = err.Error()
		}
		w.lock.Unlock()
		if err != nil {
			w.log.Warn("gateway not woken", "url", withoutSecrets(address), "err", err, "again", pause)
		} else {
			w.log.Info("gateway woken", "url", withoutSecrets(address), "again", pause)
		}
	}
	w.lock.Lock()
	defer w.lock.Unlock()
	if w.came == came {
		w.came = nil
	}
}

// wakeOnce sends one request. Its errors do not contain the query of the address, which may be a
// secret.
func wakeOnce(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, wakeTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return errors.New("the address cannot be used")
	}
	req.Header.Set("User-Agent", "hermes-mobile")
	resp, err := wakeClient.Do(req)
	if err != nil {
		if whole := (*url.Error)(nil); errors.As(err, &whole) {
			return whole.Err
		}
		return err
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, wakeBody)
	if resp.StatusCode >= 400 {
		return fmt.Errorf("it answers with status %d", resp.StatusCode)
	}
	return nil
}

// wakeClient follows no redirect, which would be somebody else's choice of an address. It keeps no
// connections.
var wakeClient = &http.Client{
	Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10, TLSHandshakeTimeout: wakeTime},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// withoutSecrets returns an address without its query and user.
func withoutSecrets(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}
