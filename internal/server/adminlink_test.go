package server

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"hermes-mobile/internal/onetime"
	"hermes-mobile/internal/ratelimit"
	"hermes-mobile/internal/store"
)

// audited are the entries of the audit log, the newest first.
func (r *rig) audited() []store.AuditEntry {
	r.t.Helper()
	list, err := r.server.store.Audit(r.t.Context(), store.AuditFilter{}, 1000)
	ok(r.t, err)
	return list
}

func TestAdminLink(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken)
	now := time.Now()
	r.server.logins.sessions = onetime.New(adminSessionLife, func() time.Time { return now })
	_, port, _ := net.SplitHostPort(r.server.Addr().String())
	link := r.link()
	if !regexp.MustCompile(`^/admin/enter\?key=[A-Z2-7]{26}$`).MatchString(link) {
		t.Fatalf("the link is %s", link)
	}
	// Nobody opens it yet.
	for name, v := range map[string]visit{
		"HEAD":      {method: http.MethodHead},
		"a preview": {headers: []string{"Sec-Purpose: prefetch"}},
		"prerender": {headers: []string{"Sec-Purpose: prefetch;prerender"}},
		"POST":      {method: http.MethodPost},
	} {
		v.path = link
		if resp := r.ask(v); resp.StatusCode != http.StatusMethodNotAllowed || len(resp.Cookies()) > 0 {
			t.Errorf("%s: %s", name, resp.Status)
		}
	}
	// Another page has it opened where nobody sees it.
	for name, headers := range map[string][]string{
		"an image":       {"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: image"},
		"a frame":        {"Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe"},
		"another origin": {"Origin: https://evil.example"},
	} {
		if resp := r.ask(visit{path: link, headers: headers}); resp.StatusCode != http.StatusForbidden || len(resp.Cookies()) > 0 {
			t.Errorf("%s: %s", name, resp.Status)
		}
	}
	resp := r.ask(visit{path: link, headers: []string{"Sec-Fetch-Site: none", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document", ownerHeader + ": -"}})
	if resp.StatusCode != http.StatusSeeOther || resp.Header.Get("Location") != "../admin" || resp.Header.Get("Cache-Control") != "no-store" || resp.Header.Get("Referrer-Policy") != "no-referrer" || len(resp.Cookies()) != 1 {
		t.Fatalf("%s %v", resp.Status, resp.Header)
	}
	c := resp.Cookies()[0]
	if c.Name != "hm_admin_"+port || c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" || c.MaxAge != 12*60*60 || strings.Contains(link, c.Value) {
		t.Errorf("cookie %+v", c)
	}
	own := r.claim(visit{cookie: c})
	overview := visit{path: "/admin/api/overview"}.with(own)
	if o := decode[Overview](t, r.ask(overview)); o.Status.Version != "1.2.3" {
		t.Errorf("%+v", o)
	}
	if strings.Contains(r.log.String(), c.Value) || strings.Contains(r.log.String(), own.page) || strings.Contains(r.log.String(), strings.SplitAfter(link, "key=")[1]) {
		t.Error("a secret is in the log")
	}

	// Used up, or never made.
	for _, spent := range []string{link, "/admin/enter", "/admin/enter?key=", "/admin/enter?key=" + c.Value, "/admin/enter?key=" + strings.Repeat("A", 26)} {
		if resp := r.ask(visit{path: spent}); resp.StatusCode != http.StatusSeeOther || resp.Header.Get("Location") != "../admin?link=spent" || len(resp.Cookies()) > 0 {
			t.Errorf("%s: %s %v", spent, resp.Status, resp.Header)
		}
		if resp := r.ask(visit{path: spent, cookie: c}); resp.StatusCode != http.StatusSeeOther || resp.Header.Get("Location") != "../admin" || len(resp.Cookies()) > 0 {
			t.Errorf("%s, of the owner: %s %v", spent, resp.Status, resp.Header)
		}
	}

	// Too old.
	early, late := r.link(), r.link()
	now = now.Add(2*time.Minute - time.Second)
	if resp := r.ask(visit{path: early}); len(resp.Cookies()) != 1 {
		t.Errorf("just before the end: %s", resp.Status)
	}
	now = now.Add(time.Second)
	if resp := r.ask(visit{path: late}); len(resp.Cookies()) > 0 {
		t.Errorf("after two minutes: %s", resp.Status)
	}
	now = now.Add(12*time.Hour - 2*time.Minute - time.Second)
	if resp := r.ask(overview); resp.StatusCode != http.StatusOK {
		t.Errorf("before the end of the session: %s", resp.Status)
	}
	now = now.Add(time.Second)
	if resp := r.ask(overview); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("after twelve hours: %s", resp.Status)
	}
}

