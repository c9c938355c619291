// Package server connects the parts of the program: settings, store, access, agent and hub behind
// one listener, and the admin API on a unix socket in the data folder. Hub and agents meet only
// here.
//
// Server consists of parts. Each part is a struct with its own fields, gets what it needs when it
// is created, and never sees Server itself. doc/architecture.md draws them.
package server

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"hermes-mobile/internal/access"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/config"
	"hermes-mobile/internal/hub"
	"hermes-mobile/internal/loglimit"
	"hermes-mobile/internal/media"
	"hermes-mobile/internal/metrics"
	"hermes-mobile/internal/onetime"
	"hermes-mobile/internal/passkey"
	"hermes-mobile/internal/push"
	"hermes-mobile/internal/store"
	"hermes-mobile/internal/strangers"
	"hermes-mobile/internal/web"
	"hermes-mobile/internal/wsconn"
)

// Times of the running server.
const (
	pingEvery       = 25 * time.Second
	silenceLimit    = 60 * time.Second
	helloTimeout    = 10 * time.Second
	turnIdleTimeout = 20 * time.Minute
	closeTimeout    = 8 * time.Second // a stop takes at most ten seconds
)

// syncInterval bounds what a power loss costs with MOBILE_SYNC=interval.
const syncInterval = 200 * time.Millisecond

// Server is a server that listens. Run serves.
type Server struct {
	cfg      *config.Config // never changed
	log      *slog.Logger
	embedded embedding
	linkKey  [32]byte

	// Closed by release.
	admin     net.Listener
	listener  net.Listener
	strangers *strangers.Listener // below listener
	store     *store.Store
	push      *push.Sender // nil: there are no notifications

	// Shared by the parts.
	files   *media.Store
	tokens  *access.Tokens
	pairing *access.Pairing
	metrics *metrics.Set
	keeper  *wsconn.Keeper
	agent   agent.Agent
	hub     *hub.Hub
	page    *web.Page

	// The parts.
	addresses   *addresses
	filter      *requestFilter
	sources     *tokenSources
	reloader    *reloader
	storage     *storage
	audit       *auditLog
	failed      *failures
	api         *apiMount
	probes      *probes
	health      *health
	logins      *logins
	adminAPI    *adminAPI
	maintenance *maintenance
	banner      *banner
}

// New opens everything a server needs and listens. The caller must call Run, which closes it. A
// program that embeds the server passes options.
func New(ctx context.Context, cfg *config.Config, version string, log *slog.Logger, options ...Option) (s *Server, err error) {
	token := cfg.AdminToken
	cfg = withoutAdminToken(cfg) // the server keeps only its hash
	s = &Server{cfg: cfg, log: slog.New(loglimit.New(log.Handler())), tokens: &access.Tokens{}, metrics: metrics.New(version),
		keeper: wsconn.NewKeeper(pingEvery, silenceLimit)}
	for _, option := range options {
		option(&s.embedded)
	}
	started := time.Now()
	defer func() {
		if err != nil {
			s.release()
		}
	}()
	if err := os.MkdirAll(cfg.Data, 0o700); err != nil {
		return s, fmt.Errorf("cannot create the data folder: %w; choose another with --data or MOBILE_DATA", err)
	}
	if s.admin, err = listenAdmin(ctx, cfg.Data); err != nil {
		return s, err
	}
	if err = s.openNetwork(); err != nil {
		return s, err
	}
	s.sources = newTokenSources(cfg)
	list, err := s.sources.load()
	if err != nil {
		return s, err
	}
	s.tokens.Replace(list)
	adminToken, err := newAdminToken(token)
	if err != nil {
		return s, fmt.Errorf("MOBILE_ADMIN_TOKEN: %w", err)
	}
	if s.pairing, err = OpenPairing(cfg); err != nil {
		return s, err
	}
	if err = s.openStore(ctx); err != nil {
		return s, err
	}
	if err = checkPasskeySettings(cfg); err != nil {
		return s, err
	}
	if s.page, err = web.New(web.Options{Path: cfg.Path, AvatarURL: cfg.AvatarURL, Public: push.Public, Log: s.log, Base: s.addresses.base, App: s.embedded.guard != nil}); err != nil {
		return s, err
	}
	if s.agent, err = (&agents{cfg: cfg, log: s.log, store: s.store, files: s.files, metrics: s.metrics, keeper: s.keeper, from: s.addresses.clientText, key: s.linkKey}).open(ctx, s.embedded.agent); err != nil {
		return s, err
	}
	if s.api, err = newAPIMount(cfg, s.addresses, s.store, s.metrics, s.log); err != nil {
		return s, err
	}
	var pushOff string
	s.push, pushOff = openPush(cfg, s.log)
	s.openHub(version)

	s.reloader = &reloader{sources: s.sources, tokens: s.tokens, certs: s.addresses.certs, hub: s.hub, audit: s.audit, log: s.log}
	s.probes = &probes{port: s.addresses.port()}
	s.health = (&health{cfg: cfg, log: s.log, started: started, addresses: s.addresses, agent: s.agent, hub: s.hub, store: s.store, storage: s.storage,
		pairing: s.pairing, strangers: s.strangers, filter: s.filter, api: s.api, probes: s.probes, pushOff: pushOff}).prepare()
	s.logins = &logins{cfg: cfg, log: s.log, addresses: s.addresses, filter: s.filter, sessions: onetime.New(adminSessionLife, time.Now), token: adminToken,
		tokens: s.tokens, passkeys: passkey.New(s.store, s.log, time.Now), audit: s.audit, failed: s.failed}
	s.adminAPI = &adminAPI{cfg: cfg, version: version, started: started, log: s.log, addresses: s.addresses, store: s.store, storage: s.storage, metrics: s.metrics,
		pairing: s.pairing, agent: s.agent, hub: s.hub, api: s.api, sources: s.sources, reloader: s.reloader, health: s.health, logins: s.logins, audit: s.audit, extra: s.embedded.admin}
	s.maintenance = &maintenance{cfg: cfg, log: s.log, started: started, store: s.store, files: s.files, storage: s.storage, hub: s.hub}
	s.banner = &banner{cfg: cfg, version: version, addresses: s.addresses, sources: s.sources, logins: s.logins}
	return s, nil
}

