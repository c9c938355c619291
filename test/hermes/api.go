//go:build unix

package hermes

import (
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"hermes-mobile/test/port"
)

// apiPatience is how long the API server may take to answer after the start of its gateway, on a machine that is busy.
const apiPatience = 90 * time.Second

// API is where a gateway's API server answers, and the key that it wants.
type API struct{ URL, Key string }

// newAPI chooses a port, which is the gateway's until the test ends, and a key that Hermes takes for strong.
func newAPI(t testing.TB) API {
	t.Helper()
	return API{URL: "http://127.0.0.1:" + strconv.Itoa(port.Free(t)), Key: "test-" + strings.ToLower(rand.Text())}
}

// env is what .env says of the API server.
func (a API) env() []string {
	u, err := url.Parse(a.URL)
	if a.URL == "" || err != nil {
		return nil
	}
	return []string{"API_SERVER_ENABLED=true", "API_SERVER_KEY=" + a.Key, "API_SERVER_HOST=" + u.Hostname(), "API_SERVER_PORT=" + u.Port()}
}

// API is the API server of a gateway whose Setup asks for one. It answers when AwaitAPI has returned.
func (g *Gateway) API() API { return g.setup.api }

// AwaitAPI waits until the API server of a gateway that runs answers, and can take a turn: one that comes while 0.22.2 still loads
// its modules in another thread may fail for want of one that is half loaded. A gateway that could not load them is run anew, so nobody
// may use it yet.
func (g *Gateway) AwaitAPI() {
	g.t.Helper()
	g.AwaitAPIAt(g.setup.api.URL)
}

// AwaitAPIAt is AwaitAPI for a test that has configured the API server itself.
func (g *Gateway) AwaitAPIAt(base string) {
	g.t.Helper()
	err := g.awaitAPI(base)
	for err == nil && !g.loaded() {
		g.Restart(true)
		err = g.awaitAPI(base)
	}
	if err != nil {
		g.t.Fatalf("hermes %s: %v", g.setup.Version, err)
	}
}

// AwaitAPIInUse is AwaitAPI for a gateway that somebody uses already: it is not run anew.
func (g *Gateway) AwaitAPIInUse() {
	g.t.Helper()
	if err := g.awaitAPI(g.setup.api.URL); err != nil {
		g.t.Fatalf("hermes %s: %v", g.setup.Version, err)
	}
}

func (g *Gateway) awaitAPI(base string) error {
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for end := time.Now().Add(apiPatience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		select {
		case <-g.Done():
			return errors.New("the gateway ended before its API server answered")
		default:
		}
		answer, err := client.Get(base + "/health")
		if err != nil {
			continue
		}
		closeQuietly(answer.Body)
		if answer.StatusCode == http.StatusOK && (g.setup.Version == V019 || g.setup.Version == V0200 || g.setup.Version == V0206 || g.warm()) {
			return nil
		}
	}
	return errors.New("the API server does not answer, or never has what a turn needs")
}

// warm reports whether the process has loaded what a turn needs, or has tried to.
func (g *Gateway) warm() bool {
	g.mu.Lock()
	before := g.warmed
	g.mu.Unlock()
	return g.warmUps() > before
}

// loaded reports whether it did not fail at that.
func (g *Gateway) loaded() bool {
	g.mu.Lock()
	before := g.failed
	g.mu.Unlock()
	return g.failedWarmUps() == before
}
