package gateway

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

func TestLocalIsUsedWhereItAnswers(t *testing.T) {
	t.Parallel()
	gw := newHermes(t, "0.22.2")
	local, remote := serve(t, gw), serve(t, gw)
	c := client(t, Profile{Remote: remote.URL, Local: local.URL})
	route := on(t, c, Local)
	if route.Generation != 1 || route.Since.IsZero() || route.Reason == "" {
		t.Errorf("the route says %+v", route)
	}
	if got := remote.bytes(); got != "" {
		t.Errorf("the remote address was asked without need: %s", got)
	}
	// The first request has no credential, the others have.
	first, _, _ := strings.Cut(local.bytes(), "\r\n\r\n")
	if !strings.HasPrefix(first, "GET /health ") || strings.Contains(first, "Authorization") {
		t.Errorf("the first request was %q", first)
	}
	if strings.Contains(strings.ToLower(local.bytes()), "\r\norigin:") {
		t.Error("an Origin was sent, which the gateway refuses")
	}
}

// Whatever answers at the Local address: the client uses the Remote one, and the credential is not
// sent.
func TestLocalThatIsNotTheGateway(t *testing.T) {
	t.Parallel()
	page := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Set-Cookie", "hermes_session_at=stolen; Path=/")
		io.WriteString(w, "<html>Welcome to the hotel</html>")
	}
	elsewhere := serve(t, http.HandlerFunc(page))
	for _, tc := range []struct {
		name    string
		handler http.HandlerFunc
		options []hostOption
		pin     string
		want    string // part of the reason
		is      error
	}{
		{name: "portal", handler: page, want: "not a Hermes gateway"},
		{name: "portal that says JSON", handler: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, "<html>Welcome</html>")
		}, want: "not a Hermes gateway"},
		{name: "page in the form of a health", handler: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			io.WriteString(w, `{"status":"ok","platform":"hermes-agent","version":"0.22.2"}`)
		}, want: "not a Hermes gateway"},
		{name: "redirecting portal", handler: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+"/login", http.StatusFound)
		}, want: "redirect"},
		{name: "redirect to a real gateway", handler: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+"/health", http.StatusTemporaryRedirect)
		}, want: "redirect"},
		{name: "another service", handler: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"status":"ok","platform":"other"}`)
		}, want: "not a Hermes gateway"},
		{name: "a gateway that is not well", handler: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"status":"starting","platform":"hermes-agent"}`)
		}, want: "not a Hermes gateway"},
		{name: "Ollama", handler: func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }, want: "not a Hermes gateway"},
		{name: "hanging", handler: func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, want: "in time"},
		{name: "unknown certificate", handler: newHermes(t, "0.22.2").ServeHTTP, options: []hostOption{selfSigned}, want: "certificate"},
		{name: "wrong pinned key", handler: newHermes(t, "0.22.2").ServeHTTP, pin: strings.Repeat("ab", 32), want: "key", is: ErrIdentity},
		{name: "TLS wanted, plain there", handler: newHermes(t, "0.22.2").ServeHTTP, options: []hostOption{overPlain}, want: "cannot be reached"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			remote := serve(t, newHermes(t, "0.22.2"))
			local := serve(t, tc.handler, tc.options...)
			patience := func(*Credentials, *Options) {}
			if tc.name == "hanging" {
				patience = impatient
			}
			c := client(t, Profile{Remote: remote.URL, Local: strings.Replace(local.URL, "http:", "https:", 1), LocalKey: tc.pin}, patience)
			route := on(t, c, Remote)
			local.gotNothingSecret(testToken)
			if !strings.Contains(route.Reason, tc.want) {
				t.Errorf("the reason is %q, want it with %q", route.Reason, tc.want)
			}
			// If the Remote address does not answer either, the error names both.
			remote.down()
			c.NetworkChanged()
			_, err := c.Connect(t.Context())
			var none *NoRouteError
			if !errors.As(err, &none) || !errors.Is(err, ErrNoRoute) || none.Local == nil || none.Remote == nil {
				t.Fatalf("without any route the error is %v", err)
			}
			if tc.is != nil && !errors.Is(err, tc.is) {
				t.Errorf("%v is not %v", err, tc.is)
			}
			local.gotNothingSecret(testToken)
		})
	}
	t.Cleanup(func() { elsewhere.gotNothingSecret(testToken) })
}

