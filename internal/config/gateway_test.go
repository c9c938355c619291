package config

import (
	"reflect"
	"strings"
	"testing"
)

const twoGateways = `# who may dial in
gateways:
  - id: "gw:home"
    secret: 0123456789abcdef0000
    name: Home
    devices: [tel-1, "user:anna"]
    local: true
    public_url: https://home.example/
    profiles: [default, work-2]
  - id: vps
    secret: 0123456789abcdef1111
    devices: "*"
`

func TestGateways(t *testing.T) {
	yes := true
	home := Gateway{ID: "gw:home", Secret: "0123456789abcdef0000", Name: "Home", Devices: []string{"tel-1", "user:anna"}, Local: &yes, PublicURL: "https://home.example", Profiles: []string{"default", "work-2"}}
	vps := Gateway{ID: "vps", Secret: "0123456789abcdef1111", Devices: []string{"*"}}
	changed := vps
	changed.Secret = "0123456789abcdef2222"
	const file = "in ~/.local/share/hermes-mobile/hermes-mobile.yaml, line "

	tests := []struct {
		name string
		fixture
		want []Gateway
		warn []string
	}{
		{"two", fixture{yaml: twoGateways}, []Gateway{home, vps}, nil},
		{"environment replaces a secret", fixture{yaml: twoGateways, environ: []string{"GATEWAY_RELAY_ID=vps", "GATEWAY_RELAY_SECRET=0123456789abcdef2222"}}, []Gateway{home, changed}, nil},
		{"yaml wins over .env", fixture{yaml: twoGateways, dotenv: "GATEWAY_RELAY_ID=vps\nGATEWAY_RELAY_SECRET=0123456789abcdef2222\n"}, []Gateway{home, vps},
			[]string{"GATEWAY_RELAY_SECRET (in ~/.hermes/.env, line 2) differs from the secret of gateways[1] (" + file + "10), which takes precedence: use the same secret, or the server rejects the gateway"}},
		{"one more from .env", fixture{yaml: twoGateways, dotenv: "GATEWAY_RELAY_ID=own\nGATEWAY_RELAY_SECRET=0123456789abcdef2222\n"},
			[]Gateway{home, vps, {ID: "own", Secret: "0123456789abcdef2222"}},
			[]string{`gateway "own" of GATEWAY_RELAY_ID (in ~/.hermes/.env, line 1) has no devices, because gateways[1] has all of them: list it under gateways, with its devices`}},
		{"MOBILE_RELAY_* wins", fixture{dotenv: "GATEWAY_RELAY_ID=theirs\nGATEWAY_RELAY_SECRET=bad\n", yaml: "relay_id: ours\nrelay_secret: 0123456789abcdef\n"},
			[]Gateway{{ID: "ours", Secret: "0123456789abcdef", Devices: []string{"*"}}}, nil},
		{"one without devices", fixture{yaml: "gateways:\n- {id: a, secret: 0123456789abcdef}\n"}, []Gateway{{ID: "a", Secret: "0123456789abcdef", Devices: []string{"*"}}}, nil},
		{"none", fixture{yaml: "gateways: []\n"}, nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := mustLoad(t, tt.sources(t), tt.warn...)
			if !reflect.DeepEqual(c.Gateways, tt.want) {
				t.Errorf("\n got %+v\nwant %+v", c.Gateways, tt.want)
			}
		})
	}
}

func TestBadGateways(t *testing.T) {
	const file = "in ~/other.yaml, line "
	tests := []struct{ yaml, want string }{
		{"gateways:\n- {id: a, secret: 0123456789abcdef, devices: x}\n- {id: a, secret: 0123456789abcdef, devices: y}\n", `gateways[1].id: "a" (` + file + `3) is also the id of gateways[0]: use a different id for each gateway`},
		{"gateways:\n- {id: a, secret: 0123456789abcdef, devices: '*'}\n- {id: b, secret: 0123456789abcdef, devices: '*'}\n", `gateways[1].devices: "*" (` + file + `3) is also a device of gateways[0]: list it at one gateway only`},
		{"gateways:\n- {id: a, secret: 0123456789abcdef, devices: x}\n- {id: b, secret: 0123456789abcdef}\n", `gateways[1].devices (` + file + `3) is missing: with more than one gateway, list the devices of each: device ids, "user:<id>", or "*"`},
		{"gateways:\n- id: a\n  secret: short-secret\n", `gateways[0].secret (` + file + `3) is shorter than 16 characters: create a new one with: openssl rand -hex 32`},
		{"gateways:\n- id: a\n", `gateways[0].secret (` + file + `2) is missing: create one with: openssl rand -hex 32`},
		{"gateways:\n- id: \"a\\tb\"\n  secret: 0123456789abcdef\n", `gateways[0].id: "a\tb" (` + file + `2) contains a control character or is not UTF-8: use another id, such as gw-home`},
		{"gateways:\n- id: a\n  secret: 0123456789abcdef\n  devices: [user:]\n", `gateways[0].devices: "user:" (` + file + `4) is not a list of devices: "user:" is invalid, use device ids, "user:<id>", or "*"`},
		{"gateways:\n- id: a\n  secret: 0123456789abcdef\n  local: maybe\n", `gateways[0].local: "maybe" (` + file + `4) is neither yes nor no: use yes or no`},
		{"gateways: {id: a}\n", `~/other.yaml, line 1: gateways: expected a list: start each gateway with "- id:"`},
		{"gateways:\n- id: a\n  secret: 0123456789abcdef\n  devices: *\n", "~/other.yaml, line 4: invalid YAML: "},
	}
	for _, tt := range tests {
		_, _, err := Load(fixture{config: tt.yaml}.sources(t))
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s\n got %v\nwant %v", tt.yaml, err, tt.want)
		}
	}
}

