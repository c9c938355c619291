package connect

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"hermes-mobile/gateway"
	"hermes-mobile/internal/connect/connecttest"
	"hermes-mobile/internal/leak"
	"hermes-mobile/internal/vault"
)

func TestMain(m *testing.M) { leak.Main(m) }

const (
	token    = "token-that-nobody-may-see"
	password = "password-that-nobody-may-see"
)

// rig is a machine on a folder, with the clients that it would have made.
type rig struct {
	*Machine
	t     *testing.T
	dir   string
	ready []gateway.Credentials
	all   []State // every state that was shown
}

func begin(t *testing.T, dir string, roots *x509.CertPool) *rig {
	t.Helper()
	v, err := vault.Open(vault.Options{Dir: dir, Key: gateway.NewSecret(strings.Repeat("k", 40))})
	if err != nil {
		t.Fatal(err)
	}
	return beginWith(t, dir, v, roots)
}

func beginWith(t *testing.T, dir string, v *vault.Vault, roots *x509.CertPool) *rig {
	t.Helper()
	r := &rig{t: t, dir: dir}
	m, err := New(Options{Storage: NewStorage(dir, v), RootCAs: roots, OnReady: func(_ gateway.Profile, c gateway.Credentials) { r.ready = append(r.ready, c) }})
	if err != nil {
		t.Fatal(err)
	}
	r.Machine = m
	m.Start()
	return r
}

// do carries actions out and wants to be at a step then.
func (r *rig) do(want Step, actions ...Action) State {
	r.t.Helper()
	s := r.State()
	for _, a := range actions {
		var err error
		if s, err = r.Do(context.Background(), a); err != nil {
			r.t.Fatal(a.Do, err)
		}
		r.all = append(r.all, s)
	}
	if s.Step != want {
		r.t.Fatalf("the setup is at %s, want %s: %+v %+v", s.Step, want, s.Problems, s.Result)
	}
	return s
}

func bearer(secret string) Action {
	return Action{Do: SetAuth, Auth: gateway.AuthBearer, Secret: gateway.NewSecret(secret)}
}

// secretFree looks for the secrets in everything that is shown or on disk in plain.
func (r *rig) secretFree(secrets ...string) {
	r.t.Helper()
	shown, err := json.Marshal(append(r.all, r.State()))
	if err != nil {
		r.t.Fatal(err)
	}
	texts := map[string]string{"what was shown": string(shown) + fmt.Sprintf("%+v", r.all)}
	files, err := os.ReadDir(r.dir)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(r.dir, f.Name()))
		if err != nil {
			r.t.Fatal(err)
		}
		texts[f.Name()] = string(data)
	}
	for where, text := range texts {
		for _, secret := range secrets {
			if strings.Contains(text, secret) {
				r.t.Errorf("%s holds a secret", where)
			}
		}
	}
}

func TestFirstRun(t *testing.T) {
	t.Parallel()
	g := connecttest.Start(t, connecttest.WithToken(token))
	r := begin(t, t.TempDir(), connecttest.Roots(g))
	if s := r.State(); s.Step != Welcome || s.Editing {
		t.Fatal(s)
	}
	r.do(Remote, Action{Do: Begin})
	for address, code := range map[string]Code{"": Missing, "ftp://x": Invalid, "https://u:p@x": Invalid, "http://example.com": NotHTTPS, "https://x?q": Invalid} {
		s := r.do(Remote, Action{Do: SetRemote, Remote: address})
		if len(s.Problems) != 1 || s.Problems[0].Code != code || s.Problems[0].Field != "remote" {
			t.Errorf("%q: %+v, want %s", address, s.Problems, code)
		}
	}
	s := r.do(Local, Action{Do: SetRemote, Remote: " " + strings.TrimPrefix(g.URL, "https://") + "/"})
	if s.Remote != g.URL || len(s.Problems) > 0 {
		t.Errorf("the address became %q %+v", s.Remote, s.Problems)
	}
	r.do(Auth, Action{Do: SetLocal})
	if s := r.do(Auth, Action{Do: SetAuth, Auth: gateway.AuthBearer}); len(s.Problems) != 1 || s.Problems[0].Code != Missing {
		t.Errorf("no token: %+v", s.Problems)
	}
	// The gate: with a wrong token the setup does not end, and stores nothing.
	s = r.do(Test, bearer("wrong-token"), Action{Do: TestNow})
	if s.Result == nil || s.Result.Passed || len(s.Result.Attempts) != 1 || s.Result.Attempts[0].Code != SignIn || s.Result.Attempts[0].Text == "" {
		t.Fatalf("a wrong token: %+v", s.Result)
	}
	if _, err := os.Stat(filepath.Join(r.dir, ProfileFile)); !errors.Is(err, os.ErrNotExist) || len(r.ready) > 0 {
		t.Error("a profile that did not pass was stored")
	}
	r.do(Auth, Action{Do: Back})
	s = r.do(Done, bearer(token), Action{Do: TestNow})
	if !s.Result.Passed || !s.Result.Attempts[0].Used || s.Result.Attempts[0].Version != "0.22.0" {
		t.Errorf("passed: %+v", s.Result)
	}
	if len(r.ready) != 1 || r.ready[0].Token.Reveal() != token {
		t.Error("no client was made")
	}
	r.secretFree(token, "wrong-token")

	// A valid profile skips the setup.
	again := begin(t, r.dir, connecttest.Roots(g))
	if again.State().Step != Done || len(again.ready) != 1 || again.ready[0].Token.Reveal() != token {
		t.Errorf("the next start is at %s", again.State().Step)
	}
}

