package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"hermes-mobile/frame"
	"hermes-mobile/internal/apiproxy"
)

// deed is an act of an owner, and what the audit log says of it.
type deed struct {
	pattern string // of the request
	command func() Command
	subject string // that the entry names; "*": any
}

// deeds do everything that an owner can do over the admin interface, in an order in which all of it
// works. secrets are words that stand for what must never be recorded.
func (r *rig) deeds(secrets *[]string) []deed {
	say := func(c Command) func() Command { return func() Command { return c } }
	secret := func(text string) string {
		*secrets = append(*secrets, text)
		return text
	}
	return []deed{
		{"POST /pair", say(Command{}), "*"},
		{"POST /devices/rename", say(Command{ID: "tel-1", Name: "Anna's phone"}), "tel-1"},
		{"POST /devices/rotate", say(Command{ID: "tel-4"}), "tel-4"},
		{"POST /devices/rights", say(Command{ID: "tel-1", Rights: map[string]bool{"call": false}}), "tel-1"},
		{"POST /devices/join", say(Command{ID: "tel-2", Name: "tel-1"}), "tel-2"},
		{"POST /devices/leave", say(Command{ID: "tel-2"}), "tel-2"},
		{"POST /home/set", say(Command{ID: "tel-1"}), "tel-1"},
		{"POST /deliver", say(Command{Frame: &frame.Deliver{To: "home", Text: secret("the words of a delivery"), Data: []byte(secret("the bytes of a file")), Filename: secret("name-of-a-file.txt")}}), "tel-1"},
		{"POST /home/clear", say(Command{}), ""},
		{"POST /tokens/add", say(Command{Label: "tablet"}), "tablet"},
		{"POST /tokens/remove", say(Command{Label: "tablet"}), "tablet"},
		{"POST /users/add", say(Command{Name: "anna", Password: Password(secret("a password of anna"))}), "anna"},
		{"POST /users/passwd", say(Command{Name: "anna", Password: Password(secret("another password of anna"))}), "anna"},
		{"POST /users/key/add", say(Command{Name: "anna", Label: "laptop"}), "anna"},
		{"POST /users/key/remove", func() Command {
			var keys []apiproxy.Key
			ok(r.t, r.admin.Get(r.t.Context(), "/users/key", &keys))
			return Command{ID: keys[0].ID}
		}, "anna"},
		{"POST /users/remove", say(Command{Name: "anna"}), "anna"},
		{"POST /pairing/approve", func() Command {
			var list PairingList
			ok(r.t, r.admin.Get(r.t.Context(), "/pairing", &list))
			return Command{ID: list.Pending[0].RequestID}
		}, "bert"},
		{"POST /pairing/revoke", say(Command{ID: "bert"}), "bert"},
		{"POST /devices/unbind", say(Command{ID: "tel-2"}), "tel-2"},
		{"POST /devices/revoke", say(Command{ID: "tel-1"}), "tel-1"},
		{"POST /backup", say(Command{Path: filepath.Join(r.data, "copy.db")}), filepath.Join(r.data, "copy.db")},
		{"POST /admin/link", say(Command{}), ""},
	}
}

