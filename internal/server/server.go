// Package server puts the parts together: settings, store, access, agent and hub behind one listener, and the admin
// interface on a unix socket in the data folder. Hub and agents meet only here.
package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	stdlog "log"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"hermes-mobile/internal/access"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/apiproxy"
	"hermes-mobile/internal/cert"
	"hermes-mobile/internal/config"
	"hermes-mobile/internal/doctor"
	"hermes-mobile/internal/hub"
	"hermes-mobile/internal/loglimit"
	"hermes-mobile/internal/media"
	"hermes-mobile/internal/metrics"
	"hermes-mobile/internal/onetime"
	"hermes-mobile/internal/passkey"
	"hermes-mobile/internal/push"
	"hermes-mobile/internal/quota"
	"hermes-mobile/internal/store"
	"hermes-mobile/internal/strangers"
	"hermes-mobile/internal/web"
	"hermes-mobile/internal/wsconn"
)

// Times of the running server.
const (
	pingEvery    = 25 * time.Second
	silenceLimit = 60 * time.Second
	helloTimeout = 10 * time.Second
	turnLease    = 20 * time.Minute
	closeTimeout = 8 * time.Second // SIGTERM is to be clean within ten seconds
	keepAlive    = 3 * time.Minute // longer than proxies keep a quiet connection (Caddy: 2 min), or they use one that we are closing
)

// Server is a running or startable server.
type Server struct {
	cfg     *config.Config                // of the start; never changed
	latest  atomic.Pointer[config.Config] // with the token lists as they were last read
	version string
	log     *slog.Logger
	started time.Time

	store   *store.Store
	files   *media.Store
	budget  *quota.Budget // of the data folder
	tokens  *access.Tokens
	pairing *access.Pairing
	guard   *access.Guard
	owners  *onetime.Tickets // links to the admin UI, and the logins there
	proxies access.Proxies
	origins []string
	metrics *metrics.Set
	keeper  *wsconn.Keeper
	agent   agent.Agent
	hub     *hub.Hub
	page    *web.Page
	push    *push.Sender // nil: there are no notifications
	pushOff string       // why not, where the owner has not switched them off
	users   *apiproxy.Users
	front   *apiproxy.Proxy // nil: Hermes' API is not served
	linkKey [32]byte

	adminToken *adminToken
	passkeys   *passkey.Keys
	failed     *failures

	looks     *looks
	hermes    versions
	letIn     []config.Gateway // also the one whose secret was made here
	requests  *access.Rejections
	forwarded *access.Rejections
	probes    probes
	turned    refusalLog

	within    within
	listener  net.Listener
	strangers *strangers.Listener // below listener
	certs     *cert.Certificates  // nil: without TLS
	admin     net.Listener
	madeTok   bool // no token was set: one was made

	reload sync.Mutex
}

// syncInterval bounds what a power loss costs with MOBILE_SYNC=interval.
const syncInterval = 200 * time.Millisecond

