package passkey

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hermes-mobile/internal/audit"
	"hermes-mobile/internal/leak"
	"hermes-mobile/internal/passkey/passkeytest"
	"hermes-mobile/internal/store"
)

func TestMain(m *testing.M) { leak.Main(m) }

var site = Site{ID: "agent.example", Origin: "https://agent.example:8443"}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

type rig struct {
	t     *testing.T
	ctx   context.Context
	store *store.Store
	keys  *Keys
	now   time.Time
	log   bytes.Buffer
}

func newRig(t *testing.T) *rig {
	t.Helper()
	s, err := store.Open(t.Context(), t.TempDir())
	ok(t, err)
	t.Cleanup(func() { ok(t, s.Close()) })
	r := &rig{t: t, ctx: audit.With(t.Context(), audit.By{Actor: audit.ActorAdmin, Origin: "192.0.2.1"}), store: s, now: time.Unix(1_800_000_000, 0)}
	r.restart()
	return r
}

func (r *rig) restart() {
	r.keys = New(r.store, slog.New(slog.NewTextHandler(&r.log, nil)), func() time.Time { return r.now })
}

// options is what a browser is given, as it comes over the wire.
func options(t testing.TB, v any, err error) []byte {
	t.Helper()
	ok(t, err)
	b, err := json.Marshal(v)
	ok(t, err)
	return b
}

func (r *rig) begin(session string) []byte {
	r.t.Helper()
	v, err := r.keys.Begin(r.ctx, site, session)
	return options(r.t, v, err)
}

func (r *rig) ask(step string) []byte {
	r.t.Helper()
	v, err := r.keys.Ask(site, step)
	return options(r.t, v, err)
}

// add registers a passkey.
func (r *rig) add(name string) *passkeytest.Authenticator {
	r.t.Helper()
	a := passkeytest.New(site.Origin, site.ID)
	answer, err := a.Register(r.begin("s1"))
	ok(r.t, err)
	_, err = r.keys.Finish(r.ctx, site, "s1", name, answer)
	ok(r.t, err)
	return a
}

func (r *rig) answer(a *passkeytest.Authenticator, options []byte) []byte {
	r.t.Helper()
	answer, err := a.Answer(options)
	ok(r.t, err)
	return answer
}

func (r *rig) audited() (list []string) {
	r.t.Helper()
	entries, err := r.store.AuditFrom(r.ctx, store.AuditFilter{}, 1000)
	ok(r.t, err)
	for _, e := range entries {
		list = append(list, strings.Join([]string{e.Actor, e.Origin, e.Action, e.Detail}, " "))
	}
	return list
}

func TestLifeOfAPasskey(t *testing.T) {
	r := newRig(t)
	if usable, err := r.keys.Usable(r.ctx, site); err != nil || usable {
		t.Errorf("usable before there is one: %v %v", usable, err)
	}
	a := r.add("Laptop\x00 ")
	r.now = r.now.Add(time.Hour)
	for i := range 3 {
		p, err := r.keys.Check(r.ctx, site, "login", r.answer(a, r.ask("login")))
		if err != nil || p.Name != "Laptop" || p.UsedAt == nil || !p.UsedAt.Equal(r.now) {
			t.Fatalf("login %d: %+v %v", i, p, err)
		}
	}
	r.restart()
	list, err := r.keys.List(r.ctx)
	if err != nil || len(list) != 1 || list[0].Name != "Laptop" || list[0].Site != "agent.example" || list[0].UsedAt == nil {
		t.Fatalf("%+v %v", list, err)
	}
	if usable, err := r.keys.Usable(r.ctx, Site{ID: "other.example"}); err != nil || usable {
		t.Errorf("usable elsewhere: %v %v", usable, err)
	}
	ok(t, r.keys.Rename(r.ctx, list[0].ID, "Work laptop"))
	if err := r.keys.Rename(r.ctx, list[0].ID, " \x01"); err == nil {
		t.Error("an empty name is taken")
	}
	if err := r.keys.Rename(r.ctx, "nobody", "x"); !errors.Is(err, ErrUnknown) {
		t.Errorf("renaming an unknown passkey: %v", err)
	}
	if _, err := r.keys.Remove(r.ctx, "Laptop"); !errors.Is(err, ErrUnknown) {
		t.Errorf("removing by an old name: %v", err)
	}
	_, err = r.keys.Remove(r.ctx, "Work laptop")
	ok(t, err)
	if _, err := r.keys.Check(r.ctx, site, "login", r.answer(a, r.ask("login"))); !errors.Is(err, ErrRejected) {
		t.Errorf("a passkey that was removed: %v", err)
	}
	want := []string{"passkey.added Laptop", "passkey.login Laptop", "passkey.login Laptop", "passkey.login Laptop", "passkey.renamed Work laptop", "passkey.removed Work laptop"}
	for i := range want {
		want[i] = "admin 192.0.2.1 " + want[i]
	}
	if got := r.audited(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("audited %q, want %q", got, want)
	}
}

