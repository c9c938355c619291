package server

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"hermes-mobile/internal/passkey"
	"hermes-mobile/internal/passkey/passkeytest"
)

const agentOrigin = "https://agent.example"

// nobody has no session.
var nobody pass

// apiAs asks the admin UI's interface as the page at the public address does.
func (r *rig) apiAs(client string, p pass, method, path, body string) *http.Response {
	r.t.Helper()
	v := visit{host: "agent.example", method: method, path: "/admin/api" + path, body: body, headers: elsewhereHTTPS(client)}
	if p != nobody {
		v = v.with(p)
	}
	return r.ask(v)
}

// admitted is the session that an answer to a login begins.
func (r *rig) admitted(resp *http.Response) pass {
	r.t.Helper()
	for _, c := range resp.Cookies() {
		return pass{c, decode[OwnerAccess](r.t, resp).Page}
	}
	return nobody
}

// logsIn logs in with the admin token.
func (r *rig) logsIn(client string) pass {
	r.t.Helper()
	_, resp := r.login(client, adminSecret)
	p := r.admitted(resp)
	if p == nobody {
		r.t.Fatalf("the admin token gives no session: %s", resp.Status)
	}
	return p
}

// registers makes a passkey in the admin UI.
func (r *rig) registers(c pass, name string) *passkeytest.Authenticator {
	r.t.Helper()
	a := passkeytest.New(agentOrigin, "agent.example")
	answer, err := a.Register([]byte(text(r.t, r.apiAs("192.0.2.1", c, "POST", "/passkeys/begin", "{}"))))
	ok(r.t, err)
	resp := r.apiAs("192.0.2.1", c, "POST", "/passkeys/add", fmt.Sprintf(`{"name":%q,"credential":%s}`, name, answer))
	if resp.StatusCode != http.StatusOK {
		r.t.Fatalf("registering: %s %s", resp.Status, text(r.t, resp))
	}
	return a
}

// answers logs in with a passkey for options that the server gave.
func (r *rig) answers(client string, a *passkeytest.Authenticator, options string) (pass, *http.Response) {
	r.t.Helper()
	answer, err := a.Answer([]byte(options))
	ok(r.t, err)
	resp := r.apiAs(client, nobody, "POST", "/passkey/login", `{"credential":`+string(answer)+`}`)
	return r.admitted(resp), resp
}

// comesIn logs in with a passkey alone.
func (r *rig) comesIn(client string, a *passkeytest.Authenticator) (pass, *http.Response) {
	r.t.Helper()
	return r.answers(client, a, text(r.t, r.apiAs(client, nobody, "POST", "/passkey/ask", "{}")))
}

func (r *rig) accessAs(c pass) OwnerAccess {
	r.t.Helper()
	return decode[OwnerAccess](r.t, r.apiAs("192.0.2.1", c, "GET", "/session", ""))
}

// linked opens the admin UI at the public address by a link from the server's machine, which works
// whatever the settings say.
func (r *rig) linked() pass {
	r.t.Helper()
	resp := r.ask(visit{host: "agent.example", path: r.link(), headers: elsewhereHTTPS("192.0.2.1")})
	for _, c := range resp.Cookies() {
		session := r.ask(visit{host: "agent.example", path: "/admin/api/session", headers: elsewhereHTTPS("192.0.2.1"), cookie: c})
		return pass{c, decode[OwnerAccess](r.t, session).Page}
	}
	r.t.Fatalf("the link gives no session: %s", resp.Status)
	return nobody
}

