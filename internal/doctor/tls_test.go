package doctor

import (
	"testing"
	"time"

	"hermes-mobile/internal/cert"
	"hermes-mobile/internal/config"
)

// With TLS the gateway beside the server goes on with plain HTTP by the loopback, and only there; a certificate that the
// server signed itself is none for it.
func TestRelayURLWithTLS(t *testing.T) {
	for _, tc := range []struct{ mode, url, code string }{
		{cert.Self, "http://127.0.0.1:8787", ""},
		{cert.Self, "http://localhost:8787", ""},
		{cert.Self, "https://127.0.0.1:8787", "relay_url_scheme"},
		{cert.Files, "http://127.0.0.1:8787", ""},
		{cert.Files, "https://localhost:8787", ""},
		{cert.Files, "http://0.0.0.0:8787", "relay_url_scheme"},
		{cert.Self, "http://0.0.0.0:8787", "relay_url_address"},
	} {
		at, ok := parseTarget(tc.url)
		if !ok {
			t.Fatal(tc.url)
		}
		e := &checker{Facts: &Facts{Now: time.Now(), Config: &config.Config{Host: "0.0.0.0", Port: 8787},
			Server: &Server{Address: "0.0.0.0:8787", TLS: &cert.State{Mode: tc.mode}}}}
		e.address(relaySettings{id: "gw", url: tc.url, where: "relay_url"})
		got := ""
		if len(e.list) > 0 {
			got = e.list[0].Code
		}
		if got != tc.code {
			t.Errorf("%s with %s (%+v): found %q, want %q", tc.url, tc.mode, at, got, tc.code)
		}
	}
}

// A certificate that is renewed by itself may have a short life; one that somebody else renews may not.
func TestOwnCertificate(t *testing.T) {
	now := time.Now()
	for _, tc := range []struct {
		state cert.State
		want  []string
	}{
		{cert.State{Mode: cert.Auto, NotAfter: now.Add(3 * 24 * time.Hour)}, nil},
		{cert.State{Mode: cert.Self, NotAfter: now.Add(time.Hour)}, nil},
		{cert.State{Mode: cert.Files, NotAfter: now.Add(60 * 24 * time.Hour)}, nil},
		{cert.State{Mode: cert.Files, NotAfter: now.Add(3 * 24 * time.Hour), Names: []string{"agent.example.com"}}, []string{"certificate_expires_soon"}},
		{cert.State{Mode: cert.Auto, NotAfter: now.Add(-time.Hour), LastError: "refused", LastErrorAt: now}, []string{"certificate_not_renewed", "certificate_expired"}},
		{cert.State{Mode: cert.Auto, LastError: "refused", LastErrorAt: now}, []string{"certificate_missing"}},
	} {
		e := &checker{Facts: &Facts{Now: now, Config: &config.Config{}}}
		e.ownCertificate(tc.state)
		var got []string
		for _, f := range e.list {
			got = append(got, f.Code)
		}
		if len(got) != len(tc.want) {
			t.Errorf("%+v: %q, want %q", tc.state, got, tc.want)
			continue
		}
		for i := range got {
			if got[i] != tc.want[i] {
				t.Errorf("%+v: %q, want %q", tc.state, got, tc.want)
			}
		}
	}
}