// openNetwork opens the listener with its certificate.
func (s *Server) openNetwork() error {
	proxies, err := access.ParseProxies(s.cfg.TrustedProxies)
	if err != nil {
		return err
	}
	origins, err := access.ParseOrigins(strings.Join(s.cfg.AllowedOrigins, ","))
	if err != nil {
		return err
	}
	if open := s.embedded.listen; open != nil {
		s.listener, err = open()
	} else {
		s.listener, err = listen(s.cfg)
	}
	if err != nil {
		return err
	}
	s.strangers = boundStrangers(s.listener, openFiles(), proxies, s.metrics)
	s.listener = s.strangers
	s.addresses = &addresses{cfg: s.cfg, listener: s.listener.Addr(), proxies: proxies}
	certs, err := openCertificate(s.cfg, s.listener, s.log)
	if err != nil {
		return err
	}
	if s.addresses.certs = certs; certs != nil {
		s.listener = newOnePort(s.listener, certs.TLS(), firstByteTimeout)
	}
	s.filter = newRequestFilter(s.log, s.addresses, origins, access.NewGuard(time.Now))
	return nil
}

// openStore opens the database and the files, under the storage budget.
func (s *Server) openStore(ctx context.Context) (err error) {
	var durable []store.Option
	if s.cfg.Sync == "interval" {
		durable = append(durable, store.SyncEvery(syncInterval))
	}
	if s.store, err = store.Open(ctx, s.cfg.Data, durable...); err != nil {
		return err
	}
	s.audit = &auditLog{store: s.store, log: s.log}
	s.failed = newFailures(s.audit.recordAnyway, time.Now)
	if s.files, err = media.OpenStore(filepath.Join(s.cfg.Data, "files")); err != nil {
		return err
	}
	if s.storage, err = newStorage(ctx, s.cfg, s.store, s.files, s.metrics, s.log); err != nil {
		return err
	}
	s.linkKey, err = secretKey(ctx, s.store)
	return err
}

// secretKey returns the key that signs links. It creates the key once for a data folder.
func secretKey(ctx context.Context, s *store.Store) (key [32]byte, err error) {
	const name = "link_key"
	stored, err := s.Meta(ctx, name)
	if err != nil {
		return key, err
	}
	if len(stored) == len(key) {
		copy(key[:], stored)
		return key, nil
	}
	rand.Read(key[:])
	return key, s.Do(func(tx *store.Tx) error { return tx.SetMeta(name, key[:]) })
}

