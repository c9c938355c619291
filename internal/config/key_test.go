package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

const someSecret = "0123456789abcdef0123456789abcdef"

// samples has for each key a value that is not the default, what the field has
// then, and values that must be refused.
var samples = map[string]struct {
	good  string
	field string // of Config
	want  any
	bad   []string
}{
	"MOBILE_HOST":              {"[::1]", "Host", "::1", []string{"127.0.0.1:8787", "a b", "*", "256.1.1.1", "http://x", "[localhost]", "-a"}},
	"MOBILE_PORT":              {"0", "Port", 0, []string{"-1", "65536", "8787.0", "0x10", "99999999999999999999"}},
	"MOBILE_PATH":              {"/agent/ws", "Path", "/agent/ws", []string{"ws", "/", "/ws/", "/a//b", "/../x", "/relay", "/media", "/push/action", "/healthz", "/readyz", "/metrics", "/relay/x", "/avatar", "/assets", "/sw.js", "/a?b", "/{id}", "/a b"}},
	"MOBILE_TOKEN":             {someSecret, "Token", Secret(someSecret), []string{"short", "0123456789 abcdef", "0123456789\x00abcdef", "пароль-пароль-пароль", strings.Repeat("a", 513)}},
	"MOBILE_EXTRA_TOKENS_BIND": {"1", "ExtraTokensBind", true, []string{"maybe"}},
	"MOBILE_EXTRA_TOKENS":      {"a=" + someSecret + ", ,b64" + someSecret + "==", "ExtraTokens", Secret("a=" + someSecret + ",b64" + someSecret + "=="), []string{"a=short", ",", "a = " + someSecret, someSecret + "," + someSecret}},
	"MOBILE_DELIVER_TOKENS":    {"cron=" + someSecret, "DeliverTokens", Secret("cron=" + someSecret), []string{"short"}},
	"MOBILE_ALLOWED_DEVICES":   {"tel-1, a:b", "AllowedDevices", []string{"tel-1", "a:b"}, []string{"a b", ",", "é", strings.Repeat("a", 129)}},
	"MOBILE_ALLOWED_USERS":     {"anna", "AllowedUsers", []string{"anna"}, []string{"*", "a/b"}},
	"MOBILE_ALLOW_ALL_USERS":   {"True", "AllowAllUsers", true, []string{"maybe", "2"}},
	"MOBILE_ALLOWED_ORIGINS":   {"https://App.example.com/,capacitor://localhost", "AllowedOrigins", []string{"https://app.example.com", "capacitor://localhost"}, []string{"app.example.com", "*", "https://a/b", "https://*.a", "null", ","}},
	"MOBILE_TRUSTED_PROXIES":   {"10.0.0.0/8, ::1", "TrustedProxies", "10.0.0.0/8,::1", []string{"proxy", "10.0.0.0/33", ","}},
	"MOBILE_PUBLIC_URL":        {"https://a.example/prefix/", "PublicURL", "https://a.example/prefix", []string{"a.example", "wss://a.example", "https://a?x=1", "https://a#x", "https://a?", "/x", "https://", "https://u:p@a", "https://a:0"}},
	"MOBILE_TLS":               {"SELF", "TLS", "self", []string{"on", "yes"}},
	"MOBILE_TLS_EMAIL":         {"me@example.com", "TLSEmail", "me@example.com", []string{"me", "Me <me@example.com>", "a@b, c@d"}},
	"MOBILE_TLS_ACME":          {"https://ca.home:9000/acme/acme/directory", "TLSACME", "https://ca.home:9000/acme/acme/directory", []string{"http://ca.home/dir", "ca.home", "https://u:p@ca.home"}},
	"MOBILE_TLS_ACME_ROOT":     {"/etc/ca.pem", "TLSACMERoot", "/etc/ca.pem", nil},
	"MOBILE_TLS_CERT":          {"/etc/a.pem", "TLSCert", "/etc/a.pem", nil},
	"MOBILE_TLS_KEY":           {"/etc/a.key", "TLSKey", "/etc/a.key", nil},
	"MOBILE_OFFLINE_DELIVERY":  {"Reject", "OfflineDelivery", "reject", []string{"drop"}},
	"MOBILE_AVATAR_URL":        {"https://a.example/avatar.html?x=1", "AvatarURL", "https://a.example/avatar.html?x=1", []string{"avatar.html", "file:///x", "javascript:alert(1)"}},
	"MOBILE_PROMPT_SECONDS":    {"86400", "PromptSeconds", 86400, []string{"0", "86401", "5m"}},
	"MOBILE_MAX_MEDIA_BYTES":   {"1073741824", "MaxMediaBytes", int64(1 << 30), []string{"1048575", "1073741825", "8MiB"}},
	"MOBILE_OUTBOX_DAYS":       {"1", "OutboxDays", 1, []string{"0", "3651"}},
	"MOBILE_OUTBOX_ENTRIES":    {"1", "OutboxEntries", 1, []string{"0", "10000001"}},
	"MOBILE_OUTBOX_BYTES":      {"2 GB", "OutboxBytes", int64(2e9), []string{"0", "1MB", "2000000GiB", "lots", "1e9", "-1GiB", "1 Gibibyte", "1GiB1"}},
	"MOBILE_MAX_DATA":          {"1.5GiB", "MaxData", int64(1536 << 20), []string{"0", "31MiB", "1025TiB", "99999999999999999999999999TiB", "NaN", "Inf", "0x10", "5 %", "GiB", "."}},
	"MOBILE_MAX_DEVICE_DATA":   {"104857600", "MaxDeviceData", int64(100 << 20), []string{"1", "1,5GiB"}},
	"MOBILE_SYNC":              {"Interval", "Sync", "interval", []string{"off", "1", "normal"}},
	"MOBILE_PUSH":              {"OFF", "Push", "off", []string{"maybe"}},
	"MOBILE_PUSH_CONTACT":      {"mailto:me@example.com", "PushContact", "mailto:me@example.com", []string{"me@example.com", "mailto:", "mailto:Me <me@example.com>", "http://a.example", "tel:1"}},
	"MOBILE_PUSH_HOSTS":        {"Ntfy.home.arpa, 10.0.0.7,::1", "PushHosts", []string{"ntfy.home.arpa", "10.0.0.7", "::1"}, []string{",", "https://ntfy.home", "ntfy.home:8080", "10.0.0.0/8", "*"}},
	"MOBILE_PUSH_ACTIONS":      {"yes", "PushActions", true, []string{"maybe"}},
	"MOBILE_FRONT_API":         {"1", "FrontAPI", true, []string{"maybe"}},
	"MOBILE_API_URL":           {"https://agent.example.com/hermes/", "APIURL", "https://agent.example.com/hermes", []string{"agent.example.com", "https://u:p@agent.example.com", "http://a/?b=c", "http://a/#b"}},
	"MOBILE_API_KEY":           {someKey, "APIKey", Secret(someKey), []string{"short", "a key of several words", "ключ-ключ-ключ-ключ"}},
	"MOBILE_API_KEY_FILE":      {"testdata/api.key", "APIKey", Secret(someKey), []string{"testdata/none", "testdata"}},
	"MOBILE_API_KIND":          {"OpenAI", "APIKind", "openai", []string{"ollama"}},
	"MOBILE_RELAY_WAKE_URL":    {"http://10.0.0.7:9/start?key=abc", "WakeURL", Secret("http://10.0.0.7:9/start?key=abc"), []string{"ftp://a", "/begin/it", "https://u:p@a.example", "https://a.example/#x"}},
	"MOBILE_API_JOBS":          {"yes", "APIJobs", "on", []string{"maybe"}},
	"MOBILE_API_SESSIONS":      {"all", "APISessions", "all", []string{"some"}},
	"MOBILE_API_MODEL":         {"qwen3:8b", "APIModel", "qwen3:8b", []string{strings.Repeat("m", 257), "a\x01b"}},
	"API_SERVER_KEY":           {someKey, "APIKey", Secret(someKey), nil},
	"MOBILE_METRICS_TOKEN":     {someSecret, "MetricsToken", Secret(someSecret), []string{"short"}},
	"MOBILE_ADMIN_TOKEN":       {someSecret, "AdminToken", Secret(someSecret), []string{"short", "$argon2id$v=19$m=64,t=1,p=1$x", "$argon2i$v=19$m=65536,t=3,p=4$c29tZXNhbHQ$RdescudvJCsgt3ub+b4dWRWJTmaaJObG"}},
	"MOBILE_ADMIN":             {"OFF", "Admin", "off", []string{"login", "yes", "admin"}},
	"MOBILE_ADMIN_PASSKEY":     {"Required", "AdminPasskey", "required", []string{"on", "yes", "token"}},
	"MOBILE_AUDIT_DAYS":        {"7", "AuditDays", 7, []string{"6", "3651", "1y"}},
	"MOBILE_LOG_LEVEL":         {"DEBUG", "LogLevel", "debug", []string{"trace"}},
	"MOBILE_LOG_FORMAT":        {"json", "LogFormat", "json", []string{"xml"}},
	"MOBILE_DATA":              {"/srv/hm/", "Data", "/srv/hm", nil},
	"HERMES_HOME":              {"/srv/hermes", "HermesHome", "/srv/hermes", nil},
	"MOBILE_AGENT":             {"relay", "Agent", "relay", []string{"robot"}},
	"MOBILE_RELAY_ID":          {"gw:1", "Gateways", []Gateway{{ID: "gw:1", Secret: someSecret, Devices: []string{"*"}}}, []string{"a\x01b", strings.Repeat("a", 257)}},
	"MOBILE_RELAY_SECRET":      {someSecret, "Gateways", []Gateway{{ID: "gw:1", Secret: someSecret, Devices: []string{"*"}}}, []string{"short"}},
	"GATEWAY_RELAY_ID":         {"gw:1", "Gateways", []Gateway{{ID: "gw:1", Secret: someSecret, Devices: []string{"*"}}}, []string{"a\x01b"}},
	"GATEWAY_RELAY_SECRET":     {someSecret, "Gateways", []Gateway{{ID: "gw:1", Secret: someSecret, Devices: []string{"*"}}}, []string{"short"}},
	"MOBILE_STEER":             {"On", "Steer", "on", []string{"yes", "queue"}},
	"MOBILE_GATEWAYS":          {"[{id: a, secret: " + someSecret + "}]", "Gateways", []Gateway{{ID: "a", Secret: someSecret, Devices: []string{"*"}}}, []string{"x", "[x]", "[{id: a}]"}},
}