// Everything that changes something leaves an entry that says who did it, from where, what, and to
// what. No entry holds a secret or the words of a message.
func TestEveryActIsRecorded(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken, "MOBILE_ADMIN_TOKEN="+adminSecret, "MOBILE_FRONT_API=1", "MOBILE_API_KEY="+otherToken, "MOBILE_ALLOW_ALL_USERS=0")
	_, err := r.server.pairing.ApproveUser("carl", "")
	ok(t, err)
	secrets := []string{mainToken, otherToken, adminSecret}
	for _, id := range []string{"tel-1", "tel-2"} {
		d := &device{t: t, ws: r.socket()}
		d.send(&frame.Hello{Token: mainToken, Device: frame.Device{ID: id}, User: frame.User{ID: "carl"}})
		find[*frame.Ready](d)
		d.send(&frame.Text{ID: "m1", Text: "the words of a message"})
		secrets = append(secrets, "the words of a message", d.message().Text)
	}
	var code Invitation
	r.post("/pair", Command{}, &code)
	paired := &device{t: t, ws: r.socket()}
	paired.send(&frame.Hello{Pair: code.Code, Device: frame.Device{ID: "tel-4"}})
	secrets = append(secrets, code.Code, find[*frame.Ready](paired).Token)
	asking := &device{t: t, ws: r.socket()}
	asking.send(&frame.Hello{Token: mainToken, Device: frame.Device{ID: "tel-3"}, User: frame.User{ID: "bert"}})
	find[*frame.Ready](asking)
	asking.send(&frame.Text{ID: "m1", Text: "let me in"})
	secrets = append(secrets, asking.message().Text)

	from := "uid " + fmt.Sprint(os.Geteuid())
	if runtime.GOOS != "linux" {
		from = ""
	}
	done := map[string]bool{}
	for _, d := range r.deeds(&secrets) {
		list := r.export("")
		var answer json.RawMessage
		method, path, _ := strings.Cut(d.pattern, " ")
		if method != "POST" {
			t.Fatalf("%s changes something", d.pattern)
		}
		r.post(path, d.command(), &answer)
		secrets = append(secrets, secretsIn(t, answer)...)
		after := r.export("")
		entries := after[len(list):]
		action := adminActs[d.pattern]
		i := slices.IndexFunc(entries, func(e AuditEntry) bool {
			return e.Action == action && (e.Subject == d.subject || d.subject == "*") && e.Actor == "socket" && e.Origin == from && e.Detail != "failed"
		})
		if i < 0 {
			t.Errorf("%s: the entries are %+v, want %s of %q by socket from %q", d.pattern, entries, action, d.subject, from)
		}
		done[d.pattern] = true
	}
	ok(t, r.server.Reload(r.cfg))
	for pattern, action := range maps.All(adminActs) {
		// That of hermes-mobile app has a test there, those of passkeys are tried in
		// TestPasskeyInsteadOfTheToken.
		elsewhere := pattern == "POST /app/open" || strings.HasPrefix(action, "passkey.")
		if action != "" && !done[pattern] && !elsewhere {
			t.Errorf("%s is not tried by this test", pattern)
		}
	}

	// The same over the admin UI names the person's address.
	c := r.owner()
	before := len(r.export(""))
	r.ask(visit{method: "POST", path: "/admin/api/devices/unbind", body: `{"id":"tel-1"}`}.with(c))
	if list := r.export("")[before:]; len(list) == 0 || !slices.ContainsFunc(list, func(e AuditEntry) bool {
		return e.Action == "device.unbound" && e.Actor == "admin" && e.Origin == "127.0.0.1"
	}) {
		t.Errorf("in the admin UI: %+v", list)
	}
	secrets = append(secrets, c.cookie.Value, c.page)

	var text strings.Builder
	ok(t, r.admin.Lines(t.Context(), "/audit/export", func(line []byte) error { text.Write(line); return nil }))
	for _, s := range secrets {
		if len(s) < 6 {
			t.Errorf("%q is too short to be looked for", s)
		}
		if strings.Contains(text.String(), s) {
			t.Errorf("the audit log holds %q", s)
		}
	}
	if len(secrets) < 15 {
		t.Errorf("only %d secrets were looked for", len(secrets))
	}
	for _, e := range r.export("") {
		if e.Actor == "server" && e.Action != "settings.reloaded" && e.Detail != "found in the pairing files" {
			t.Errorf("nobody acted: %+v", e)
		}
	}
}

// secretsIn returns what an answer holds that must not be recorded: codes, tokens and links.
func secretsIn(t *testing.T, answer []byte) (found []string) {
	t.Helper()
	var fields map[string]any
	if len(answer) == 0 || answer[0] != '{' {
		return nil
	}
	ok(t, json.Unmarshal(answer, &fields))
	for _, name := range []string{"code", "link", "token", "url", "public_url", "key", "secret"} {
		if text, is := fields[name].(string); is && text != "" {
			found = append(found, text)
			if _, key, has := strings.Cut(text, "key="); has {
				found = append(found, key)
			}
			found = append(found, strings.ReplaceAll(text, "-", ""))
		}
	}
	return found
}
