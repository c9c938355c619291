package server

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/audit"
	"hermes-mobile/internal/store"
)

// export returns the entries of the audit log, oldest first, as the command shows them.
func (r *rig) export(query string) (list []AuditEntry) {
	r.t.Helper()
	ok(r.t, r.admin.Lines(r.t.Context(), "/audit/export?"+query, func(line []byte) error {
		var e AuditEntry
		err := json.Unmarshal(line, &e)
		list = append(list, e)
		return err
	}))
	return list
}

// breakAudit has the store refuse entries of the audit log, until heal.
func (r *rig) breakAudit() (heal func()) {
	r.t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(r.cfg.Data, store.File)+"?_pragma=busy_timeout(10000)")
	ok(r.t, err)
	r.t.Cleanup(func() { _ = db.Close() })
	_, err = db.ExecContext(r.t.Context(), "CREATE TRIGGER broken BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'disk full'); END")
	ok(r.t, err)
	return func() {
		_, err := db.ExecContext(r.t.Context(), "DROP TRIGGER broken")
		ok(r.t, err)
	}
}

// What cannot be recorded is not done.
func TestWhatCannotBeRecordedIsNotDone(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken, "MOBILE_FRONT_API=1", "MOBILE_API_KEY="+otherToken)
	r.connect("tel-1", mainToken)
	r.post("/users/add", Command{Name: "anna", Password: "correct horse"}, nil)
	before := r.export("")
	heal := r.breakAudit()
	copied := filepath.Join(r.data, "copy.db")
	for path, c := range map[string]Command{
		"/backup":         {Path: copied},
		"/deliver":        {Frame: &frame.Deliver{To: "tel-1", Text: "news"}},
		"/devices/rename": {ID: "tel-1", Name: "Other"},
		"/home/set":       {ID: "tel-1"},
		"/home/clear":     {},
		"/users/add":      {Name: "bert", Password: "correct horse"},
		"/users/passwd":   {Name: "anna", Password: "another horse"},
		"/users/remove":   {Name: "anna"},
		"/tokens/add":     {Label: "tablet"},
	} {
		if f := r.refused(path, c); !strings.Contains(f.Message, "disk full") {
			t.Errorf("%s: %+v", path, f)
		}
	}
	if _, err := os.Stat(copied); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the backup was written: %v", err)
	}
	if list, err := r.server.hub.Owner().Devices(t.Context()); err != nil || list[0].Name != "" || list[0].Home || list[0].Waiting != 0 {
		t.Errorf("%+v, %v", list, err)
	}
	if list, err := r.server.api.users.List(t.Context()); err != nil || len(list) != 1 || !list[0].ChangedAt.Equal(list[0].CreatedAt) {
		t.Errorf("%+v, %v", list, err)
	}
	heal()
	if after := r.export(""); len(after) != len(before) {
		t.Errorf("%d entries, there were %d", len(after), len(before))
	}
}

// Stolen tokens are taken away in any case, and the log says what the audit log cannot.
func TestTokensAreTakenAwayThoughItCannotBeRecorded(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken)
	r.post("/tokens/add", Command{Label: "tablet"}, nil)
	ok(t, r.server.Reload(r.cfg))
	if list := r.export("action=settings.*"); len(list) != 1 || list[0].Actor != "server" {
		t.Fatalf("%+v", list)
	}
	d := r.connect("tel-1", mainToken)
	r.breakAudit()
	without := *r.cfg
	without.Token = otherToken
	ok(t, r.server.Reload(&without))
	if code := d.closed(); code != int(frame.CloseNoAccess) {
		t.Errorf("closed with %d", code)
	}
	r.post("/tokens/remove", Command{Label: "tablet"}, nil)
	for _, action := range []string{"settings.reloaded", "token.removed"} {
		if !strings.Contains(r.log.String(), `msg="audit entry not stored" action=`+action) {
			t.Errorf("the log does not say that %s could not be recorded", action)
		}
	}
}