// A credential is kept only while gateway and account are the same.
func TestEditing(t *testing.T) {
	t.Parallel()
	g := connecttest.Start(t, connecttest.WithToken(token))
	other := connecttest.Start(t, connecttest.WithToken("other-token-of-the-test"))
	r := begin(t, t.TempDir(), connecttest.Roots(g, other))
	r.do(Done, Action{Do: Begin}, Action{Do: SetRemote, Remote: g.URL}, Action{Do: SetLocal}, bearer(token), Action{Do: TestNow})
	keep := Action{Do: SetAuth, Auth: gateway.AuthBearer}

	s := r.do(Remote, Action{Do: Edit})
	if !s.Editing || !s.Kept || s.Remote != g.URL {
		t.Fatalf("the edit begins with %+v", s)
	}
	s = r.do(Done, Action{Do: SetRemote, Remote: g.URL}, Action{Do: SetLocal, Local: g.URL}, keep, Action{Do: TestNow})
	if len(s.Result.Attempts) != 2 || !s.Result.Attempts[0].Used || !s.Result.Attempts[1].OK || s.Result.Attempts[1].Used {
		t.Errorf("Local and Remote: %+v", s.Result)
	}
	s = r.do(Auth, Action{Do: Edit}, Action{Do: SetRemote, Remote: other.URL}, Action{Do: SetLocal}, keep)
	if s.Kept || len(s.Problems) != 1 || s.Problems[0].Code != Missing {
		t.Errorf("another gateway gets the credential: %+v", s)
	}
	if s := r.do(Done, Action{Do: Leave}); s.Remote != g.URL || !s.Kept {
		t.Errorf("after giving up: %+v", s)
	}
	if len(other.Seen()) > 0 {
		t.Error("the other gateway was asked:", other.Seen())
	}
	s = r.do(Done, Action{Do: Edit}, Action{Do: SetRemote, Remote: other.URL}, Action{Do: SetLocal}, bearer("other-token-of-the-test"), Action{Do: TestNow})
	if !s.Result.Passed {
		t.Errorf("%+v", s.Result)
	}
	if again := begin(t, r.dir, connecttest.Roots(g, other)); again.State().Remote != other.URL || again.ready[0].Token.Reveal() != "other-token-of-the-test" {
		t.Error("the edit was not kept")
	}
	r.secretFree(token, "other-token-of-the-test")
}

