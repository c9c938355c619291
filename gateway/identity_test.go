package gateway

import (
	"errors"
	"net/http"
	"strings"
	"testing"
)

func TestAnotherGatewayAtTheLocalAddress(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*hermes){
		"model":       func(g *hermes) { g.caps["model"] = "kitchen" },
		"platform":    func(g *hermes) { g.caps["platform"] = "other" },
		"instance id": func(g *hermes) { g.caps["instance_id"] = "b" },
		"offers":      func(g *hermes) { delete(g.caps["endpoints"].(map[string]any), "session_fork") },
		"features":    func(g *hermes) { g.caps["features"].(map[string]any)["new"] = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			right, other := newHermes(t, "0.22.2"), newHermes(t, "0.22.2")
			right.caps["instance_id"], other.caps["instance_id"] = "a", "a"
			change(other)
			local, remote := serve(t, other), serve(t, right)
			learnt := client(t, Profile{Remote: remote.URL})
			on(t, learnt, Remote)
			p := learnt.Profile()
			if p.Identity == nil || p.Identity.ID != "a" || p.Identity.Model != "hermes-agent" || p.Identity.Version != "0.22.2" || p.Identity.Auth != "bearer" {
				t.Fatalf("learnt %+v", p.Identity)
			}
			p.Local = local.URL
			c := client(t, p)
			route := on(t, c, Remote)
			if !strings.Contains(route.Reason, "another gateway") {
				t.Errorf("the reason is %q", route.Reason)
			}
			if n := strings.Count(local.bytes(), "Authorization"); n > 1 {
				t.Errorf("the credential went %d times to a gateway that was not recognized, want the one check", n)
			}
			if strings.Contains(local.bytes(), "/api/") {
				t.Error("a request went to another gateway")
			}
			remote.down()
			c.NetworkChanged()
			if _, err := c.Connect(t.Context()); !errors.Is(err, ErrIdentity) || !errors.Is(err, ErrNoRoute) {
				t.Errorf("with the other gateway only the error is %v", err)
			}
		})
	}
}

// After an upgrade the client accepts the new shape at the Remote address, and then uses Local
// again.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	gw, frontGW := newHermes(t, "0.19.0"), newHermes(t, "0.19.0")
	local, remote := serve(t, gw), serve(t, frontGW)
	var kept []Profile
	c := client(t, Profile{Remote: remote.URL, Local: local.URL}, func(_ *Credentials, o *Options) {
		o.OnProfile = func(p Profile) { kept = append(kept, p) }
	})
	on(t, c, Local)
	for _, g := range []*hermes{gw, frontGW} {
		g.set(func(g *hermes) { g.version, g.caps = "0.22.2", newHermes(t, "0.22.2").caps })
	}
	c.Foreground()
	if route := on(t, c, Remote); !strings.Contains(route.Reason, "not confirmed yet") {
		t.Errorf("the reason is %q", route.Reason)
	}
	c.Foreground()
	on(t, c, Local)
	// A version without new features is accepted at either address.
	for _, g := range []*hermes{gw, frontGW} {
		g.set(func(g *hermes) { g.version = "0.22.3" })
	}
	c.Foreground()
	on(t, c, Local)
	c.Close()
	if len(kept) != 3 || kept[0].Identity.Version != "0.19.0" || kept[1].Identity.Version != "0.22.2" || kept[2].Identity.Version != "0.22.3" {
		t.Errorf("kept %d profiles", len(kept))
	}
	// The same version cannot offer other features, not even at the Remote address.
	frontGW.set(func(g *hermes) { delete(g.caps["endpoints"].(map[string]any), "runs") })
	again := kept[2]
	again.Local = ""
	if _, err := client(t, again).Connect(t.Context()); !errors.Is(err, ErrIdentity) {
		t.Errorf("another shape gives %v", err)
	}
	again.Identity = nil // the user accepts the gateway
	on(t, client(t, again), Remote)
}

func TestPinnedKeys(t *testing.T) {
	t.Parallel()
	gw := newHermes(t, "0.22.2")
	local, remote := serve(t, gw, selfSigned), serve(t, gw, selfSigned)
	for _, form := range []func(string) string{
		func(s string) string { return s }, strings.ToUpper, func(s string) string { return "sha256:" + s },
		func(s string) string { return strings.TrimSuffix(strings.Join(split(s, 2), ":"), ":") },
	} {
		p := Profile{Remote: remote.URL, RemoteKey: form(remote.Key), Local: local.URL, LocalKey: form(local.Key)}
		c := client(t, p)
		on(t, c, Local)
		if got := c.Profile().Identity; got.LocalKey != local.Key || got.RemoteKey != "" {
			t.Errorf("learnt keys %q and %q", got.LocalKey, got.RemoteKey)
		}
	}
	remote.forget()
	c := client(t, Profile{Remote: remote.URL, RemoteKey: local.Key})
	if _, err := c.Connect(t.Context()); !errors.Is(err, ErrIdentity) {
		t.Errorf("another key than the pinned one gives %v", err)
	}
	if got := remote.bytes(); got != "" {
		t.Errorf("a host with another key was sent %q", got)
	}
}

