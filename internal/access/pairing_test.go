package access

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func newPairing(t *testing.T) (*Pairing, *clock) {
	t.Helper()
	c := newClock()
	return must[*Pairing](t)(openPairing(filepath.Join(t.TempDir(), "platforms", "pairing"), "mobile", c.now)), c
}

func content(t *testing.T, path string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(must[[]byte](t)(os.ReadFile(path)), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func pending(t *testing.T, p *Pairing) []Pending {
	t.Helper()
	waiting, _, err := p.List()
	if err != nil {
		t.Fatal(err)
	}
	return waiting
}

func delay(t *testing.T, err, want error, left time.Duration) {
	t.Helper()
	var d *DelayError
	if !errors.As(err, &d) || !errors.Is(err, want) || (d.RetryAfter-left).Abs() > time.Millisecond {
		t.Fatalf("%v %+v, want %v and %v", err, d, want, left)
	}
}

func TestRequestFiles(t *testing.T) {
	p, c := newPairing(t)
	code := must[string](t)(p.Request("tel-1", "Anna <é> & Co"))
	if !ValidCode(code) {
		t.Error("form of the code")
	}
	for _, path := range []string{p.pendingPath(), p.limitsPath()} {
		if info := must[fs.FileInfo](t)(os.Stat(path)); info.Mode().Perm() != 0o600 {
			t.Error(path, info.Mode())
		}
		if text := string(must[[]byte](t)(os.ReadFile(path))); strings.Contains(text, code) || strings.Contains(text, `\u`) {
			t.Error(text)
		}
	}
	if limit := content(t, p.limitsPath())["mobile:tel-1"]; limit != seconds(c.now()) {
		t.Error(limit)
	}
	for id, v := range content(t, p.pendingPath()) {
		e := v.(map[string]any)
		if !isRequestID(id) || len(e) != 5 || len(e["salt"].(string)) != 32 || len(e["hash"].(string)) != 64 ||
			e["user_id"] != "tel-1" || e["user_name"] != "Anna <é> & Co" || e["created_at"] != seconds(c.now()) {
			t.Error(id, e)
		}
	}
	left := must[[]os.DirEntry](t)(os.ReadDir(p.dir))
	for _, f := range left {
		if strings.HasSuffix(f.Name(), ".tmp") {
			t.Error("left behind:", f.Name())
		}
	}
}

func TestRequestLimits(t *testing.T) {
	p, c := newPairing(t)
	must[string](t)(p.Request("tel-1", ""))
	c.pass(time.Minute)
	_, err := p.Request(" tel-1 ", "")
	delay(t, err, ErrWait, 9*time.Minute)
	must[string](t)(p.Request("tel-2", ""))
	must[string](t)(p.Request("tel-3", ""))
	_, err = p.Request("tel-4", "")
	delay(t, err, ErrTooMany, 59*time.Minute)
	c.pass(9 * time.Minute)
	_, err = p.Request("tel-1", "") // may ask again, but there is no room
	delay(t, err, ErrTooMany, 50*time.Minute)
	c.pass(50*time.Minute + time.Second)
	must[string](t)(p.Request("tel-1", ""))
	if n := len(content(t, p.limitsPath())); n != 1 {
		t.Error("old times are kept:", content(t, p.limitsPath()))
	}
	if waiting := pending(t, p); len(waiting) != 3 || waiting[0].UserID == "tel-1" || waiting[0].AgeMinutes != 59 || waiting[2].UserID != "tel-1" {
		t.Error(waiting)
	}
	if _, err := p.Request(" ", ""); err == nil {
		t.Error("nobody may ask")
	}
}

func TestApprove(t *testing.T) {
	for name, arg := range map[string]func(code, id string) string{
		"code":      func(code, _ string) string { return code },
		"lower":     func(code, _ string) string { return strings.ToLower(code) },
		"formatted": func(code, _ string) string { return " " + FormatCode(code) + "\n" },
		"spaced":    func(code, _ string) string { return code[:4] + " " + code[4:] },
		"id":        func(_, id string) string { return id },
		"upper id":  func(_, id string) string { return " " + strings.ToUpper(id) },
	} {
		t.Run(name, func(t *testing.T) {
			p, c := newPairing(t)
			code := must[string](t)(p.Request("tel-1", "Anna"))
			must[string](t)(p.Request("tel-2", "Bob"))
			id := pending(t, p)[0].RequestID
			if pending(t, p)[0].UserID != "tel-1" {
				id = pending(t, p)[1].RequestID
			}
			if p.Approved("tel-1") {
				t.Error("too early")
			}
			user := must[User](t)(p.Approve(arg(code, id)))
			if user.UserID != "tel-1" || user.UserName != "Anna" || !p.Approved("tel-1") || p.Approved("tel-2") || p.Approved("") {
				t.Error(user)
			}
			waiting, approved, err := p.List()
			if err != nil || len(waiting) != 1 || len(approved) != 1 || approved[0] != (User{"mobile", "tel-1", "Anna", c.now()}) {
				t.Error(waiting, approved, err)
			}
			_, err = p.Approve(arg(code, id))
			wantErr(t, err, ErrUnknownRequest)
			if err := p.Revoke("tel-1"); err != nil || p.Approved("tel-1") {
				t.Error(err)
			}
			wantErr(t, p.Revoke("tel-1"), ErrNotApproved)
		})
	}
}

func TestApproveExpired(t *testing.T) {
	p, c := newPairing(t)
	code := must[string](t)(p.Request("tel-1", ""))
	id := pending(t, p)[0].RequestID
	c.pass(time.Hour + time.Second)
	for _, arg := range []string{code, id} {
		_, err := p.Approve(arg)
		wantErr(t, err, ErrUnknownRequest)
	}
	if p.Approved("tel-1") || len(pending(t, p)) != 0 {
		t.Error("approved by what expired")
	}
}

func TestWrongCodesLock(t *testing.T) {
	p, c := newPairing(t)
	code := must[string](t)(p.Request("tel-1", ""))
	for i := range 4 {
		_, err := p.Approve(fmt.Sprint("ZZZZZZZ", i+2))
		wantErr(t, err, ErrUnknownRequest)
	}
	_, err := p.Approve(strings.Repeat("0", 16)) // a wrong id does not count
	wantErr(t, err, ErrUnknownRequest)
	_, err = p.Approve("")
	wantErr(t, err, ErrUnknownRequest)
	_, err = p.Approve("ZZZZ-ZZZ9")
	delay(t, err, ErrLocked, time.Hour)
	if m := content(t, p.limitsPath()); m["_failures:mobile"] != 0.0 || m["_lockout:mobile"] != seconds(c.now().Add(time.Hour)) {
		t.Error(m)
	}
	c.pass(time.Minute)
	again := must[*Pairing](t)(openPairing(p.dir, "mobile", c.now)) // as after a restart
	_, err = again.Approve(code)
	delay(t, err, ErrLocked, 59*time.Minute)
	_, err = again.Request("tel-2", "")
	delay(t, err, ErrLocked, 59*time.Minute)
	must[User](t)(again.Approve(pending(t, again)[0].RequestID))
	if !p.Approved("tel-1") {
		t.Error("not approved by its id")
	}
	c.pass(59 * time.Minute)
	code = must[string](t)(p.Request("tel-2", ""))
	must[User](t)(p.Approve(code))
}

func TestSuccessEndsTheRowOfWrongCodes(t *testing.T) {
	p, _ := newPairing(t)
	code := must[string](t)(p.Request("tel-1", ""))
	for range 4 {
		p.Approve("ZZZZZZZ2")
	}
	must[User](t)(p.Approve(code))
	if n := content(t, p.limitsPath())["_failures:mobile"]; n != 0.0 {
		t.Error(n)
	}
}

func TestOthersDataIsKept(t *testing.T) {
	p, c := newPairing(t)
	now := c.now().Unix()
	write(t, p.limitsPath(), `{"telegram:9": 12345678901234567890.5, "_lockout:telegram": 1e3, "new": {"a": [1]}, "_failures:mobile": 2}`)
	write(t, p.approvedPath(), `{"bob": {"user_name": "B", "approved_at": 1, "future": {"x": 1.10}}, "odd": true}`)
	write(t, p.pendingPath(), fmt.Sprintf("\xef\xbb\xbf"+`{"0123456789abcdef": {"hash": "h", "salt": "zz", "user_id": "x", "created_at": %d, "future": 1.10},
		"ABCDEFGH": {"user_id": "old", "user_name": "O", "created_at": %d}, "junk": 5, "dead": {"created_at": "soon"}}`, now-5, now-65))
	waiting := pending(t, p)
	if len(waiting) != 2 || waiting[0] != (Pending{"mobile", "", "old", "O", 1}) || waiting[1] != (Pending{"mobile", "0123456789abcdef", "x", "", 0}) {
		t.Error(waiting)
	}
	code := must[string](t)(p.Request("tel-1", ""))
	must[User](t)(p.Approve(code))
	must[User](t)(p.ApproveUser("bob", "Bobby"))
	if !p.Approved("odd") || !p.Approved("bob") {
		t.Error("Hermes looks at the key only")
	}
	for path, want := range map[string][]string{
		p.limitsPath():   {`"telegram:9": 12345678901234567890.5`, `"_lockout:telegram": 1e3`, `"new"`, `"mobile:tel-1"`, `"_failures:mobile": 0`},
		p.approvedPath(): {`"x": 1.10`, `"odd": true`, `"user_name": "Bobby"`, `"tel-1"`},
		p.pendingPath():  {`"future": 1.10`, `"ABCDEFGH"`},
	} {
		text := string(must[[]byte](t)(os.ReadFile(path)))
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s lacks %s:\n%s", path, w, text)
			}
		}
	}
	if m := content(t, p.pendingPath()); len(m) != 2 {
		t.Error(m)
	}
	_, err := p.Approve("ABCDEFGH") // the key of an old entry is no code of today
	wantErr(t, err, ErrUnknownRequest)
}

