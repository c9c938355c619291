package config

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A fixture is a home folder with the files that a test gives it.
type fixture struct {
	flags   map[string]string
	environ []string
	dotenv  string // "-": a Hermes home without .env
	yaml    string // in the data folder
	config  string // a file for --config
}

func (f fixture) sources(t testing.TB) Sources {
	t.Helper()
	home := t.TempDir()
	src := Sources{Flags: f.flags, Environ: f.environ, HomeDir: home}
	if f.dotenv != "" {
		writeFile(t, filepath.Join(home, ".hermes", ".env"), strings.TrimPrefix(f.dotenv, "-"))
	}
	if f.yaml != "" {
		writeFile(t, filepath.Join(home, ".local", "share", "hermes-mobile", "hermes-mobile.yaml"), f.yaml)
	}
	if f.config != "" {
		src.ConfigFile = "~/other.yaml"
		writeFile(t, filepath.Join(home, "other.yaml"), f.config)
	}
	return src
}

func writeFile(t testing.TB, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// mustLoad loads and fails on an error or on a warning that was not expected.
func mustLoad(t testing.TB, src Sources, warnings ...string) *Config {
	t.Helper()
	c, got, err := Load(src)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	expectWarnings(t, got, warnings...)
	return c
}

func expectWarnings(t testing.TB, got []Warning, want ...string) {
	t.Helper()
	var texts []string
	for _, w := range got {
		texts = append(texts, w.String())
	}
	if !slices.Equal(texts, want) {
		t.Errorf("warnings:\n got %q\nwant %q", texts, want)
	}
}

func TestDefaults(t *testing.T) {
	src := Sources{HomeDir: t.TempDir()}
	c := mustLoad(t, src)
	if c.Host != "127.0.0.1" || c.Port != 8787 || c.Path != "/ws" || c.PromptSeconds != 300 || c.MaxMediaBytes != 8<<20 ||
		c.OutboxDays != 7 || c.OutboxEntries != 10000 || c.OfflineDelivery != "queue" || c.LogLevel != "info" ||
		c.LogFormat != "text" || c.TrustedProxies != "127.0.0.0/8,::1/128" || c.AllowAllUsers || c.AllowedDevices != nil || c.Gateways != nil {
		t.Errorf("defaults: %+v", c)
	}
	if want := filepath.Join(src.HomeDir, ".local/share/hermes-mobile"); c.Data != want {
		t.Errorf("Data = %q, want %q", c.Data, want)
	}
	if want := filepath.Join(src.HomeDir, ".hermes"); c.HermesHome != want || c.HermesHomeExists {
		t.Errorf("HermesHome = %q (%v), want %q", c.HermesHome, c.HermesHomeExists, want)
	}
	if c.Agent != "demo" || c.AgentWhy != "demo, because there is no relay secret and no Hermes home at ~/.hermes" {
		t.Errorf("agent: %q, %q", c.Agent, c.AgentWhy)
	}
}

func TestPrecedence(t *testing.T) {
	all := fixture{
		flags:   map[string]string{"port": "1"},
		environ: []string{"MOBILE_PORT=2"},
		yaml:    "port: 3\n",
		dotenv:  "MOBILE_PORT=4\n",
	}
	for want := 1; want <= 4; want++ {
		if c, _, err := Load(all.sources(t)); err != nil || c.Port != want {
			t.Errorf("port %v, %v; want %d", c, err, want)
		}
		switch want {
		case 1:
			all.flags = map[string]string{"port": " "} // empty is as good as not set
		case 2:
			all.environ = []string{"MOBILE_PORT="}
		case 3:
			all.yaml = "port:\n"
		}
	}
}

func TestConfigFlagReplacesFileInData(t *testing.T) {
	c := mustLoad(t, fixture{yaml: "port: 1\n", config: "port: 2\ndata: ~/moved\n"}.sources(t))
	if c.Port != 2 || filepath.Base(c.Data) != "moved" || !filepath.IsAbs(c.Data) {
		t.Errorf("port %d, data %q", c.Port, c.Data)
	}
	src := Sources{HomeDir: t.TempDir(), ConfigFile: "~/none.yaml"}
	if _, _, err := Load(src); err == nil || err.Error() != "cannot read ~/none.yaml: no such file or directory" {
		t.Errorf("missing file: %v", err)
	}
}

func TestFolders(t *testing.T) {
	home, xdg := t.TempDir(), t.TempDir()
	writeFile(t, filepath.Join(xdg, "hermes-mobile", "hermes-mobile.yaml"), "port: 5\n")
	writeFile(t, filepath.Join(home, "h2", ".env"), "MOBILE_HOST=localhost\nHERMES_HOME=/elsewhere\n")
	c, _, err := Load(Sources{HomeDir: home, Environ: []string{"XDG_DATA_HOME=" + xdg, "HERMES_HOME=~/h2"}})
	if err != nil || c.Port != 5 || c.Host != "localhost" || !c.HermesHomeExists || c.HermesHome != filepath.Join(home, "h2") {
		t.Errorf("%+v, %v", c, err)
	}
	if _, _, err := Load(Sources{}); err == nil || err.Error() != "MOBILE_DATA is not set and there is no home directory: set it to a folder for the database" {
		t.Errorf("no home: %v", err)
	}
	if c, _, err := Load(Sources{Environ: []string{"MOBILE_DATA=/d"}}); err != nil || c.Data != "/d" || c.HermesHome != "" {
		t.Errorf("no home, data set: %+v, %v", c, err)
	}
}

func TestBadValues(t *testing.T) {
	tests := []struct {
		name string
		fixture
		want string // lines of the error, the home written as ~
	}{
		{"port in .env", fixture{dotenv: "# ours\n\nexport MOBILE_PORT='87x87' # no\n"},
			`MOBILE_PORT: "87x87" (in ~/.hermes/.env, line 3) is not a port: use a number from 1 to 65535, or 0 for any free port`},
		{"port too big", fixture{environ: []string{"MOBILE_PORT=65536"}},
			`MOBILE_PORT: "65536" (environment) is not a port: use a number from 1 to 65535, or 0 for any free port`},
		{"flag", fixture{flags: map[string]string{"prompt-seconds": "0"}},
			`MOBILE_PROMPT_SECONDS: "0" (flag --prompt-seconds) is out of range: use a whole number from 1 to 86400`},
		{"yaml", fixture{yaml: "# x\noffline_delivery: drop\n"},
			`offline_delivery: "drop" (in ~/.local/share/hermes-mobile/hermes-mobile.yaml, line 2) is not valid: use queue or reject`},
		{"secret is not shown", fixture{environ: []string{"MOBILE_TOKEN=tooshort"}},
			`MOBILE_TOKEN (environment) is shorter than 16 characters: create a new one with: openssl rand -hex 32`},
		{"secret in yaml", fixture{yaml: "metrics_token: tooshort\n"},
			`metrics_token (in ~/.local/share/hermes-mobile/hermes-mobile.yaml, line 1) is shorter than 16 characters: create a new one with: openssl rand -hex 32`},
		{"secret in a list", fixture{environ: []string{"MOBILE_EXTRA_TOKENS=a=0123456789abcdef,b=short"}},
			`MOBILE_EXTRA_TOKENS (environment): token 2 is shorter than 16 characters: create a new one with: openssl rand -hex 32`},
		{"agent", fixture{environ: []string{"MOBILE_AGENT=robot"}},
			`MOBILE_AGENT: "robot" (environment) is not an agent: use auto, relay, direct, or demo`},
		{"path", fixture{environ: []string{"MOBILE_PATH=/media/ws"}},
			`MOBILE_PATH: "/media/ws" (environment) conflicts with the server's own path /media: use another, such as /ws`},
		{"half a pair", fixture{dotenv: "GATEWAY_RELAY_SECRET=0123456789abcdef\n"},
			`GATEWAY_RELAY_SECRET (in ~/.hermes/.env, line 1): GATEWAY_RELAY_ID is not set: set both or neither`},
		{"password in a URL", fixture{environ: []string{"MOBILE_PUBLIC_URL=https://me:pw@example.com"}},
			`MOBILE_PUBLIC_URL (environment) contains a user name: use the form https://agent.example.com`},
		{"all at once", fixture{environ: []string{"MOBILE_HOST=a b", "MOBILE_PORT=x", "MOBILE_ALLOW_ALL_USERS=maybe"}},
			`MOBILE_HOST: "a b" (environment) is not an address: use an IP address or a host name without a port, or 0.0.0.0 for every interface` + "\n" +
				`MOBILE_PORT: "x" (environment) is not a port: use a number from 1 to 65535, or 0 for any free port` + "\n" +
				`MOBILE_ALLOW_ALL_USERS: "maybe" (environment) is neither yes nor no: use yes or no`},
		{"token twice", fixture{environ: []string{"MOBILE_TOKEN=0123456789abcdef", "MOBILE_DELIVER_TOKENS=cron=0123456789abcdef"}},
			`MOBILE_DELIVER_TOKENS (environment): token 1 is also in MOBILE_TOKEN: use a different token for each, made with: openssl rand -hex 32`},
		{"a token that opens the owner's page, too", fixture{environ: []string{"MOBILE_TOKEN=0123456789abcdef", "MOBILE_ADMIN_TOKEN=0123456789abcdef"}},
			`MOBILE_ADMIN_TOKEN (environment): token 1 is also in MOBILE_TOKEN: use a different token for each, made with: openssl rand -hex 32`},
		{"bound token too short", fixture{environ: []string{"MOBILE_EXTRA_TOKENS=a-long-device:id=short", "MOBILE_EXTRA_TOKENS_BIND=1"}},
			`MOBILE_EXTRA_TOKENS (environment): token 1 is shorter than 16 characters: create a new one with: openssl rand -hex 32`},
		{"device twice", fixture{environ: []string{"MOBILE_EXTRA_TOKENS=device:a=0123456789abcdef,a=0123456789abcdeF"}},
			`MOBILE_EXTRA_TOKENS (environment): label 2 is also in MOBILE_EXTRA_TOKENS: use a different label for each (MOBILE_TOKEN without a label has the label "main")`},
		{"label twice", fixture{environ: []string{"MOBILE_EXTRA_TOKENS=a=0123456789abcdef", "MOBILE_DELIVER_TOKENS=a=0123456789abcdeF"}},
			`MOBILE_DELIVER_TOKENS (environment): label 1 is also in MOBILE_EXTRA_TOKENS: use a different label for each (MOBILE_TOKEN without a label has the label "main")`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, _, err := Load(tt.sources(t))
			if c != nil || err == nil || err.Error() != tt.want {
				t.Fatalf("error:\n got %v\nwant %v", err, tt.want)
			}
			var bad *BadValue
			if !errors.As(err, &bad) {
				t.Errorf("no BadValue in %T", err)
			}
		})
	}
}