func TestPasswordAndAccounts(t *testing.T) {
	t.Parallel()
	g := connecttest.Start(t, connecttest.WithLogin("ada", password))
	r := begin(t, t.TempDir(), connecttest.Roots(g))
	ada := Action{Do: SetAuth, Auth: gateway.AuthPassword, Username: "ada", Secret: gateway.NewSecret(password)}
	r.do(Auth, Action{Do: Begin}, Action{Do: SetRemote, Remote: g.URL}, Action{Do: SetLocal})
	if s := r.do(Auth, Action{Do: SetAuth, Auth: gateway.AuthPassword, Secret: ada.Secret}); s.Problems[0].Field != "username" {
		t.Errorf("no user name: %+v", s.Problems)
	}
	wrong := ada
	wrong.Secret = gateway.NewSecret("wrong-password")
	if s := r.do(Test, wrong, Action{Do: TestNow}); s.Result.Attempts[0].Code != SignIn {
		t.Errorf("a wrong password: %+v", s.Result)
	}
	r.do(Done, ada, Action{Do: TestNow})
	if c := r.ready[0]; c.Password.Reveal() != password || !c.HasSession() {
		t.Error("the client has no session or another password")
	}
	s := r.do(Auth, Action{Do: Edit}, Action{Do: SetRemote, Remote: g.URL}, Action{Do: SetLocal}, Action{Do: SetAuth, Auth: gateway.AuthPassword, Username: "bob"})
	if s.Kept || s.Problems[0].Code != Missing {
		t.Errorf("another account gets the credential: %+v", s)
	}
	r.do(Done, Action{Do: Leave})
	r.secretFree(password, "wrong-password", "session.of.the.login")
}

func TestNoAuth(t *testing.T) {
	t.Parallel()
	g := connecttest.Start(t)
	dir := t.TempDir()
	v, err := vault.Open(vault.Options{Dir: dir, NoKeyring: true, Work: 10}) // which would need a passphrase
	if err != nil {
		t.Fatal(err)
	}
	r := beginWith(t, dir, v, connecttest.Roots(g))
	r.do(Done, Action{Do: Begin}, Action{Do: SetRemote, Remote: g.URL}, Action{Do: SetLocal}, Action{Do: SetAuth, Auth: gateway.AuthNone}, Action{Do: TestNow})
	if len(r.ready) != 1 {
		t.Error("no client")
	}
}

// That an address without encryption was agreed to is about that address.
func TestInsecure(t *testing.T) {
	t.Parallel()
	r := begin(t, t.TempDir(), nil)
	r.do(Remote, Action{Do: Begin}, Action{Do: SetRemote, Remote: "http://192.168.7.7"})
	r.do(Local, Action{Do: SetRemote, Remote: "https://gateway.example.org"})
	if s := r.do(Local, Action{Do: SetLocal, Local: "http://192.168.7.7"}); s.Problems[0].Code != NotHTTPS {
		t.Errorf("%+v", s.Problems)
	}
	if s := r.do(Auth, Action{Do: SetLocal, Local: "http://192.168.7.7", Insecure: true}); !s.Insecure {
		t.Errorf("%+v", s)
	}
	if s := r.do(Local, Action{Do: Back}, Action{Do: Back}, Action{Do: SetRemote, Remote: "https://gateway.example.org"}); !s.Insecure {
		t.Error("an edit of Remote took the word for Local back")
	}
	if s := r.do(Auth, Action{Do: SetLocal}); s.Insecure {
		t.Error("the word outlived the address")
	}
	for address, want := range map[string]bool{"http://localhost:8642": false, "http://127.0.0.1": false, "http://10.0.0.1": true, "https://x": false, "x.example": false, "": false} {
		if Plain(address) != want {
			t.Errorf("Plain(%q) is %t", address, !want)
		}
	}
}

