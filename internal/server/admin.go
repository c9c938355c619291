package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/access"
	"hermes-mobile/internal/agent/relay"
	"hermes-mobile/internal/cert"
	"hermes-mobile/internal/hub"
	"hermes-mobile/internal/quota"
)

// AdminSocket is the name of the admin interface in the data folder. Whoever may open it owns the server.
const AdminSocket = "admin.sock"

// listenAdmin takes the admin socket, which also keeps a second server out of the same data folder.
func listenAdmin(ctx context.Context, data string) (net.Listener, error) {
	path := filepath.Join(data, AdminSocket)
	var d net.Dialer
	if c, err := d.DialContext(ctx, "unix", path); err == nil {
		_ = c.Close()
		return nil, fmt.Errorf("a server is running on the data folder %s already: stop it, or give this one another folder with --data", data)
	}
	_ = os.Remove(path) // left by a server that was killed
	l, err := net.Listen("unix", path)
	if err != nil {
		if len(path) > 100 {
			return nil, fmt.Errorf("cannot open the admin socket: %w; the path of the data folder is too long, choose a shorter one with --data", err)
		}
		return nil, fmt.Errorf("the data folder cannot be written: %w; see its mode and owner, or choose another one with --data", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("protect the admin socket: %w", err)
	}
	return l, nil
}

// Status is what `hermes-mobile status` shows.
type Status struct {
	Version     string       `json:"version"`
	Address     string       `json:"address"`         // of the device endpoint
	Local       string       `json:"local,omitempty"` // where programs on this machine reach the server by plain HTTP
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

// Invitation is a pairing code for a device.
type Invitation struct {
	Name    string `json:"name"`              // stands for the code where that must not be shown
	User    string `json:"user,omitempty"`    // that the device belongs to; empty: a new user
	Trusted bool   `json:"trusted,omitempty"` // the device may answer cards at once
	Seconds int64  `json:"seconds,omitempty"` // that the device's own token is valid; 0: for ever
	Code    string `json:"code"`
	Link    string `json:"link"`
	Address string `json:"address"`
	// Fingerprint is what the phone pins: the SHA-256 of the server's own authority. Empty where it need not.
	Fingerprint string    `json:"fingerprint,omitempty"`
	Expires     time.Time `json:"expires_at"`
	Local       bool      `json:"local"` // the address is of this machine only
}

// PairingList is what `hermes-mobile pairing list --json` shows.
type PairingList struct {
	Pending  []access.Pending `json:"pending"`
	Approved []access.User    `json:"approved"`
}

// Approved tells whom an approval was for.
type Approved struct {
	User access.User `json:"user"`
	// Anyway says why a revoked user is let in all the same, empty where it is not.
	Anyway string `json:"anyway,omitempty"`
}

// Command is the body of a request to the admin interface; each uses the fields it needs.
type Command struct {
	ID    string         `json:"id,omitempty"`
	Name  string         `json:"name,omitempty"`
	Label string         `json:"label,omitempty"`
	Path  string         `json:"path,omitempty"`
	Frame *frame.Deliver `json:"frame,omitempty"`
	// Rights of a device that are to change.
	Rights map[string]bool `json:"rights,omitempty"`
	// User that a pairing code is for, empty for a new one.
	User string `json:"user,omitempty"`
	// Trusted: the device of a pairing code may answer cards at once.
	Trusted bool `json:"trusted,omitempty"`
	// Seconds that a token is valid, 0 for ever.
	Seconds int64 `json:"seconds,omitempty"`
	// Life is how many seconds the token that replaces a device's own is valid, 0 for ever; nil: until the present one ends.
	Life *int64 `json:"life,omitempty"`
	// Password of a user.
	Password Password `json:"password,omitempty"`
}

// Password is one on its way to the server. It does not show itself when it is printed or logged.
type Password string

// Reveal returns it.
func (p Password) Reveal() string { return string(p) }

// Format hides it from every verb.
func (p Password) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("[secret]")) }

// LogValue hides it from the log.
func (p Password) LogValue() slog.Value { return slog.StringValue("[secret]") }

// NewToken is a token that was just made: the only time its secret is shown.
type NewToken struct {
	Label   string     `json:"label"`
	Token   string     `json:"token"`
	Expires *time.Time `json:"expires_at,omitempty"`
}