func TestRegistrationIsChecked(t *testing.T) {
	for name, attack := range map[string]func(r *rig, a *passkeytest.Authenticator) ([]byte, string){
		"another origin": func(r *rig, a *passkeytest.Authenticator) ([]byte, string) {
			a.Origin = "https://evil.example"
			return r.begin("s1"), "s1"
		},
		"another port": func(r *rig, a *passkeytest.Authenticator) ([]byte, string) {
			a.Origin = "https://agent.example"
			return r.begin("s1"), "s1"
		},
		"plain http": func(r *rig, a *passkeytest.Authenticator) ([]byte, string) {
			a.Origin = "http://agent.example:8443"
			return r.begin("s1"), "s1"
		},
		"another site": func(r *rig, a *passkeytest.Authenticator) ([]byte, string) {
			a.RPID = "evil.example"
			return r.begin("s1"), "s1"
		},
		"a user not verified": func(r *rig, a *passkeytest.Authenticator) ([]byte, string) {
			a.Verified = false
			return r.begin("s1"), "s1"
		},
		"nobody present": func(r *rig, a *passkeytest.Authenticator) ([]byte, string) {
			a.Present = false
			return r.begin("s1"), "s1"
		},
		"another session": func(r *rig, _ *passkeytest.Authenticator) ([]byte, string) { return r.begin("s2"), "s1" },
		"no session":      func(r *rig, _ *passkeytest.Authenticator) ([]byte, string) { return r.begin("s1"), "" },
		"a login": func(r *rig, a *passkeytest.Authenticator) ([]byte, string) {
			a.Type = "webauthn.get"
			return r.begin("s1"), "s1"
		},
		"a challenge too old": func(r *rig, _ *passkeytest.Authenticator) ([]byte, string) {
			o := r.begin("s1")
			r.now = r.now.Add(challengeLife)
			return o, "s1"
		},
		"a challenge of another run": func(r *rig, _ *passkeytest.Authenticator) ([]byte, string) {
			o := r.begin("s1")
			r.restart()
			return o, "s1"
		},
		"the challenge of a login": func(r *rig, _ *passkeytest.Authenticator) ([]byte, string) {
			var login, creation map[string]map[string]any
			ok(r.t, json.Unmarshal(r.ask("login"), &login))
			ok(r.t, json.Unmarshal(r.begin("s1"), &creation))
			creation["publicKey"]["challenge"] = login["publicKey"]["challenge"]
			return options(r.t, creation, nil), "s1"
		},
		"a challenge that was made up": func(r *rig, _ *passkeytest.Authenticator) ([]byte, string) {
			var creation map[string]map[string]any
			ok(r.t, json.Unmarshal(r.begin("s1"), &creation))
			creation["publicKey"]["challenge"] = strings.Repeat("A", len(creation["publicKey"]["challenge"].(string)))
			return options(r.t, creation, nil), "s1"
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			a := passkeytest.New(site.Origin, site.ID)
			o, session := attack(r, a)
			answer, err := a.Register(o)
			ok(t, err)
			if _, err := r.keys.Finish(r.ctx, site, session, "x", answer); !errors.Is(err, ErrRejected) {
				t.Errorf("%v, want a rejection", err)
			}
			if list, err := r.keys.List(r.ctx); err != nil || len(list) > 0 {
				t.Errorf("%+v is stored, %v", list, err)
			}
		})
	}
}