func split(s string, n int) (parts []string) {
	for ; len(s) > 0; s = s[n:] {
		parts = append(parts, s[:n])
	}
	return parts
}

// The client remembers the key of a self-signed certificate that the user trusts.
func TestSelfSignedKeyIsLearnt(t *testing.T) {
	t.Parallel()
	gw := newHermes(t, "0.22.2")
	first, second := serve(t, gw, selfSigned), serve(t, gw, selfSigned)
	pool := authority().pool.Clone()
	pool.AddCert(first.cert.Leaf)
	pool.AddCert(second.cert.Leaf)
	trust := func(_ *Credentials, o *Options) { o.RootCAs = pool }
	c := client(t, Profile{Remote: first.URL}, trust)
	on(t, c, Remote)
	p := c.Profile()
	if p.Identity.RemoteKey != first.Key {
		t.Fatalf("learnt %q", p.Identity.RemoteKey)
	}
	first.down()
	second.down()
	second.address = first.address
	second.up()
	exchanged := client(t, p, trust)
	if _, err := exchanged.Connect(t.Context()); !errors.Is(err, ErrIdentity) {
		t.Errorf("an exchanged key gives %v", err)
	}
	if got := second.bytes(); got != "" {
		t.Errorf("the host with the other key was sent %q", got)
	}
}

func TestGatewayWithoutCapabilities(t *testing.T) {
	t.Parallel()
	gw := newHermes(t, "0.22.2")
	gw.routes["/v1/capabilities"] = http.NotFound
	c := client(t, Profile{Remote: serve(t, gw).URL})
	caps, err := c.Capabilities(t.Context())
	if err != nil || !caps.Offers("chat_completions") || caps.Offers("sessions") || caps.Offers("responses") || caps.Model != "hermes-agent" {
		t.Fatalf("capabilities %+v, %v", caps, err)
	}
	if _, err := c.Sessions.List(t.Context(), SessionQuery{}); !errors.Is(err, ErrUnavailable) {
		t.Errorf("sessions give %v", err)
	}
	if got := gw.asked("/api/sessions"); got != 0 {
		t.Error("an operation was tried that is not advertised")
	}
}

func TestOtherServer(t *testing.T) {
	t.Parallel()
	models := `{"object":"list","data":[{"id":"qwen3","object":"model","created":1,"owned_by":"library"}]}`
	server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/models" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(models))
	}), overPlain)
	for _, base := range []string{"", "/", "/v1", "/v1/"} {
		c := client(t, Profile{Kind: OpenAI, Remote: server.URL + base, Auth: AuthNone})
		caps, err := c.Capabilities(t.Context())
		if err != nil || !caps.Offers("chat_completions") || caps.Offers("responses") || caps.Offers("sessions") {
			t.Fatalf("%q: %+v, %v", base, caps, err)
		}
		list, err := c.Models.List(t.Context())
		if err != nil || len(list) != 1 || list[0].ID != "qwen3" {
			t.Errorf("models %+v, %v", list, err)
		}
	}
	if _, err := client(t, Profile{Remote: server.URL}).Connect(t.Context()); !errors.Is(err, ErrNoRoute) {
		t.Errorf("a server that is no gateway is used as one: %v", err)
	}
	server.gotNothingSecret(testToken)
}

func TestRecognize(t *testing.T) {
	base := Identity{Platform: "hermes-agent", Model: "m", Shape: "s", Version: "1", ID: "i", RemoteKey: "r", LocalKey: "l"}
	for name, tc := range map[string]struct {
		change        func(*Identity)
		local, remote bool // whether it is accepted
	}{
		"same":                    {func(*Identity) {}, true, true},
		"version":                 {func(i *Identity) { i.Version = "2" }, true, true},
		"version and shape":       {func(i *Identity) { i.Version, i.Shape = "2", "t" }, false, true},
		"shape":                   {func(i *Identity) { i.Shape = "t" }, false, false},
		"platform":                {func(i *Identity) { i.Platform = "o" }, false, false},
		"model":                   {func(i *Identity) { i.Model = "o" }, false, false},
		"id":                      {func(i *Identity) { i.ID = "o" }, false, false},
		"id gone":                 {func(i *Identity) { i.ID = "" }, false, false},
		"all new but the version": {func(i *Identity) { i.Model, i.Shape = "o", "t" }, false, false},
	} {
		for kind, passes := range map[RouteKind]bool{Local: tc.local, Remote: tc.remote} {
			now := base
			now.RemoteKey, now.LocalKey = "", ""
			tc.change(&now)
			next, err := matchIdentity(&base, now, kind)
			if (err == nil) != passes || err != nil && (!errors.Is(err, ErrIdentity) || next != base) {
				t.Errorf("%s at %s: %+v, %v", name, kind, next, err)
			}
			if err == nil && (next.RemoteKey != "r" || next.LocalKey != "l") {
				t.Errorf("%s at %s forgets keys: %+v", name, kind, next)
			}
		}
	}
}