// inviteLife is how long a one-time code is valid (doc/protocol.md §8).
const inviteLife = 10 * time.Minute

func (s *Server) adminHandler() http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, f func(context.Context, Command) (any, error)) {
		mustBeAudited(pattern)
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			var c Command
			if r.Method != http.MethodGet {
				if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<20)).Decode(&c); err != nil {
					answer(w, nil, fmt.Errorf("the request cannot be read: %w", err))
					return
				}
			}
			v, err := f(r.Context(), c)
			answer(w, v, err)
		})
	}
	handle("GET /status", func(ctx context.Context, _ Command) (any, error) { return s.status(ctx) })
	handle("GET /doctor", func(ctx context.Context, _ Command) (any, error) { return s.diagnose(ctx) })
	handle("POST /doctor/probe", func(context.Context, Command) (any, error) { return s.announceProbe(), nil })
	handle("POST /admin/link", func(ctx context.Context, _ Command) (any, error) { return s.AdminLink(ctx) })
	mux.Handle("GET /metrics", s.metrics.Handler())
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { s.answerReady(w, true) })
	handle("GET /devices", func(ctx context.Context, _ Command) (any, error) { return s.hub.Devices(ctx) })
	handle("POST /devices/rename", func(ctx context.Context, c Command) (any, error) { return nil, s.hub.Rename(ctx, c.ID, c.Name) })
	handle("POST /devices/rights", func(ctx context.Context, c Command) (any, error) { return s.hub.SetRights(ctx, c.ID, c.Rights) })
	handle("POST /devices/join", func(ctx context.Context, c Command) (any, error) {
		return nil, s.hub.Join(ctx, strings.TrimPrefix(c.ID, frame.SessionPrefix), strings.TrimPrefix(c.Name, frame.SessionPrefix))
	})
	handle("POST /devices/leave", func(ctx context.Context, c Command) (any, error) {
		return nil, s.hub.Leave(ctx, strings.TrimPrefix(c.ID, frame.SessionPrefix))
	})
	handle("POST /devices/unbind", func(ctx context.Context, c Command) (any, error) { return nil, s.hub.Unbind(ctx, c.ID) })
	handle("POST /devices/revoke", func(ctx context.Context, c Command) (any, error) { return nil, s.hub.Revoke(ctx, c.ID) })
	handle("POST /devices/rotate", s.rotate)
	handle("GET /home", func(ctx context.Context, _ Command) (any, error) { return s.home(ctx) })
	handle("POST /home/look", func(ctx context.Context, c Command) (any, error) { return s.candidate(ctx, c.ID) })
	handle("POST /home/set", func(ctx context.Context, c Command) (any, error) { return s.setHome(ctx, c.ID) })
	handle("POST /home/clear", func(ctx context.Context, _ Command) (any, error) { return nil, s.hub.ClearHome(ctx) })
	handle("GET /pairing", func(context.Context, Command) (any, error) { return ListPairing(s.pairing) })
	handle("POST /pairing/approve", func(ctx context.Context, c Command) (any, error) {
		user, err := s.hub.ApproveUser(ctx, c.ID)
		if err != nil {
			return nil, err
		}
		return Approved{User: user}, nil
	})
	handle("POST /pairing/revoke", s.revokeUser)
	handle("POST /pair", func(ctx context.Context, c Command) (any, error) {
		code, err := c.code()
		if err != nil {
			return nil, err
		}
		return s.invite(ctx, code)
	})
	handle("GET /tokens", func(ctx context.Context, _ Command) (any, error) { return s.listTokens(ctx) })
	handle("POST /tokens/add", func(ctx context.Context, c Command) (any, error) {
		expires, err := tokenEnd(c.Seconds)
		if err != nil {
			return nil, err
		}
		made := NewToken{Label: c.Label, Expires: hub.TimeOrNil(expires)}
		err = s.attempt(ctx, "token.added", c.Label, func() (err error) { made.Token, err = s.addToken(c.Label, expires); return err })
		if err != nil {
			return nil, err
		}
		return made, s.Reload(nil)
	})
	handle("POST /tokens/remove", func(ctx context.Context, c Command) (any, error) {
		if err := access.RemoveFromFile(s.tokenPath(), c.Label); err != nil {
			if errors.Is(err, access.ErrUnknownLabel) {
				err = fmt.Errorf("%w in the token file: tokens of MOBILE_TOKEN and its like are removed where they are set, then send the server SIGHUP", err)
			}
			return nil, err
		}
		s.recordAnyway(ctx, "token.removed", c.Label, "")
		return nil, s.Reload(nil)
	})
	handle("GET /users", func(ctx context.Context, _ Command) (any, error) { return s.users.List(ctx) })
	handle("POST /users/add", func(ctx context.Context, c Command) (any, error) {
		return nil, s.users.Add(ctx, c.Name, c.Password.Reveal())
	})
	handle("POST /users/remove", s.removeUser)
	handle("POST /users/passwd", s.setPassword)
	handle("GET /users/key", func(ctx context.Context, _ Command) (any, error) { return s.users.Keys(ctx, "") })
	handle("POST /users/key/add", s.addKey)
	handle("POST /users/key/remove", s.removeKey)
	mux.HandleFunc("GET /deliveries", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		limit, err := strconv.Atoi(q.Get("limit"))
		if err != nil {
			answer(w, nil, fmt.Errorf("the limit: %w", err))
			return
		}
		list, err := s.hub.Deliveries(r.Context(), q.Get("device"), q.Get("state"), limit)
		answer(w, list, err)
	})
	handle("POST /deliver", func(ctx context.Context, c Command) (any, error) {
		if c.Frame == nil {
			return nil, errors.New("the delivery is missing")
		}
		if _, err := frame.DecodeUp(frame.EncodeUp(c.Frame)); err != nil { // the same checks as on the wire
			return nil, err
		}
		// Home is looked up once, so that the device that is named is the one that gets it.
		c.Frame.To = s.hub.Addressee(c.Frame.To)
		return s.deliver(ctx, c.Frame)
	})
	handle("GET /passkeys", func(ctx context.Context, _ Command) (any, error) { return s.passkeys.List(ctx) })
	handle("POST /passkeys/rename", func(ctx context.Context, c Command) (any, error) { return nil, s.passkeys.Rename(ctx, c.ID, c.Name) })
	handle("POST /passkeys/remove", func(ctx context.Context, c Command) (any, error) {
		p, err := s.passkeys.Remove(ctx, c.ID)
		if err == nil {
			s.owners.EndOthers(nil, "") // one of the logins may be by this passkey
		}
		return p, err
	})
	for pattern, h := range s.within.admin {
		mux.Handle(pattern, s.recorded(pattern, h))
	}
	handle("POST /backup", func(ctx context.Context, c Command) (any, error) {
		return nil, s.attempt(ctx, "backup.written", c.Path, func() error { return s.store.Backup(ctx, c.Path) })
	})
	mux.HandleFunc("GET /audit", s.serveAudit)
	mux.HandleFunc("GET /audit/export", s.exportAudit)
	return mux
}