func TestPasskeyInsteadOfTheToken(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken, "MOBILE_ADMIN_TOKEN="+adminSecret, "MOBILE_PUBLIC_URL="+agentOrigin)
	if a := r.accessAs(nobody); a != (OwnerAccess{Access: "login", Token: true}) {
		t.Errorf("before there is a passkey: %+v", a)
	}
	c := r.logsIn("192.0.2.1")
	key := r.registers(c, "Laptop")
	if a := r.accessAs(nobody); a != (OwnerAccess{Access: "login", Token: true, Passkey: true}) {
		t.Errorf("with a passkey: %+v", a)
	}
	list := decode[passkeyList](t, r.apiAs("192.0.2.1", c, "GET", "/passkeys", ""))
	if len(list.Passkeys) != 1 || list.Passkeys[0].Name != "Laptop" || list.Passkeys[0].Site != "agent.example" || !list.Here || list.Mode != "optional" {
		t.Errorf("%+v", list)
	}
	mine, resp := r.comesIn("192.0.2.2", key)
	if mine == nobody || mine.page == "" || mine.cookie.Name != c.cookie.Name || !mine.cookie.Secure || !mine.cookie.HttpOnly || mine.cookie.SameSite != http.SameSiteStrictMode || mine.cookie.MaxAge != c.cookie.MaxAge {
		t.Fatalf("%s %+v", resp.Status, mine)
	}
	if a := r.accessAs(mine); a.Access != "session" {
		t.Errorf("%+v", a)
	}
	id := list.Passkeys[0].ID
	if resp := r.apiAs("192.0.2.2", mine, "POST", "/passkeys/rename", fmt.Sprintf(`{"id":%q,"name":"Old laptop"}`, id)); resp.StatusCode != http.StatusOK {
		t.Errorf("rename: %s", resp.Status)
	}
	// Who removes a passkey stays logged in; all others, one of whom may have come in by it, are
	// not.
	if resp := r.apiAs("192.0.2.1", c, "POST", "/passkeys/remove", fmt.Sprintf(`{"id":%q}`, id)); resp.StatusCode != http.StatusOK {
		t.Errorf("remove: %s", resp.Status)
	}
	if r.accessAs(c).Access != "session" || r.accessAs(mine).Access != "login" {
		t.Error("the wrong session has ended")
	}
	if c, resp := r.comesIn("192.0.2.2", key); c != nobody || resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("with the passkey that was removed: %s", resp.Status)
	}
	var got []string
	for _, e := range r.export("action=passkey.*") {
		got = append(got, strings.Join([]string{e.Actor, e.Origin, e.Action, e.Detail}, " "))
	}
	want := []string{"admin 192.0.2.1 passkey.added Laptop", "admin 192.0.2.2 passkey.login Laptop", "admin 192.0.2.2 passkey.renamed Old laptop", "admin 192.0.2.1 passkey.removed Old laptop"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("audited %q, want %q", got, want)
	}
	if list := r.export("action=admin.login_failed"); len(list) != 1 || list[0].Actor != "stranger" || list[0].Detail != "passkey" {
		t.Errorf("%+v", list)
	}
}

// With required the token is of no use, also where there is no passkey yet; a link from the
// server's machine is.
func TestPasskeyRequired(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken, "MOBILE_ADMIN_TOKEN="+adminSecret, "MOBILE_PUBLIC_URL="+agentOrigin, "MOBILE_ADMIN_PASSKEY=required")
	if a := r.accessAs(nobody); a != (OwnerAccess{Access: "link"}) {
		t.Errorf("before there is a passkey: %+v", a)
	}
	for _, token := range []string{adminSecret, "wrong-wrong-wrong"} { // which of the two it is does not tell
		c, resp := r.login("192.0.2.1", token)
		if body := text(t, resp); c != nil || resp.StatusCode != http.StatusForbidden || !strings.Contains(body, "passkey") {
			t.Errorf("by the token: %s %s", resp.Status, body)
		}
	}
	key := r.registers(r.linked(), "Laptop")
	if a := r.accessAs(nobody); a != (OwnerAccess{Access: "login", Passkey: true}) {
		t.Errorf("with a passkey: %+v", a)
	}
	if c, resp := r.login("192.0.2.1", adminSecret); c != nil {
		t.Errorf("by the token: %s", resp.Status)
	}
	c, resp := r.comesIn("192.0.2.1", key)
	if c == nobody {
		t.Fatalf("by the passkey: %s", resp.Status)
	}
	// The server's machine can take it away, and its logins with it.
	var list []passkey.Passkey
	ok(t, r.admin.Get(t.Context(), "/passkeys", &list))
	r.post("/passkeys/remove", Command{ID: list[0].Name}, nil)
	if a := r.accessAs(c); a != (OwnerAccess{Access: "link"}) {
		t.Errorf("after its removal: %+v", a)
	}
	r.registers(r.linked(), "New")
}

