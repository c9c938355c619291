package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestUnknown(t *testing.T) {
	const yaml = "in ~/.local/share/hermes-mobile/hermes-mobile.yaml, line "
	tests := []struct {
		fixture
		want string
	}{
		{fixture{environ: []string{"MOBILE_PROT=1"}}, "unknown setting MOBILE_PROT (environment): did you mean MOBILE_PORT?"},
		{fixture{environ: []string{"MOBILE_TOKENS=secret"}}, "unknown setting MOBILE_TOKENS (environment): did you mean MOBILE_TOKEN?"},
		{fixture{environ: []string{"MOBILE_LOGLEVEL=x"}}, "unknown setting MOBILE_LOGLEVEL (environment): did you mean MOBILE_LOG_LEVEL?"},
		{fixture{environ: []string{"MOBILE_QWXZQWXZ=x"}}, "unknown setting MOBILE_QWXZQWXZ (environment): it is ignored; the nearest known name is MOBILE_MAX_DATA"},
		{fixture{environ: []string{"MOBILE_A\nB=x"}}, `unknown setting "MOBILE_A\nB" (environment): it is ignored; the nearest known name is MOBILE_PATH`},
		{fixture{dotenv: "\nMOBILE_HOTS=x\n", environ: []string{"MOBILE_AGENT=demo"}}, "unknown setting MOBILE_HOTS (in ~/.hermes/.env, line 2): did you mean MOBILE_HOST?"},
		{fixture{yaml: "port: 1\nMOBILE_PORT: 2\n"}, "unknown setting MOBILE_PORT (" + yaml + "2): did you mean port?"},
		{fixture{yaml: "prompt-seconds: 2\n"}, "unknown setting prompt-seconds (" + yaml + "1): did you mean prompt_seconds?"},
		{fixture{yaml: "gateways:\n- id: a\n  secret: 0123456789abcdef\n  locl: yes\n"}, "unknown setting gateways[0].locl (" + yaml + "4): did you mean local?"},
		{fixture{flags: map[string]string{"prot": "1"}}, "unknown setting --prot (command line): did you mean --port?"},
		{fixture{environ: []string{"MOBILE_GATEWAYS=x"}}, "MOBILE_GATEWAYS (environment) is ignored: list gateways in hermes-mobile.yaml instead"},
	}
	for _, tt := range tests {
		mustLoad(t, tt.sources(t), tt.want)
	}
}

func TestNotOurs(t *testing.T) {
	mustLoad(t, fixture{
		environ: []string{"MOBILE_HOME_CHANNEL=mobile:x", "PATH=/bin", "mobile_port=1", "GATEWAY_RELAY_URL=x", "MOBILE_AGENT=demo", "=C:=x"},
		dotenv:  "MOBILE_HOME_CHANNEL=x\nMOBILE_HOME_CHANNEL_THREAD_ID=1\nHERMES_HOME=/x\nOTHER='unclosed\nA=1\n",
	}.sources(t))
}

// An unknown name that is empty is not set, and nothing to warn of.
func TestUnknownEmpty(t *testing.T) {
	for where, f := range map[string]fixture{"environment": {environ: []string{"MOBILE_PROT="}}, ".env": {dotenv: "MOBILE_PROT=\n"}} {
		f.environ = append(f.environ, "MOBILE_AGENT=demo")
		if _, warnings, err := Load(f.sources(t)); err != nil || len(warnings) > 0 {
			t.Errorf("%s: %v, %v", where, warnings, err)
		}
	}
}

// TestUnknownNeverFails: one unknown key anywhere is one warning, no error, and
// changes no setting.
func TestUnknownNeverFails(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.StringMatching(`[A-Z0-9_]{0,24}`).Draw(rt, "name")
		text := "v" + rapid.StringMatching(`[ -~]{0,20}`).Draw(rt, "value")
		env := "MOBILE_" + name
		if _, known := keyNamed(env); known || slices.Contains(ignored, env) {
			rt.Skip()
		}
		low := "x" + strings.ToLower(name)
		if slices.Contains(names(Key.YAML), low) {
			rt.Skip()
		}
		for where, f := range map[string]fixture{
			"environment": {environ: []string{env + "=" + text}},
			".env":        {dotenv: env + "='" + strings.ReplaceAll(strings.ReplaceAll(text, `\`, ""), "'", "") + "'\n"},
			"yaml":        {yaml: fmt.Sprintf("%s: %q\n", low, text)},
			"yaml tree":   {yaml: low + ": [a, {b: c}]\n"},
		} {
			f.environ = append(f.environ, "MOBILE_AGENT=demo")
			c, warnings, err := Load(f.sources(t))
			if err != nil || c.Port != 8787 {
				rt.Fatalf("%s: %+v, %v", where, c, err)
			}
			if len(warnings) != 1 || !strings.HasPrefix(warnings[0].Text, "unknown setting ") || warnings[0].Where == "" {
				rt.Fatalf("%s: %q", where, warnings)
			}
		}
	})
}