// failure is the body of a refused request.
type failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

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

// ListPairing lists requests and approvals.
func ListPairing(p *access.Pairing) (PairingList, error) {
	pending, approved, err := p.List()
	if pending == nil {
		pending = []access.Pending{}
	}
	if approved == nil {
		approved = []access.User{}
	}
	return PairingList{pending, approved}, err
}

func (s *Server) revokeUser(ctx context.Context, c Command) (any, error) {
	if err := s.hub.RevokeUser(ctx, c.ID); err != nil {
		return nil, err
	}
	out := Approved{User: access.User{UserID: c.ID}}
	switch {
	case s.cfg.AllowAllUsers:
		out.Anyway = "MOBILE_ALLOW_ALL_USERS lets everybody with a token in: this user, too"
	case set(s.cfg.AllowedUsers).Has(c.ID):
		out.Anyway = "MOBILE_ALLOWED_USERS names this user, who is let in all the same"
	}
	return out, nil
}

// maxTokenLife bounds the time that a token is valid.
const maxTokenLife = 10 * 365 * 24 * time.Hour

// tokenLife is for how long a token is to be valid.
func tokenLife(seconds int64) (time.Duration, error) {
	if seconds < 0 || seconds > int64(maxTokenLife/time.Second) {
		return 0, fmt.Errorf("%d seconds: a token is valid for one second to ten years, or for ever", seconds)
	}
	return time.Duration(seconds) * time.Second, nil
}

