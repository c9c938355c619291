package server

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"hermes-mobile/gateway"
	"hermes-mobile/internal/access"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/agent/demo"
	"hermes-mobile/internal/agent/direct"
	"hermes-mobile/internal/config"
	"hermes-mobile/internal/media"
	"hermes-mobile/internal/metrics"
	"hermes-mobile/internal/store"
	"hermes-mobile/internal/wsconn"
)

// agents builds the agent of the settings.
type agents struct {
	cfg     *config.Config
	log     *slog.Logger
	store   *store.Store
	files   *media.Store
	metrics *metrics.Set
	keeper  *wsconn.Keeper
	from    func(*http.Request) string // the address of a request
	key     [32]byte                   // signs links for gateways
}

// open returns the agent of the settings, or the one that embed builds.
func (a *agents) open(ctx context.Context, embed func(Parts) (agent.Agent, error)) (agent.Agent, error) {
	if embed != nil {
		return a.embedded(ctx, embed)
	}
	switch a.cfg.Agent {
	case "demo":
		return demo.New(files{a.files}, a.log), nil
	case "relay":
		return a.relay(ctx)
	case "direct":
		return a.direct(ctx)
	}
	return nil, fmt.Errorf("unknown agent %q: use demo, relay or direct (MOBILE_AGENT)", a.cfg.Agent)
}

// embedded builds the agent of the program that embeds the server.
func (a *agents) embedded(ctx context.Context, embed func(Parts) (agent.Agent, error)) (agent.Agent, error) {
	instance, err := a.instance(ctx, metaDirectInstance)
	if err != nil {
		return nil, err
	}
	return embed(Parts{Files: files{a.files}, Log: a.log, Direct: func(client *gateway.Client, scope string) agent.Agent {
		// Whoever uses this machine has the gateway's credential, so all of its sessions are
		// theirs.
		return direct.New(direct.Options{Client: client, Store: keep{a.store, scope + "/"}, Files: files{a.files}, Log: a.log,
			Instance: instance + "-" + scope, AllSessions: true})
	}})
}

// instance returns the random name of this data folder that is stored under a key. It creates the
// name the first time.
func (a *agents) instance(ctx context.Context, key string) (string, error) {
	v, err := a.store.Meta(ctx, key)
	if err != nil || len(v) > 0 {
		return string(v), err
	}
	v = []byte(access.NewSecret()[:8])
	return string(v), a.store.Do(func(tx *store.Tx) error { return tx.SetMeta(key, v) })
}

// userOf returns the user that a device belongs to.
func (a *agents) userOf(device string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	d, err := a.store.Device(ctx, device)
	if err != nil || d == nil {
		return ""
	}
	return d.Owner()
}

// files adapts the file store to agent.Files.
type files struct{ store *media.Store }

func (f files) Put(r io.Reader, max int64) (string, int64, error) {
	file, err := f.store.PutReader(r, max)
	return file.Hash, file.Size, err
}

func (f files) Open(hash string) (io.ReadSeekCloser, error) { return f.store.Open(hash) }

func (f files) LocalCopy(hash, filename string) (string, error) {
	return f.store.LocalCopy(hash, filename)
}