func TestSelfSigned(t *testing.T) {
	t.Parallel()
	g := connecttest.Start(t, connecttest.WithToken(token))
	r := begin(t, t.TempDir(), x509.NewCertPool())
	s := r.do(Test, Action{Do: Begin}, Action{Do: SetRemote, Remote: g.URL}, Action{Do: SetLocal}, bearer(token), Action{Do: TestNow})
	a := s.Result.Attempts[0]
	if s.Result.Passed || a.Code != Certificate || a.Pin != gateway.KeyPin(g.Cert) || !strings.Contains(a.Certificate, "127.0.0.1") {
		t.Fatalf("a certificate that nobody vouches for: %+v", a)
	}
	if len(g.Seen()) > 0 {
		t.Error("it was asked all the same:", g.Seen())
	}
	r.do(Test, Action{Do: Trust, Kind: gateway.Remote, Pin: strings.Repeat("0", 64)})
	s = r.do(Done, Action{Do: Trust, Kind: gateway.Remote, Pin: a.Pin})
	if !s.Result.Passed {
		t.Errorf("a pinned key: %+v", s.Result)
	}

	// Its key changes: the test says so, shows the new one, and does not end with an address that proves nothing.
	g2 := connecttest.Start(t, connecttest.WithToken(token))
	s = r.do(Test, Action{Do: Edit}, Action{Do: SetRemote, Remote: g.URL}, Action{Do: SetLocal, Local: g2.URL}, Action{Do: SetAuth, Auth: gateway.AuthBearer})
	r.draft.LocalKey = a.Pin
	s = r.do(Test, Action{Do: TestNow})
	if l := s.Result.Attempts[0]; l.OK || l.Code != KeyChanged || l.Pin != gateway.KeyPin(g2.Cert) || !l.CanSkip {
		t.Errorf("another key: %+v", l)
	}
	if len(g2.Seen()) > 0 {
		t.Error("it was asked all the same:", g2.Seen())
	}
	s = r.do(Done, Action{Do: Trust, Kind: gateway.Local, Pin: gateway.KeyPin(g2.Cert)})
	if !s.Result.Attempts[0].OK || !s.Result.Attempts[1].OK {
		t.Errorf("both are trusted: %+v", s.Result)
	}
	r.secretFree(token)
}

// The local address is another gateway: it gets no credential, and Remote is used.
func TestAnotherGatewayAtHome(t *testing.T) {
	t.Parallel()
	g := connecttest.Start(t, connecttest.WithToken(token))
	r := begin(t, t.TempDir(), connecttest.Roots(g))
	r.do(Done, Action{Do: Begin}, Action{Do: SetRemote, Remote: g.URL}, Action{Do: SetLocal}, bearer(token), Action{Do: TestNow})
	other := connecttest.Start(t, connecttest.WithToken(token), connecttest.WithModel("another"))
	r.o.RootCAs = connecttest.Roots(g, other)
	s := r.do(Test, Action{Do: Edit}, Action{Do: SetRemote, Remote: g.URL}, Action{Do: SetLocal, Local: other.URL}, Action{Do: SetAuth, Auth: gateway.AuthBearer}, Action{Do: TestNow})
	if l, remote := s.Result.Attempts[0], s.Result.Attempts[1]; l.OK || l.Code != Other || !l.CanSkip || !remote.OK {
		t.Errorf("%+v", s.Result)
	}
	s = r.do(Done, Action{Do: Decline})
	if a := s.Result.Attempts; s.Local != "" || len(a) != 1 || !a[0].Used {
		t.Errorf("without it: %+v", s)
	}
	// The gateway itself is exchanged: only the person's word makes it the one.
	g.Become("a new one")
	s = r.do(Test, Action{Do: Edit}, Action{Do: SetRemote, Remote: g.URL}, Action{Do: SetLocal}, Action{Do: SetAuth, Auth: gateway.AuthBearer}, Action{Do: TestNow})
	if s.Result.Passed || s.Result.Attempts[0].Code != Other {
		t.Fatalf("%+v", s.Result)
	}
	r.do(Done, Action{Do: Relearn})
}

// What a test finds is said of each address.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	g := connecttest.Start(t, connecttest.WithToken(token))
	gone := connecttest.Start(t)
	gone.Stop()
	r := begin(t, t.TempDir(), connecttest.Roots(g))
	s := r.do(Test, Action{Do: Begin}, Action{Do: SetRemote, Remote: gone.URL}, Action{Do: SetLocal, Local: "https://no-such-host.invalid"}, bearer(token), Action{Do: TestNow})
	want := []Code{NotTried, Unreachable}
	for i, a := range s.Result.Attempts {
		if a.OK || a.Code != want[i] || !strings.HasSuffix(a.Text, ".") || a.CanSkip {
			t.Errorf("%s: %+v, want %s", a.Kind, a, want[i])
		}
	}
	// The remote address works: each of the others is named, and may be done without.
	for address, code := range map[string]Code{"https://no-such-host.invalid": NoName, gone.URL: Unreachable, "http://127.0.0.1:1": Unreachable} {
		s = r.do(Test, Action{Do: Back}, Action{Do: Back}, Action{Do: Back}, Action{Do: SetRemote, Remote: g.URL}, Action{Do: SetLocal, Local: address}, bearer(token), Action{Do: TestNow})
		if l := s.Result.Attempts[0]; l.Code != code || !l.CanSkip || !s.Result.Attempts[1].OK {
			t.Errorf("%s: %+v, want %s", address, s.Result, code)
		}
	}
	r.do(Done, Action{Do: Decline})
}

