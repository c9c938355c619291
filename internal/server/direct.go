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
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/agent/direct"
	"hermes-mobile/internal/config"
	"hermes-mobile/internal/doctor"
	"hermes-mobile/internal/neighbor"
	"hermes-mobile/internal/store"
)

// Keys of the store for the direct agent.
const (
	metaDirectInstance = "direct_instance"
	metaDirect         = "direct/" // and the conversation
)

// direct builds the agent that uses Hermes' HTTP API.
func (a *agents) direct(ctx context.Context) (agent.Agent, error) {
	instance, err := a.instance(ctx, metaDirectInstance)
	if err != nil {
		return nil, err
	}
	client, err := a.gatewayClient()
	if err != nil {
		return nil, err
	}
	return &directAgent{Agent: direct.New(direct.Options{Client: client, Store: keep{store: a.store}, Files: files{a.files}, Log: a.log,
		Instance: instance, Model: a.cfg.APIModel, AllSessions: a.cfg.APISessions == "all",
		FindNeighbor: near(a.cfg.APIURL), HermesHome: a.cfg.HermesHome, Data: a.cfg.Data}), client: client}, nil
}

// gatewayClient returns a client of the API in the settings.
func (a *agents) gatewayClient() (*gateway.Client, error) {
	// The owner wrote the address, so plain http is intended. The client allows it in private
	// networks only.
	profile := gateway.Profile{ID: "serve", Name: "serve", Remote: a.cfg.APIURL, Auth: gateway.AuthNone, Insecure: true}
	profile.Jobs = gateway.JobAccess(a.cfg.APIJobs)
	if a.cfg.APIKind == "openai" {
		profile.Kind = gateway.OpenAI
	}
	var credentials gateway.Credentials
	if key := a.cfg.APIKey.Reveal(); key != "" {
		profile.Auth = gateway.AuthBearer
		credentials = gateway.Credentials{Token: gateway.NewSecret(key)}
	}
	client, err := gateway.New(profile, credentials, gateway.Options{Log: a.log})
	if err != nil {
		return nil, fmt.Errorf("MOBILE_API_URL: %w", err)
	}
	return client, nil
}

// directAgent closes the client of its agent when the agent ends.
type directAgent struct {
	*direct.Agent
	client *gateway.Client
}

// Run implements agent.Agent.
func (a *directAgent) Run(ctx context.Context, host agent.Host) error {
	defer func() { _ = a.client.Close() }()
	return a.Agent.Run(ctx, host)
}

// apiState returns the state of the API that the direct agent uses, nil with another agent.
func apiState(cfg *config.Config, current agent.Agent) *doctor.API {
	a, is := current.(*directAgent)
	if !is {
		return nil
	}
	state := a.State()
	u, err := url.Parse(cfg.APIURL)
	return &doctor.API{URL: cfg.APIURL, NoKey: cfg.APIKey == "", KeyRefused: errors.Is(state.Err, gateway.ErrSignIn), Another: errors.Is(state.Err, gateway.ErrIdentity),
		Down: state.Err, Version: state.Version, Older: state.Older, Elsewhere: cfg.APIKind != "hermes" || err == nil && !isLoopback(u.Hostname())}
}

// near returns a function that finds the process of the gateway that answers at an address of this
// machine. It returns nil for an address of another machine.
func near(address string) func() (direct.Neighbor, bool) {
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
	return func() (direct.Neighbor, bool) {
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

// keep adapts the store to the memory of the direct agent.
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