// An act that fails after it was recorded gets a second entry.
func TestFailedActIsRecordedAsFailed(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken)
	taken := filepath.Join(r.data, "taken.db")
	ok(t, os.WriteFile(taken, nil, 0o600))
	r.refused("/backup", Command{Path: taken})
	r.refused("/deliver", Command{Frame: &frame.Deliver{To: "nobody", Text: "news"}})
	r.refused("/deliver", Command{Frame: &frame.Deliver{To: "bad id\x00", Text: "news"}}) // no act at all
	var got []string
	for _, e := range r.export("") {
		got = append(got, e.Action+" "+e.Subject+" "+e.Detail)
	}
	want := []string{"backup.written " + taken + " ", "backup.written " + taken + " failed", "delivery.sent nobody ", "delivery.sent nobody failed"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q, want %q", got, want)
	}
}

// addEntries appends entries with rising subjects.
func (r *rig) addEntries(action string, n int) {
	r.t.Helper()
	ok(r.t, r.server.store.Do(func(tx *store.Tx) error {
		for i := range n {
			if err := tx.AddAudit(store.AuditEntry{Actor: "socket", Origin: "uid 1", Action: action, Subject: fmt.Sprint(i)}); err != nil {
				return err
			}
		}
		return nil
	}))
}

func TestAuditPagesAndExport(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken)
	var page []AuditEntry
	ok(t, r.admin.Get(t.Context(), "/audit?limit=10", &page))
	if page == nil || len(page) != 0 {
		t.Errorf("an empty log is %v, want an empty list", page)
	}
	const n = 2*auditPiece + 3
	r.addEntries("device.renamed", n)
	r.addEntries("token.added", 1)
	var all []AuditEntry
	for before := int64(0); ; before = page[len(page)-1].Number {
		page = nil
		ok(t, r.admin.Get(t.Context(), "/audit?"+url.Values{"limit": {"500"}, "before": {fmt.Sprint(before)}}.Encode(), &page))
		if all = append(all, page...); len(page) < 500 {
			break
		}
	}
	if len(all) != n+1 || all[0].Action != "token.added" || all[1].Subject != fmt.Sprint(n-1) || all[n].Subject != "0" || all[0].Origin != "uid 1" || time.Since(all[0].At).Abs() > time.Minute {
		t.Errorf("%d entries in pages, the newest %+v", len(all), all[0])
	}
	exported := r.export("")
	if len(exported) != n+1 {
		t.Errorf("%d entries exported", len(exported))
	}
	for i, e := range exported {
		if e != all[len(all)-1-i] {
			t.Fatalf("line %d is %+v, want %+v", i, e, all[len(all)-1-i])
		}
	}
	if list := r.export("limit=3&action=device.*"); len(list) != 3 || list[0].Subject != fmt.Sprint(n-3) || list[2].Subject != fmt.Sprint(n-1) {
		t.Errorf("the newest three are %+v", list)
	}
	if list := r.export("after=" + fmt.Sprint(all[0].Number)); len(list) != 0 {
		t.Errorf("after the newest there is %+v", list)
	}
	if list := r.export("limit=5&device=17"); len(list) != 1 || list[0].Subject != "17" {
		t.Errorf("of one device: %+v", list)
	}
	if list := r.export("since=" + url.QueryEscape(time.Now().Add(time.Hour).UTC().Format(time.RFC3339))); len(list) != 0 {
		t.Errorf("of the future: %+v", list)
	}
	for _, bad := range []string{"limit=-1", "limit=x", "before=1e9", "after=-3", "since=yesterday", "action=%27", "action=DROP", "action=[a-z]*", "limit=" + strings.Repeat("9", 100)} {
		var f *Refused
		for _, path := range []string{"/audit?", "/audit/export?"} {
			if err := r.admin.Get(t.Context(), path+bad, nil); !errors.As(err, &f) || f.Message == "" {
				t.Errorf("%s%s: %v", path, bad, err)
			}
		}
	}
	for _, bad := range []string{"", "limit=0", "limit=501"} {
		var f *Refused
		if err := r.admin.Get(t.Context(), "/audit?"+bad, nil); !errors.As(err, &f) || !strings.Contains(f.Message, "500") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// Nobody takes a part of the log for the whole: an export that cannot go on breaks its connection.
func TestExportThatFailsBreaksOff(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken)
	r.addEntries("device.renamed", 20*auditPiece) // more than what is in flight
	c := NewClient(r.cfg.Data)
	resp, err := c.send(t.Context(), "GET", "/audit/export", nil)
	ok(t, err)
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	_, err = lines.ReadBytes('\n')
	ok(t, err)
	db, err := sql.Open("sqlite", "file:"+filepath.Join(r.cfg.Data, store.File)+"?_pragma=busy_timeout(10000)")
	ok(t, err)
	defer db.Close()
	_, err = db.ExecContext(t.Context(), "ALTER TABLE audit RENAME TO elsewhere")
	ok(t, err)
	if _, err = io.Copy(io.Discard, lines); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the rest ends with %v", err)
	}
	_, err = db.ExecContext(t.Context(), "ALTER TABLE elsewhere RENAME TO audit")
	ok(t, err)
}