// leaked is what a stranger at an address was sent.
func leaked(t *testing.T, bytes string) {
	t.Helper()
	if strings.Contains(bytes, token) {
		t.Errorf("a stranger got the credential: %q", bytes)
	}
}

// fake pretends to be a gateway over plain http, and keeps what it is sent.
func fake(t *testing.T) (address string, got func() string) {
	t.Helper()
	var mu sync.Mutex
	var all strings.Builder
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := httputil.DumpRequest(r, true)
		mu.Lock()
		all.Write(raw)
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/health" {
			fmt.Fprint(w, `{"status":"ok","platform":"hermes-agent","version":"0.22.0"}`)
			return
		}
		fmt.Fprint(w, `{"object":"hermes.api_server.capabilities","platform":"hermes-agent","model":"of the fake","auth":{"type":"bearer","required":true},"features":{},"endpoints":{}}`)
	}))
	t.Cleanup(server.Close)
	return server.URL, func() string { mu.Lock(); defer mu.Unlock(); return all.String() }
}

// Somebody sits at the Local address, in another network or on this machine, and the Remote address does not answer: they get
// nothing, and are not learnt as the gateway.
func TestAFakeAtHome(t *testing.T) {
	t.Parallel()
	g := connecttest.Start(t, connecttest.WithToken(token))
	gone := connecttest.Start(t)
	gone.Stop()
	wrongToken := connecttest.Start(t, connecttest.WithToken("another-token"))
	for name, remote := range map[string]string{"closed": gone.URL, "no name": "https://no-such-host.invalid", "no trust": connecttest.Start(t, connecttest.WithToken(token)).URL, "another token": wrongToken.URL} {
		t.Run(name, func(t *testing.T) {
			address, got := fake(t)
			r := begin(t, t.TempDir(), connecttest.Roots(g, wrongToken))
			s := r.do(Test, Action{Do: Begin}, Action{Do: SetRemote, Remote: remote}, Action{Do: SetLocal, Local: address}, bearer(token), Action{Do: TestNow})
			if s.Result.Passed || s.Result.Attempts[0].Code != NotTried || s.Result.Attempts[1].OK {
				t.Errorf("%+v", s.Result)
			}
			if got() != "" {
				t.Errorf("the fake was sent %q", got())
			}
			if r.draft.Identity != nil || len(r.ready) > 0 {
				t.Errorf("it was learnt: %+v", r.draft.Identity)
			}
			// Nor when the person insists.
			r.do(Test, Action{Do: TestNow}, Action{Do: Relearn})
			leaked(t, got())
			// The right Remote address shows that the other is somebody else.
			s = r.do(Test, Action{Do: Back}, Action{Do: Back}, Action{Do: Back}, Action{Do: SetRemote, Remote: g.URL}, Action{Do: SetLocal, Local: address}, Action{Do: SetAuth, Auth: gateway.AuthBearer, Secret: gateway.NewSecret(token)}, Action{Do: TestNow})
			if l := s.Result.Attempts[0]; l.OK || l.Code != Other || !s.Result.Attempts[1].OK {
				t.Errorf("%+v", s.Result)
			}
		})
	}
}

// A Remote address that nobody vouches for is offered for trust, also where Local works.
func TestUntrustedRemoteAndGoodLocal(t *testing.T) {
	t.Parallel()
	local, remote := connecttest.Start(t, connecttest.WithToken(token)), connecttest.Start(t, connecttest.WithToken(token))
	r := begin(t, t.TempDir(), connecttest.Roots(local))
	s := r.do(Test, Action{Do: Begin}, Action{Do: SetRemote, Remote: remote.URL}, Action{Do: SetLocal, Local: local.URL}, bearer(token), Action{Do: TestNow})
	if a := s.Result.Attempts[1]; a.OK || a.Code != Certificate || a.Pin != gateway.KeyPin(remote.Cert) {
		t.Fatalf("%+v", s.Result)
	}
	s = r.do(Done, Action{Do: Trust, Kind: gateway.Remote, Pin: gateway.KeyPin(remote.Cert)})
	if a := s.Result.Attempts; !a[0].OK || !a[0].Used || !a[1].OK || a[1].Used {
		t.Errorf("%+v", s.Result)
	}
	// Later one of them may be out of reach when the person signs in again: what was proven stays.
	remote.Stop()
	r.SignedOut()
	s = r.do(Done, bearer(token), Action{Do: TestNow})
	if a := s.Result.Attempts; !a[0].OK || a[1].OK || a[1].Code != Unreachable {
		t.Errorf("at home: %+v", s.Result)
	}
}

