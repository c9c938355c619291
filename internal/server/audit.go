package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"hermes-mobile/internal/store"
)

// adminActs names, for each request of the admin interface and the admin UI that is not a GET, the action under which the audit log records it.
// It is empty for a request that changes nothing.
var adminActs = map[string]string{
	"POST /doctor/probe":     "",
	"POST /home/look":        "",
	"POST /devices/rename":   "device.renamed",
	"POST /devices/rights":   "device.rights",
	"POST /devices/join":     "device.joined",
	"POST /devices/leave":    "device.left",
	"POST /devices/unbind":   "device.unbound",
	"POST /devices/revoke":   "device.revoked",
	"POST /devices/rotate":   "device.rotated",
	"POST /home/set":         "home.set",
	"POST /home/clear":       "home.cleared",
	"POST /pairing/approve":  "user.approved",
	"POST /pairing/revoke":   "user.revoked",
	"POST /pair":             "pair.code",
	"POST /tokens/add":       "token.added",
	"POST /tokens/remove":    "token.removed",
	"POST /users/add":        "api_user.added",
	"POST /users/remove":     "api_user.removed",
	"POST /users/passwd":     "api_user.password",
	"POST /users/key/add":    "api_key.added",
	"POST /users/key/remove": "api_key.removed",
	"POST /deliver":          "delivery.sent",
	"POST /backup":           "backup.written",
	"POST /admin/link":       "admin.link",
	"POST /app/open":         "app.opened",

	// In the admin UI only.
	"POST /passkeys/begin": "",
	"POST /passkeys/add":   "passkey.added",

	"POST /passkeys/rename": "passkey.renamed",
	"POST /passkeys/remove": "passkey.removed",
}

func isRead(pattern string) bool { return strings.HasPrefix(pattern, "GET ") }

// mustBeAudited ends a program whose admin interface has a request that nobody decided how to record.
func mustBeAudited(pattern string) {
	if _, decided := adminActs[pattern]; !decided && !isRead(pattern) {
		panic(fmt.Sprintf("server: %s has no entry in adminActs", pattern))
	}
}

// record stores an entry of the audit log about an act of whoever the context names.
func (s *Server) record(ctx context.Context, action, subject, detail string) error {
	if err := s.store.Do(func(tx *store.Tx) error { return tx.Record(ctx, action, subject, detail) }); err != nil {
		return fmt.Errorf("record %s in the audit log: %w", action, err)
	}
	return nil
}

// recordAnyway records an act that is not refused where it cannot be: a store that fails keeps no owner from the admin UI, nor from
// taking a token away. The log says what the audit log cannot.
func (s *Server) recordAnyway(ctx context.Context, action, subject, detail string) {
	if err := s.record(ctx, action, subject, detail); err != nil {
		s.log.Error("audit entry not stored", "action", action, "err", err)
	}
}

// attempt carries out an act that cannot be stored in one transaction with its entry in the audit log. The entry is stored
// first, and without it the act is refused. An act that fails gets a second entry that says so.
func (s *Server) attempt(ctx context.Context, action, subject string, act func() error) error {
	if err := s.record(ctx, action, subject, ""); err != nil {
		return err
	}
	err := act()
	if err != nil {
		s.recordAnyway(ctx, action, subject, "failed")
	}
	return err
}

// recorded is a request of the program that the server is within. Its act is recorded first.
func (s *Server) recorded(pattern string, h http.Handler) http.Handler {
	mustBeAudited(pattern)
	action := adminActs[pattern]
	if action == "" {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := s.record(r.Context(), action, "", ""); err != nil {
			answer(w, nil, err)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// AuditEntry is an entry of the audit log as commands, admin UI and exports show it.
type AuditEntry struct {
	Number  int64     `json:"number"` // rises; a gap is what was swept
	At      time.Time `json:"at"`
	Actor   string    `json:"actor"`
	Origin  string    `json:"origin,omitempty"`
	Action  string    `json:"action"`
	Subject string    `json:"subject,omitempty"`
	Detail  string    `json:"detail,omitempty"`
}

func auditEntry(e store.AuditEntry) AuditEntry {
	return AuditEntry{Number: e.N, At: e.At.UTC(), Actor: e.Actor, Origin: e.Origin, Action: e.Action, Subject: e.Subject, Detail: e.Detail}
}

const (
	maxAuditPage = 500  // entries of a page
	auditPiece   = 1000 // entries of an export that are in memory
)

var actionPattern = regexp.MustCompile(`^[a-z0-9_.*]{0,64}$`)

// auditFilter reads what a request asks for. A limit of 0 means all.
func auditFilter(q url.Values) (f store.AuditFilter, limit int, err error) {
	number := func(name string) (n int64) {
		text := q.Get(name)
		if text == "" {
			return 0
		}
		n, e := strconv.ParseInt(text, 10, 64)
		if e != nil || n < 0 {
			err = fmt.Errorf("%s is %q: it takes a whole number from 0", name, text)
		}
		return n
	}
	f.Before, f.After, limit = number("before"), number("after"), int(min(number("limit"), 1<<30))
	f.Action, f.Device = q.Get("action"), q.Get("device")
	if text := q.Get("since"); text != "" {
		if f.Since, err = time.Parse(time.RFC3339, text); err != nil {
			err = fmt.Errorf("since is %q: it takes a time such as 2026-01-31T12:00:00Z", text)
		}
	}
	if !actionPattern.MatchString(f.Action) {
		err = fmt.Errorf("action is %q: it takes a name such as device.revoked, or device.* for several", f.Action)
	}
	return f, limit, err
}

// serveAudit answers with a page of the audit log, newest first.
func (s *Server) serveAudit(w http.ResponseWriter, r *http.Request) {
	f, limit, err := auditFilter(r.URL.Query())
	if err == nil && (limit < 1 || limit > maxAuditPage) {
		err = fmt.Errorf("limit is %d: it takes a number from 1 to %d", limit, maxAuditPage)
	}
	if err != nil {
		answer(w, nil, err)
		return
	}
	list, err := s.store.Audit(r.Context(), f, limit)
	page := make([]AuditEntry, 0, len(list))
	for _, e := range list {
		page = append(page, auditEntry(e))
	}
	answer(w, page, err)
}

// exportAudit answers with the newest entries of the audit log as JSON lines, oldest first. A log that cannot be read to its end
// breaks the connection, so that nobody takes a part for the whole.
func (s *Server) exportAudit(w http.ResponseWriter, r *http.Request) {
	f, limit, err := auditFilter(r.URL.Query())
	if err == nil && limit > 0 {
		f.After, err = s.store.AuditStart(r.Context(), f, limit)
	}
	var list []store.AuditEntry
	if err == nil {
		list, err = s.store.AuditFrom(r.Context(), f, auditPiece)
	}
	if err != nil {
		answer(w, nil, err)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	lines := json.NewEncoder(w)
	lines.SetEscapeHTML(false)
	for len(list) > 0 {
		for _, e := range list {
			if lines.Encode(auditEntry(e)) != nil {
				return // whoever asked is gone
			}
		}
		f.After = list[len(list)-1].N
		if list, err = s.store.AuditFrom(r.Context(), f, auditPiece); err != nil {
			if !errors.Is(err, context.Canceled) {
				s.log.Error("export the audit log", "err", err)
			}
			panic(http.ErrAbortHandler)
		}
	}
}
