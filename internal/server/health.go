package server

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"time"

	"hermes-mobile/internal/access"
	"hermes-mobile/internal/agent/relay"
	"hermes-mobile/internal/config"
	"hermes-mobile/internal/doctor"
	"hermes-mobile/internal/hub"
)

// Health is what /readyz answers, and what the status shows.
type Health struct {
	Ready bool `json:"ready"`
	// Details reports whether issues have texts. Strangers get codes and severities only.
	Details bool           `json:"details"`
	Issues  []doctor.Issue `json:"findings"`
}

// Diagnosis is what the running server tells the doctor, who looks further from outside.
type Diagnosis struct {
	Issues    []doctor.Issue `json:"findings"` // complete, not shortened
	Checked   []string       `json:"checked"`
	PublicURL string         `json:"public_url,omitempty"`
	Path      string         `json:"path"`
}

const (
	// storeTrouble is how long a failure of the store counts.
	storeTrouble = time.Minute
	// statusPatience bounds how long the status waits for a new look at the machine, doctorPatience the same of the doctor.
	statusPatience = 2 * time.Second
	doctorPatience = 20 * time.Second
)

// health is for the status: what was seen lately, and a new look where that does not take long.
func (s *Server) health(ctx context.Context) Health {
	return s.judge(s.looks.fresh(ctx, lookEvery, statusPatience))
}

func (s *Server) judge(l *look) Health {
	all := doctor.Check(s.facts(l))
	return Health{Ready: doctor.Ready(all), Details: true, Issues: doctor.Shorten(all)}
}

// diagnose looks anew at everything.
func (s *Server) diagnose(ctx context.Context) (Diagnosis, error) {
	f := s.facts(s.looks.fresh(ctx, 0, doctorPatience))
	return Diagnosis{doctor.Check(f), doctor.Checked(f), s.cfg.PublicURL, s.cfg.Path}, nil
}

// facts are what the server knows of itself, at once, and what it has seen around it.
func (s *Server) facts(l *look) *doctor.Facts {
	now := time.Now()
	agent := s.agent.Status("")
	state := &doctor.Server{Address: s.listener.Addr().String(), Started: s.started, AgentOnline: agent.Online, AgentDetail: agent.Detail, API: s.api(),
		Devices: s.hub.Refused(), Requests: s.requests.Often(), Forwarded: s.forwarded.Often(), Strangers: s.strangers.Drops(), PushOff: s.pushOff}
	storage := s.budget.Use()
	state.Storage = &storage
	if at := s.hub.StoreFailedAt(); !at.IsZero() && now.Sub(at) < storeTrouble {
		state.StoreFailed = true
	}
	if r, ok := s.agent.(*relay.Agent); ok {
		links := r.State()
		state.Relay = &links
	}
	if s.certs != nil {
		is := s.certs.State()
		state.TLS = &is
	}
	f := &doctor.Facts{Now: now, Config: s.cfg, Warnings: doctor.StillTrue(s.cfg.Warnings), Gateways: s.letIn, Server: state, Pairing: s.pairing.Check()}
	if l != nil {
		f.Hermes, f.Folder, f.APIProxy, state.Aging = l.hermes, l.folder, l.front, l.aging
	}
	return f
}

// LetIn are the gateways that a server on these settings lets in; none where it would have to make a secret first.
func LetIn(cfg *config.Config) []config.Gateway {
	if len(cfg.Gateways) > 0 || !HasOwnGateway(cfg.Data) {
		return cfg.Gateways
	}
	id, secret, err := OwnGateway(cfg.Data)
	if err != nil {
		return nil
	}
	return []config.Gateway{{ID: id, Secret: config.Secret(secret), Devices: []string{"*"}}}
}

// CheckPairing says why the pairing files cannot be read, and makes nothing: where there are none yet all is well.
func CheckPairing(cfg *config.Config) error {
	if _, err := os.Stat(pairingDir(cfg)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	p, err := OpenPairing(cfg)
	if err != nil {
		return err
	}
	return p.Check()
}

// ready says whether the server can take messages, and what stands in the way if not: to strangers in codes only. It waits for
// nothing.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	s.answerReady(w, s.insider(r))
}

func (s *Server) answerReady(w http.ResponseWriter, details bool) {
	report := s.judge(s.looks.last())
	if report.Details = details; !details { // the texts name paths, devices and gateways
		report.Issues = doctor.ForStrangers(report.Issues)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("X-Content-Type-Options", "nosniff")
	if !report.Ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(report)
}

// noteProxies remembers peers that send forwarding headers and are not trusted: proxies that were forgotten, mostly.
func (s *Server) noteProxies(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if access.Forwarded(r.Header) {
			if peer, err := access.Peer(r); err == nil && !s.proxies.Trusts(peer) {
				s.forwarded.Note("", peer, "forwarded", "")
			}
		}
		next.ServeHTTP(w, r)
	})
}

// newRefusals makes the memories of who was turned away before the hub saw it.
func newRefusals() (requests, forwarded *hub.Refusals) {
	return hub.NewRefusals(time.Now), hub.NewRefusals(time.Now)
}

func bearer(r *http.Request) string {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return token
}

func sameSecret(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