// A passkey is registered once, whoever sends it again.
func TestRegistrationIsTakenOnce(t *testing.T) {
	r := newRig(t)
	a := passkeytest.New(site.Origin, site.ID)
	answer, err := a.Register(r.begin("s1"))
	ok(t, err)
	var done atomic.Int32
	var work sync.WaitGroup
	for range 16 {
		work.Go(func() {
			if _, err := r.keys.Finish(r.ctx, site, "s1", "x", answer); err == nil {
				done.Add(1)
			}
		})
	}
	work.Wait()
	if n := done.Load(); n != 1 {
		t.Errorf("registered %d times", n)
	}
	// The same authenticator with a new challenge.
	if answer, err = a.Register(r.begin("s1")); err != nil {
		t.Fatal(err)
	}
	if _, err := r.keys.Finish(r.ctx, site, "s1", "x", answer); !errors.Is(err, ErrTwice) {
		t.Errorf("registered again: %v", err)
	}
	for i := range maxPasskeys - 1 {
		r.add(fmt.Sprint("key ", i))
	}
	if _, err := r.keys.Begin(r.ctx, site, "s1"); !errors.Is(err, ErrMany) {
		t.Errorf("one more than %d: %v", maxPasskeys, err)
	}
	if _, err := r.keys.Remove(r.ctx, "key 0"); err != nil {
		t.Error(err)
	}
	r.add("x")
	if _, err := r.keys.Remove(r.ctx, "x"); err == nil || !strings.Contains(err.Error(), "give the id") {
		t.Errorf("two are called x: %v", err)
	}
}

func TestLoginIsChecked(t *testing.T) {
	for name, attack := range map[string]func(r *rig, a *passkeytest.Authenticator) []byte{
		"another origin": func(r *rig, a *passkeytest.Authenticator) []byte {
			a.Origin = "https://evil.example"
			return r.ask("login")
		},
		"another port": func(r *rig, a *passkeytest.Authenticator) []byte {
			a.Origin = "https://agent.example"
			return r.ask("login")
		},
		"another site":        func(r *rig, a *passkeytest.Authenticator) []byte { a.RPID = "evil.example"; return r.ask("login") },
		"a user not verified": func(r *rig, a *passkeytest.Authenticator) []byte { a.Verified = false; return r.ask("login") },
		"nobody present":      func(r *rig, a *passkeytest.Authenticator) []byte { a.Present = false; return r.ask("login") },
		"another user": func(r *rig, a *passkeytest.Authenticator) []byte {
			a.User = bytes.Repeat([]byte{1}, userSize)
			return r.ask("login")
		},
		"no user":        func(r *rig, a *passkeytest.Authenticator) []byte { a.User = nil; return r.ask("login") },
		"a registration": func(r *rig, a *passkeytest.Authenticator) []byte { a.Type = "webauthn.create"; return r.ask("login") },
		"an unknown passkey": func(r *rig, a *passkeytest.Authenticator) []byte {
			a.ID = bytes.Repeat([]byte{1}, 32)
			return r.ask("login")
		},
		"another step": func(r *rig, _ *passkeytest.Authenticator) []byte { return r.ask("other") },
		"a challenge too old": func(r *rig, _ *passkeytest.Authenticator) []byte {
			o := r.ask("login")
			r.now = r.now.Add(challengeLife)
			return o
		},
		"a challenge of another run": func(r *rig, _ *passkeytest.Authenticator) []byte { o := r.ask("login"); r.restart(); return o },
		"the key of another": func(r *rig, a *passkeytest.Authenticator) []byte {
			other := passkeytest.New(site.Origin, site.ID)
			other.ID, other.User = a.ID, a.User
			*a = *other
			return r.ask("login")
		},
		"the challenge of a registration": func(r *rig, _ *passkeytest.Authenticator) []byte {
			var login, creation map[string]map[string]any
			ok(r.t, json.Unmarshal(r.ask("login"), &login))
			ok(r.t, json.Unmarshal(r.begin("s1"), &creation))
			login["publicKey"]["challenge"] = creation["publicKey"]["challenge"]
			return options(r.t, login, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			a := r.add("x")
			if _, err := r.keys.Check(r.ctx, site, "login", r.answer(a, attack(r, a))); !errors.Is(err, ErrRejected) {
				t.Errorf("%v, want a rejection", err)
			}
			if got := r.audited(); len(got) != 1 {
				t.Errorf("audited %q", got)
			}
		})
	}
}

