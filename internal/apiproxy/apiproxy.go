package apiproxy

import (
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"sync/atomic"
	"time"

	"hermes-mobile/internal/metrics"
	"hermes-mobile/internal/store"
)

// Limits bound what one user, and all users together, may use.
type Limits struct {
	Burst  int           // requests of a user at once
	Every  time.Duration // until one more is allowed
	Open   int           // concurrent requests of a user
	Turns  int           // of these, turns and streams of events
	Bodies int64         // bytes of all bodies in memory
}

// DefaultLimits leave room for an app with several sessions open, and for the ten turns that Hermes
// runs at a time.
var DefaultLimits = Limits{Burst: 100, Every: 100 * time.Millisecond, Open: 24, Turns: 8, Bodies: 64 << 20}

// Options configure a Proxy.
type Options struct {
	Store   *store.Store
	Users   *Users
	URL     string // of the API server
	Key     string // of the API server
	Jobs    bool   // allow the routes of jobs even if the API server doesn't advertise them
	Log     *slog.Logger
	Metrics *metrics.Set
	Now     func() time.Time
	Limits  Limits
	// Client returns the address of a request, Base the scheme and host by which it arrived, and
	// Own whether it comes from a page of this server.
	Client func(*http.Request) netip.Addr
	Base   func(*http.Request) string
	Own    func(*http.Request) bool
}

// Proxy is the API proxy. It is safe for concurrent use.
type Proxy struct {
	o        Options
	target   *url.URL
	proxy    *httputil.ReverseProxy
	upstream *http.Transport
	failures *failures
	logins   *logins
	pace     *pace
	live     *live
	served   map[string]bool
	held     atomic.Int64 // bytes of bodies
	offered  offered
}

// New returns an API proxy. The caller must close it.
func New(o Options) (*Proxy, error) {
	target, err := url.Parse(o.URL)
	if err != nil {
		return nil, err
	}
	if o.Limits == (Limits{}) {
		o.Limits = DefaultLimits
	}
	o.Log = o.Log.With("component", "apiproxy")
	f := &Proxy{o: o, target: target, upstream: newTransport(), failures: newFailures(o.Log, o.Store, o.Now),
		pace: newPace(o.Now, o.Limits), live: newLive(), served: servedHere()}
	f.logins = &logins{o: &f.o, guesses: newGuesses(o.Now), failures: f.failures, live: f.live}
	f.proxy = f.newProxy()
	return f, nil
}

// Close ends all running requests. The store must still be open.
func (f *Proxy) Close() {
	f.live.close()
	f.failures.close()
	f.upstream.CloseIdleConnections()
}

// EndUser ends the requests of a user who was removed or got another password.
func (f *Proxy) EndUser(id string) { f.live.end(id, "") }

// Prefixes returns the paths that Handler serves. A path that ends in a slash includes all below
// it.
func Prefixes() []string { return []string{"/auth/", "/api/", "/v1/", "/health", "/login"} }

// Handler returns the handler for Prefixes.
func (f *Proxy) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", f.health)
	mux.HandleFunc("GET /v1/health", f.health)

	mux.HandleFunc("GET "+loginPath, f.logins.loginPage)
	mux.HandleFunc("POST "+loginPath, f.logins.loginForm)
	mux.HandleFunc("GET /api/auth/providers", providers)
	mux.HandleFunc("POST /auth/password-login", f.logins.passwordLogin)
	mux.HandleFunc("POST /auth/logout", f.logins.logout)
	mux.HandleFunc("GET /api/auth/me", f.logins.me)

	for i := range routes {
		rt := &routes[i]
		mux.Handle(rt.method+" "+rt.path, f.gate(rt))
	}
	return sealed(mux)
}