// A name that Hermes noted for somebody of another platform is told without what does not show, and
// kept as it is.
func TestNamesAreToldClean(t *testing.T) {
	p, c := newPairing(t)
	write(t, p.approvedPath(), `{"bob": {"user_name": "B\u202eob\u200b", "approved_at": 1}}`)
	write(t, p.pendingPath(), fmt.Sprintf(`{"0123456789abcdef": {"hash": "h", "salt": "zz", "user_id": "x", "user_name": "\u2066Eve", "created_at": %d}}`, c.now().Unix()))
	waiting, approved, err := p.List()
	if err != nil || len(waiting) != 1 || waiting[0].UserName != "Eve" || len(approved) != 1 || approved[0].UserName != "Bob" {
		t.Errorf("%+v %+v %v", waiting, approved, err)
	}
	must[string](t)(p.Request("tel-1", ""))
	if text := string(must[[]byte](t)(os.ReadFile(p.pendingPath()))); !strings.Contains(text, "Eve") || !strings.Contains(text, "\u2066") && !strings.Contains(text, `\u2066`) {
		t.Errorf("Hermes' own entry was changed: %s", text)
	}
}

func TestDamagedFiles(t *testing.T) {
	for _, text := range []string{"", " ", "{", "[]", "null", "5", `"x"`, `{"a": tru}`, `{} {}`, "\x00", `{"tel-1": {}`} {
		for _, which := range []func(*Pairing) string{(*Pairing).pendingPath, (*Pairing).approvedPath, (*Pairing).limitsPath} {
			p, _ := newPairing(t)
			path := which(p)
			code := must[string](t)(p.Request("tel-1", ""))
			id := pending(t, p)[0].RequestID
			write(t, path, text)
			if _, err := p.Approve(code); !errors.Is(err, ErrDamaged) {
				t.Errorf("%q in %s, by code: %v", text, path, err)
			}
			if _, err := p.Approve(id); !errors.Is(err, ErrDamaged) {
				t.Errorf("%q in %s, by id: %v", text, path, err)
			}
			if _, err := p.ApproveUser("tel-1", ""); !errors.Is(err, ErrDamaged) {
				t.Errorf("%q in %s, user: %v", text, path, err)
			}
			if err := p.Check(); !errors.Is(err, ErrDamaged) {
				t.Errorf("%q in %s, check: %v", text, path, err)
			}
			if p.Approved("tel-1") {
				t.Errorf("%q in %s: approved", text, path)
			}
			if now := string(must[[]byte](t)(os.ReadFile(path))); now != text {
				t.Errorf("%q in %s: written over with %q", text, path, now)
			}
		}
	}
	p, _ := newPairing(t)
	for _, text := range []string{`{"_lockout:mobile": "x"}`, `{"_lockout:mobile": 1e999}`, `{"_failures:mobile": []}`, `{"mobile:tel-1": null}`} {
		write(t, p.limitsPath(), text)
		_, one := p.Request("tel-1", "")
		_, two := p.Approve("ZZZZZZZ2")
		wantErr(t, errors.Join(one, two), ErrDamaged)
	}
}

