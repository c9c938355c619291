package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/access"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/agent/relay"
	"hermes-mobile/internal/config"
	"hermes-mobile/internal/hub"
	"hermes-mobile/internal/metrics"
	"hermes-mobile/internal/store"
)

// adminAPI serves the admin API: to the command line on the admin socket, and in part to the admin
// UI.
type adminAPI struct {
	cfg       *config.Config
	version   string
	started   time.Time
	log       *slog.Logger
	addresses *addresses
	store     *store.Store
	storage   *storage
	metrics   *metrics.Set
	pairing   *access.Pairing
	agent     agent.Agent
	hub       *hub.Hub
	api       *apiMount
	sources   *tokenSources
	reloader  *reloader
	health    *health
	logins    *logins
	audit     *auditLog
	extra     map[string]http.Handler // of the program that embeds the server
}

// handler returns the admin API.
func (a *adminAPI) handler() http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, f func(context.Context, Command) (any, error)) {
		mustBeAudited(pattern)
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			var c Command
			if r.Method != http.MethodGet {
				if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<20)).Decode(&c); err != nil {
					answer(w, nil, fmt.Errorf("the request isn't valid JSON: %w", err))
					return
				}
			}
			v, err := f(r.Context(), c)
			answer(w, v, err)
		})
	}
	handle("GET /status", func(ctx context.Context, _ Command) (any, error) { return a.status(ctx) })
	handle("GET /doctor", func(ctx context.Context, _ Command) (any, error) { return a.health.diagnose(ctx), nil })
	handle("POST /doctor/probe", func(context.Context, Command) (any, error) { return a.health.probes.announce(), nil })
	handle("POST /admin/link", func(ctx context.Context, _ Command) (any, error) { return a.logins.link(ctx) })
	mux.Handle("GET /metrics", a.metrics.Handler())
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { a.health.serveReady(w, true) })
	a.deviceRoutes(handle)
	handle("GET /pairing", func(context.Context, Command) (any, error) { return ListPairing(a.pairing) })
	handle("POST /pairing/approve", func(ctx context.Context, c Command) (any, error) {
		user, err := a.hub.Owner().ApproveUser(ctx, c.ID)
		if err != nil {
			return nil, err
		}
		return Approved{User: user}, nil
	})
	handle("POST /pairing/revoke", a.revokeUser)
	handle("POST /pair", func(ctx context.Context, c Command) (any, error) {
		code, err := c.code()
		if err != nil {
			return nil, err
		}
		return a.invite(ctx, code)
	})
	handle("GET /tokens", func(ctx context.Context, _ Command) (any, error) { return a.listTokens(ctx) })
	handle("POST /tokens/add", a.addToken)
	handle("POST /tokens/remove", a.removeToken)
	handle("GET /users", func(ctx context.Context, _ Command) (any, error) { return a.api.users.List(ctx) })
	handle("POST /users/add", func(ctx context.Context, c Command) (any, error) {
		return nil, a.api.users.Add(ctx, c.Name, c.Password.Reveal())
	})
	handle("POST /users/remove", a.api.removeUser)
	handle("POST /users/passwd", a.api.setPassword)
	handle("GET /users/key", func(ctx context.Context, _ Command) (any, error) { return a.api.users.Keys(ctx, "") })
	handle("POST /users/key/add", a.api.addKey)
	handle("POST /users/key/remove", a.api.removeKey)
	mux.HandleFunc("GET /deliveries", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		limit, err := strconv.Atoi(q.Get("limit"))
		if err != nil {
			answer(w, nil, fmt.Errorf("limit: %w", err))
			return
		}
		list, err := a.hub.Owner().Deliveries(r.Context(), q.Get("device"), q.Get("state"), limit)
		answer(w, list, err)
	})
	handle("POST /deliver", func(ctx context.Context, c Command) (any, error) {
		if c.Frame == nil {
			return nil, errors.New("the request has no delivery")
		}
		if _, err := frame.DecodeUp(frame.EncodeUp(c.Frame)); err != nil { // the same checks as on the wire
			return nil, err
		}
		// Resolve the home channel once, so the named device is the one that receives the delivery.
		c.Frame.To = a.hub.Addressee(c.Frame.To)
		return a.deliver(ctx, c.Frame)
	})
	handle("GET /passkeys", func(ctx context.Context, _ Command) (any, error) { return a.logins.passkeys.List(ctx) })
	handle("POST /passkeys/rename", func(ctx context.Context, c Command) (any, error) {
		return nil, a.logins.passkeys.Rename(ctx, c.ID, c.Name)
	})
	handle("POST /passkeys/remove", func(ctx context.Context, c Command) (any, error) {
		p, err := a.logins.passkeys.Remove(ctx, c.ID)
		if err == nil {
			a.logins.sessions.EndOthers(nil, "") // one of the logins may be by this passkey
		}
		return p, err
	})
	for pattern, h := range a.extra {
		mux.Handle(pattern, a.audit.recorded(pattern, h))
	}
	handle("POST /backup", func(ctx context.Context, c Command) (any, error) {
		return nil, a.audit.attempt(ctx, "backup.written", c.Path, func() error { return a.store.Backup(ctx, c.Path) })
	})
	mux.HandleFunc("GET /audit", a.audit.serve)
	mux.HandleFunc("GET /audit/export", a.audit.export)
	return mux
}

