package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// A gateway that sleeps is woken by a GET of an address that its owner has set, while messages wait for it. Whatever is behind it
// is the owner's: private addresses, too. Nothing is sent along and nothing of the answer is used.
const (
	wakeTime  = 10 * time.Second // for one request
	wakeAgain = 30 * time.Second // until the next one, and twice as long each time
	wakeSlow  = 15 * time.Minute // at most
	wakeTries = 24               // attempts, about five hours; the next message starts again
	wakeBody  = 4 << 10          // bytes of the response that are read and discarded
)

// Waits implements agent.Waker.
func (a *Agent) Waits(device string) {
	if g := a.serves(device); g != nil && g.config().WakeURL != "" {
		g.wake()
	}
}

// wake begins to wake the gateway, unless that is under way or it is there.
func (g *gateway) wake() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.online() || g.retired || g.waking != nil {
		return
	}
	came := make(chan struct{})
	if g.a.goDo(func(ctx context.Context) { g.keepWaking(ctx, came) }) {
		g.waking = came
	}
}

// awake ends the waking. The lock must be held.
func (g *gateway) awake() {
	if g.waking != nil {
		close(g.waking)
		g.waking = nil
	}
	g.wakeErr = ""
}

// keepWaking asks again and again, ever more rarely, until the gateway has come. The first request of a waking that follows another
// one closely waits as long as that one's next would have: a gateway that falls asleep at once is not asked in a loop.
func (g *gateway) keepWaking(ctx context.Context, came <-chan struct{}) {
	g.mu.Lock()
	pause := max(0, time.Until(g.wakeNext))
	g.mu.Unlock()
	for try := range wakeTries {
		select {
		case <-time.After(pause):
		case <-came:
			return
		case <-ctx.Done():
			return
		}
		address := g.config().WakeURL
		if address == "" { // the owner has taken it away
			break
		}
		pause = min(g.a.wakeAgain<<min(try, 10), wakeSlow)
		g.mu.Lock()
		g.wakeNext = time.Now().Add(pause) // before the request: the gateway may come, and sleep again, before it is answered
		g.mu.Unlock()
		err := wakeOnce(ctx, address)
		if ctx.Err() != nil {
			return
		}
		g.mu.Lock()
		g.wakeErr = ""
		if err != nil {
			g.wakeErr = err.Error()
		}
		g.mu.Unlock()
		if err != nil {
			g.log.Warn("gateway not woken", "url", shownURL(address), "err", err, "again", pause)
		} else {
			g.log.Info("gateway woken", "url", shownURL(address), "again", pause)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.waking == came {
		g.waking = nil
	}
}

// wakeOnce makes one request. Errors do not hold the query of the address, which may be a secret.
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

// wakeClient follows no redirect: it would be somebody else's choice of an address. Connections are not kept.
var wakeClient = &http.Client{
	Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10, TLSHandshakeTimeout: wakeTime},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// shownURL is an address without what may be a secret in it.
func shownURL(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}
