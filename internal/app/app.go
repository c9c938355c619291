// Package app is the direct client on the user's own machine: a server that listens only on the loopback
// interface, with an agent that talks to one Hermes gateway. The user chats in the page or in the terminal.
//
// [Guard] admits only the page that this program opened. [connect.Machine] connects the gateway. Its profile
// and credentials make the gateway's client, and the client makes the agent ([link]).
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

// ErrRunning means that an app is already running on this data folder. [Running] asks it for a link.
var ErrRunning = errors.New("the app is already running on this data folder")

// ownUser is the only user of the app. All its pages and terminals belong to this user.
const ownUser = "me"

// Parts are the parts of an agent.
type Parts struct {
	Client *gateway.Client // owned by the agent until its Run returns
	Files  agent.Files
	Log    *slog.Logger
}

// Options configures an App.
type Options struct {
	Data      string // folder
	Port      int    // 0: a random port, the same at each start if it is free
	Version   string
	Log       *slog.Logger
	Key       gateway.Secret // the vault key from a host program
	NoKeyring bool
	RootCAs   *x509.CertPool          // CAs of gateways; nil: the system's
	Agent     func(Parts) agent.Agent // nil: the agent direct
	// Passphrase asks for the passphrase of the stored credentials; nil: do not ask. Only DiagnoseFolder uses it.
	Passphrase func(context.Context) (gateway.Secret, error)
}

// App is the running app. Create it with New, then call Run.
type App struct {
	o       Options
	machine *connect.Machine
	vault   *vault.Vault
	server  *server.Server
	guard   *Guard
	link    *link
	parts   server.Parts
	port    int
	started time.Time

	mu     sync.Mutex
	client *gateway.Client // for the newest profile
}

// New opens the vault, reads the profile, and starts to listen. It does not contact a gateway; Run does.
func New(ctx context.Context, o Options) (*App, error) {
	if server.NewClient(o.Data).Get(ctx, "/app/here", nil) == nil {
		return nil, ErrRunning
	}
	a := &App{o: o, started: time.Now()}
	a.link = newLink(o.Log, func() { a.machine.SignedOut() })
	if err := os.MkdirAll(o.Data, 0o700); err != nil {
		return nil, fmt.Errorf("create the data folder: %w (use another one with --data)", err)
	}
	var err error
	if a.vault, a.machine, err = open(o, a.use); err != nil {
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

// open opens the vault and the stored connection.
func open(o Options, use func(gateway.Profile, gateway.Credentials)) (*vault.Vault, *connect.Machine, error) {
	v, err := vault.Open(vault.Options{Dir: o.Data, Key: o.Key, NoKeyring: o.NoKeyring})
	if err != nil {
		return nil, nil, err
	}
	m, err := connect.New(connect.Options{Storage: connect.NewStorage(o.Data, v), RootCAs: o.RootCAs, Log: o.Log, OnReady: use})
	return v, m, err
}

// settings returns the settings of the app's own server. It ignores the environment and the Hermes home, which
// are for `serve`.
func settings(data string) (*config.Config, error) {
	cfg, _, err := config.Load(config.Sources{HomeDir: data, Environ: []string{"HERMES_HOME=" + data + "/none"}, Flags: map[string]string{
		"data": data, "host": "127.0.0.1", "port": "0", "agent": "demo", "push": "off", "tls": "off", "trusted-proxies": "none", "admin": "off"}})
	if err != nil {
		return nil, err
	}
	cfg.AgentWhy = "direct, with the gateway that is connected here"
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

// Origin returns the origin of the page.
func (a *App) Origin() string { return a.guard.origin }

// Port returns the port that the app listens on.
func (a *App) Port() int { return a.port }

// Machine returns the state machine of the wizard that connects the gateway.
func (a *App) Machine() *connect.Machine { return a.machine }

// Link returns a link that opens the page once, within two minutes.
func (a *App) Link() string { return a.guard.link() }

// Run serves until ctx ends.
func (a *App) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var work sync.WaitGroup
	a.link.begin(ctx, &work)
	work.Go(a.machine.Start)
	err := a.server.Run(ctx)
	cancel()
	work.Wait()
	return err
}

// use replaces the client and the agent with those of a profile.
func (a *App) use(p gateway.Profile, c gateway.Credentials) {
	client, err := gateway.New(p, c, gateway.Options{RootCAs: a.o.RootCAs, Log: a.o.Log, WatchNetwork: gateway.WatchNetwork,
		OnProfile:     func(p gateway.Profile) { a.machine.KeepProfile(p) },
		OnCredentials: func(c gateway.Credentials) { a.machine.KeepCredentials(p, c) }})
	if err != nil { // unexpected: the compatibility test has passed
		a.o.Log.Error("gateway client failed", "component", "app", "err", err)
		return
	}
	a.mu.Lock()
	a.client = client
	a.mu.Unlock()
	a.link.replace(client, a.newAgent(p, client))
}

// newAgent creates the agent of a client. Its memory is only for this account at this gateway.
func (a *App) newAgent(p gateway.Profile, client *gateway.Client) agent.Agent {
	if a.o.Agent != nil {
		return a.o.Agent(Parts{Client: client, Files: a.parts.Files, Log: a.parts.Log})
	}
	return a.parts.Direct(client, gateway.Credentials{}.For(p).Account[:16])
}

// Offline returns why the gateway is offline. It is nil while the gateway works, and during the first attempt.
func (a *App) Offline() error {
	switch agent := a.link.now().(type) {
	case nil:
		return errors.New("no gateway is connected")
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

// opened is the answer of a running app with a link to its page.
type opened struct {
	URL string `json:"url"`
}

// Running asks the app that is running on a data folder for a link to its page.
func Running(ctx context.Context, data string) (string, error) {
	var o opened
	err := server.NewClient(data).Post(ctx, "/app/open", server.Command{}, &o)
	var refused *server.Refused
	if err != nil && !errors.Is(err, server.ErrNotRunning) && !errors.As(err, &refused) {
		err = fmt.Errorf("a server, not an app, is running on the data folder %s: use another folder with --data", data)
	}
	return o.URL, err
}

func answering(f func(context.Context) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, err := f(r.Context())
		reply(w, v, err)
	})
}

// failure is the body of a failed request.
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
	_ = json.NewEncoder(w).Encode(v) // fails only if the client is gone
}