// Entries come while others read, and each reader sees a run without gaps.
func TestAuditWhileActing(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken)
	r.connect("tel-1", mainToken)
	var work sync.WaitGroup
	for i := range 4 {
		work.Go(func() {
			for j := range 25 {
				if err := r.admin.Post(t.Context(), "/devices/rename", Command{ID: "tel-1", Name: fmt.Sprint(i, "-", j)}, nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	var list []AuditEntry
	for len(list) < 100 {
		after := int64(0)
		if len(list) > 0 {
			after = list[len(list)-1].Number
		}
		for _, e := range r.export(fmt.Sprint("action=device.renamed&after=", after)) {
			if e.Number <= after || e.Action != "device.renamed" {
				t.Fatalf("%+v after %d", e, after)
			}
			list = append(list, e)
		}
	}
	work.Wait()
	names := map[string]bool{}
	for _, e := range list {
		names[e.Detail] = true
	}
	if len(list) != 100 || len(names) != 100 {
		t.Errorf("%d entries with %d names", len(list), len(names))
	}
}

// Every action of the table of requests is one that the documents have.
func TestAdminActsAreKnown(t *testing.T) {
	for pattern, action := range adminActs {
		if action != "" && !audit.Known(action) || strings.HasPrefix(pattern, "GET ") {
			t.Errorf("%s is recorded as %q", pattern, action)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a request without an entry is served")
		}
	}()
	mustBeAudited("POST /new")
}

// A flood of failed acts writes a few entries a minute, and how many more there were.
func TestFailuresAreBounded(t *testing.T) {
	now := time.Now()
	var mu sync.Mutex
	var got []string
	f := newFailures(func(ctx context.Context, action, _, detail string) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, audit.From(ctx).String()+" "+action+" "+detail)
	}, func() time.Time { return now })
	flood := func(n int) {
		var work sync.WaitGroup
		for i := range n {
			work.Go(func() { f.note(t.Context(), "admin.login_failed", fmt.Sprint("192.0.2.", i%250), "admin token") })
		}
		work.Wait()
	}
	flood(5000)
	if len(got) != maxFailed || !strings.HasPrefix(got[0], "stranger (192.0.2.") {
		t.Fatalf("%d entries, %q", len(got), got)
	}
	f.endMinute(t.Context())
	if len(got) != maxFailed+1 || got[maxFailed] != "server admin.login_failed 4990 more in the last minute" {
		t.Fatalf("%q", got[maxFailed:])
	}
	f.endMinute(t.Context())
	now = now.Add(time.Minute)
	flood(1)
	if len(got) != maxFailed+2 {
		t.Errorf("%q", got[maxFailed+1:])
	}
	// The last minute is counted when the server stops.
	flood(maxFailed + 1)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); f.run(ctx) }()
	cancel()
	<-done
	if last := got[len(got)-1]; last != "server admin.login_failed 2 more in the last minute" {
		t.Errorf("%q", last)
	}
}