// tokenEnd is when a token ends that is made now, zero for one that does not expire.
func tokenEnd(seconds int64) (time.Time, error) {
	life, err := tokenLife(seconds)
	if err != nil || life == 0 {
		return time.Time{}, err
	}
	return time.Now().Add(life).UTC().Truncate(time.Second), nil
}

// rotate has a device's own token replaced.
func (s *Server) rotate(ctx context.Context, c Command) (any, error) {
	if c.Life == nil {
		return nil, s.hub.Rotate(ctx, c.ID, nil)
	}
	expires, err := tokenEnd(*c.Life)
	if err != nil {
		return nil, err
	}
	return nil, s.hub.Rotate(ctx, c.ID, &expires)
}

// code is what a pairing code is made for.
func (c Command) code() (access.PairingCode, error) {
	life, err := tokenLife(c.Seconds)
	return access.PairingCode{User: c.User, Trusted: c.Trusted, Life: life}, err
}

func (s *Server) invite(ctx context.Context, of access.PairingCode) (Invitation, error) {
	code, name, expires, err := s.hub.Invite(ctx, of, inviteLife)
	if err != nil {
		return Invitation{}, err
	}
	code = access.FormatCode(code)
	base, local := s.publicBase()
	link := base + "/#pair=" + url.QueryEscape(code)
	pin := s.fingerprint()
	if pin != "" {
		link += "&fingerprint=" + pin
	}
	if s.cfg.Path != "/ws" {
		link += "&path=" + url.QueryEscape(s.cfg.Path)
	}
	return Invitation{Name: name, User: of.User, Trusted: of.Trusted, Seconds: int64(of.Life / time.Second), Code: code, Link: link, Address: "ws" + strings.TrimPrefix(base, "http") + s.cfg.Path, Fingerprint: pin,
		Expires: expires.UTC().Truncate(time.Second), Local: local}, nil
}

// publicBase is the address that a device elsewhere can use, as far as the server knows. local: it is this machine only.
func (s *Server) publicBase() (base string, local bool) {
	if s.cfg.PublicURL != "" {
		return s.cfg.PublicURL, false
	}
	host, port, err := net.SplitHostPort(s.listener.Addr().String())
	if err != nil {
		return s.scheme() + "://" + s.listener.Addr().String(), true
	}
	ip := net.ParseIP(host)
	if ip != nil && ip.IsUnspecified() {
		if host = outward(); host == "" {
			host = "127.0.0.1"
		}
		ip = net.ParseIP(host)
	}
	return s.scheme() + "://" + net.JoinHostPort(host, port), ip != nil && ip.IsLoopback()
}

// address is the device endpoint, as it is listened on.
func (s *Server) address() string {
	return "ws" + strings.TrimPrefix(s.scheme(), "http") + "://" + s.listener.Addr().String() + s.cfg.Path
}

// outward is an address of this machine that others can reach, one of a private network first.
func outward() string {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return ""
	}
	other := ""
	for _, a := range addrs {
		n, ok := a.(*net.IPNet)
		if !ok || n.IP.To4() == nil || !n.IP.IsGlobalUnicast() {
			continue
		}
		if n.IP.IsPrivate() {
			return n.IP.String()
		}
		if other == "" {
			other = n.IP.String()
		}
	}
	return other
}

func (s *Server) status(ctx context.Context) (Status, error) {
	devices, err := s.hub.Devices(ctx)
	if err != nil {
		return Status{}, err
	}
	list, err := ListPairing(s.pairing)
	if err != nil {
		s.log.Warn("the pairing requests cannot be listed", "error", err)
	}
	agent := s.agent.Status("")
	st := Status{Version: s.version, Address: s.address(), Local: s.localBase(), TLS: s.Certificate(), PublicURL: s.cfg.PublicURL, Data: s.cfg.Data,
		Started: s.started.UTC().Truncate(time.Second), Agent: s.agent.Name(), AgentWhy: s.cfg.AgentWhy, AgentOnline: agent.Online, AgentDetail: agent.Detail,
		Storage: s.budget.Use(), Devices: len(devices), Pending: len(list.Pending), Health: s.health(ctx)}
	for _, d := range devices {
		if d.Connected {
			st.Connected++
		}
	}
	if r, ok := s.agent.(*relay.Agent); ok {
		state := r.State()
		st.Relay = &state
	}
	return st, nil
}