func TestExposure(t *testing.T) {
	const open = `MOBILE_HOST: "0.0.0.0" (environment) accepts unencrypted connections from other machines: set MOBILE_TLS=self, or put a TLS proxy in front and set MOBILE_PUBLIC_URL to its https address`
	tests := []struct {
		environ []string
		want    []string
	}{
		{[]string{"MOBILE_HOST=::1"}, nil},
		{[]string{"MOBILE_HOST=localhost"}, nil},
		{[]string{"MOBILE_HOST=0.0.0.0"}, []string{open}},
		{[]string{"MOBILE_HOST=0.0.0.0", "MOBILE_TRUSTED_PROXIES=none"}, []string{open}},
		{[]string{"MOBILE_HOST=0.0.0.0", "MOBILE_TRUSTED_PROXIES=10.0.0.0/8"}, nil},
		{[]string{"MOBILE_HOST=0.0.0.0", "MOBILE_PUBLIC_URL=https://a.example"}, nil},
		{[]string{"MOBILE_HOST=0.0.0.0", "MOBILE_TLS=self"}, nil},
		{[]string{"MOBILE_HOST=0.0.0.0", "MOBILE_PUBLIC_URL=http://localhost:8787"}, []string{open}},
		{[]string{"MOBILE_PUBLIC_URL=http://a.example"}, []string{"MOBILE_PUBLIC_URL (environment) is plain http, so tokens and messages cross the network unencrypted: put a TLS proxy in front and set its https address"}},
	}
	for _, tt := range tests {
		t.Log(tt.environ)
		mustLoad(t, fixture{environ: tt.environ}.sources(t), tt.want...)
	}
}

