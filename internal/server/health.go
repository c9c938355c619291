package server

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"time"

	"hermes-mobile/internal/access"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/agent/relay"
	"hermes-mobile/internal/config"
	"hermes-mobile/internal/doctor"
	"hermes-mobile/internal/hub"
	"hermes-mobile/internal/store"
	"hermes-mobile/internal/strangers"
)

const (
	// storeTrouble is how long a failure of the store counts.
	storeTrouble = time.Minute
	// statusTimeout bounds how long the status waits for a snapshot of the machine, doctorTimeout
	// how long the doctor does.
	statusTimeout = 2 * time.Second
	doctorTimeout = 20 * time.Second
	// fewAging is how many devices are named whose messages are about to expire.
	fewAging = 20
)

// health collects what the server knows about itself and the machine, and has the doctor judge it.
type health struct {
	cfg       *config.Config
	log       *slog.Logger
	started   time.Time
	addresses *addresses
	agent     agent.Agent
	hub       *hub.Hub
	store     *store.Store
	storage   *storage
	pairing   *access.Pairing
	strangers *strangers.Listener
	filter    *requestFilter
	api       *apiMount
	probes    *probes
	pushOff   string           // why there are no notifications, if that isn't the owner's choice
	letIn     []config.Gateway // with the one whose secret the server generated

	hermes    versions
	snapshots *snapshots
}

// prepare adds what follows from the other fields. The agent must be open.
func (h *health) prepare() *health {
	if _, is := h.agent.(*relay.Agent); is {
		h.letIn = LetIn(h.cfg)
	}
	h.snapshots = newSnapshots(h.snapshot)
	return h
}

// snapshot looks at the machine around the server.
func (h *health) snapshot(ctx context.Context) *snapshot {
	s := &snapshot{at: time.Now(), folder: doctor.ProbeFolder(h.cfg.Data), proxy: h.api.check(ctx)}
	if h.cfg.Agent != "demo" {
		s.hermes = doctor.ProbeHermes(ctx, h.cfg, h.hermes.of)
	}
	aging, err := h.store.Aging(ctx, agingBefore(h.cfg, s.at), fewAging)
	if err != nil && ctx.Err() == nil {
		h.log.Warn("waiting messages not counted", "err", err)
	}
	s.aging = aging
	return s
}

// agingBefore returns the time by which a waiting message has less than a day left, or less than
// half of its lifetime.
func agingBefore(cfg *config.Config, now time.Time) time.Time {
	kept := time.Duration(cfg.OutboxDays) * 24 * time.Hour
	return now.Add(-max(kept-24*time.Hour, kept/2))
}

// facts returns what the server knows about itself right now, with a snapshot of the machine.
func (h *health) facts(snap *snapshot) *doctor.Facts {
	now := time.Now()
	status := h.agent.Status("")
	state := &doctor.Server{Address: h.addresses.listener.String(), Started: h.started, AgentOnline: status.Online, AgentDetail: status.Detail, API: apiState(h.cfg, h.agent),
		Devices: h.hub.Rejected(), Requests: h.filter.rejected.Often(), Forwarded: h.filter.forwarded.Often(), Strangers: h.strangers.Drops(), PushOff: h.pushOff}
	use := h.storage.budget.Use()
	state.Storage = &use
	if at := h.hub.StoreFailedAt(); !at.IsZero() && now.Sub(at) < storeTrouble {
		state.StoreFailed = true
	}
	if r, ok := h.agent.(*relay.Agent); ok {
		links := r.State()
		state.Relay = &links
	}
	if certs := h.addresses.certs; certs != nil {
		is := certs.State()
		state.TLS = &is
	}
	f := &doctor.Facts{Now: now, Config: h.cfg, Warnings: doctor.StillTrue(h.cfg.Warnings), Gateways: h.letIn, Server: state, Pairing: h.pairing.Check()}
	if snap != nil {
		f.Hermes, f.Folder, f.APIProxy, state.Aging = snap.hermes, snap.folder, snap.proxy, snap.aging
	}
	return f
}

func (h *health) judge(snap *snapshot) Health {
	all := doctor.Check(h.facts(snap))
	return Health{Ready: doctor.Ready(all), Details: true, Issues: doctor.Shorten(all)}
}

// current returns the health for the status. It takes a new snapshot if that doesn't take long.
func (h *health) current(ctx context.Context) Health {
	return h.judge(h.snapshots.fresh(ctx, snapshotEvery, statusTimeout))
}

// diagnose checks everything again.
func (h *health) diagnose(ctx context.Context) Diagnosis {
	f := h.facts(h.snapshots.fresh(ctx, 0, doctorTimeout))
	return Diagnosis{doctor.Check(f), doctor.Checked(f), h.cfg.PublicURL, h.cfg.Path}
}

// report returns everything the doctor finds: what the server knows, and its public address as seen
// from this machine.
func (h *health) report(ctx context.Context) doctor.Report {
	found := h.diagnose(ctx)
	f := &doctor.Facts{Now: time.Now(), Config: h.cfg, Warnings: h.cfg.Warnings}
	if found.PublicURL != "" {
		probe := h.probes.announce()
		doctor.ProbePublic(ctx, f, found.PublicURL, found.Path, &probe)
	}
	return doctor.Conclude(append(found.Issues, doctor.CheckPublic(f)...), append(found.Checked, doctor.Checked(f)...))
}

// serveReady reports whether the server can accept messages, and the issues if not. It waits for
// nothing. Without details it answers in codes only, because the texts name paths, devices and
// gateways.
func (h *health) serveReady(w http.ResponseWriter, details bool) {
	report := h.judge(h.snapshots.last())
	if report.Details = details; !details {
		report.Issues = doctor.ForStrangers(report.Issues)
	}
	head := w.Header()
	head.Set("Content-Type", "application/json")
	head.Set("Cache-Control", "no-store")
	head.Set("Cross-Origin-Resource-Policy", "same-origin")
	head.Set("X-Content-Type-Options", "nosniff")
	if !report.Ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(report)
}
