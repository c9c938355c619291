package store

import (
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// raw opens the database file without this package's doing.
func raw(t *testing.T, dir string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, File))
	ok(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// schema returns the statements that made the database, without their layout.
func schema(t *testing.T, dir string) []string {
	t.Helper()
	rows, err := raw(t, dir).QueryContext(ctx, "SELECT coalesce(sql, name) FROM sqlite_master")
	ok(t, err)
	defer rows.Close()
	var list []string
	for rows.Next() {
		var text string
		ok(t, rows.Scan(&text))
		list = append(list, strings.Join(strings.Fields(text), " "))
	}
	ok(t, rows.Err())
	slices.Sort(list)
	return list
}

// frozen makes a database as an older version left it. Version 0 is the empty file.
func frozen(t *testing.T, version int) string {
	t.Helper()
	dir := t.TempDir()
	if version == 0 {
		ok(t, os.WriteFile(filepath.Join(dir, File), nil, 0o600))
		return dir
	}
	text, err := os.ReadFile(fmt.Sprintf("testdata/schema-%d.sql", version))
	if err != nil {
		t.Fatalf("every published version has a frozen schema with rows of every kind: %v", err)
	}
	db := raw(t, dir)
	_, err = db.ExecContext(ctx, string(text))
	ok(t, err)
	ok(t, db.Close())
	return dir
}

func TestMigrateFromEveryVersion(t *testing.T) {
	fresh := t.TempDir()
	ok(t, open(t, fresh).Close())
	want := schema(t, fresh)
	for version := range len(migrations) + 1 {
		t.Run(fmt.Sprint("version ", version), func(t *testing.T) {
			dir := frozen(t, version)
			s := open(t, dir)
			if version > 0 {
				wantFrozenRows(t, s, version)
			}
			dev := device(t, s, "new")
			do(t, s, func(tx *Tx) error { return appendRow(tx, dev, 1, t0) })
			ok(t, s.Close())
			if got := schema(t, dir); !slices.Equal(got, want) {
				t.Errorf("schema after the migration\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			var now int
			ok(t, raw(t, dir).QueryRowContext(ctx, "PRAGMA user_version").Scan(&now))
			if now != len(migrations) {
				t.Errorf("version %d, want %d", now, len(migrations))
			}
		})
	}
}

// wantFrozenRows looks for the rows of testdata/schema-*.sql, which are the same in every one of
// them, but for tables that came later.
func wantFrozenRows(t *testing.T, s *Store, version int) {
	t.Helper()
	d := value[*Device](t)(s.Device(ctx, "tel-1"))
	if d == nil || d.Name != "Phone" || d.UserID != "anna" || d.Label != "main" || d.Epoch != "k3f9" || d.Floor != 2 || d.Sent != 4 || d.Revoked {
		t.Fatalf("device %+v", d)
	}
	if d := value[*Device](t)(s.DeviceByToken(ctx, "aa11")); d == nil || d.ID != "tel-2" || !d.Revoked {
		t.Errorf("device by its token: %+v", d)
	}
	in := value[[]Entry](t)(s.Inbox(ctx, 1))
	if len(in) != 2 || in[0].ID != "m2" || in[0].State != Handed || in[0].Texts != 2 || string(in[0].Body) != `{"Text":"two"}` || in[1].N != 3 || in[1].ID != "" {
		t.Errorf("inbox %+v", in)
	}
	if !value[bool](t)(s.Seen(ctx, 1, "m1")) {
		t.Error("the id of a message that is done is forgotten")
	}
	out := value[[]Out](t)(s.Outbox(ctx, 1, 0, 10))
	if len(out) != 2 || out[0].Seq != 3 || out[0].Kind != KindMessage || out[1].Seq != 5 || out[1].Kind != KindMedia {
		t.Errorf("outbox %+v", out)
	}
	if m := value[[]OpenMessage](t)(s.OpenMessages(ctx, 1)); len(m) != 1 || m[0] != (OpenMessage{ID: "r3", ReplyTo: "m2", Text: "half a", N: 2}) {
		t.Errorf("open messages %+v", m)
	}
	cards := value[[]Card](t)(s.Cards(ctx, 1))
	if len(cards) != 2 || cards[0].ID != "c2" || cards[0].State != CardDecided || !cards[0].Expired || cards[1].ID != "c1" || cards[1].State != CardOpen {
		t.Errorf("cards %+v", cards)
	}
	if queued, known, err := s.Deliveries().Known(ctx, "tel-2", "d1"); err != nil || !known || !queued {
		t.Errorf("delivery: queued %v known %v error %v", queued, known, err)
	}
	if version > 1 {
		if list := value[[][]byte](t)(s.Notices().Endpoints(ctx, 1)); len(list) != 1 || string(list[0]) != `{"kind":"webpush"}` {
			t.Errorf("where the device is notified: %q", list)
		}
		if list := value[[]Notice](t)(s.Notices().Shown(ctx, 1)); len(list) != 1 || list[0] != (Notice{3, "r1"}) {
			t.Errorf("what it was notified of: %+v", list)
		}
	}
	rights := AllRights
	if version > 2 {
		rights.Answer = false
	}
	if d.Rights != rights {
		t.Errorf("rights %+v, want %+v", d.Rights, rights)
	}
	if version > 2 {
		u := value[*APIUser](t)(s.API().User(ctx, "anna"))
		if u == nil || u.ID != "u1" || u.Password != "$argon2id$v=19$m=32768,t=3,p=1$c2FsdA$aGFzaA" || u.SeenAt.UnixMilli() != 1767366002000 {
			t.Errorf("who logs in: %+v", u)
		}
		if k := value[*APIToken](t)(s.API().Token(ctx, "ab02")); k == nil || k.User != "u1" || k.Name != "anna" || k.Login != "l1" || !k.Refresh || k.SpentAt.IsZero() {
			t.Errorf("what a cookie holds: %+v", k)
		}
		if owner := value[string](t)(s.API().Owner(ctx, APISession, "s1")); owner != "u1" {
			t.Errorf("the session is %q's", owner)
		}
	}
	if version > 4 {
		if list := value[[]AuditEntry](t)(s.AuditLog().List(ctx, AuditFilter{}, 10)); len(list) != 1 || list[0].Action != "device.revoke" || list[0].Subject != "tel-2" {
			t.Errorf("audit log %+v", list)
		}
		if rows := value[[]Uploaded](t)(s.Uploaded(ctx, 20455)); len(rows) != 1 || rows[0] != (Uploaded{"device:tel-1", 20455, 1000}) {
			t.Errorf("bytes of the day %+v", rows)
		}
		if k := value[*APIKey](t)(s.API().Key(ctx, "ac01")); k == nil || k.ID != "k1" || k.Name != "anna" || k.Label != "laptop" || k.Until.UnixMilli() != 4102444800000 || k.UsedAt.UnixMilli() != 1767366001000 {
			t.Errorf("key of a user: %+v", k)
		}
	}
	if i, err := s.PairingCodes().Valid(ctx, "cafe", "tel-1", time.UnixMilli(4_000_000_000_000)); err != nil || i == nil || i.Device != "" || i.User != "" || i.Life != 0 {
		t.Errorf("the pairing code: %+v, error %v", i, err)
	}
	if home := value[[]byte](t)(s.Meta(ctx, "home")); string(home) != "tel-1" {
		t.Errorf("meta %q", home)
	}
	if h := value[map[string]bool](t)(s.Hashes(ctx)); len(h) != 2 || !h["f00d"] || !h["beef"] {
		t.Errorf("hashes %v", h)
	}
	if work := value[[]string](t)(s.Work(ctx)); !slices.Equal(work, []string{"tel-1"}) {
		t.Errorf("devices with work %v", work)
	}
}

// A number of a message is never given twice, also when the newest messages are gone: agents tell
// turns apart by it.
func TestMessageNumbersAreNotReused(t *testing.T) {
	dir := frozen(t, 1)
	s := open(t, dir)
	do(t, s, func(tx *Tx) error { return tx.TurnDone(3) })
	ok(t, s.Sweep(ctx, Retention{IDs: time.Hour, Outbox: time.Hour, Entries: 10}, t0.Add(time.Hour*24*365*10)))
	var n int64
	do(t, s, func(tx *Tx) (err error) { n, _, err = tx.Accept(1, "again", Waiting, nil, "", t0); return err })
	if n <= 3 {
		t.Errorf("the new message has number %d, which an older one had", n)
	}
}

func TestNewerVersionIsRefused(t *testing.T) {
	dir := t.TempDir()
	ok(t, open(t, dir).Close())
	db := raw(t, dir)
	_, err := db.ExecContext(ctx, fmt.Sprintf("CREATE TABLE of_tomorrow (x); INSERT INTO of_tomorrow VALUES(1); PRAGMA user_version = %d", len(migrations)+1))
	ok(t, err)
	ok(t, db.Close())
	path := filepath.Join(dir, File)
	before, err := os.ReadFile(path)
	ok(t, err)

	s, err := Open(ctx, dir)
	if err == nil {
		t.Fatal("a database of a newer program was opened", s.Close())
	}
	for _, want := range []string{path, fmt.Sprint(len(migrations) + 1), "newer program"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not say %q", err, want)
		}
	}
	after, err := os.ReadFile(path)
	ok(t, err)
	if !bytes.Equal(before, after) {
		t.Error("the database of a newer program was changed")
	}
}

// A migration that cannot be made leaves the older version whole.
func TestFailedMigrationChangesNothing(t *testing.T) {
	dir := frozen(t, 0)
	db := raw(t, dir)
	_, err := db.ExecContext(ctx, "CREATE TABLE invite (in_the_way)") // the last one that version 1 makes
	ok(t, err)
	ok(t, db.Close())
	before := schema(t, dir)
	if s, err := Open(ctx, dir); err == nil {
		t.Fatal("opened", s.Close())
	}
	if after := schema(t, dir); !slices.Equal(before, after) {
		t.Errorf("schema %q, was %q", after, before)
	}
}

func TestNoDatabase(t *testing.T) {
	dir := t.TempDir()
	text := []byte(strings.Repeat("this is no database. ", 500))
	ok(t, os.WriteFile(filepath.Join(dir, File), text, 0o600))
	if s, err := Open(ctx, dir); err == nil {
		t.Fatal("a text file was opened", s.Close())
	} else if !strings.Contains(err.Error(), filepath.Join(dir, File)) {
		t.Errorf("error %q does not name the file", err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, File)); err != nil || !bytes.Equal(got, text) {
		t.Errorf("the file was changed (%v)", err)
	}
}