func TestFileModes(t *testing.T) {
	const secret = "token: 0123456789abcdef\n"
	src := fixture{yaml: secret, dotenv: "MOBILE_METRICS_TOKEN=0123456789abcdeF\n", environ: []string{"MOBILE_AGENT=demo"}}.sources(t)
	mustLoad(t, src)
	yaml, dotenv := filepath.Join(src.HomeDir, ".local/share/hermes-mobile/hermes-mobile.yaml"), filepath.Join(src.HomeDir, ".hermes/.env")
	for _, f := range []string{yaml, dotenv} {
		if err := os.Chmod(f, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	mustLoad(t, src,
		"~/.hermes/.env contains secrets and other users of this machine can read it: chmod 600 ~/.hermes/.env",
		"~/.local/share/hermes-mobile/hermes-mobile.yaml contains secrets and other users of this machine can read it: chmod 600 ~/.local/share/hermes-mobile/hermes-mobile.yaml")
	if err := os.WriteFile(dotenv, []byte("MOBILE_PORT=1\nOPENAI_API_KEY=x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(yaml, []byte("port: 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	mustLoad(t, src) // nothing of ours in them is secret
	if got := shellPath("~/my file", "/h/my 'file"); got != `'/h/my '\''file'` {
		t.Error(got)
	}
}

// The mark that editors on Windows put before a text is no part of it, and another encoding is named.
func TestMarks(t *testing.T) {
	c := mustLoad(t, fixture{environ: []string{"MOBILE_AGENT=demo"}, yaml: "\ufefftls: self\nport: 1\n", dotenv: "\ufeffMOBILE_PATH=/x\n"}.sources(t))
	if c.TLS != "self" || c.Port != 1 || c.Path != "/x" {
		t.Errorf("%+v", c)
	}
	const wide = "\xff\xfeM\x00O\x00"
	mustLoad(t, fixture{environ: []string{"MOBILE_AGENT=demo"}, dotenv: wide}.sources(t),
		"~/.hermes/.env is ignored: the text is UTF-16, not UTF-8: save it as UTF-8 (PowerShell: Out-File -Encoding utf8)")
	if _, _, err := Load(fixture{environ: []string{"MOBILE_AGENT=demo"}, yaml: wide}.sources(t)); err == nil || !strings.Contains(err.Error(), "UTF-16") {
		t.Errorf("settings in UTF-16: %v", err)
	}
}
