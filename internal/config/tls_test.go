package config

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestTLS(t *testing.T) {
	for _, tt := range []struct {
		environ []string
		err     string // empty: it is good
		warning string // part of the only one
	}{
		{environ: nil},
		{environ: []string{"MOBILE_TLS=self"}},
		{environ: []string{"MOBILE_TLS=self", "MOBILE_PUBLIC_URL=https://192.0.2.1:8787"}},
		{environ: []string{"MOBILE_TLS=self", "MOBILE_HOST=0.0.0.0", "MOBILE_PUBLIC_URL=https://home.local:8787"}},
		{environ: []string{"MOBILE_TLS=auto", "MOBILE_HOST=0.0.0.0", "MOBILE_PUBLIC_URL=https://agent.example.com"}},
		{environ: []string{"MOBILE_TLS=auto", "MOBILE_HOST=0.0.0.0", "MOBILE_PUBLIC_URL=https://agent.home:8787", "MOBILE_TLS_ACME=https://ca.home/acme/directory",
			"MOBILE_TLS_ACME_ROOT=/etc/ca.pem", "MOBILE_TLS_EMAIL=me@example.com"}},
		{environ: []string{"MOBILE_TLS=files", "MOBILE_TLS_CERT=/a", "MOBILE_TLS_KEY=/b"}},

		{environ: []string{"MOBILE_TLS=auto"}, err: "set MOBILE_PUBLIC_URL"},
		{environ: []string{"MOBILE_TLS=auto", "MOBILE_PUBLIC_URL=https://192.0.2.1"}, err: "set MOBILE_TLS=self"},
		{environ: []string{"MOBILE_TLS=auto", "MOBILE_PUBLIC_URL=https://[2001:db8::1]:8787"}, err: "set MOBILE_TLS=self"},
		{environ: []string{"MOBILE_TLS=auto", "MOBILE_PUBLIC_URL=https://localhost:8787"}, err: "set MOBILE_TLS=self"},
		{environ: []string{"MOBILE_TLS=auto", "MOBILE_PUBLIC_URL=https://b\u00fccher.example"}, err: "set MOBILE_TLS=self"},
		{environ: []string{"MOBILE_TLS=auto", "MOBILE_PUBLIC_URL=http://agent.example.com"}, err: "use https"},
		{environ: []string{"MOBILE_TLS=self", "MOBILE_PUBLIC_URL=http://agent.example.com"}, err: "use https"},
		{environ: []string{"MOBILE_TLS=files"}, err: "needs MOBILE_TLS_CERT"},
		{environ: []string{"MOBILE_TLS=files", "MOBILE_TLS_CERT=/a"}, err: "needs MOBILE_TLS_KEY"},

		{environ: []string{"MOBILE_TLS=auto", "MOBILE_PUBLIC_URL=https://agent.example.com"}, warning: "set MOBILE_HOST=0.0.0.0"},
		{environ: []string{"MOBILE_TLS_CERT=/a"}, warning: "MOBILE_TLS_CERT (environment) has no effect, because MOBILE_TLS is off, not files"},
		{environ: []string{"MOBILE_TLS=self", "MOBILE_TLS_EMAIL=me@example.com"}, warning: "because MOBILE_TLS is self, not auto"},
	} {
		c, warnings, err := Load(fixture{environ: tt.environ}.sources(t))
		switch {
		case tt.err == "" && err != nil:
			t.Errorf("%q: %v", tt.environ, err)
		case tt.err != "" && (err == nil || c != nil || !strings.Contains(err.Error(), tt.err)):
			t.Errorf("%q: %v, want an error with %q", tt.environ, err, tt.err)
		case tt.err != "":
			// As often, a warning of the same is there too.
		case tt.warning == "" && len(warnings) > 0, tt.warning != "" && (len(warnings) != 1 || !strings.Contains(warnings[0].Text, tt.warning)):
			t.Errorf("%q: warnings %q, want %q", tt.environ, warnings, tt.warning)
		}
	}
}

func TestTLSPathsBeginAtHome(t *testing.T) {
	src := fixture{environ: []string{"MOBILE_TLS=files", "MOBILE_TLS_CERT=~/c.pem", "MOBILE_TLS_KEY=~/k/../k.pem"}}.sources(t)
	c := mustLoad(t, src)
	if c.TLSCert != filepath.Join(src.HomeDir, "c.pem") || c.TLSKey != filepath.Join(src.HomeDir, "k.pem") {
		t.Errorf("%q, %q", c.TLSCert, c.TLSKey)
	}
}

func TestPublicHost(t *testing.T) {
	for public, want := range map[string]string{"": "", "https://agent.example.com:8443/prefix": "agent.example.com", "https://[::1]:8787": "::1"} {
		if got := (&Config{PublicURL: public}).PublicHost(); got != want {
			t.Errorf("%q: %q, want %q", public, got, want)
		}
	}
}