// A passkey of one site is of no use at another, also where its authenticator lies.
func TestPasskeyBelongsToItsSite(t *testing.T) {
	r := newRig(t)
	a := r.add("x")
	other := Site{ID: "other.example", Origin: "https://other.example"}
	a.Origin, a.RPID = other.Origin, other.ID
	v, err := r.keys.Ask(other, "login")
	if _, err := r.keys.Check(r.ctx, other, "login", r.answer(a, options(t, v, err))); !errors.Is(err, ErrRejected) {
		t.Errorf("%v, want a rejection", err)
	}
}

// Of many who send one answer, one gets in.
func TestAnswerIsTakenOnce(t *testing.T) {
	r := newRig(t)
	a := r.add("x")
	a.Counting, a.Count = false, 0 // as synced passkeys have it: the counter does not tell
	answer := r.answer(a, r.ask("login"))
	var in atomic.Int32
	var work sync.WaitGroup
	for range 16 {
		work.Go(func() {
			if _, err := r.keys.Check(r.ctx, site, "login", answer); err == nil {
				in.Add(1)
			} else if !errors.Is(err, ErrRejected) {
				t.Error(err)
			}
		})
	}
	work.Wait()
	if n := in.Load(); n != 1 {
		t.Errorf("%d got in", n)
	}
	if _, err := r.keys.Check(r.ctx, site, "login", r.answer(a, r.ask("login"))); err != nil {
		t.Errorf("the next login: %v", err)
	}
	r.now = r.now.Add(2 * challengeLife)
	if _, err := r.keys.Check(r.ctx, site, "login", r.answer(a, r.ask("login"))); err != nil {
		t.Error(err)
	}
	if n := len(r.keys.challenges.spent); n != 1 {
		t.Errorf("%d challenges are remembered that have ended", n)
	}
}

// A counter that goes back is told to the owner, and lets nobody in.
func TestCopiedPasskey(t *testing.T) {
	r := newRig(t)
	a := r.add("Key")
	for range 5 {
		if _, err := r.keys.Check(r.ctx, site, "login", r.answer(a, r.ask("login"))); err != nil {
			t.Fatal(err)
		}
	}
	a.Count = 2
	if _, err := r.keys.Check(r.ctx, site, "login", r.answer(a, r.ask("login"))); !errors.Is(err, ErrCloned) || !errors.Is(err, ErrRejected) {
		t.Errorf("%v", err)
	}
	got := r.audited()
	if last := got[len(got)-1]; last != "admin 192.0.2.1 passkey.suspect counter 3 after 5" {
		t.Errorf("%q", last)
	}
	if !strings.Contains(r.log.String(), "may have been copied") {
		t.Errorf("the log says %s", r.log.String())
	}
}

// Asking for challenges takes no memory, however many strangers do.
func TestChallengesTakeNoMemory(t *testing.T) {
	r := newRig(t)
	a := r.add("x")
	before := len(r.keys.challenges.spent)
	for range 10_000 {
		r.ask("login")
	}
	bad := passkeytest.New(site.Origin, site.ID)
	bad.User = a.User
	for range 1000 {
		if _, err := r.keys.Check(r.ctx, site, "login", r.answer(bad, r.ask("login"))); !errors.Is(err, ErrRejected) {
			t.Fatal(err)
		}
	}
	if n := len(r.keys.challenges.spent); n != before {
		t.Errorf("%d challenges are remembered, %d before", n, before)
	}
}

func TestUnreadableAnswers(t *testing.T) {
	r := newRig(t)
	a := r.add("x")
	good := r.answer(a, r.ask("login"))
	made, err := passkeytest.New(site.Origin, site.ID).Register(r.begin("s1"))
	ok(t, err)
	for _, text := range [][]byte{nil, []byte("null"), []byte("{}"), []byte("[]"), []byte(`"x"`), []byte(strings.Repeat("[", 10_000)), bytes.Repeat([]byte("x"), 1<<20),
		good[:len(good)/2], append(bytes.Clone(good), good...), []byte(strings.Replace(string(good), "public-key", "password", 1)), made[:len(made)-20], made} {
		if _, err := r.keys.Check(r.ctx, site, "login", text); !errors.Is(err, ErrRejected) {
			t.Errorf("a login with %.60q: %v", text, err)
		}
	}
	for _, text := range [][]byte{nil, []byte("null"), []byte("{}"), bytes.Repeat([]byte("x"), 1<<20), made[:len(made)/2], good} {
		if _, err := r.keys.Finish(r.ctx, site, "s1", "x", text); !errors.Is(err, ErrRejected) {
			t.Errorf("a registration with %.60q: %v", text, err)
		}
	}
	if _, err := r.keys.Check(r.ctx, site, "login", good); err != nil {
		t.Errorf("the good one: %v", err)
	}
}