func TestLocalDownAndLater(t *testing.T) {
	t.Parallel()
	gw := newHermes(t, "0.22.2")
	local, remote := serve(t, gw), serve(t, gw)
	local.down()
	c := client(t, Profile{Remote: remote.URL, Local: local.URL})
	first := on(t, c, Remote)
	local.up()
	if route := on(t, c, Remote); route.Generation != first.Generation {
		t.Error("the route was chosen again without a reason")
	}
	for kind, event := range map[string]func(){
		"foreground": c.Foreground, "network": c.NetworkChanged, "reevaluate": func() { c.Reevaluate("asked by a test") },
	} {
		event()
		if route := on(t, c, Local); route.Generation <= first.Generation {
			t.Errorf("%s: the generation did not grow", kind)
		}
		local.down()
		c.NetworkChanged()
		on(t, c, Remote)
		local.up()
	}
	if route, err := c.Connect(t.Context()); err != nil || route.Kind != Local {
		t.Errorf("after Connect the route is %+v, %v", route, err)
	}
}

// With a Local address that comes and goes, no GET stays without a response.
func TestFlapping(t *testing.T) {
	t.Parallel()
	gw := newHermes(t, "0.22.2")
	local, remote := serve(t, gw), serve(t, gw)
	c := client(t, Profile{Remote: remote.URL, Local: local.URL})
	last := uint64(0)
	for range 5 {
		on(t, c, Local)
		local.down() // the next request fails on it and is repeated on the other
		route := on(t, c, Remote)
		if route.Generation <= last {
			t.Fatalf("the generation fell from %d to %d", last, route.Generation)
		}
		last = route.Generation
		local.up()
		c.Foreground()
	}
	if n := len(c.Diagnostics().Failures); n < 5 {
		t.Errorf("%d failures are remembered, want each", n)
	}
}

// A call that changes something is not repeated: it may have been processed.
func TestChangeIsNotRepeated(t *testing.T) {
	t.Parallel()
	gw := newHermes(t, "0.22.2")
	gw.routes["POST /api/sessions"] = func(w http.ResponseWriter, r *http.Request) {
		raw, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			raw.Close() // after reading the request, without a response
		}
	}
	remote := serve(t, gw)
	c := client(t, Profile{Remote: remote.URL})
	on(t, c, Remote)
	if _, err := c.Sessions.Create(t.Context(), SessionParams{Title: "x"}); err == nil {
		t.Fatal("a lost answer gave no error")
	}
	if n := strings.Count(remote.bytes(), "POST /api/sessions"); n != 1 {
		t.Errorf("the request was made %d times", n)
	}
	if _, ok := c.Route(); ok {
		t.Error("the route is still in use after a request failed on it")
	}
	on(t, c, Remote)
}

