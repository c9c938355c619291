// Package connecttest provides a fake gateway for tests of the wizard. The gateway answers the
// requests by which a client recognizes a gateway.
package connecttest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// Gateway is a fake Hermes gateway. It serves TLS with a self-signed certificate, which no client
// trusts, unless a test asks for plain HTTP.
type Gateway struct {
	URL  string
	Cert *x509.Certificate

	mu       sync.Mutex
	token    string
	user     string
	password string
	model    string
	seen     []string
	plain    bool
	server   *httptest.Server
}

// Option configures a Gateway.
type Option func(*Gateway)

// WithToken makes the gateway require a bearer token.
func WithToken(token string) Option { return func(g *Gateway) { g.token = token } }

// WithLogin makes the gateway require a login.
func WithLogin(user, password string) Option {
	return func(g *Gateway) { g.user, g.password = user, password }
}

// WithModel sets the model. Tests tell gateways apart by their models.
func WithModel(model string) Option { return func(g *Gateway) { g.model = model } }

// WithoutTLS makes the gateway serve plain HTTP, as a local gateway does.
func WithoutTLS() Option { return func(g *Gateway) { g.plain = true } }

// Start starts a gateway on this machine, and stops it at the end of the test.
func Start(t testing.TB, options ...Option) *Gateway {
	t.Helper()
	g := &Gateway{model: "hermes-agent"}
	for _, o := range options {
		o(g)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization")+r.Header.Get("Cookie") != "" {
			t.Error("a credential was sent with /health")
		}
		answer(w, http.StatusOK, map[string]any{"status": "ok", "platform": "hermes-agent", "version": "0.22.0"})
	})
	mux.HandleFunc("GET /v1/capabilities", g.authorized(func(w http.ResponseWriter) {
		answer(w, http.StatusOK, map[string]any{"object": "hermes.api_server.capabilities", "platform": "hermes-agent", "model": g.Model(),
			"auth": map[string]any{"type": "bearer", "required": true}, "features": map[string]any{"session_chat_streaming": true},
			"endpoints": map[string]any{"session_list": endpoint("GET", "/api/sessions"), "session_create": endpoint("POST", "/api/sessions"),
				"session_messages": endpoint("GET", "/api/sessions/{session_id}/messages"), "session_chat_stream": endpoint("POST", "/api/sessions/{session_id}/chat/stream"),
				"models": endpoint("GET", "/v1/models")}})
	}))
	mux.HandleFunc("POST /api/sessions", g.authorized(func(w http.ResponseWriter) {
		answer(w, http.StatusCreated, map[string]any{"object": "hermes.session", "session": map[string]any{"id": "s", "title": "s"}})
	}))
	mux.HandleFunc("GET /api/sessions/s/messages", g.authorized(func(w http.ResponseWriter) {
		answer(w, http.StatusOK, map[string]any{"object": "list", "session_id": "s", "data": []any{}})
	}))
	mux.HandleFunc("POST /api/sessions/s/chat/stream", func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Message, Input string }
		body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		if err != nil || json.Unmarshal(body, &in) != nil {
			answer(w, http.StatusBadRequest, map[string]any{})
			return
		}
		g.authorized(func(w http.ResponseWriter) { echo(w, in.Message+in.Input) })(w, r)
	})
	mux.HandleFunc("GET /v1/models", g.authorized(func(w http.ResponseWriter) {
		answer(w, http.StatusOK, map[string]any{"object": "list", "data": []any{map[string]any{"id": g.Model(), "object": "model"}}})
	}))
	mux.HandleFunc("POST /auth/password-login", g.login)
	g.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		g.seen = append(g.seen, r.Method+" "+r.URL.Path)
		g.mu.Unlock()
		mux.ServeHTTP(w, r)
	}))
	g.server.Config.ErrorLog = log.New(io.Discard, "", 0) // some tests let handshakes fail
	if g.plain {
		g.server.Start()
	} else {
		certificate := selfSigned(t)
		g.Cert = certificate.Leaf
		g.server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
		g.server.StartTLS()
	}
	t.Cleanup(g.server.Close)
	g.URL = g.server.URL
	return g
}

// Roots returns a pool with the certificates of some gateways.
func Roots(gateways ...*Gateway) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, g := range gateways {
		if g.Cert != nil {
			pool.AddCert(g.Cert)
		}
	}
	return pool
}

// Model returns the gateway's model.
func (g *Gateway) Model() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.model
}

// Become changes the model, so that clients see a different gateway at the same address.
func (g *Gateway) Become(model string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.model = model
}

// SetToken changes the token.
func (g *Gateway) SetToken(token string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.token = token
}

// Seen returns the requests so far, such as "GET /health".
func (g *Gateway) Seen() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]string{}, g.seen...)
}

// Stop stops the gateway before the end of the test.
func (g *Gateway) Stop() { g.server.Close() }

func endpoint(method, path string) map[string]any {
	return map[string]any{"method": method, "path": path}
}

// echo writes the event stream of a turn that repeats its input.
func echo(w http.ResponseWriter, input string) {
	w.Header().Set("Content-Type", "text/event-stream")
	text := "You said: " + input
	for i, e := range []struct {
		name string
		data map[string]any
	}{
		{"run.started", map[string]any{}},
		{"message.started", map[string]any{"message": map[string]any{"id": "m", "role": "assistant"}}},
		{"assistant.delta", map[string]any{"message_id": "m", "delta": text}},
		{"assistant.completed", map[string]any{"message_id": "m", "content": text, "completed": true}},
		{"run.completed", map[string]any{"message_id": "m", "completed": true, "messages": []any{map[string]any{"role": "assistant", "content": text}}}},
		{"done", map[string]any{}},
	} {
		e.data["session_id"], e.data["run_id"], e.data["seq"] = "s", "r", i+1
		data, _ := json.Marshal(e.data) // strings and numbers
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", e.name, data)
	}
}

const session = `"session.of.the.login"`

func (g *Gateway) login(w http.ResponseWriter, r *http.Request) {
	var in struct{ Username, Password string }
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<16))
	if err != nil || json.Unmarshal(body, &in) != nil || in.Username != g.user || in.Password != g.password {
		answer(w, http.StatusUnauthorized, map[string]any{"detail": "Invalid credentials"})
		return
	}
	w.Header().Add("Set-Cookie", "__Host-hermes_session_at="+session+"; Path=/; Secure; HttpOnly; SameSite=Lax")
	answer(w, http.StatusOK, map[string]any{"ok": true, "next": "/"})
}

func (g *Gateway) authorized(next func(http.ResponseWriter)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		token, user := g.token, g.user
		g.mu.Unlock()
		good := token == "" || r.Header.Get("Authorization") == "Bearer "+token
		if user != "" {
			good = r.Header.Get("Cookie") == "__Host-hermes_session_at="+session
		}
		if !good {
			answer(w, http.StatusUnauthorized, map[string]any{"error": map[string]any{"message": "Invalid API key", "code": "invalid_api_key"}})
			return
		}
		next(w)
	}
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func selfSigned(t testing.TB) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<60))
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: fmt.Sprint("gateway ", serial)}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(24 * time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}
