package server

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"hermes-mobile/internal/access"
	"hermes-mobile/internal/apiproxy"
	"hermes-mobile/internal/doctor"
)

// reachPatience bounds how long a look at the machine waits for Hermes' API server.
const reachPatience = 5 * time.Second

// openFront makes the front door of Hermes' API, where it is switched on. Its users can be kept in any case.
func (s *Server) openFront() (err error) {
	s.users = apiproxy.NewUsers(s.store, apiproxy.Cost{}, time.Now)
	if !s.cfg.FrontAPI {
		return nil
	}
	if s.cfg.APIKey == "" {
		s.log.Error("the front door has no key for Hermes' API server", "do", "hermes-mobile setup --api, or set MOBILE_API_KEY")
	}
	s.log.Info("Hermes' API is served to users who log in", "url", s.cfg.APIURL)
	s.front, err = apiproxy.New(apiproxy.Options{Store: s.store, Users: s.users, URL: s.cfg.APIURL, Key: s.cfg.APIKey.Reveal(), Jobs: s.cfg.APIJobs == "on", Log: s.log, Metrics: s.metrics, Now: time.Now,
		Client: func(r *http.Request) netip.Addr { addr, _ := access.Client(r, s.proxies); return addr },
		Base:   s.base,
		Own: func(r *http.Request) bool {
			// Behind a proxy that does not name the scheme the page is at the address of the settings.
			return access.SameOrigin(r, s.base(r)) || s.cfg.PublicURL != "" && access.SameOrigin(r, s.cfg.PublicURL)
		}})
	return err
}

// mountFront serves the API beside everything else.
func (s *Server) mountFront(mux *http.ServeMux) {
	if s.front == nil {
		return
	}
	h := s.front.Handler()
	for _, path := range apiproxy.Prefixes() {
		mux.Handle(path, h)
	}
}

// lookFront sees whether the front door leads somewhere, nil where there is none.
func (s *Server) lookFront(ctx context.Context) *doctor.APIProxy {
	if s.front == nil {
		return nil
	}
	f := &doctor.APIProxy{URL: s.cfg.APIURL, NoKey: s.cfg.APIKey == "", Users: -1}
	if list, err := s.users.List(ctx); err == nil {
		f.Users = len(list)
	}
	if !f.NoKey {
		bounded, cancel := context.WithTimeout(ctx, reachPatience)
		defer cancel()
		f.Down = s.front.Reach(bounded)
	}
	return f
}

// endUser ends what a user is doing who may not any more.
func (s *Server) endUser(id string, err error) error {
	if err == nil && s.front != nil {
		s.front.EndUser(id)
	}
	return err
}

func (s *Server) removeUser(ctx context.Context, c Command) (any, error) {
	id, err := s.users.Remove(ctx, c.Name)
	return nil, s.endUser(id, err)
}

func (s *Server) setPassword(ctx context.Context, c Command) (any, error) {
	id, err := s.users.SetPassword(ctx, c.Name, c.Password.Reveal())
	return nil, s.endUser(id, err)
}

// longestKeyLife bounds how long a key is valid.
const longestKeyLife = 10 * 365 * 24 * time.Hour

func (s *Server) addKey(ctx context.Context, c Command) (any, error) {
	if c.Seconds < 0 || c.Seconds > int64(longestKeyLife/time.Second) {
		return nil, fmt.Errorf("a key cannot be valid for %d seconds: give at most ten years, or nothing for one that does not expire", c.Seconds)
	}
	k, err := s.users.AddKey(ctx, c.Name, c.Label, time.Duration(c.Seconds)*time.Second)
	if err != nil {
		return nil, err
	}
	if s.front != nil {
		base, _ := s.publicBase()
		k.BaseURL = base + "/v1"
	}
	return k, nil
}

func (s *Server) removeKey(ctx context.Context, c Command) (any, error) {
	if err := s.users.RemoveKey(ctx, c.ID); err != nil {
		return nil, err
	}
	if s.front != nil {
		s.front.EndKey(c.ID)
	}
	return nil, nil
}
