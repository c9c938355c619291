package config

import (
	"strings"
	"testing"

	"hermes-mobile/internal/passhash"
)

func TestAdminMode(t *testing.T) {
	hash := passhash.New(passhash.Cost{Memory: 64, Passes: 1, Lanes: 1}, someSecret).String()
	const noEffect = "MOBILE_ADMIN_TOKEN (environment) has no effect, because MOBILE_ADMIN is "
	for _, tt := range []struct {
		environ  []string
		mode     string
		warnings []string
	}{
		{nil, "local", nil},
		{[]string{"MOBILE_ADMIN=off"}, "off", nil},
		{[]string{"MOBILE_ADMIN_TOKEN=" + someSecret}, "on", nil}, // as before there was a choice
		{[]string{"MOBILE_ADMIN=on", "MOBILE_ADMIN_TOKEN=" + someSecret}, "on", nil},
		{[]string{"MOBILE_ADMIN=on", "MOBILE_ADMIN_TOKEN=" + hash}, "on", nil},
		{[]string{"MOBILE_ADMIN=local", "MOBILE_ADMIN_TOKEN=" + hash}, "local", []string{noEffect + "local, not on"}},
		{[]string{"MOBILE_ADMIN=off", "MOBILE_ADMIN_TOKEN=" + someSecret}, "off", []string{noEffect + "off, not on"}},
		{[]string{"MOBILE_ADMIN=", "MOBILE_ADMIN_TOKEN="}, "local", nil},
	} {
		t.Log(tt.environ)
		if c := mustLoad(t, fixture{environ: tt.environ}.sources(t), tt.warnings...); c.Admin != tt.mode || c.AdminClear != "" {
			t.Errorf("mode %q, in clear %q", c.Admin, c.AdminClear)
		}
	}
	_, _, err := Load(fixture{environ: []string{"MOBILE_ADMIN=on"}}.sources(t))
	if err == nil || err.Error() != `MOBILE_ADMIN: "on" (environment) needs an admin token: set MOBILE_ADMIN_TOKEN to the output of hermes-mobile admin hash, or use local` {
		t.Errorf("on without a token: %v", err)
	}
}

// A hash holds commas and dollar signs, which mean something in other settings and in some of the files.
func TestAdminTokenAsHash(t *testing.T) {
	hash := passhash.New(passhash.Cost{Memory: 64, Passes: 1, Lanes: 1}, someSecret).String()
	for where, f := range map[string]fixture{
		"environment":   {environ: []string{"MOBILE_ADMIN_TOKEN=" + hash}},
		"yaml":          {yaml: "admin_token: " + hash + "\n"},
		"yaml, quoted":  {yaml: "admin_token: '" + hash + "'\n"},
		".env":          {dotenv: "MOBILE_ADMIN_TOKEN=" + hash + "\n", environ: []string{"MOBILE_AGENT=demo"}},
		".env, quoted":  {dotenv: "MOBILE_ADMIN_TOKEN='" + hash + "'\n", environ: []string{"MOBILE_AGENT=demo"}},
		".env, quoted2": {dotenv: "MOBILE_ADMIN_TOKEN=\"" + hash + "\"\n", environ: []string{"MOBILE_AGENT=demo"}},
	} {
		t.Log(where)
		if c := mustLoad(t, f.sources(t)); c.AdminToken.Reveal() != hash || c.AdminClear != "" {
			t.Errorf("%s is read as %s, in clear %q", hash, c.AdminToken.Reveal(), c.AdminClear)
		}
	}
	// What a shell leaves of one in double quotes is refused, and not shown.
	broken := strings.ReplaceAll(hash, "$argon2id", "$argon2id$argon2id")
	if _, _, err := Load(fixture{environ: []string{"MOBILE_ADMIN_TOKEN=" + broken}}.sources(t)); err == nil || strings.Contains(err.Error(), broken) || !strings.Contains(err.Error(), "hermes-mobile admin hash") {
		t.Errorf("%v", err)
	}
}

func TestAdminTokenInClear(t *testing.T) {
	for where, f := range map[string]fixture{
		"in ~/.local/share/hermes-mobile/hermes-mobile.yaml, line 2": {yaml: "port: 0\nadmin_token: " + someSecret + "\n"},
		"in ~/.hermes/.env, line 1":                                  {dotenv: "MOBILE_ADMIN_TOKEN=" + someSecret + "\n", environ: []string{"MOBILE_AGENT=demo"}},
	} {
		if c := mustLoad(t, f.sources(t)); c.AdminClear != where {
			t.Errorf("stored in clear %q, want %q", c.AdminClear, where)
		}
	}
}
