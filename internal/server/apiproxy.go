package server

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"hermes-mobile/internal/apiproxy"
	"hermes-mobile/internal/config"
	"hermes-mobile/internal/doctor"
	"hermes-mobile/internal/metrics"
	"hermes-mobile/internal/store"
)

// reachTimeout bounds how long a check of the machine waits for Hermes' API server.
const reachTimeout = 5 * time.Second

// apiMount mounts the API proxy and manages its users.
type apiMount struct {
	cfg       *config.Config
	addresses *addresses
	users     *apiproxy.Users
	proxy     *apiproxy.Proxy // nil: the settings don't serve Hermes' API
}

// newAPIMount creates the API proxy if the settings turn it on. The users can be managed in any
// case.
func newAPIMount(cfg *config.Config, a *addresses, s *store.Store, m *metrics.Set, log *slog.Logger) (*apiMount, error) {
	mount := &apiMount{cfg: cfg, addresses: a, users: apiproxy.NewUsers(s, apiproxy.Cost{}, time.Now)}
	if !cfg.FrontAPI {
		return mount, nil
	}
	if own := log.With("component", "apiproxy"); cfg.APIKey == "" {
		own.Error("no key for Hermes' API server: run hermes-mobile setup --api, or set MOBILE_API_KEY")
	} else {
		own.Info("serving Hermes' API to users who log in", "url", cfg.APIURL)
	}
	var err error
	mount.proxy, err = apiproxy.New(apiproxy.Options{Store: s, Users: mount.users, URL: cfg.APIURL, Key: cfg.APIKey.Reveal(), Jobs: cfg.APIJobs == "on", Log: log,
		Metrics: m, Now: time.Now, Client: a.client, Base: a.base, Own: a.sameOrigin})
	return mount, err
}

// mount adds the paths of the API to a mux.
func (m *apiMount) mount(mux *http.ServeMux) {
	if m.proxy == nil {
		return
	}
	h := m.proxy.Handler()
	for _, path := range apiproxy.Prefixes() {
		mux.Handle(path, h)
	}
}

// close ends all requests of the API.
func (m *apiMount) close() {
	if m.proxy != nil {
		m.proxy.Close()
	}
}

// check reports whether the API server behind the proxy works, nil if there is no proxy.
func (m *apiMount) check(ctx context.Context) *doctor.APIProxy {
	if m.proxy == nil {
		return nil
	}
	f := &doctor.APIProxy{URL: m.cfg.APIURL, NoKey: m.cfg.APIKey == "", Users: -1}
	if list, err := m.users.List(ctx); err == nil {
		f.Users = len(list)
	}
	if !f.NoKey {
		bounded, cancel := context.WithTimeout(ctx, reachTimeout)
		defer cancel()
		f.Down = m.proxy.Reach(bounded)
	}
	return f
}

// endUser ends the requests of a user who was removed or got another password.
func (m *apiMount) endUser(id string, err error) error {
	if err == nil && m.proxy != nil {
		m.proxy.EndUser(id)
	}
	return err
}

func (m *apiMount) removeUser(ctx context.Context, c Command) (any, error) {
	id, err := m.users.Remove(ctx, c.Name)
	return nil, m.endUser(id, err)
}

func (m *apiMount) setPassword(ctx context.Context, c Command) (any, error) {
	id, err := m.users.SetPassword(ctx, c.Name, c.Password.Reveal())
	return nil, m.endUser(id, err)
}

// maxKeyLife bounds the lifetime of a key.
const maxKeyLife = 10 * 365 * 24 * time.Hour

func (m *apiMount) addKey(ctx context.Context, c Command) (any, error) {
	if c.Seconds < 0 || c.Seconds > int64(maxKeyLife/time.Second) {
		return nil, fmt.Errorf("a lifetime of %d seconds is out of range: give at most ten years, or nothing for a key that doesn't expire", c.Seconds)
	}
	k, err := m.users.AddKey(ctx, c.Name, c.Label, time.Duration(c.Seconds)*time.Second)
	if err != nil {
		return nil, err
	}
	if m.proxy != nil {
		base, _ := m.addresses.public()
		k.BaseURL = base + "/v1"
	}
	return k, nil
}

func (m *apiMount) removeKey(ctx context.Context, c Command) (any, error) {
	if err := m.users.RemoveKey(ctx, c.ID); err != nil {
		return nil, err
	}
	if m.proxy != nil {
		m.proxy.EndKey(c.ID)
	}
	return nil, nil
}