func TestSiteOf(t *testing.T) {
	for address, want := range map[string]Site{
		"https://Agent.example/path": {"agent.example", "https://agent.example"},
		"https://agent.example:443":  {"agent.example", "https://agent.example"},
		"https://agent.example:8443": {"agent.example", "https://agent.example:8443"},
		"http://localhost:8787":      {"localhost", "http://localhost:8787"},
		"https://localhost":          {"localhost", "https://localhost"},
		"http://agent.example":       {},
		"https://192.0.2.1":          {},
		"http://127.0.0.1:8787":      {},
		"https://[::1]:8787":         {},
		"wss://agent.example":        {},
		"":                           {},
		"https://":                   {},
		"https://a_b c.example":      {},
	} {
		if got, ok := SiteOf(address); got != want || ok != (want != Site{}) {
			t.Errorf("%q: %+v %v", address, got, ok)
		}
	}
}

// What cannot be recorded is not done: neither a registration nor a login.
func TestStoreFails(t *testing.T) {
	dir := t.TempDir()
	s, err := store.Open(t.Context(), dir)
	ok(t, err)
	defer s.Close()
	r := &rig{t: t, ctx: t.Context(), store: s, now: time.Unix(1_800_000_000, 0)}
	r.restart()
	a := r.add("x")
	made, err := passkeytest.New(site.Origin, site.ID).Register(r.begin("s1"))
	ok(t, err)
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, store.File)+"?_pragma=busy_timeout(10000)")
	ok(t, err)
	defer db.Close()
	_, err = db.ExecContext(t.Context(), "CREATE TRIGGER broken BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'disk full'); END")
	ok(t, err)
	for name, do := range map[string]func() error{
		"a login":        func() error { _, err := r.keys.Check(r.ctx, site, "login", r.answer(a, r.ask("login"))); return err },
		"a registration": func() error { _, err := r.keys.Finish(r.ctx, site, "s1", "y", made); return err },
		"a removal":      func() error { _, err := r.keys.Remove(r.ctx, "x"); return err },
	} {
		if err := do(); err == nil || errors.Is(err, ErrRejected) || !strings.Contains(err.Error(), "disk full") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if list, err := r.keys.List(r.ctx); err != nil || len(list) != 1 || list[0].UsedAt != nil {
		t.Errorf("%+v %v", list, err)
	}
	_, err = db.ExecContext(t.Context(), "DROP TRIGGER broken")
	ok(t, err)
	if _, err := r.keys.Finish(r.ctx, site, "s1", "y", made); err != nil {
		t.Errorf("the registration, once there is room: %v", err)
	}
}

func FuzzAnswer(f *testing.F) {
	s, err := store.Open(f.Context(), f.TempDir())
	ok(f, err)
	f.Cleanup(func() { ok(f, s.Close()) })
	keys := New(s, slog.New(slog.DiscardHandler), time.Now)
	v, err := keys.Begin(f.Context(), site, "s1")
	a := passkeytest.New(site.Origin, site.ID)
	made, err2 := a.Register(options(f, v, err))
	ok(f, err2)
	_, err = keys.Finish(f.Context(), site, "s1", "x", made)
	ok(f, err)
	login, err := keys.Ask(site, "login")
	answer, err2 := a.Answer(options(f, login, err))
	ok(f, err2)
	f.Add(made)
	f.Add(answer)
	f.Add([]byte(`{"id":"AAAA","rawId":"AAAA","type":"public-key","response":{"clientDataJSON":"e30","authenticatorData":"AAAA","signature":"AAAA"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if bytes.Equal(data, answer) {
			return
		}
		if p, err := keys.Check(t.Context(), site, "other", data); err == nil {
			t.Errorf("%q logs in as %+v", data, p)
		}
		if _, err := keys.Finish(t.Context(), site, "s2", "x", data); err == nil {
			t.Errorf("%q is registered", data)
		}
	})
}