// deviceRoutes adds the routes about devices and the home channel.
func (a *adminAPI) deviceRoutes(handle func(pattern string, f func(context.Context, Command) (any, error))) {
	handle("GET /devices", func(ctx context.Context, _ Command) (any, error) { return a.hub.Owner().Devices(ctx) })
	handle("POST /devices/rename", func(ctx context.Context, c Command) (any, error) { return nil, a.hub.Owner().Rename(ctx, c.ID, c.Name) })
	handle("POST /devices/rights", func(ctx context.Context, c Command) (any, error) { return a.hub.Owner().SetRights(ctx, c.ID, c.Rights) })
	handle("POST /devices/join", func(ctx context.Context, c Command) (any, error) {
		return nil, a.hub.Owner().Join(ctx, strings.TrimPrefix(c.ID, frame.SessionPrefix), strings.TrimPrefix(c.Name, frame.SessionPrefix))
	})
	handle("POST /devices/leave", func(ctx context.Context, c Command) (any, error) {
		return nil, a.hub.Owner().Leave(ctx, strings.TrimPrefix(c.ID, frame.SessionPrefix))
	})
	handle("POST /devices/unbind", func(ctx context.Context, c Command) (any, error) { return nil, a.hub.Owner().Unbind(ctx, c.ID) })
	handle("POST /devices/revoke", func(ctx context.Context, c Command) (any, error) { return nil, a.hub.Owner().Revoke(ctx, c.ID) })
	handle("POST /devices/rotate", a.rotate)
	handle("GET /home", func(ctx context.Context, _ Command) (any, error) { return a.home(ctx) })
	handle("POST /home/look", func(ctx context.Context, c Command) (any, error) { return a.candidate(ctx, c.ID) })
	handle("POST /home/set", func(ctx context.Context, c Command) (any, error) { return a.setHome(ctx, c.ID) })
	handle("POST /home/clear", func(ctx context.Context, _ Command) (any, error) { return nil, a.hub.Owner().ClearHome(ctx) })
}

func (a *adminAPI) status(ctx context.Context) (Status, error) {
	devices, err := a.hub.Owner().Devices(ctx)
	if err != nil {
		return Status{}, err
	}
	list, err := ListPairing(a.pairing)
	if err != nil {
		a.log.Warn("pairing requests not listed", "err", err)
	}
	agent := a.agent.Status("")
	st := Status{Version: a.version, Address: a.addresses.endpoint(), Local: a.addresses.local(), TLS: a.addresses.certificate(), PublicURL: a.cfg.PublicURL, Data: a.cfg.Data,
		Started: a.started.UTC().Truncate(time.Second), Agent: a.agent.Name(), AgentWhy: a.cfg.AgentWhy, AgentOnline: agent.Online, AgentDetail: agent.Detail,
		Storage: a.storage.budget.Use(), Devices: len(devices), Pending: len(list.Pending), Health: a.health.current(ctx)}
	for _, d := range devices {
		if d.Connected {
			st.Connected++
		}
	}
	if r, ok := a.agent.(*relay.Agent); ok {
		state := r.State()
		st.Relay = &state
	}
	return st, nil
}

func (a *adminAPI) revokeUser(ctx context.Context, c Command) (any, error) {
	if err := a.hub.Owner().RevokeUser(ctx, c.ID); err != nil {
		return nil, err
	}
	out := Approved{User: access.User{UserID: c.ID}}
	switch {
	case a.cfg.AllowAllUsers:
		out.Anyway = "MOBILE_ALLOW_ALL_USERS lets everybody with a token in, so this user too"
	case set(a.cfg.AllowedUsers).Has(c.ID):
		out.Anyway = "MOBILE_ALLOWED_USERS names this user, who keeps access"
	}
	return out, nil
}

// deliver sends a delivery of the owner to a device. The audit log names the device and none of the
// content.
func (a *adminAPI) deliver(ctx context.Context, f *frame.Deliver) (any, error) {
	var answer frame.Down
	err := a.audit.attempt(ctx, "delivery.sent", f.To, func() (err error) {
		answer, err = a.hub.Owner().Deliver(ctx, "hermes-mobile deliver", f)
		if refused, is := answer.(*frame.Error); is {
			return refused
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	delivered, is := answer.(*frame.Delivered)
	if !is {
		return nil, fmt.Errorf("the hub answered a delivery with %T", answer)
	}
	return Delivery{*delivered, f.To}, nil
}