func TestUnreadableApprovesNobody(t *testing.T) {
	p, _ := newPairing(t)
	must[User](t)(p.ApproveUser("tel-1", ""))
	if !p.Approved("tel-1") {
		t.Fatal("not approved")
	}
	os.Remove(p.approvedPath())
	if p.Approved("tel-1") {
		t.Error("removed, still approved")
	}
	os.Mkdir(p.approvedPath(), 0o700) // a folder cannot be read, not even by root
	if p.Approved("tel-1") {
		t.Error("unreadable, still approved")
	}
	if _, _, err := p.List(); err == nil {
		t.Error("no error")
	}
	if err := p.Revoke("tel-1"); err == nil || errors.Is(err, ErrNotApproved) {
		t.Error(err)
	}
}

func TestApprovedSeesEveryWrite(t *testing.T) {
	p, _ := newPairing(t)
	rapid.Check(t, func(t *rapid.T) {
		on := rapid.Bool().Draw(t, "on")
		text := `{"tel-2": {}}`
		if on {
			text = `{"tel-1": {}}` // of the same size, written at almost the same time
		}
		if err := replaceFile(p.approvedPath(), []byte(text), keepMode, nil); err != nil {
			t.Fatal(err)
		}
		if p.Approved("tel-1") != on || p.Approved("tel-2") == on {
			t.Fatal("an old reading")
		}
	})
}