// A stream keeps its route when the client selects another one.
func TestStreamKeepsItsRoute(t *testing.T) {
	t.Parallel()
	more := make(chan string)
	local := newHermes(t, "0.22.2")
	local.routes["/api/sessions/s/chat/stream"] = func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for line := range more {
			io.WriteString(w, line)
			http.NewResponseController(w).Flush()
		}
	}
	l, remote := serve(t, local), serve(t, newHermes(t, "0.22.2"))
	c := client(t, Profile{Remote: remote.URL, Local: l.URL})
	cn, err := c.connected(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	req, err := cn.request(t.Context(), "session_chat_stream", []string{"session_id", "s"}, nil, map[string]string{"message": "hi"})
	if err != nil {
		t.Fatal(err)
	}
	go func() { more <- "data: 1\n\n" }()
	resp, err := cn.send(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	// The Local address answers nothing else any more: the next request uses the Remote one.
	local.set(func(g *hermes) {
		g.before = func(w http.ResponseWriter) bool { w.WriteHeader(http.StatusBadGateway); return true }
	})
	c.NetworkChanged()
	if route := on(t, c, Remote); route.Generation <= cn.route.Generation {
		t.Errorf("the new route has generation %d, the old one %d", route.Generation, cn.route.Generation)
	}
	go func() { more <- "data: 2\n\n"; close(more) }()
	all, err := io.ReadAll(resp.Body)
	if err != nil || string(all) != "data: 1\n\ndata: 2\n\n" {
		t.Errorf("the stream brought %q, %v", all, err)
	}
	if cn.route.Kind != Local || strings.Contains(remote.bytes(), "/chat/stream") {
		t.Error("the stream was moved")
	}
	c.dropRoute(cn, &networkError{cause: net.ErrClosed}) // late, about a route that is no longer in use
	if route, ok := c.Route(); !ok || route.Kind != Remote {
		t.Error("a late failure of an old route ended the new one")
	}
}

// Requests that need a route at the same time share one selection.
func TestOneChoiceForAll(t *testing.T) {
	t.Parallel()
	gw := newHermes(t, "0.22.2")
	remote := serve(t, gw)
	c := client(t, Profile{Remote: remote.URL})
	errs := make(chan error, 20)
	for range cap(errs) {
		go func() {
			_, err := c.Sessions.List(t.Context(), SessionQuery{})
			errs <- err
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if n := gw.asked("/v1/capabilities"); n != 1 {
		t.Errorf("the gateway was proven %d times", n)
	}
}

// A selection that the network changed under is discarded.
func TestNetworkChangesMeanwhile(t *testing.T) {
	t.Parallel()
	gw := newHermes(t, "0.22.2")
	remote := serve(t, gw)
	c := client(t, Profile{Remote: remote.URL})
	changes := 0
	gw.routes["/v1/capabilities"] = func(w http.ResponseWriter, r *http.Request) {
		if changes++; changes == 1 {
			c.NetworkChanged()
		}
		recordedAnswers()["0.22.2"]["capabilities"].answer(w)
	}
	if route := on(t, c, Remote); changes != 2 || route.Generation != 1 {
		t.Errorf("%d proofs, generation %d", changes, route.Generation)
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	hang := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	c := client(t, Profile{Remote: hang.URL})
	done := make(chan error)
	go func() { _, err := c.Connect(t.Context()); done <- err }()
	waitFor(t, func() bool { return strings.Contains(hang.bytes(), "GET /health") })
	c.Close()
	if err := <-done; !errors.Is(err, ErrClosed) {
		t.Errorf("Connect ended with %v", err)
	}
	if _, err := c.Sessions.List(t.Context(), SessionQuery{}); !errors.Is(err, ErrClosed) {
		t.Errorf("a closed client says %v", err)
	}
	if err := c.Close(); err != nil {
		t.Errorf("closing again says %v", err)
	}
	for range c.WatchRoute(t.Context()) {
		t.Error("a closed client has a route")
	}
}

func TestWatch(t *testing.T) {
	t.Parallel()
	gw := newHermes(t, "0.22.2")
	local, remote := serve(t, gw), serve(t, gw)
	c := client(t, Profile{Remote: remote.URL, Local: local.URL})
	seen := make(chan Route)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for route := range c.WatchRoute(c.ctx) {
			seen <- route
		}
	}()
	on(t, c, Local)
	if r := <-seen; r.Kind != Local {
		t.Errorf("saw %+v first", r)
	}
	local.down()
	c.NetworkChanged()
	on(t, c, Remote)
	if r := <-seen; r.Kind != Remote {
		t.Errorf("saw %+v then", r)
	}
	c.Close()
	<-ended
}
