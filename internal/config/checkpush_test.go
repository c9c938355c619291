package config

import (
	"strings"
	"testing"
)

// Push services are told who runs the server, by what is set for that, else by an address that all may know.
func TestPushSubject(t *testing.T) {
	for _, tc := range []struct {
		c             Config
		subject, says string
	}{
		{Config{Push: "on", PushContact: "mailto:me@example.com", PublicURL: "https://a.example"}, "mailto:me@example.com", ""},
		{Config{Push: "on", PublicURL: "https://a.example"}, "https://a.example", ""},
		{Config{Push: "on", PublicURL: "http://127.0.0.1:1"}, "", "MOBILE_PUSH_CONTACT"},
		{Config{Push: "on"}, "", "MOBILE_PUBLIC_URL"},
		{Config{Push: "off", PushContact: "mailto:me@example.com"}, "", "MOBILE_PUSH is off"},
	} {
		if subject, why := tc.c.PushSubject(); subject != tc.subject || (why == "") != (tc.says == "") || !strings.Contains(why, tc.says) {
			t.Errorf("%+v: %q, %q", tc.c, subject, why)
		}
	}
}