func TestSettledReadingIsKept(t *testing.T) {
	p, _ := newPairing(t)
	write(t, p.approvedPath(), `{"tel-1": {}}`)
	old := time.Now().Add(-time.Hour)
	os.Chtimes(p.approvedPath(), old, old)
	first := p.approvals()
	if !first.settled || p.approvals() != first {
		t.Error("read again")
	}
	os.Chmod(p.approvedPath(), 0o640)
	if p.approvals() == first {
		t.Error("a new mode may mean that it cannot be read")
	}
}

func TestEditBeginsAgain(t *testing.T) {
	p, _ := newPairing(t)
	write(t, p.approvedPath(), `{"a": {}}`)
	calls := 0
	err := edit(p.approvedPath(), func(d document) (bool, error) {
		if calls++; calls == 1 { // Hermes approves somebody between reading and writing
			if err := replaceFile(p.approvedPath(), []byte(`{"a": {}, "b": {}}`), keepMode, nil); err != nil {
				t.Fatal(err)
			}
		}
		delete(d, "a")
		return true, nil
	})
	if m := content(t, p.approvedPath()); err != nil || calls != 2 || len(m) != 1 || m["b"] == nil {
		t.Error(err, calls, m)
	}
	err = edit(p.approvedPath(), func(document) (bool, error) {
		calls++
		write(t, p.approvedPath(), fmt.Sprintf(`{"n%d": {}}`, calls+1000000*calls))
		return true, nil
	})
	wantErr(t, err, ErrBusy)
}

func TestManyAtOnce(t *testing.T) {
	p, c := newPairing(t)
	again := must[*Pairing](t)(openPairing(p.dir, "mobile", c.now)) // as another process
	code := must[string](t)(p.Request("first", ""))
	var wg sync.WaitGroup
	var mu sync.Mutex
	requests, approvals := 0, 0
	for i := range 8 {
		store := []*Pairing{p, again}[i%2]
		wg.Go(func() {
			_, one := store.Request(fmt.Sprint("tel-", i), "")
			_, two := store.Approve(code)
			_, three := store.ApproveUser(fmt.Sprint("direct-", i), "")
			store.Approved("first")
			mu.Lock()
			defer mu.Unlock()
			if one == nil {
				requests++
			}
			if two == nil {
				approvals++
			}
			if three != nil {
				t.Error(three)
			}
		})
	}
	wg.Wait()
	_, approved, err := p.List()
	if err != nil || approvals != 1 || requests < 2 || requests > 3 || len(approved) != 9 {
		t.Error(err, requests, approvals, len(approved))
	}
}

func TestLinkStaysALink(t *testing.T) {
	p, _ := newPairing(t)
	real := filepath.Join(t.TempDir(), "approved.json")
	write(t, real, "{}")
	if err := os.Symlink(real, p.approvedPath()); err != nil {
		t.Skip(err)
	}
	must[User](t)(p.ApproveUser("tel-1", ""))
	if info := must[fs.FileInfo](t)(os.Lstat(p.approvedPath())); info.Mode()&fs.ModeSymlink == 0 || !p.Approved("tel-1") {
		t.Error(info.Mode())
	}
}

func TestPairingDir(t *testing.T) {
	home := t.TempDir()
	old, current := filepath.Join(home, "pairing"), filepath.Join(home, "platforms", "pairing")
	if got := PairingDir(home); got != current {
		t.Error(got)
	}
	os.Mkdir(old, 0o700)
	if got := PairingDir(home); got != current {
		t.Error("an empty one is not in use:", got)
	}
	write(t, filepath.Join(old, "mobile-approved.json"), "{}")
	if got := PairingDir(home); got != old {
		t.Error(got)
	}
}

func TestOpenPairing(t *testing.T) {
	for _, platform := range []string{"", "_x", ".x", "a/b", "Mobile", "a b"} {
		if _, err := OpenPairing(t.TempDir(), platform); err == nil {
			t.Errorf("%q is taken", platform)
		}
	}
	file := filepath.Join(t.TempDir(), "f")
	write(t, file, "")
	if _, err := OpenPairing(filepath.Join(file, "x"), "mobile"); err == nil {
		t.Error("a folder in a file")
	}
}
