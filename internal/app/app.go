// Package app is the direct client on a person's own machine: a server within the program that listens on the loopback interface only,
// with an agent behind it that speaks to one Hermes gateway. Its face is the page, or the terminal.
//
// [Guard] lets nobody in but the page that this program opened. [connect.Machine] sets the gateway up; what it found out makes the
// gateway's client, and that the agent ([link]).
package app

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"hermes-mobile/gateway"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/agent/direct"
	"hermes-mobile/internal/config"
	"hermes-mobile/internal/connect"
	"hermes-mobile/internal/server"
	"hermes-mobile/internal/vault"
)

// ErrRunning: an app runs on this data folder already. Ask it with [Running].
var ErrRunning = errors.New("the app is running on this data folder")

// ownUser is whose all pages and terminals of the app are: those of the one person who runs it.
const ownUser = "me"

// Parts are what an agent is made of.
type Parts struct {
	Client *gateway.Client // its own until Run has ended
	Files  agent.Files
	Log    *slog.Logger
}

// Options is what an app needs.
type Options struct {
	Data      string // folder
	Port      int    // 0: one of its own, the same each time where it is free
	Version   string
	Log       *slog.Logger
	Key       gateway.Secret // of a host program, for the vault
	NoKeyring bool
	RootCAs   *x509.CertPool          // that vouch for gateways; nil: those of the system
	Agent     func(Parts) agent.Agent // nil: the direct agent
	// Passphrase asks for the one of the stored credentials; nil: nobody is there to ask. Only DiagnoseFolder uses it.
	Passphrase func(context.Context) (gateway.Secret, error)
}

// App is the running program. Make it with New, then Run it.
type App struct {
	o       Options
	setup   *connect.Machine
	vault   *vault.Vault
	server  *server.Server
	guard   *Guard
	link    *link
	parts   server.Parts
	port    int
	started time.Time

	mu     sync.Mutex
	client *gateway.Client // of the newest profile
}

// New opens the vault, reads the profile and begins to listen. Nothing is asked of a gateway before Run.
func New(ctx context.Context, o Options) (*App, error) {
	if server.NewClient(o.Data).Get(ctx, "/app/here", nil) == nil {
		return nil, ErrRunning
	}
	a := &App{o: o, started: time.Now()}
	a.link = newLink(o.Log, func() { a.setup.SignedOut() })
	if err := os.MkdirAll(o.Data, 0o700); err != nil {
		return nil, fmt.Errorf("the data folder cannot be made: %w; name another one with --data", err)
	}
	var err error
	if a.vault, a.setup, err = open(o, a.use); err != nil {
		return nil, err
	}
	cfg, err := settings(o.Data)
	if err != nil {
		return nil, err
	}
	a.server, err = server.New(ctx, cfg, o.Version, o.Log,
		server.ListeningBy(a.listen), server.GuardedBy(a.guarded), server.WithAgent(a.agent),
		server.WithAdmin("GET /app/here", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})),
		server.WithAdmin("POST /app/open", answering(func(context.Context) (any, error) { return opened{a.Link()}, nil })),
		server.WithAdmin("GET /app/diagnostics", answering(func(context.Context) (any, error) { return a.Diagnose(), nil })))
	if err != nil {
		return nil, err
	}
	return a, nil
}

// open is what the app has at rest.
func open(o Options, use func(gateway.Profile, gateway.Credentials)) (*vault.Vault, *connect.Machine, error) {
	v, err := vault.Open(vault.Options{Dir: o.Data, Key: o.Key, NoKeyring: o.NoKeyring})
	if err != nil {
		return nil, nil, err
	}
	m, err := connect.New(connect.Options{Keep: connect.NewKeep(o.Data, v), RootCAs: o.RootCAs, Log: o.Log, OnReady: use})
	return v, m, err
}