func TestSignInAway(t *testing.T) {
	t.Parallel()
	local, remote := connecttest.Start(t, connecttest.WithToken(token)), connecttest.Start(t, connecttest.WithToken(token))
	r := begin(t, t.TempDir(), connecttest.Roots(local, remote))
	r.do(Done, Action{Do: Begin}, Action{Do: SetRemote, Remote: remote.URL}, Action{Do: SetLocal, Local: local.URL}, bearer(token), Action{Do: TestNow})
	local.Stop()
	r.SignedOut()
	s := r.do(Done, bearer(token), Action{Do: TestNow})
	if a := s.Result.Attempts; a[0].OK || a[0].Code != Unreachable || !a[1].OK || s.Local != local.URL {
		t.Errorf("away: %+v", s.Result)
	}
	// Another Local address is not proven by that.
	r.do(Test, Action{Do: Edit}, Action{Do: SetRemote, Remote: remote.URL}, Action{Do: SetLocal, Local: "https://no-such-host.invalid"}, Action{Do: SetAuth, Auth: gateway.AuthBearer}, Action{Do: TestNow})
}

// With a Remote address that is not encrypted the Local one proves the gateway, if it can.
func TestPlainIsNeverFirst(t *testing.T) {
	t.Parallel()
	local := connecttest.Start(t, connecttest.WithToken(token))
	r := begin(t, t.TempDir(), connecttest.Roots(local))
	const remote = "http://192.0.2.1.nip.invalid"
	s := r.do(Test, Action{Do: Begin}, Action{Do: SetRemote, Remote: remote, Insecure: true}, Action{Do: SetLocal, Local: local.URL}, bearer(token), Action{Do: TestNow})
	if a := s.Result.Attempts; !a[0].OK || a[1].OK || a[1].Code != NoName || s.Result.Passed {
		t.Errorf("%+v", s.Result)
	}
	local.Stop()
	s = r.do(Test, Action{Do: TestNow})
	if a := s.Result.Attempts; a[0].Code != Unreachable || a[1].Code != NotTried {
		t.Errorf("%+v", s.Result)
	}
}

// With a passphrase: asked for at the setup, and at the next start; who forgot it signs in again.
func TestPassphrase(t *testing.T) {
	t.Parallel()
	g := connecttest.Start(t, connecttest.WithToken(token))
	dir := t.TempDir()
	open := func() *rig {
		v, err := vault.Open(vault.Options{Dir: dir, NoKeyring: true, Work: 10})
		if err != nil {
			t.Fatal(err)
		}
		return beginWith(t, dir, v, connecttest.Roots(g))
	}
	phrase := func(s string) Action { return Action{Do: Open, Secret: gateway.NewSecret(s)} }
	r := open()
	r.do(Unlock, Action{Do: Begin}, Action{Do: SetRemote, Remote: g.URL}, Action{Do: SetLocal}, bearer(token))
	if s := r.do(Unlock, phrase("short")); s.Problems[0].Code != Passphrase {
		t.Errorf("%+v", s.Problems)
	}
	r.do(Done, phrase("correct horse"), Action{Do: TestNow})
	r.secretFree(token, "correct horse")

	r = open()
	if s := r.State(); s.Step != Unlock || len(r.ready) > 0 {
		t.Fatalf("the next start: %+v", s)
	}
	if s := r.do(Unlock, phrase("incorrect horse")); s.Problems[0].Code != Passphrase {
		t.Errorf("%+v", s.Problems)
	}
	r.do(Done, phrase("correct horse"))
	if len(r.ready) != 1 || r.ready[0].Token.Reveal() != token {
		t.Error("no client after the passphrase")
	}

	r = open()
	s := r.do(Auth, Action{Do: ForgetAll})
	if s.Kept || s.Remote != g.URL {
		t.Errorf("%+v", s)
	}
	r.do(Unlock, bearer(token))
	r.do(Done, phrase("a new passphrase"), Action{Do: TestNow})
}