// others are settings without which a key is not good.
var others = map[string][2]string{
	"MOBILE_RELAY_ID":      {"MOBILE_RELAY_SECRET", someSecret},
	"MOBILE_RELAY_SECRET":  {"MOBILE_RELAY_ID", "gw:1"},
	"GATEWAY_RELAY_ID":     {"GATEWAY_RELAY_SECRET", someSecret},
	"GATEWAY_RELAY_SECRET": {"GATEWAY_RELAY_ID", "gw:1"},
}

// TestEveryKey sets each key of the table in each place that can hold it.
func TestEveryKey(t *testing.T) {
	for _, k := range Keys() {
		sample, ok := samples[k.Name]
		if !ok {
			t.Errorf("%s: no sample", k.Name)
			continue
		}
		quote := func(v string) string {
			if k.Kind == Entries {
				return v
			}
			return "'" + v + "'"
		}
		places := map[string]func(v string) fixture{}
		if k.Env() != "" {
			places["environment"] = func(v string) fixture { return fixture{environ: []string{k.Name + "=" + v}} }
			if k.Name != hermesHomeName {
				places[".env"] = func(v string) fixture { return fixture{dotenv: k.Name + "='" + v + "'\n"} }
			}
		}
		if k.Flag() != "" {
			places["flag"] = func(v string) fixture { return fixture{flags: map[string]string{k.Flag(): v}} }
		}
		if k.YAML() != "" {
			places["yaml"] = func(v string) fixture { return fixture{config: k.YAML() + ": " + quote(v) + "\n"} }
		}
		for place, with := range places {
			load := func(v string) (*Config, error) {
				f := with(v)
				if o, ok := others[k.Name]; ok {
					f.environ = append(f.environ, o[0]+"="+o[1])
				}
				c, _, err := Load(f.sources(t))
				return c, err
			}
			c, err := load(sample.good)
			if err != nil {
				t.Errorf("%s (%s): %v", k.Name, place, err)
				continue
			}
			if got := reflect.ValueOf(*c).FieldByName(sample.field).Interface(); !reflect.DeepEqual(got, sample.want) {
				t.Errorf("%s (%s): %s = %v, want %v", k.Name, place, sample.field, got, sample.want)
			}
			for _, bad := range sample.bad {
				if strings.ContainsAny(bad, "\x00\x01") && place == "yaml" {
					continue // not YAML at all
				}
				c, err := load(bad)
				if err == nil || c != nil {
					t.Errorf("%s (%s): %.40q was taken", k.Name, place, bad)
				} else if k.Secret() && strings.Contains(err.Error(), bad) && bad != "," && bad != "short" {
					t.Errorf("%s (%s): the error shows the secret: %v", k.Name, place, err)
				}
			}
		}
	}
	if len(samples) != len(Keys()) {
		t.Errorf("%d samples for %d keys", len(samples), len(Keys()))
	}
}