// settings are those of the server within. Neither the environment nor a Hermes home says anything here: those are of `serve`.
func settings(data string) (*config.Config, error) {
	cfg, _, err := config.Load(config.Sources{HomeDir: data, Environ: []string{"HERMES_HOME=" + data + "/none"}, Flags: map[string]string{
		"data": data, "host": "127.0.0.1", "port": "0", "agent": "demo", "push": "off", "tls": "off", "trusted-proxies": "none", "admin": "off"}})
	if err != nil {
		return nil, err
	}
	cfg.AgentWhy = "direct, the gateway that was set up here"
	return cfg, nil
}

func (a *App) listen() (l net.Listener, err error) {
	l, a.port, err = listen(a.o.Data, a.o.Port)
	if err == nil {
		a.guard = newGuard(a.port, time.Now)
	}
	return l, err
}

func (a *App) guarded(next http.Handler) http.Handler { return a.guard.before(a.routes(next)) }

func (a *App) agent(p server.Parts) (agent.Agent, error) {
	a.parts = p
	return a.link, nil
}

// Origin is where the page is.
func (a *App) Origin() string { return a.guard.origin }

// Port is the port that is listened on.
func (a *App) Port() int { return a.port }

// Setup is the state machine of the setup.
func (a *App) Setup() *connect.Machine { return a.setup }

// Link is an address that opens the page, once, within two minutes.
func (a *App) Link() string { return a.guard.link() }

// Run serves until ctx ends.
func (a *App) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var work sync.WaitGroup
	a.link.begin(ctx, &work)
	work.Go(a.setup.Start)
	err := a.server.Run(ctx)
	cancel()
	work.Wait()
	return err
}

// use makes the client and the agent of a profile, in place of what there was.
func (a *App) use(p gateway.Profile, c gateway.Credentials) {
	client, err := gateway.New(p, c, gateway.Options{RootCAs: a.o.RootCAs, Log: a.o.Log, WatchNetwork: gateway.WatchNetwork,
		OnProfile:     func(p gateway.Profile) { a.setup.KeepProfile(p) },
		OnCredentials: func(c gateway.Credentials) { a.setup.KeepCredentials(p, c) }})
	if err != nil { // the setup has checked it
		a.o.Log.Error("the gateway cannot be used", "error", err)
		return
	}
	a.mu.Lock()
	a.client = client
	a.mu.Unlock()
	a.link.replace(client, a.newAgent(p, client))
}

// newAgent makes the agent of a client. What it remembers is of this account at this gateway, and of no other.
func (a *App) newAgent(p gateway.Profile, client *gateway.Client) agent.Agent {
	if a.o.Agent != nil {
		return a.o.Agent(Parts{Client: client, Files: a.parts.Files, Log: a.parts.Log})
	}
	return a.parts.Direct(client, gateway.Credentials{}.For(p).Account[:16])
}

// Offline says why the gateway cannot be used; nil while it can, or is being tried for the first time.
func (a *App) Offline() error {
	switch agent := a.link.now().(type) {
	case nil:
		return errors.New("no gateway is set up")
	case interface{ State() direct.State }:
		return agent.State().Err
	}
	return nil
}

func (a *App) current() *gateway.Client {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.client
}

// opened is how a running app is opened.
type opened struct {
	URL string `json:"url"`
}

// Running asks the app that runs on a data folder for an address that opens its page.
func Running(ctx context.Context, data string) (string, error) {
	var o opened
	err := server.NewClient(data).Post(ctx, "/app/open", server.Command{}, &o)
	var refused *server.Refused
	if err != nil && !errors.Is(err, server.ErrNotRunning) && !errors.As(err, &refused) {
		err = fmt.Errorf("what runs on the data folder %s is no app: give this one another folder with --data", data)
	}
	return o.URL, err
}

func answering(f func(context.Context) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, err := f(r.Context())
		reply(w, v, err)
	})
}

// failure is the body of a request that could not be carried out.
type failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func reply(w http.ResponseWriter, v any, err error) {
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		w.WriteHeader(http.StatusUnprocessableEntity)
		v = failure{"refused", strings.TrimSuffix(err.Error(), ".") + "."}
	}
	_ = json.NewEncoder(w).Encode(v) // the client is gone, nothing is lost
}