// openHub creates the hub.
func (s *Server) openHub(version string) {
	cfg := s.cfg
	var pushKey []byte // signs the tokens by which notifications answer cards; nil: they may not
	if s.push != nil && cfg.PushActions {
		pushKey = s.linkKey[:] // its other use signs another kind of text
	}
	deviceShare, tokenShare := s.storage.shares()
	s.hub = hub.New(hub.Options{Push: s.push, PushActions: pushKey, OutboxLife: time.Duration(cfg.OutboxDays) * 24 * time.Hour,
		Store: s.store, Files: s.files, Links: media.NewSigner(s.linkKey), Agent: s.agent, Tokens: s.tokens, Pairing: s.pairing, Guard: s.filter.guard,
		Keeper: s.keeper, Metrics: s.metrics, Log: s.log, Version: version, AvatarURL: cfg.AvatarURL, PublicURL: cfg.PublicURL,
		AllowAllUsers: cfg.AllowAllUsers, AllowedUsers: set(cfg.AllowedUsers), AllowedDevices: set(cfg.AllowedDevices), Named: named(cfg),
		PromptLife: time.Duration(cfg.PromptSeconds) * time.Second, MaxMedia: cfg.MaxMediaBytes, OutboxEntries: cfg.OutboxEntries,
		OutboxBytes: cfg.OutboxBytes, Budget: s.storage.budget, DeviceShare: deviceShare, TokenShare: tokenShare,
		RejectOffline: cfg.OfflineDelivery == "reject", IdleTimeout: turnIdleTimeout, HelloTimeout: helloTimeout})
}

// handler serves everything that arrives over the network.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle(s.cfg.Path, &deviceEndpoint{hub: s.hub, filter: s.filter, probes: s.probes})
	if h, ok := s.agent.(interface{ Handler() http.Handler }); ok {
		relay := h.Handler()
		mux.Handle("/relay", relay)
		mux.Handle("/relay/", relay)
	}
	mux.Handle(media.LinkPrefix, media.Handler(s.files, media.NewSigner(s.linkKey), time.Now, s.hub.MayRead))
	if s.push != nil && s.cfg.PushActions {
		mux.Handle("POST "+pushActionPath, &pushActions{hub: s.hub, filter: s.filter})
	}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) { s.health.serveReady(w, s.logins.insider(r)) })
	mux.HandleFunc("GET /metrics", s.serveMetrics)
	for _, path := range s.page.Paths() {
		if path == "/" {
			path = "/{$}"
		}
		mux.Handle("GET "+path, s.page)
	}
	s.api.mount(mux)
	owner := (&adminUI{page: s.page, logins: s.logins, api: s.adminAPI}).handler()
	mux.Handle(web.OwnerPath, owner)
	mux.Handle(web.OwnerPath+"/", owner)
	return s.filter.noteProxies(mux)
}

func (s *Server) serveMetrics(w http.ResponseWriter, r *http.Request) {
	if !s.logins.insider(r) {
		http.Error(w, "Metrics need MOBILE_METRICS_TOKEN as a bearer token, or a login to the admin UI. On the server's machine: hermes-mobile status --metrics", http.StatusForbidden)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	s.metrics.Handler().ServeHTTP(w, r)
}

// Addr returns the address that the server listens on.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Banner writes the text for the start of the server. It shows no token. program is the name by
// which the person called this program, for the commands in the text. screen says that w is a
// terminal, which a person reads now and nothing keeps: only then does the banner contain a link
// that opens the admin UI.
func (s *Server) Banner(w io.Writer, program string, screen bool) { s.banner.print(w, program, screen) }

// Reload applies the token lists of newly read settings, ends the connections whose token is gone,
// and looks for another certificate. The other settings stay. With nil it reads only the token
// file.
func (s *Server) Reload(cfg *config.Config) error { return s.reloader.settings(cfg) }

// AdminLink returns a link that opens the admin UI once, within two minutes. The link is a secret:
// show it to whoever may open the admin socket, and to nobody else. The context says who requests
// it.
func (s *Server) AdminLink(ctx context.Context) (AdminLink, error) { return s.logins.link(ctx) }

// Invite creates a pairing code for a device of a user, for the program that embeds the server. The
// device may answer cards at once.
func (s *Server) Invite(ctx context.Context, user string) (Invitation, error) {
	return s.adminAPI.invite(ctx, access.PairingCode{User: user, Trusted: true})
}

// PagePaths returns the paths of the web page's files.
func (s *Server) PagePaths() []string { return s.page.Paths() }
