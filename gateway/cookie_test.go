package gateway

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestReadSetCookie(t *testing.T) {
	now := time.Date(2026, 11, 29, 21, 48, 34, 0, time.UTC)
	for _, tc := range []struct {
		header string
		secure bool
		value  string // empty: rejected
		gone   bool
	}{
		{`hermes_session_at="eyJ0="; HttpOnly; Max-Age=43200; Path=/; SameSite=lax`, false, `"eyJ0="`, false},
		{`hermes_session_rt=eyJ0; Path=/`, false, "eyJ0", false},
		{`__Host-hermes_session_at=a; Path=/; Secure`, true, "a", false},
		{`__Secure-hermes_session_at=a; Path=/hermes; secure`, true, "a", false},
		{`hermes_session_at=""; HttpOnly; Max-Age=0; Path=/`, false, "", true},
		{`hermes_session_at=a; Expires=Sun, 29 Nov 2020 21:48:34 GMT`, false, "", true},
		{`hermes_session_at=a; Expires=Sun, 29 Nov 2020 21:48:34 GMT; Max-Age=5`, false, "a", false},
		{`hermes_session_at=a; Max-Age=99999999999999`, false, "a", false},

		{`__Host-hermes_session_at=a; Path=/; Secure`, false, "", false}, // not over TLS
		{`__Host-hermes_session_at=a; Path=/`, true, "", false},
		{`__Host-hermes_session_at=a; Path=/x; Secure`, true, "", false},
		{`__Host-hermes_session_at=a; Path=/; Secure; Domain=evil.test`, true, "", false},
		{`__Secure-hermes_session_at=a; Path=/`, true, "", false},
		{`hermes_session_at=a; Secure`, false, "", false},
		{`session=a; Path=/`, false, "", false},
		{`Hermes_session_at=a`, false, "", false},
		{`hermes_session_at_2=a`, false, "", false},
		{`hermes_session_pkce=a`, false, "", false},
		{`hermes_session_at`, false, "", false},
		{`hermes_session_at=`, false, "", false},
		{`hermes_session_at=a b`, false, "", false},
		{`hermes_session_at=a,b`, false, "", false},
		{`hermes_session_at=a\b`, false, "", false},
		{`hermes_session_at="a"b"`, false, "", false},
		{`hermes_session_at=a"`, false, "", false},
		{`hermes_session_at=""`, false, "", false},
		{"hermes_session_at=a\r\nX-Evil: 1", false, "", false},
		{"hermes_session_at=a\x00", false, "", false},
		{"hermes_session_at=ключ", false, "", false},
		{"hermes_session_at=" + strings.Repeat("a", 5000), false, "", false},
	} {
		got, ok := readSetCookie(tc.header, tc.secure, now)
		value := ""
		if ok && !got.gone {
			value = got.cookie.value.Reveal()
		}
		if value != tc.value || got.gone != tc.gone || ok != (tc.value != "" || tc.gone) {
			t.Errorf("%.80q (TLS %t): %t, %q, gone %t", tc.header, tc.secure, ok, value, got.gone)
		}
	}
}

// The client decodes the recorded headers of both versions.
func TestRecordedCookies(t *testing.T) {
	for _, version := range versions {
		for name, want := range map[string]int{"dash_password_login_ok": 3, "dash_password_login_ok_https_proxy": 3, "dash_auth_me_only_refresh_cookie": 3, "dash_logout": 0} {
			resp := &http.Response{Header: http.Header{"Set-Cookie": recordedAnswer(t, version, name).Head["set-cookie"]}}
			cookies, changed := merge(nil, readSetCookies(resp, true, time.Now()))
			if len(cookies) != want || changed != (want > 0) {
				t.Errorf("%s %s: %d cookies", version, name, len(cookies))
			}
			if header := cookieHeader(cookies, true, time.Now()); want > 0 && (!carriesSession(header) || !strings.Contains(header, `hermes_session_at="eyJ_SIGNED_TOKEN_PLACEHOLDER="`)) {
				t.Errorf("%s %s: the header is %q", version, name, header)
			}
		}
	}
}

func TestCookieHeader(t *testing.T) {
	now := time.Now()
	cookies := []loginCookie{
		{name: "hermes_session_at", value: NewSecret("old"), expires: now.Add(-time.Second)},
		{name: "hermes_session_rt", value: NewSecret("r"), expires: now.Add(time.Hour)},
		{name: "__Host-hermes_session_provider", value: NewSecret("p"), secure: true},
		{name: "other", value: NewSecret("x")},
		{name: "hermes_session_provider", value: NewSecret("a\r\nX-Evil: 1")}, // from a manipulated store
	}
	if got := cookieHeader(cookies, true, now); got != "hermes_session_rt=r; __Host-hermes_session_provider=p" {
		t.Errorf("over TLS: %q", got)
	}
	if got := cookieHeader(cookies, false, now); got != "hermes_session_rt=r" {
		t.Errorf("in the clear: %q", got)
	}
}

func FuzzSetCookie(f *testing.F) {
	seeds := 0
	for _, version := range versions {
		for _, r := range recordedAnswers()[version] {
			for _, header := range r.Head["set-cookie"] {
				f.Add(header)
				seeds++
			}
		}
	}
	if seeds < 20 {
		f.Fatalf("only %d recorded headers were found", seeds)
	}
	f.Fuzz(func(t *testing.T, header string) {
		c, ok := readSetCookie(header, true, time.Unix(0, 0))
		if !ok || c.gone {
			return
		}
		out := cookieHeader([]loginCookie{c.cookie}, true, time.Unix(0, 0))
		if strings.ContainsAny(out, "\r\n;\x00, ") || strings.Count(out, "=") < 1 {
			t.Errorf("%q leads to the header %q", header, out)
		}
	})
}
