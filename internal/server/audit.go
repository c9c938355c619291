package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"hermes-mobile/internal/store"
)

// adminActs maps each request of the admin API and the admin UI that isn't a GET to its action in
// the audit log. The action is empty for a request that changes nothing.
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

// mustBeAudited panics if adminActs has no entry for a request that may change something.
func mustBeAudited(pattern string) {
	if _, decided := adminActs[pattern]; !decided && !strings.HasPrefix(pattern, "GET ") {
		panic(fmt.Sprintf("server: %s has no entry in adminActs", pattern))
	}
}

// auditLog writes the audit log, and serves it.
type auditLog struct {
	store *store.Store
	log   *slog.Logger
}

// record stores an entry about an act of the actor in the context.
func (a *auditLog) record(ctx context.Context, action, subject, detail string) error {
	if err := a.store.Do(func(tx *store.Tx) error { return tx.Record(ctx, action, subject, detail) }); err != nil {
		return fmt.Errorf("record %s in the audit log: %w", action, err)
	}
	return nil
}

// recordAnyway records an act that must not fail with the audit log: a store that fails must
// neither lock the owner out of the admin UI nor keep a token alive. It logs an entry that it can't
// store.
func (a *auditLog) recordAnyway(ctx context.Context, action, subject, detail string) {
	if err := a.record(ctx, action, subject, detail); err != nil {
		a.log.Error("audit entry not stored", "action", action, "err", err)
	}
}

// attempt carries out an act that can't share a transaction with its entry in the audit log. It
// stores the entry first and doesn't act if that fails. If the act fails, it adds a second entry
// that says so.
func (a *auditLog) attempt(ctx context.Context, action, subject string, act func() error) error {
	if err := a.record(ctx, action, subject, ""); err != nil {
		return err
	}
	err := act()
	if err != nil {
		a.recordAnyway(ctx, action, subject, "failed")
	}
	return err
}

// recorded wraps a request of the program that embeds the server. It records the act first.
func (a *auditLog) recorded(pattern string, h http.Handler) http.Handler {
	mustBeAudited(pattern)
	action := adminActs[pattern]
	if action == "" {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := a.record(r.Context(), action, "", ""); err != nil {
			answer(w, nil, err)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// AuditEntry is an entry of the audit log as the command line, the admin UI and exports show it.
type AuditEntry struct {
	Number  int64     `json:"number"` // increases; a gap means that entries expired
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
	auditPiece   = 1000 // entries that an export holds in memory
)

var actionPattern = regexp.MustCompile(`^[a-z0-9_.*]{0,64}$`)

// auditFilter reads the filter of a request. A limit of 0 means all.
func auditFilter(q url.Values) (f store.AuditFilter, limit int, err error) {
	number := func(name string) (n int64) {
		text := q.Get(name)
		if text == "" {
			return 0
		}
		n, e := strconv.ParseInt(text, 10, 64)
		if e != nil || n < 0 {
			err = fmt.Errorf("%s is %q: give a whole number from 0", name, text)
		}
		return n
	}
	f.Before, f.After, limit = number("before"), number("after"), int(min(number("limit"), 1<<30))
	f.Action, f.Device = q.Get("action"), q.Get("device")
	if text := q.Get("since"); text != "" {
		if f.Since, err = time.Parse(time.RFC3339, text); err != nil {
			err = fmt.Errorf("since is %q: give a time such as 2026-01-31T12:00:00Z", text)
		}
	}
	if !actionPattern.MatchString(f.Action) {
		err = fmt.Errorf("action is %q: give a name such as device.revoked, or device.* for several", f.Action)
	}
	return f, limit, err
}

// serve answers with a page of the audit log, newest first.
func (a *auditLog) serve(w http.ResponseWriter, r *http.Request) {
	f, limit, err := auditFilter(r.URL.Query())
	if err == nil && (limit < 1 || limit > maxAuditPage) {
		err = fmt.Errorf("limit is %d: give a number from 1 to %d", limit, maxAuditPage)
	}
	if err != nil {
		answer(w, nil, err)
		return
	}
	list, err := a.store.Audit(r.Context(), f, limit)
	page := make([]AuditEntry, 0, len(list))
	for _, e := range list {
		page = append(page, auditEntry(e))
	}
	answer(w, page, err)
}

// export answers with the newest entries as JSON lines, oldest first. If the log can't be read to
// its end, it breaks the connection, so nobody takes a part for the whole.
func (a *auditLog) export(w http.ResponseWriter, r *http.Request) {
	f, limit, err := auditFilter(r.URL.Query())
	if err == nil && limit > 0 {
		f.After, err = a.store.AuditStart(r.Context(), f, limit)
	}
	var list []store.AuditEntry
	if err == nil {
		list, err = a.store.AuditFrom(r.Context(), f, auditPiece)
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
				return // the client is gone
			}
		}
		f.After = list[len(list)-1].N
		if list, err = a.store.AuditFrom(r.Context(), f, auditPiece); err != nil {
			if !errors.Is(err, context.Canceled) {
				a.log.Error("audit export failed", "err", err)
			}
			panic(http.ErrAbortHandler)
		}
	}
}