// With both neither is enough.
func TestPasskeyAfterTheToken(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken, "MOBILE_ADMIN_TOKEN="+adminSecret, "MOBILE_PUBLIC_URL="+agentOrigin, "MOBILE_ADMIN_PASSKEY=both")
	if c, resp := r.login("192.0.2.1", adminSecret); c != nil || resp.StatusCode != http.StatusForbidden || !strings.Contains(text(t, resp), "no_passkey") {
		t.Errorf("by the token before there is a passkey: %s", resp.Status)
	}
	key := r.registers(r.linked(), "Laptop")
	if a := r.accessAs(nobody); a != (OwnerAccess{Access: "login", Token: true}) {
		t.Errorf("%+v", a)
	}
	if resp := r.apiAs("192.0.2.1", nobody, "POST", "/passkey/ask", "{}"); resp.StatusCode != http.StatusForbidden {
		t.Errorf("a passkey alone: %s", resp.Status)
	}
	alone, err := r.server.logins.passkeys.Ask(passkey.Site{ID: "agent.example", Origin: agentOrigin}, passkeyAlone)
	ok(t, err)
	options, err := json.Marshal(alone)
	ok(t, err)
	if c, resp := r.answers("192.0.2.1", key, string(options)); c != nobody || resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("a challenge for a passkey alone: %s", resp.Status)
	}
	c, resp := r.login("192.0.2.1", adminSecret)
	var next struct {
		Access string          `json:"access"`
		Ask    json.RawMessage `json:"ask"`
	}
	ok(t, json.Unmarshal([]byte(text(t, resp)), &next))
	if c != nil || next.Access != "passkey" {
		t.Fatalf("by the token: %s %+v", resp.Status, next)
	}
	if list := r.export("action=admin.token"); len(list) != 1 || list[0].Origin != "192.0.2.1" {
		t.Errorf("%+v", list)
	}
	if c, resp := r.answers("192.0.2.1", key, string(next.Ask)); c == nobody {
		t.Errorf("the passkey after it: %s", resp.Status)
	}
	if c, resp := r.answers("192.0.2.1", key, string(next.Ask)); c != nobody || resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("the same challenge again: %s", resp.Status)
	}
}

// Wrong answers count like wrong tokens, and while an address is blocked the right passkey is no
// use either.
func TestPasskeyGuesses(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken, "MOBILE_ADMIN_TOKEN="+adminSecret, "MOBILE_PUBLIC_URL="+agentOrigin)
	c := r.logsIn("192.0.2.1")
	key := r.registers(c, "Laptop")
	bad := passkeytest.New(agentOrigin, "agent.example")
	bad.User = key.User
	for i := range 10 {
		if _, resp := r.comesIn("192.0.2.7", bad); resp.StatusCode != http.StatusUnauthorized {
			t.Fatalf("guess %d: %s", i, resp.Status)
		}
	}
	if c, resp := r.comesIn("192.0.2.7", key); c != nobody || resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" {
		t.Errorf("%s", resp.Status)
	}
	if c, resp := r.comesIn("192.0.2.8", key); c == nobody {
		t.Errorf("from another address: %s", resp.Status)
	}
}