func TestBadYAML(t *testing.T) {
	const secret = "0123456789abcdef-do-not-show"
	for _, yaml := range []string{
		"token: " + secret + "\n port: 1\n", "token: '" + secret + "\n", "- token\n", "token\n", "port: {a: b}\n", "port: &a 1\n",
		"token: " + secret + "\ntoken: " + secret + "x\n", "port: 1\n---\nport: 2\n", "token: [" + secret + "\n", "token: !!str " + secret + "\n",
		"allowed_devices: [[a]]\n", "allowed_devices: ['a,b']\n", "\tport: 1\n", "token: %" + secret + "\n", "token: @" + secret + "\n", "token: *" + secret + "\n",
	} {
		_, _, err := Load(fixture{config: yaml}.sources(t))
		if err == nil || !strings.Contains(err.Error(), "~/other.yaml") || !strings.Contains(err.Error(), "line ") {
			t.Errorf("%q: %v", yaml, err)
		} else if strings.Contains(err.Error(), secret) {
			t.Errorf("%q: the error shows the secret: %v", yaml, err)
		}
	}
	mustLoad(t, fixture{config: "# nothing\n"}.sources(t))
	mustLoad(t, fixture{config: "---\n"}.sources(t))
	c := mustLoad(t, fixture{config: "token: 0012345678901234567890\nextra_tokens:\n  - |\n    a=0123456789abcdef\n  - 1_0e9999999999999999\nallowed_devices: []\n"}.sources(t))
	if c.Token.Reveal() != "0012345678901234567890" || c.ExtraTokens.Reveal() != "a=0123456789abcdef,1_0e9999999999999999" || c.AllowedDevices != nil {
		t.Errorf("%q %q", c.Token.Reveal(), c.ExtraTokens.Reveal())
	}
}

func TestAgent(t *testing.T) {
	tests := []struct {
		fixture
		agent, why string
		warn       []string
	}{
		{fixture{dotenv: "-"}, "relay", "relay, because a Hermes home exists at ~/.hermes", nil},
		{fixture{dotenv: "GATEWAY_RELAY_ID=a\nGATEWAY_RELAY_SECRET=0123456789abcdef\n"}, "relay", "relay, because GATEWAY_RELAY_SECRET is set (in ~/.hermes/.env, line 2)", nil},
		{fixture{environ: []string{"MOBILE_AGENT=Auto", "MOBILE_RELAY_ID=a", "MOBILE_RELAY_SECRET=0123456789abcdef"}}, "relay", "relay, because MOBILE_RELAY_SECRET is set (environment)", nil},
		{fixture{yaml: twoGateways}, "relay", "relay, because gateways are listed (in ~/.local/share/hermes-mobile/hermes-mobile.yaml, line 3)", nil},
		{fixture{yaml: twoGateways, flags: map[string]string{"agent": "demo"}}, "demo", "demo, set by MOBILE_AGENT (flag --agent)", nil},
		{fixture{yaml: "agent: relay\n"}, "relay", "relay, set by agent (in ~/.local/share/hermes-mobile/hermes-mobile.yaml, line 1)", nil},
	}
	for _, tt := range tests {
		c := mustLoad(t, tt.sources(t), tt.warn...)
		if c.Agent != tt.agent || c.AgentWhy != tt.why {
			t.Errorf("%q, %q; want %q", c.Agent, c.AgentWhy, tt.why)
		}
	}
}
