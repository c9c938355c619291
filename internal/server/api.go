package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/access"
	"hermes-mobile/internal/agent/relay"
	"hermes-mobile/internal/cert"
	"hermes-mobile/internal/doctor"
	"hermes-mobile/internal/hub"
	"hermes-mobile/internal/quota"
)

// This file has the types of the admin API. The command line and the admin UI decode them.

// Status is the answer to GET /status, which `hermes-mobile status` shows.
type Status struct {
	Version     string       `json:"version"`
	Address     string       `json:"address"`         // of the device endpoint
	Local       string       `json:"local,omitempty"` // plain HTTP address for programs on this machine
	PublicURL   string       `json:"public_url,omitempty"`
	Data        string       `json:"data"`
	Started     time.Time    `json:"started"`
	Agent       string       `json:"agent"`
	AgentWhy    string       `json:"agent_why"`
	AgentOnline bool         `json:"agent_online"`
	AgentDetail string       `json:"agent_detail"`
	Relay       *relay.State `json:"relay,omitempty"`
	Storage     quota.Use    `json:"storage"` // in bytes
	Devices     int          `json:"devices"`
	Connected   int          `json:"connected"`
	Pending     int          `json:"pending"` // pairing requests
	TLS         cert.State   `json:"tls"`
	Health      Health       `json:"health"`
}

// Health is the answer to GET /readyz, and a part of the status.
type Health struct {
	Ready bool `json:"ready"`
	// Details says that the issues have their texts. Unauthenticated clients get codes and
	// severities only.
	Details bool           `json:"details"`
	Issues  []doctor.Issue `json:"findings"`
}

// Diagnosis is what the running server reports to the doctor, which then checks it from outside.
type Diagnosis struct {
	Issues    []doctor.Issue `json:"findings"` // complete, with issues caused by other issues
	Checked   []string       `json:"checked"`
	PublicURL string         `json:"public_url,omitempty"`
	Path      string         `json:"path"`
}

// Invitation is a pairing code for a device.
type Invitation struct {
	Name    string `json:"name"`              // identifies the code where the code itself must not appear
	User    string `json:"user,omitempty"`    // owner of the device; empty: a new user
	Trusted bool   `json:"trusted,omitempty"` // the device may answer cards at once
	Seconds int64  `json:"seconds,omitempty"` // lifetime of the device's own token; 0: it doesn't expire
	Code    string `json:"code"`
	Link    string `json:"link"`
	Address string `json:"address"`
	// Fingerprint is the SHA-256 of the server's own CA, which the phone pins. It is empty if the
	// phone needs no pin.
	Fingerprint string    `json:"fingerprint,omitempty"`
	Expires     time.Time `json:"expires_at"`
	Local       bool      `json:"local"` // only this machine reaches the address
}

// PairingList is the answer to GET /pairing, which `hermes-mobile pairing list --json` shows.
type PairingList struct {
	Pending  []access.Pending `json:"pending"`
	Approved []access.User    `json:"approved"`
}

// Approved names the user of an approval or a revocation.
type Approved struct {
	User access.User `json:"user"`
	// Anyway says why a revoked user keeps access. It is empty if the user has none.
	Anyway string `json:"anyway,omitempty"`
}

// HomeChannel is the device that is the home channel, or a candidate for it.
type HomeChannel struct {
	Device *hub.DeviceInfo `json:"device"` // nil: there is no home channel
	// Gateway serves the device, if the agent has gateways.
	Gateway *relay.GatewayState `json:"gateway,omitempty"`
}

// Delivery is the outcome of a delivery.
type Delivery struct {
	frame.Delivered
	Device string `json:"device"` // the recipient
}

// NewToken is a token that was just created. Its secret is shown only here.
type NewToken struct {
	Label   string     `json:"label"`
	Token   string     `json:"token"`
	Expires *time.Time `json:"expires_at,omitempty"`
}

// TokenInfo describes a token without its secret.
type TokenInfo struct {
	Label  string `json:"label"`
	Kind   string `json:"kind"`
	Source string `json:"source"`
	// Device is the id of the only device that may use the token.
	Device string `json:"device,omitempty"`

	Expires *time.Time `json:"expires_at,omitempty"`   // in the past for an expired token
	Used    *time.Time `json:"last_used_at,omitempty"` // by a connection, to the minute
}

// AdminLink opens the admin UI once.
type AdminLink struct {
	// Here is the link for a browser on this machine. It is empty if plain HTTP doesn't reach the
	// server there.
	Here string `json:"url,omitempty"`
	// Elsewhere is the link for a browser on any machine. It is empty unless MOBILE_ADMIN is on and
	// other machines reach the server by https, or by an http public address.
	Elsewhere string    `json:"public_url,omitempty"`
	Expires   time.Time `json:"expires_at"`
}

// Command is the body of a request to the admin API. Each request uses the fields it needs.
type Command struct {
	ID    string         `json:"id,omitempty"`
	Name  string         `json:"name,omitempty"`
	Label string         `json:"label,omitempty"`
	Path  string         `json:"path,omitempty"`
	Frame *frame.Deliver `json:"frame,omitempty"`
	// Rights of a device to change.
	Rights map[string]bool `json:"rights,omitempty"`
	// User of a pairing code, empty for a new one.
	User string `json:"user,omitempty"`
	// Trusted lets the device of a pairing code answer cards at once.
	Trusted bool `json:"trusted,omitempty"`
	// Seconds is the lifetime of a token or a key, 0 if it doesn't expire.
	Seconds int64 `json:"seconds,omitempty"`
	// Life is the lifetime in seconds of the token that replaces a device's own, 0 if it doesn't
	// expire. Nil keeps the expiry of the present one.
	Life *int64 `json:"life,omitempty"`
	// Password of a user.
	Password Password `json:"password,omitempty"`
}

// Password is a password on its way to the server. It hides itself when it is printed or logged.
type Password string

// Reveal returns the password.
func (p Password) Reveal() string { return string(p) }

// Format implements fmt.Formatter. It hides the password from every verb.
func (p Password) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("[secret]")) }

// LogValue implements slog.LogValuer. It hides the password from the log.
func (p Password) LogValue() slog.Value { return slog.StringValue("[secret]") }

// failure is the body of a rejected request.
type failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// answer writes v, or a failure if there is an error.
func answer(w http.ResponseWriter, v any, err error) {
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		f := failure{"refused", err.Error()}
		var e *frame.Error
		if errors.As(err, &e) {
			f = failure{string(e.Code), e.Message}
		}
		w.WriteHeader(http.StatusUnprocessableEntity)
		v = f
	}
	_ = json.NewEncoder(w).Encode(v)
}

// refuse writes a failure.
func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(failure{code, message})
}