// New opens everything a server needs and begins to listen. Close it, or Run it, which closes it. A program that has a server within
// itself gives options.
func New(ctx context.Context, cfg *config.Config, version string, log *slog.Logger, options ...Option) (s *Server, err error) {
	token := cfg.AdminToken
	cfg = withoutAdminToken(cfg) // only its hash is kept
	log = slog.New(loglimit.New(log.Handler()))
	s = &Server{cfg: cfg, version: version, log: log, started: time.Now(), tokens: &access.Tokens{}, guard: access.NewGuard(time.Now),
		owners: onetime.New(adminSessionLife, time.Now), turned: refusalLog{log}, metrics: metrics.New(version), keeper: wsconn.NewKeeper(pingEvery, silenceLimit)}
	for _, option := range options {
		option(&s.within)
	}
	s.failed = newFailures(s.recordAnyway)
	s.latest.Store(cfg)
	s.looks = newLooks(s.look)
	s.requests, s.forwarded = newRefusals()
	defer func() {
		if err != nil {
			s.release()
		}
	}()
	if err := os.MkdirAll(cfg.Data, 0o700); err != nil {
		return s, fmt.Errorf("the data folder cannot be made: %w; name another one with --data or MOBILE_DATA", err)
	}
	if s.admin, err = listenAdmin(ctx, cfg.Data); err != nil {
		return s, err
	}
	if s.proxies, err = access.ParseProxies(cfg.TrustedProxies); err != nil {
		return s, err
	}
	if s.origins, err = access.ParseOrigins(strings.Join(cfg.AllowedOrigins, ",")); err != nil {
		return s, err
	}
	if s.listener, err = s.listen(); err != nil {
		return s, err
	}
	s.strangers = s.boundStrangers(s.listener, openFiles())
	s.listener = s.strangers
	if err = s.openCertificate(); err != nil {
		return s, err
	}
	if s.madeTok, err = s.loadTokens(); err != nil {
		return s, err
	}
	if s.adminToken, err = newAdminToken(token); err != nil {
		return s, fmt.Errorf("MOBILE_ADMIN_TOKEN: %w", err)
	}
	if s.pairing, err = OpenPairing(cfg); err != nil {
		return s, err
	}
	var durable []store.Option
	if cfg.Sync == "interval" {
		durable = append(durable, store.SyncEvery(syncInterval))
	}
	if s.store, err = store.Open(ctx, cfg.Data, durable...); err != nil {
		return s, err
	}
	if err = s.openPasskeys(); err != nil {
		return s, err
	}
	if s.files, err = media.OpenStore(filepath.Join(cfg.Data, "files")); err != nil {
		return s, err
	}
	if err = s.bound(ctx); err != nil {
		return s, err
	}
	if s.page, err = web.New(web.Options{Path: cfg.Path, AvatarURL: cfg.AvatarURL, Public: push.Public, Log: log, Base: s.base, App: s.within.guard != nil}); err != nil {
		return s, err
	}
	key, err := s.secretKey(ctx)
	if err != nil {
		return s, err
	}
	s.linkKey = key
	links := media.NewSigner(key)
	if s.agent, err = s.newAgent(ctx, key); err != nil {
		return s, err
	}
	if err = s.openFront(); err != nil {
		return s, err
	}
	s.openPush()
	deviceShare, tokenShare := s.shares()
	s.hub = hub.New(hub.Options{Push: s.push, PushActions: s.pushKey(), OutboxLife: time.Duration(cfg.OutboxDays) * 24 * time.Hour,
		Store: s.store, Files: s.files, Links: links, Agent: s.agent, Tokens: s.tokens, Pairing: s.pairing, Guard: s.guard,
		Keeper: s.keeper, Metrics: s.metrics, Log: log, Version: version, AvatarURL: cfg.AvatarURL, PublicURL: cfg.PublicURL,
		AllowAllUsers: cfg.AllowAllUsers, AllowedUsers: set(cfg.AllowedUsers), AllowedDevices: set(cfg.AllowedDevices), Named: named(cfg),
		PromptLife: time.Duration(cfg.PromptSeconds) * time.Second, MaxMedia: cfg.MaxMediaBytes, OutboxEntries: cfg.OutboxEntries,
		OutboxBytes: cfg.OutboxBytes, Budget: s.budget, DeviceShare: deviceShare, TokenShare: tokenShare,
		RejectOffline: cfg.OfflineDelivery == "reject", TurnLease: turnLease, HelloTimeout: helloTimeout})
	return s, nil
}

func (s *Server) listen() (net.Listener, error) {
	host, port := s.cfg.Host, s.cfg.Port
	if s.within.listen != nil {
		return s.within.listen()
	}
	l, err := net.Listen(network(host), net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("cannot listen: %w%s; end what uses the port, or choose another with --port or MOBILE_PORT", err, holder(err, host, port))
	}
	return l, nil
}

// network keeps 0.0.0.0 from meaning every IPv6 address, too.
func network(host string) string {
	if ip := net.ParseIP(host); ip != nil && ip.To4() != nil {
		return "tcp4"
	}
	return "tcp"
}

// holder names the program that has the port, where that is why it cannot be had.
func holder(err error, host string, port int) string {
	if doctor.InUse(err) {
		if name := doctor.PortHolder(host, port); name != "" {
			return " by " + name
		}
	}
	return ""
}

// named are the devices, and users as user:ID, that have a gateway of their own.
func named(cfg *config.Config) access.List {
	list := access.List{}
	for _, g := range cfg.Gateways {
		for _, d := range g.Devices {
			list[d] = struct{}{}
		}
	}
	return list
}

func set(ids []string) access.List { return access.ParseList(strings.Join(ids, ",")) }

// OpenPairing opens the pairing files: Hermes' own where there is a Hermes home, else ours in the same form.
func OpenPairing(cfg *config.Config) (*access.Pairing, error) {
	return access.OpenPairing(pairingDir(cfg), "mobile")
}

