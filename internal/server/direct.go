package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"

	"hermes-mobile/gateway"
	"hermes-mobile/internal/access"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/agent/direct"
	"hermes-mobile/internal/doctor"
	"hermes-mobile/internal/neighbor"
	"hermes-mobile/internal/store"
)

// Keys under which the direct agent's own things are kept.
const (
	metaDirectInstance = "direct_instance"
	metaDirect         = "direct/" // and the conversation
)

// newDirect makes the agent that turns to Hermes' HTTP API.
func (s *Server) newDirect(ctx context.Context) (agent.Agent, error) {
	instance, err := s.remembered(ctx, metaDirectInstance, func() []byte { return []byte(access.NewSecret()[:8]) })
	if err != nil {
		return nil, err
	}
	client, err := s.newGatewayClient()
	if err != nil {
		return nil, err
	}
	return &directAgent{Agent: direct.New(direct.Options{Client: client, Keep: keep{store: s.store}, Files: files{s.files}, Log: s.log,
		Instance: string(instance), Model: s.cfg.APIModel, AllSessions: s.cfg.APISessions == "all",
		Near: near(s.cfg.APIURL), HermesHome: s.cfg.HermesHome, Data: s.cfg.Data}), client: client}, nil
}

// newWithin makes the agent of the program that the server is within.
func (s *Server) newWithin(ctx context.Context) (agent.Agent, error) {
	instance, err := s.remembered(ctx, metaDirectInstance, func() []byte { return []byte(access.NewSecret()[:8]) })
	if err != nil {
		return nil, err
	}
	return s.within.agent(Parts{Files: files{s.files}, Log: s.log, Direct: func(client *gateway.Client, scope string) agent.Agent {
		// Whoever has this machine has the gateway's credential, so all of its sessions are theirs.
		return direct.New(direct.Options{Client: client, Keep: keep{s.store, scope + "/"}, Files: files{s.files}, Log: s.log,
			Instance: string(instance) + "-" + scope, AllSessions: true})
	}})
}

// newGatewayClient makes the client of the API that the settings name.
func (s *Server) newGatewayClient() (*gateway.Client, error) {
	// The owner wrote the address, so plain http is meant; the client allows it in private networks only.
	profile := gateway.Profile{ID: "serve", Name: "serve", Remote: s.cfg.APIURL, Auth: gateway.AuthNone, Insecure: true}
	profile.Jobs = gateway.JobAccess(s.cfg.APIJobs)
	if s.cfg.APIKind == "openai" {
		profile.Kind = gateway.OpenAI
	}
	var credentials gateway.Credentials
	if key := s.cfg.APIKey.Reveal(); key != "" {
		profile.Auth = gateway.AuthBearer
		credentials = gateway.Credentials{Token: gateway.NewSecret(key)}
	}
	client, err := gateway.New(profile, credentials, gateway.Options{Log: s.log})
	if err != nil {
		return nil, fmt.Errorf("the API of MOBILE_API_URL: %w", err)
	}
	return client, nil
}

// directAgent closes the client of its agent with it.
type directAgent struct {
	*direct.Agent
	client *gateway.Client
}

// Run implements agent.Agent.
func (a *directAgent) Run(ctx context.Context, host agent.Host) error {
	defer a.client.Close()
	return a.Agent.Run(ctx, host)
}

// api is how the agent finds its API, nil where another agent serves.
func (s *Server) api() *doctor.API {
	a, is := s.agent.(*directAgent)
	if !is {
		return nil
	}
	state := a.State()
	u, err := url.Parse(s.cfg.APIURL)
	return &doctor.API{URL: s.cfg.APIURL, NoKey: s.cfg.APIKey == "", KeyRefused: errors.Is(state.Err, gateway.ErrSignIn), Another: errors.Is(state.Err, gateway.ErrIdentity),
		Down: state.Err, Version: state.Version, Older: state.Older, Elsewhere: s.cfg.APIKind != "hermes" || err == nil && !isLoopback(u.Hostname())}
}

// near looks for the process of the gateway that answers at an address of this machine; nil where that is of another one.
func near(address string) func() (direct.Sees, bool) {
	u, err := url.Parse(address)
	if err != nil || !isLoopback(u.Hostname()) {
		return nil
	}
	port, err := strconv.ParseUint(cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme]), 10, 16)
	if err != nil {
		return nil
	}
	hosts := []string{u.Hostname()}
	if u.Hostname() == "localhost" {
		hosts = []string{"127.0.0.1", "::1"}
	}
	return func() (direct.Sees, bool) {
		for _, host := range hosts {
			if p, ok := neighbor.Listening(netip.AddrPortFrom(netip.MustParseAddr(host), uint16(port))); ok {
				return p, true
			}
		}
		return nil, false
	}
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// keep has the agent remember in the store.
type keep struct {
	store *store.Store
	scope string
}

func (k keep) Load(ctx context.Context, key string) ([]byte, error) {
	return k.store.Meta(ctx, metaDirect+k.scope+key)
}

func (k keep) Save(_ context.Context, key string, value []byte) error {
	return k.store.Do(func(tx *store.Tx) error { return tx.SetMeta(metaDirect+k.scope+key, value) })
}