// What was kept is damaged: the person signs in again, and the rest of the profile is as it was.
func TestDamagedVault(t *testing.T) {
	t.Parallel()
	g := connecttest.Start(t, connecttest.WithToken(token))
	r := begin(t, t.TempDir(), connecttest.Roots(g))
	r.do(Done, Action{Do: Begin}, Action{Do: SetRemote, Remote: g.URL}, Action{Do: SetLocal}, bearer(token), Action{Do: TestNow})
	if err := os.WriteFile(filepath.Join(r.dir, "vault.key.age"), []byte("cut"), 0o600); err != nil {
		t.Fatal(err)
	}
	r = begin(t, r.dir, connecttest.Roots(g))
	s := r.State()
	if s.Step != Auth || s.Problems[0].Code != Lost || s.Remote != g.URL || s.Vault.State != vault.Unusable || len(r.ready) > 0 {
		t.Fatalf("%+v", s)
	}
	r.do(Unlock, bearer(token))
	r.do(Test, Action{Do: ForgetAll})
	r.do(Done, Action{Do: TestNow})
}

// The running client is refused: the setup opens at the credential.
func TestSignedOut(t *testing.T) {
	t.Parallel()
	g := connecttest.Start(t, connecttest.WithToken(token))
	r := begin(t, t.TempDir(), connecttest.Roots(g))
	r.do(Done, Action{Do: Begin}, Action{Do: SetRemote, Remote: g.URL}, Action{Do: SetLocal}, bearer(token), Action{Do: TestNow})
	g.SetToken("rotated-token")
	r.SignedOut()
	if s := r.State(); s.Step != Auth || s.Problems[0].Code != SignIn {
		t.Errorf("%+v", s)
	}
	r.do(Done, bearer("rotated-token"), Action{Do: TestNow})
	if got := r.ready[len(r.ready)-1].Token.Reveal(); got != "rotated-token" {
		t.Error("the client has the old token")
	}
}

// A profile of the first form held its token in itself: it is stored safely, and the profile written anew without it.
func TestLegacyProfile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	old := `{"id":"home","name":"Home","url":"https://gateway.example.org","authMode":"bearer","token":"` + token + `"}`
	if err := os.WriteFile(filepath.Join(dir, ProfileFile), []byte(old), 0o644); err != nil {
		t.Fatal(err)
	}
	r := begin(t, dir, nil)
	if s := r.State(); s.Step != Done || len(r.ready) != 1 || r.ready[0].Token.Reveal() != token {
		t.Fatalf("%+v", s)
	}
	r.secretFree(token)
	if p, _, err := r.o.Storage.Profile(); err != nil || !p.Migrated {
		t.Errorf("%v %v", p, err)
	}
	if info, err := os.Stat(filepath.Join(dir, ProfileFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info.Mode(), err)
	}
}

func TestProfilesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(text string) {
		if err := os.WriteFile(filepath.Join(dir, ProfileFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"schema":99}`)
	v, err := vault.Open(vault.Options{Dir: dir, Key: gateway.NewSecret(strings.Repeat("k", 40))})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(Options{Storage: NewStorage(dir, v)}); err == nil || !strings.Contains(err.Error(), "newer") {
		t.Errorf("a profile of a newer version: %v", err)
	}
	write(`{"schema":2,"remote":`)
	r := beginWith(t, dir, v, nil)
	if s := r.State(); s.Step != Welcome || s.Problems[0].Code != Lost {
		t.Errorf("%+v", s)
	}
	files, err := filepath.Glob(filepath.Join(dir, ProfileFile+"*"))
	if err != nil || !slices.Equal(files, []string{filepath.Join(dir, ProfileFile+".unreadable")}) {
		t.Error(files, err)
	}
}

// An action that is given up leaves everything as it was.
func TestCancelled(t *testing.T) {
	t.Parallel()
	g := connecttest.Start(t, connecttest.WithToken(token))
	r := begin(t, t.TempDir(), connecttest.Roots(g))
	r.do(Test, Action{Do: Begin}, Action{Do: SetRemote, Remote: g.URL}, Action{Do: SetLocal}, bearer(token))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := r.Do(ctx, Action{Do: TestNow}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	r.do(Done, Action{Do: TestNow})
}