func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range Keys() {
		if seen[k.Name] {
			t.Errorf("%s stands twice", k.Name)
		}
		seen[k.Name] = true
		if k.Help == "" || strings.ContainsAny(k.Help, "\n") || strings.HasSuffix(k.Help, ".") {
			t.Errorf("%s: help %q", k.Name, k.Help)
		}
		if (k.Kind == Choice) != (len(k.Choices) > 0) {
			t.Errorf("%s: kind %s with choices %q", k.Name, k.Kind, k.Choices)
		}
		if k.Secret() && (k.Flag() != "" || k.Default != "") {
			t.Errorf("%s: a secret with a flag or a default", k.Name)
		}
		if k.Default != "" && k.set != nil {
			if err := k.set(&Config{}, k.Default); err != nil {
				t.Errorf("%s: default %q %v", k.Name, k.Default, err)
			}
		}
	}
}

// TestHelpNamesEveryChoice: the help of a setting says what each of its choices means, or at least that there is one.
func TestHelpNamesEveryChoice(t *testing.T) {
	for _, k := range table {
		for _, choice := range k.Choices {
			if k.Kind == Choice && !strings.Contains(k.Help, choice) && !slices.Contains([]string{"MOBILE_LOG_LEVEL", "MOBILE_LOG_FORMAT"}, k.Name) { // words that say it themselves
				t.Errorf("the help of %s says nothing of %s: %s", k.Name, choice, k.Help)
			}
		}
	}
}
