package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
	"time"
)

// Health is what /readyz answers.
type Health struct {
	Ready    bool      `json:"ready"`
	Findings []Finding `json:"findings"`
}

// Finding is something its owner should know, with what to do.
type Finding struct {
	Code     string `json:"code"`
	Severity string `json:"severity"`       // error: messages are refused; warning: something does not work
	Text     string `json:"text,omitempty"` // for this machine only
}

// storeTrouble is how long a failure of the store counts.
const storeTrouble = time.Minute

func (s *Server) health() Health {
	h := Health{Ready: true, Findings: []Finding{}}
	if at := s.hub.StoreFailedAt(); !at.IsZero() && time.Since(at) < storeTrouble {
		h.Ready = false
		h.Findings = append(h.Findings, Finding{"store_failed", "error", "The store in " + s.cfg.Data + " failed a moment ago: look at the free space and the mode of the folder, and at the log."})
	}
	if st := s.agent.Status(""); !st.Online {
		h.Findings = append(h.Findings, Finding{"agent_away", "warning", "The agent is away (" + st.Detail + "): messages are accepted and wait."})
	}
	if err := s.pairing.Check(); err != nil {
		h.Findings = append(h.Findings, Finding{"pairing_unreadable", "warning", "Nobody can be approved: " + err.Error()})
	}
	return h
}

func bearer(r *http.Request) string {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return token
}

func sameSecret(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