func TestPasskeyRequestsAreChecked(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken, "MOBILE_ADMIN_TOKEN="+adminSecret, "MOBILE_PUBLIC_URL="+agentOrigin)
	c := r.logsIn("192.0.2.1")
	r.registers(c, "Laptop")
	// What an owner does needs a session.
	for _, path := range []string{"/passkeys/begin", "/passkeys/add", "/passkeys/remove", "/passkeys/rename"} {
		if resp := r.apiAs("192.0.2.1", nobody, "POST", path, "{}"); resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s without a session: %s", path, resp.Status)
		}
	}
	if resp := r.apiAs("192.0.2.1", nobody, "GET", "/passkeys", ""); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("the list without a session: %s", resp.Status)
	}
	// What one session began another cannot finish.
	other := r.logsIn("192.0.2.3")
	fresh := passkeytest.New(agentOrigin, "agent.example")
	answer, err := fresh.Register([]byte(text(t, r.apiAs("192.0.2.1", c, "POST", "/passkeys/begin", "{}"))))
	ok(t, err)
	body := fmt.Sprintf(`{"name":"x","credential":%s}`, answer)
	if resp := r.apiAs("192.0.2.3", other, "POST", "/passkeys/add", body); resp.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("by another session: %s", resp.Status)
	}
	if resp := r.apiAs("192.0.2.1", c, "POST", "/passkeys/add", body); resp.StatusCode != http.StatusOK {
		t.Errorf("by its own session: %s", resp.Status)
	}
	// Bodies that are no answers.
	for name, body := range map[string]string{
		"empty": "", "null": "null", "no credential": "{}", "a list": "[]", "huge": `{"credential":"` + strings.Repeat("x", 1<<20) + `"}`,
		"deep": `{"credential":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`,
	} {
		if resp := r.apiAs("192.0.2.4", nobody, "POST", "/passkey/login", body); resp.StatusCode/100 != 4 || len(resp.Cookies()) > 0 {
			t.Errorf("a login with a body that is %s: %s", name, resp.Status)
		}
		if resp := r.apiAs("192.0.2.1", c, "POST", "/passkeys/add", body); resp.StatusCode/100 != 4 {
			t.Errorf("a registration with a body that is %s: %s", name, resp.Status)
		}
	}
	// A page of another site cannot use the owner's browser.
	ask := visit{host: "agent.example", method: "POST", path: "/admin/api/passkeys/begin", body: "{}", headers: append(elsewhereHTTPS("192.0.2.1"), "Origin: https://evil.example")}.with(c)
	if resp := r.ask(ask); resp.StatusCode != http.StatusForbidden {
		t.Errorf("from another site: %s", resp.Status)
	}
	// A request cannot choose its site: one that claims another host is still asked for the public
	// address.
	claim := visit{host: "evil.example", method: "POST", path: "/admin/api/passkey/ask", body: "{}", headers: []string{"X-Forwarded-For: 192.0.2.5", "X-Forwarded-Proto: https", "Origin: https://evil.example"}}
	if body := text(t, r.ask(claim)); strings.Contains(body, "evil") {
		t.Errorf("a site that was claimed: %s", body)
	}
	// At 127.0.0.1 browsers use no passkeys; at localhost they do, with passkeys of its own.
	here := r.owner()
	if resp := r.ask(visit{method: "POST", path: "/admin/api/passkeys/begin", body: "{}"}.with(here)); resp.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("at 127.0.0.1: %s", resp.Status)
	}
	local := visit{host: "localhost:" + r.server.addresses.port(), method: "POST", path: "/admin/api/passkeys/begin", body: "{}"}.with(here)
	if body := text(t, r.ask(local)); !strings.Contains(body, `"id":"localhost"`) {
		t.Errorf("at localhost: %s", body)
	}
	local = visit{host: local.host, path: "/admin/api/session"}
	if a := decode[OwnerAccess](t, r.ask(local)); a != (OwnerAccess{Access: "link"}) {
		t.Errorf("at localhost, for which there is no passkey: %+v", a)
	}
}

// A login that nobody could make is refused at the start.
func TestPasskeyNeedsAnAddress(t *testing.T) {
	for address, good := range map[string]bool{"": false, "https://192.0.2.1": false, "http://agent.example": false, agentOrigin: true, "http://localhost:8787": true} {
		environ := []string{"MOBILE_TOKEN=" + mainToken, "MOBILE_ADMIN_TOKEN=" + adminSecret, "MOBILE_ADMIN_PASSKEY=required"}
		if address != "" {
			environ = append(environ, "MOBILE_PUBLIC_URL="+address)
		}
		ctx, cancel := context.WithCancel(t.Context())
		s, err := New(ctx, settings(t, folder(t), environ...), "1.2.3", slog.New(slog.DiscardHandler))
		if (err == nil) != good || err != nil && !strings.Contains(err.Error(), "MOBILE_PUBLIC_URL") {
			t.Errorf("%q: %v", address, err)
		}
		cancel()
		if err == nil {
			ok(t, s.Run(ctx))
		}
	}
}

// A passkey that may have been copied lets nobody in, and the owner can see it.
func TestCopiedPasskeyIsToldOf(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken, "MOBILE_ADMIN_TOKEN="+adminSecret, "MOBILE_PUBLIC_URL="+agentOrigin)
	c := r.logsIn("192.0.2.1")
	key := r.registers(c, "Key")
	key.Count = 40
	if c, resp := r.comesIn("192.0.2.1", key); c == nobody {
		t.Fatal(resp.Status)
	}
	key.Count = 7
	if c, resp := r.comesIn("192.0.2.9", key); c != nobody || resp.StatusCode != http.StatusUnauthorized || !strings.Contains(text(t, resp), "copied_passkey") {
		t.Errorf("%s", resp.Status)
	}
	if list := r.export("action=passkey.suspect"); len(list) != 1 || list[0].Origin != "192.0.2.9" || list[0].Detail != "counter 8 after 41" {
		t.Errorf("%+v", list)
	}
	if !strings.Contains(r.log.String(), "may have been copied") {
		t.Error("the log does not tell")
	}
}