// A restart ends links and sessions, and what another server has given out is of no use, under
// whatever name.
func TestAdminCookieOfAnotherServer(t *testing.T) {
	dir := folder(t)
	r := startIn(t, dir, "MOBILE_TOKEN="+mainToken)
	other := start(t, "MOBILE_TOKEN="+mainToken)
	link, own := r.link(), r.owner()
	cookie := own.cookie
	name := other.owner().cookie.Name
	if name == cookie.Name {
		t.Error("two ports of this host have one cookie")
	}
	overview := visit{path: "/admin/api/overview"}.with(own)
	if resp := other.ask(overview); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("the cookie of another port: %s", resp.Status)
	}
	overview.cookie = &http.Cookie{Name: name, Value: cookie.Value}
	if resp := other.ask(overview); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("the cookie of another port under the own name: %s", resp.Status)
	}
	if resp := other.ask(visit{path: link}); len(resp.Cookies()) > 0 {
		t.Errorf("the link of another server: %s", resp.Status)
	}
	ok(t, r.stop())
	again := startIn(t, dir, "MOBILE_TOKEN="+mainToken)
	_, port, _ := net.SplitHostPort(again.server.Addr().String())
	if resp := again.ask(visit{path: "/admin/api/overview"}.with(pass{&http.Cookie{Name: "hm_admin_" + port, Value: cookie.Value}, own.page})); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("a session outlasts a restart: %s", resp.Status)
	}
	if resp := again.ask(visit{path: link}); len(resp.Cookies()) > 0 {
		t.Errorf("a link outlasts a restart: %s", resp.Status)
	}
}

// The links that are made for each way of running the server.
func TestAdminLinkAddresses(t *testing.T) {
	for name, tt := range map[string]struct {
		environ         []string
		here, elsewhere string // without the key; PORT is the server's
		refused         string
	}{
		"here":                       {nil, "http://127.0.0.1:PORT", "", ""},
		"every address":              {[]string{"MOBILE_HOST=0.0.0.0", "MOBILE_PUBLIC_URL=https://agent.example"}, "http://127.0.0.1:PORT", "", ""},
		"with TLS":                   {[]string{"MOBILE_TLS=self"}, "http://127.0.0.1:PORT", "", ""},
		"with a token":               {[]string{"MOBILE_ADMIN_TOKEN=" + adminSecret}, "http://127.0.0.1:PORT", "", ""},
		"with a token and a proxy":   {[]string{"MOBILE_ADMIN_TOKEN=" + adminSecret, "MOBILE_PUBLIC_URL=https://agent.example/hm"}, "http://127.0.0.1:PORT", "https://agent.example/hm", ""},
		"with a token, local anyway": {[]string{"MOBILE_ADMIN_TOKEN=" + adminSecret, "MOBILE_PUBLIC_URL=https://agent.example", "MOBILE_ADMIN=local"}, "http://127.0.0.1:PORT", "", ""},
		"off":                        {[]string{"MOBILE_ADMIN=off"}, "", "", "MOBILE_ADMIN"},
	} {
		r := start(t, append(tt.environ, "MOBILE_TOKEN="+mainToken)...)
		_, port, err := net.SplitHostPort(r.server.Addr().String())
		ok(t, err)
		var link AdminLink
		err = r.admin.Post(t.Context(), "/admin/link", Command{}, &link)
		if tt.refused != "" {
			if err == nil || !strings.Contains(err.Error(), tt.refused) {
				t.Errorf("%s: %+v %v", name, link, err)
			}
			continue
		}
		ok(t, err)
		if left := time.Until(link.Expires); left > 2*time.Minute || left < time.Minute {
			t.Errorf("%s: it expires in %v", name, left)
		}
		for got, want := range map[string]string{link.Here: tt.here, link.Elsewhere: tt.elsewhere} {
			base, _, _ := strings.Cut(got, "/admin/enter?key=")
			if want = strings.Replace(want, "PORT", port, 1); base != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		cookies := map[string]string{}
		for _, v := range []visit{{path: r.link()}, {path: r.link(), host: "agent.example", headers: elsewhereHTTPS("192.0.2.1")}} {
			for _, c := range r.ask(v).Cookies() {
				cookies[cmp.Or(v.host, "here")] = c.Name
			}
		}
		wants := map[string]string{"here": "hm_admin_" + port}
		if strings.Contains(strings.Join(tt.environ, " "), "ADMIN_TOKEN") && !slices.Contains(tt.environ, "MOBILE_ADMIN=local") {
			wants["agent.example"] = "__Host-hm_admin_" + port
		}
		if fmt.Sprint(cookies) != fmt.Sprint(wants) {
			t.Errorf("%s: links give %v, want %v", name, cookies, wants)
		}
	}
}

// Where a secret would cross a network in clear a link is not taken, and stays good.
func TestAdminLinkNeedsHTTPS(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken, "MOBILE_ADMIN_TOKEN="+adminSecret)
	link := r.link()
	for name, v := range map[string]visit{
		"plain http from elsewhere": {peer: "192.0.2.1", host: "agent.example:8787"},
		"a proxy without a scheme":  {host: "agent.example", headers: []string{"X-Forwarded-For: 192.0.2.1"}},
		"a rebound name":            {host: "evil.example"},
	} {
		v.path = link
		if resp := r.ask(v); resp.StatusCode != http.StatusSeeOther || resp.Header.Get("Location") != "../admin" || len(resp.Cookies()) > 0 {
			t.Errorf("%s: %s %v", name, resp.Status, resp.Header)
		}
	}
	if resp := r.ask(visit{path: link}); len(resp.Cookies()) != 1 {
		t.Errorf("afterwards it is spent: %s", resp.Status)
	}
}