func pairingDir(cfg *config.Config) string {
	if cfg.HermesHomeExists {
		return access.PairingDir(cfg.HermesHome)
	}
	return filepath.Join(cfg.Data, "pairing")
}

// secretKey signs links; it is made once for a data folder.
func (s *Server) secretKey(ctx context.Context) (key [32]byte, err error) {
	const name = "link_key"
	stored, err := s.store.Meta(ctx, name)
	if err != nil {
		return key, err
	}
	if len(stored) == len(key) {
		copy(key[:], stored)
		return key, nil
	}
	rand.Read(key[:])
	return key, s.store.Do(func(tx *store.Tx) error { return tx.SetMeta(name, key[:]) })
}

// Addr is the address the server listens on.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Run serves until ctx ends, then stops in order: no new connections, the agent ends, messages that are being streamed get
// their end, devices are told, the store closes last.
func (s *Server) Run(ctx context.Context) error {
	defer s.release()
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	var work sync.WaitGroup
	agentDone := make(chan struct{})
	agentCtx, endAgent := context.WithCancel(life)
	defer endAgent()
	work.Go(func() { s.keeper.Run(life) })
	if err := s.hub.Start(life); err != nil {
		return err
	}
	go func() {
		defer close(agentDone)
		if err := s.agent.Run(agentCtx, s.hub); err != nil && agentCtx.Err() == nil {
			s.log.Error("the agent ended", "error", err)
		}
	}()
	work.Go(func() { s.pairing.Watch(life, s.pairingChanged(life)) })
	work.Go(func() { s.sweep(life) })
	work.Go(func() { s.failed.run(life) })
	work.Go(func() { tidy(life, s.hub.Connections) })
	work.Go(func() { s.looks.run(life) })
	if s.certs != nil {
		work.Go(func() { s.certs.Run(life) })
	}

	web := s.httpServer(unambiguous(unstalled(s.encrypted(s.guarded(s.handler())), bodyGrace, answerStall)))
	s.strangers.Watch(web, func(r *http.Request) netip.Addr {
		addr, _ := access.Client(r, s.proxies)
		return addr
	})
	if s.certs != nil {
		web.TLSNextProto = s.certs.Silent()
	}
	admin := s.socketServer()
	failed := make(chan error, 2)
	work.Go(func() { failed <- web.Serve(s.listener) })
	work.Go(func() { failed <- admin.Serve(s.admin) })

	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	s.log.Info("stopping")
	grace, cancel := context.WithTimeout(life, closeTimeout)
	defer cancel()
	_ = s.listener.Close()
	endAgent() // first: what it began is ended by the hub, and must not be ended by both
	<-agentDone
	if s.front != nil {
		s.front.Close()
	}
	s.hub.Close(grace)
	err = errors.Join(ignoreClosed(err), ignoreClosed(web.Shutdown(grace)), ignoreClosed(admin.Shutdown(grace)))
	_ = web.Close()
	_ = admin.Close()
	s.probes.close()
	end()
	work.Wait()
	return err
}

func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) || errors.Is(err, net.ErrClosed) || errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

func (s *Server) httpServer(h http.Handler) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: keepAlive, MaxHeaderBytes: 32 << 10,
		ErrorLog: stdlog.New(handshakes{s.log}, "", 0)}
}

// release closes what New opened; the store last.
func (s *Server) release() {
	if s.listener != nil {
		_ = s.listener.Close()
	}
	if s.admin != nil {
		_ = s.admin.Close()
	}
	if s.certs != nil {
		s.certs.Close()
	}
	if s.push != nil {
		s.push.Close()
	}
	if s.front != nil {
		s.front.Close()
	}
	if s.store != nil {
		if err := s.store.Close(); err != nil {
			s.log.Error("the store did not close cleanly", "error", err)
		}
		s.store = nil
	}
}

// pairingChanged carries approvals and revocations to the live connections, whoever made them.
func (s *Server) pairingChanged(ctx context.Context) func(access.Change) {
	return func(c access.Change) {
		if c.Err != nil {
			s.log.Error("the pairing files cannot be read: nobody counts as approved until they can", "error", c.Err)
			return
		}
		for _, user := range c.Approved {
			if err := s.hub.SawApproval(ctx, user); err != nil {
				s.log.Error("an approval could not be told", "user", user, "error", err)
			}
		}
		for _, user := range c.Revoked {
			if err := s.hub.SawRevocation(ctx, user); err != nil {
				s.log.Error("a revocation could not be carried out", "user", user, "error", err)
			}
		}
	}
}