// A newcomer at a terminal gets a link; what is kept, such as a log, never does.
func TestBannerOpensTheAdminUI(t *testing.T) {
	link := regexp.MustCompile(`http://\S+/admin/enter\?key=\S+`)
	for name, tt := range map[string]struct {
		environ []string
		screen  bool
		command bool
		link    bool
	}{
		"a terminal":           {nil, true, true, true},
		"a file":               {nil, false, true, false},
		"with TLS":             {[]string{"MOBILE_TLS=self"}, true, true, true},
		"every address":        {[]string{"MOBILE_HOST=0.0.0.0", "MOBILE_PUBLIC_URL=https://agent.example"}, true, true, false},
		"with a token":         {[]string{"MOBILE_ADMIN_TOKEN=" + adminSecret}, true, true, true},
		"without the admin UI": {[]string{"MOBILE_ADMIN=off"}, true, false, false},
	} {
		r := start(t, append(tt.environ, "MOBILE_TOKEN="+mainToken)...)
		var b strings.Builder
		r.server.Banner(&b, "hermes-mobile", tt.screen)
		if strings.Contains(b.String(), "hermes-mobile admin\n") != tt.command {
			t.Errorf("%s: the banner names the command or not:\n%s", name, b.String())
		}
		found := link.FindString(b.String())
		if (found != "") != tt.link || strings.Contains(b.String(), "key=") != tt.link {
			t.Errorf("%s: the link is %q:\n%s", name, found, b.String())
		}
		if found == "" {
			continue
		}
		_, path, _ := strings.Cut(found, r.server.Addr().String())
		if resp := r.ask(visit{path: path}); len(resp.Cookies()) != 1 {
			t.Errorf("%s: the link is of no use: %s", name, resp.Status)
		}
		if e := r.audited()[1]; e.Action != "admin.link" || e.Actor != "server" {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

func TestAdminIsAudited(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken, "MOBILE_ADMIN_TOKEN="+adminSecret)
	link := r.link()
	own := r.claim(visit{cookie: r.ask(visit{path: link}).Cookies()[0]})
	r.ask(visit{path: link})
	r.login("192.0.2.1", adminSecret)
	r.ask(visit{method: http.MethodPost, path: "/admin/api/logout", body: "{}"}.with(own))
	if resp := r.ask(visit{path: "/admin/api/overview"}.with(own)); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("after the logout: %s", resp.Status)
	}
	r.ask(visit{method: http.MethodPost, path: "/admin/api/logout", body: "{}"}.with(own)) // there is nothing to end
	uid := ""
	if runtime.GOOS == "linux" {
		uid = fmt.Sprintf("uid %d", os.Geteuid())
	}
	want := []string{
		"admin 127.0.0.1 admin.logout ", "admin 192.0.2.1 admin.login admin token", "stranger 127.0.0.1 admin.login_failed one-time link",
		"admin 127.0.0.1 admin.login one-time link", "socket " + uid + " admin.link ",
	}
	var got []string
	for _, e := range r.audited() {
		got = append(got, strings.Join([]string{e.Actor, e.Origin, e.Action, e.Detail}, " "))
	}
	if !slices.Equal(got, want) {
		t.Errorf("the audit log is %q, want %q", got, want)
	}
}

// A flood of failed logins writes a few entries a minute to the audit log, and one with the number
// of the others.
func TestFailedLoginsDoNotFillTheAuditLog(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken, "MOBILE_ADMIN_TOKEN="+adminSecret)
	for i := range 50 {
		r.ask(visit{host: "agent.example", path: "/admin/enter?key=x", headers: elsewhereHTTPS(fmt.Sprintf("192.0.2.%d", i))})
	}
	r.server.failed.endMinute(t.Context())
	r.server.failed.recorded = ratelimit.NewWindows[string](maxFailed, failedEvery, maxActions, time.Now) // as after a minute
	r.login("192.0.2.99", "wrong-wrong-wrong")
	got := r.audited()
	if len(got) != maxFailed+2 || got[0].Detail != "admin token" || got[1].Detail != fmt.Sprint(50-maxFailed, " more in the last minute") ||
		got[maxFailed+1].Detail != "one-time link" || got[maxFailed+1].Origin != "192.0.2.0" {
		t.Errorf("%+v", got)
	}
}
