package config

import (
	"slices"
	"strings"
)

// A Kind says how the value of a key is written.
type Kind string

// The kinds of values.
const (
	Text     Kind = "text"
	Number   Kind = "whole number"
	Bytes    Kind = "size" // bytes, or a number with a unit
	YesNo    Kind = "yes or no"
	Choice   Kind = "one of"
	List     Kind = "comma list"
	URL      Kind = "URL"
	Folder   Kind = "folder"
	File     Kind = "file"
	Password Kind = "secret"
	Entries  Kind = "list of gateways" // in the yaml file only
)

// Names that are not MOBILE_*: Hermes' own, which we read too.
const (
	hermesHomeName    = "HERMES_HOME"
	hermesRelayID     = "GATEWAY_RELAY_ID"
	hermesRelaySecret = "GATEWAY_RELAY_SECRET"
	hermesAPIKey      = "API_SERVER_KEY"
)

const (
	prefix       = "MOBILE_"
	dataName     = "MOBILE_DATA"
	agentName    = "MOBILE_AGENT"
	publicName   = "MOBILE_PUBLIC_URL"
	tlsName      = "MOBILE_TLS"
	relayID      = "MOBILE_RELAY_ID"
	relaySecret  = "MOBILE_RELAY_SECRET"
	gatewaysName = "MOBILE_GATEWAYS"
	apiURLName   = "MOBILE_API_URL"
	apiKeyName   = "MOBILE_API_KEY"
	apiKeyFile   = "MOBILE_API_KEY_FILE"

	adminName      = "MOBILE_ADMIN"
	adminTokenName = "MOBILE_ADMIN_TOKEN"
)

// ignored are MOBILE_* names that Hermes itself writes and reads for a platform
// called "mobile". They are no business of ours and no typing errors either.
var ignored = []string{"MOBILE_HOME_CHANNEL", "MOBILE_HOME_CHANNEL_NAME", "MOBILE_HOME_CHANNEL_THREAD_ID"}

// A Key describes one setting. It is what the flags' help and the documentation
// are made from.
type Key struct {
	Name    string   // in the environment, such as MOBILE_PORT
	Kind    Kind     // how the value is written
	Default string   // as it would be written; empty: none, or Help says what
	Choices []string // of a Choice
	Help    string   // one line

	set func(c *Config, v string) error // checks v and stores it; nil: read by hand
}

// Secret reports whether the value must never be shown.
func (k Key) Secret() bool { return k.Kind == Password }

// Flag returns the name of the command line's flag, without dashes in front, or
// nothing where there is none: secrets, lists of gateways, and Hermes' own names.
func (k Key) Flag() string {
	if k.Secret() || k.Kind == Entries {
		return ""
	}
	return strings.ReplaceAll(k.YAML(), "_", "-")
}

// YAML returns the key in hermes-mobile.yaml, or nothing for Hermes' own names.
func (k Key) YAML() string {
	name, ours := strings.CutPrefix(k.Name, prefix)
	if !ours {
		return ""
	}
	return strings.ToLower(name)
}

// Env returns the name of the environment variable, or nothing for what only
// the yaml file can hold.
func (k Key) Env() string {
	if k.Kind == Entries {
		return ""
	}
	return k.Name
}

// Keys returns the table of all settings, in the order of the documentation.
func Keys() []Key { return slices.Clone(table) }

var (
	offline = []string{"queue", "reject"}
	levels  = []string{"debug", "info", "warn", "error"}
	formats = []string{"text", "json"}
	agents  = []string{"auto", "relay", "direct", "demo"}
	syncs   = []string{"always", "interval"}
	onOff   = []string{"on", "off"}
	steers  = []string{"auto", "on", "off"}
	modes   = []string{"off", "auto", "self", "files"}

	adminModes   = []string{"off", "local", "on"}
	passkeyModes = []string{"optional", "required", "both"}
)

var table = []Key{
	{Name: "MOBILE_HOST", Kind: Text, Default: "127.0.0.1",
		Help: "address to listen on; keep it on this machine unless TLS is on or a TLS proxy stands in front",
		set:  func(c *Config, v string) error { return setHost(&c.Host, v) }},
	{Name: "MOBILE_PORT", Kind: Number, Default: "8787",
		Help: "port to listen on, 0 lets the system pick one",
		set:  func(c *Config, v string) error { return setPort(&c.Port, v) }},
	{Name: "MOBILE_PATH", Kind: Text, Default: "/ws",
		Help: "path of the WebSocket endpoint for devices",
		set:  func(c *Config, v string) error { return setPath(&c.Path, v) }},

	{Name: "MOBILE_TOKEN", Kind: Password,
		Help: "token that an app sends in its hello, 16 characters or more",
		set:  func(c *Config, v string) error { return setTokens(&c.Token, v) }},
	{Name: "MOBILE_EXTRA_TOKENS", Kind: Password,
		Help: "further tokens, a comma list of token, label=token to tell apps apart, or device:ID=token for that device alone",
		set:  func(c *Config, v string) error { return setTokens(&c.ExtraTokens, v) }},
	{Name: "MOBILE_EXTRA_TOKENS_BIND", Kind: YesNo,
		Help: "read name=token in MOBILE_EXTRA_TOKENS as the Hermes plugin hermes-mobile does: the name is the id of the only device that may use the token; not set: it is a label",
		set:  func(c *Config, v string) error { c.ExtraTokensBindSet = true; return setYesNo(&c.ExtraTokensBind, v) }},
	{Name: "MOBILE_DELIVER_TOKENS", Kind: Password,
		Help: "tokens that may deliver messages and nothing else, a comma list of token or label=token",
		set:  func(c *Config, v string) error { return setTokens(&c.DeliverTokens, v) }},
	{Name: "MOBILE_ALLOWED_DEVICES", Kind: List,
		Help: "device ids that may connect; not set: every device with a valid token",
		set:  func(c *Config, v string) error { return setIDs(&c.AllowedDevices, v, "device ids") }},
	{Name: "MOBILE_ALLOWED_USERS", Kind: List,
		Help: "user ids that are approved in advance; no other user may connect unless approved by pairing",
		set:  func(c *Config, v string) error { return setUsers(&c.AllowedUsers, v) }},
	{Name: "MOBILE_ALLOW_ALL_USERS", Kind: YesNo, Default: "no",
		Help: "approve every user with a valid token",
		set:  func(c *Config, v string) error { return setYesNo(&c.AllowAllUsers, v) }},

	{Name: "MOBILE_ALLOWED_ORIGINS", Kind: List,
		Help: "origins of web pages on other hosts that may connect, such as https://app.example.com",
		set:  func(c *Config, v string) error { return setOrigins(&c.AllowedOrigins, v) }},
	{Name: "MOBILE_TRUSTED_PROXIES", Kind: List, Default: "127.0.0.0/8,::1/128",
		Help: "addresses and prefixes of proxies whose X-Forwarded-For counts, or none",
		set:  func(c *Config, v string) error { return setProxies(&c.TrustedProxies, v) }},
	{Name: publicName, Kind: URL,
		Help: "address of this server as devices reach it, for links and QR codes; not set: the Host of the request",
		set:  func(c *Config, v string) error { return setPublicURL(&c.PublicURL, v) }},

	{Name: tlsName, Kind: Choice, Default: "off", Choices: modes,
		Help: "who makes the server's certificate: off (none, a proxy does TLS), auto (an ACME authority such as Let's Encrypt), self (the server, and paired phones know it), files (somebody else)",
		set:  func(c *Config, v string) error { return setChoice(&c.TLS, v, modes) }},
	{Name: "MOBILE_TLS_EMAIL", Kind: Text,
		Help: "with auto: address to which the authority may write",
		set:  func(c *Config, v string) error { return setEmail(&c.TLSEmail, v) }},
	{Name: "MOBILE_TLS_ACME", Kind: URL,
		Help: "with auto: directory URL of the ACME server; not set: Let's Encrypt",
		set:  func(c *Config, v string) error { return setDirectory(&c.TLSACME, v) }},
	{Name: "MOBILE_TLS_ACME_ROOT", Kind: File,
		Help: "with auto: PEM file with the root certificate of a private ACME server",
		set:  func(c *Config, v string) error { c.TLSACMERoot = v; return nil }},
	{Name: "MOBILE_TLS_CERT", Kind: File,
		Help: "with files: PEM file with the certificate and its chain, read again when it changes",
		set:  func(c *Config, v string) error { c.TLSCert = v; return nil }},
	{Name: "MOBILE_TLS_KEY", Kind: File,
		Help: "with files: PEM file with the certificate's key",
		set:  func(c *Config, v string) error { c.TLSKey = v; return nil }},

	{Name: "MOBILE_OFFLINE_DELIVERY", Kind: Choice, Default: "queue", Choices: offline,
		Help: "what happens to a delivery for a device that is away: queue (it waits), reject (its sender is told device_offline)",
		set:  func(c *Config, v string) error { return setChoice(&c.OfflineDelivery, v, offline) }},
	{Name: "MOBILE_AVATAR_URL", Kind: URL,
		Help: "page that apps show as the avatar",
		set:  func(c *Config, v string) error { return setAvatarURL(&c.AvatarURL, v) }},
	{Name: "MOBILE_PROMPT_SECONDS", Kind: Number, Default: "300",
		Help: "life of a question card, where the agent sets no time of its own",
		set:  func(c *Config, v string) error { return setNumber(&c.PromptSeconds, v, 1, 86400) }},
	{Name: "MOBILE_MAX_MEDIA_BYTES", Kind: Number, Default: "8388608",
		Help: "largest file in either direction, from 1048576 (1 MiB) to 1073741824 (1 GiB)",
		set:  func(c *Config, v string) error { return setNumber(&c.MaxMediaBytes, v, 1<<20, 1<<30) }},
	{Name: "MOBILE_OUTBOX_DAYS", Kind: Number, Default: "7",
		Help: "days that a message waits for a device that is away",
		set:  func(c *Config, v string) error { return setNumber(&c.OutboxDays, v, 1, 3650) }},
	{Name: "MOBILE_OUTBOX_ENTRIES", Kind: Number, Default: "10000",
		Help: "messages that wait for one device at most",
		set:  func(c *Config, v string) error { return setNumber(&c.OutboxEntries, v, 1, 10_000_000) }},
	{Name: "MOBILE_OUTBOX_BYTES", Kind: Bytes, Default: "64MiB",
		Help: "bytes of messages that wait for one device at most, files not counted, such as 64MiB; the oldest are dropped first",
		set:  func(c *Config, v string) error { return setSize(&c.OutboxBytes, v, leastOutbox, mostSize) }},
	{Name: "MOBILE_MAX_DATA", Kind: Bytes,
		Help: "most bytes that the server stores below the data folder, such as 10GiB: files, unfinished uploads and the database; not set: 10GiB, or half of the free space where that is less",
		set:  func(c *Config, v string) error { return setSize(&c.MaxData, v, leastData, mostSize) }},
	{Name: "MOBILE_MAX_DEVICE_DATA", Kind: Bytes,
		Help: "most bytes of files that one device, or one delivery token, may send in a day; not set: a tenth of MOBILE_MAX_DATA, and at least one file of the largest size",
		set:  func(c *Config, v string) error { return setSize(&c.MaxDeviceData, v, 1<<20, mostSize) }},

	{Name: "MOBILE_SYNC", Kind: Choice, Default: "always", Choices: syncs,
		Help: "when what was accepted is flushed to the disk: always (before it is acknowledged), interval (within 200 ms, so a power loss may cost that much)",
		set:  func(c *Config, v string) error { return setChoice(&c.Sync, v, syncs) }},

	{Name: "MOBILE_PUSH", Kind: Choice, Default: "on", Choices: onOff,
		Help: "notifications for devices that are away and have asked for them: on (they need a contact), off",
		set:  func(c *Config, v string) error { return setChoice(&c.Push, v, onOff) }},
	{Name: "MOBILE_PUSH_CONTACT", Kind: Text,
		Help: "mailto: or https: address that push services are told, to reach whoever runs this server; not set: an https MOBILE_PUBLIC_URL",
		set:  func(c *Config, v string) error { return setContact(&c.PushContact, v) }},
	{Name: "MOBILE_PUSH_HOSTS", Kind: List,
		Help: "hosts of push services in your own network, which may have private addresses and plain http, such as ntfy.home.arpa",
		set:  func(c *Config, v string) error { return setHosts(&c.PushHosts, v) }},
	{Name: "MOBILE_PUSH_ACTIONS", Kind: YesNo, Default: "no",
		Help: "let a notification of an approval be answered by its buttons, without opening the app",
		set:  func(c *Config, v string) error { return setYesNo(&c.PushActions, v) }},

	{Name: "MOBILE_FRONT_API", Kind: YesNo, Default: "no",
		Help: "serve Hermes' API to users who log in with a name and a password",
		set:  func(c *Config, v string) error { return setYesNo(&c.FrontAPI, v) }},
	{Name: apiURLName, Kind: URL, Default: "http://127.0.0.1:8642",
		Help: "address of Hermes' API server, as this server reaches it; not set: also API_SERVER_HOST and API_SERVER_PORT of Hermes' .env count",
		set:  func(c *Config, v string) error { return setAPIURL(&c.APIURL, v) }},
	{Name: apiKeyName, Kind: Password,
		Help: "key of Hermes' API server; not set: MOBILE_API_KEY_FILE, or API_SERVER_KEY where the API server is on this machine",
		set:  func(c *Config, v string) error { return setAPIKey(&c.APIKey, v) }},
	{Name: apiKeyFile, Kind: File,
		Help: "file that holds that key and nothing else"},
	{Name: hermesAPIKey, Kind: Password,
		Help: "that key, as Hermes' own .env has it"},
	{Name: "MOBILE_API_KIND", Kind: Choice, Default: "hermes", Choices: []string{"hermes", "openai"},
		Help: "what MOBILE_API_URL is: hermes, or openai (any other server with OpenAI's API, such as Ollama or llama.cpp)",
		set:  func(c *Config, v string) error { return setChoice(&c.APIKind, v, []string{"hermes", "openai"}) }},
	{Name: "MOBILE_API_MODEL", Kind: Text,
		Help: "model that the agent direct uses until a user chooses another; not set: the gateway's own, or the first of its list that can chat",
		set:  func(c *Config, v string) error { return setModel(&c.APIModel, v) }},
	{Name: "MOBILE_API_SESSIONS", Kind: Choice, Default: "own", Choices: []string{"own", "all"},
		Help: "sessions of Hermes that a conversation sees with the direct agent: own (those it began), all (every session, and the jobs)",
		set:  func(c *Config, v string) error { return setChoice(&c.APISessions, v, []string{"own", "all"}) }},
	{Name: "MOBILE_API_JOBS", Kind: YesNo,
		Help: "use the scheduled jobs of Hermes' API (/api/jobs) although Hermes does not advertise them: they work with the versions tested, and a later one may change them without notice; not set: only jobs that are advertised",
		set:  func(c *Config, v string) error { return setAPIJobs(&c.APIJobs, v) }},

	{Name: "MOBILE_METRICS_TOKEN", Kind: Password,
		Help: "bearer token with which /metrics and the details of /readyz can be read",
		set:  func(c *Config, v string) error { return setToken(&c.MetricsToken, v) }},
	{Name: adminName, Kind: Choice, Default: "local", Choices: adminModes,
		Help: "who can open the admin UI at /admin: local (on this machine, with a link from hermes-mobile admin), on (also from elsewhere, with the admin token), off (nobody); with MOBILE_ADMIN_TOKEN set the default is on",
		set:  func(c *Config, v string) error { return setChoice(&c.Admin, v, adminModes) }},
	{Name: adminTokenName, Kind: Password,
		Help: "admin token for logging in to the admin UI from elsewhere, better as the hash that hermes-mobile admin hash prints",
		set:  func(c *Config, v string) error { return setAdminToken(&c.AdminToken, v) }},
	{Name: "MOBILE_ADMIN_PASSKEY", Kind: Choice, Default: "optional", Choices: passkeyModes,
		Help: "passkeys for logging in to the admin UI: optional (a passkey or the admin token), required (a passkey), both (the admin token, then a passkey); a link from hermes-mobile admin works in any case",
		set:  func(c *Config, v string) error { return setChoice(&c.AdminPasskey, v, passkeyModes) }},
	{Name: "MOBILE_AUDIT_DAYS", Kind: Number, Default: "365",
		Help: "days that the audit log keeps an entry, from 7",
		set:  func(c *Config, v string) error { return setNumber(&c.AuditDays, v, 7, 3650) }},
	{Name: "MOBILE_LOG_LEVEL", Kind: Choice, Default: "info", Choices: levels,
		Help: "least important message that is logged",
		set:  func(c *Config, v string) error { return setChoice(&c.LogLevel, v, levels) }},
	{Name: "MOBILE_LOG_FORMAT", Kind: Choice, Default: "text", Choices: formats,
		Help: "form of the log",
		set:  func(c *Config, v string) error { return setChoice(&c.LogFormat, v, formats) }},

	{Name: dataName, Kind: Folder,
		Help: "folder of the database and of hermes-mobile.yaml; not set: $XDG_DATA_HOME/hermes-mobile or ~/.local/share/hermes-mobile"},
	{Name: hermesHomeName, Kind: Folder,
		Help: "home folder of Hermes, read from the environment only; not set: ~/.hermes"},

	{Name: agentName, Kind: Choice, Default: "auto", Choices: agents,
		Help: "who answers: relay (a Hermes gateway that dials in), direct (Hermes' HTTP API at MOBILE_API_URL, or another server with OpenAI's API), demo (built in), auto (relay where Hermes is found, else demo; never direct)",
		set:  func(c *Config, v string) error { return setAgent(&c.Agent, v) }},
	{Name: relayID, Kind: Text,
		Help: "id of the Hermes gateway that dials in; replaces GATEWAY_RELAY_ID, together with MOBILE_RELAY_SECRET"},
	{Name: relaySecret, Kind: Password,
		Help: "secret of that gateway; replaces GATEWAY_RELAY_SECRET, together with MOBILE_RELAY_ID"},
	{Name: hermesRelayID, Kind: Text,
		Help: "id with which the Hermes gateway dials in, as Hermes' own .env has it"},
	{Name: hermesRelaySecret, Kind: Password,
		Help: "secret that belongs to GATEWAY_RELAY_ID"},
	{Name: "MOBILE_RELAY_WAKE_URL", Kind: Password,
		Help: "address that is fetched (GET) while messages wait and the gateway is away, to wake it; again until it connects",
		set:  func(c *Config, v string) error { return setWakeURL(&c.WakeURL, v) }},
	{Name: "MOBILE_STEER", Kind: Choice, Default: "auto", Choices: steers,
		Help: "adding a message to the turn that runs: auto (where the settings of the Hermes on this machine have display.busy_input_mode: steer and busy_ack_enabled: false), on (all gateways have them), off",
		set:  func(c *Config, v string) error { return setChoice(&c.Steer, v, steers) }},
	{Name: gatewaysName, Kind: Entries,
		Help: "gateways that may dial in, each with id, secret, name, devices, local, public_url, wake_url and profiles; in hermes-mobile.yaml only"},
}

// keyNamed returns the entry of the table for an environment name.
func keyNamed(name string) (Key, bool) {
	i := slices.IndexFunc(table, func(k Key) bool { return k.Name == name })
	if i < 0 {
		return Key{}, false
	}
	return table[i], true
}

// names lists what f returns for each key of the table, without the empty ones.
func names(f func(Key) string) []string {
	var all []string
	for _, k := range table {
		if n := f(k); n != "" {
			all = append(all, n)
		}
	}
	return all
}

// envName is the name of k for suggestions in the environment and in .env: only
// ours, since an unknown name is reported only if it starts like ours.
func envName(k Key) string {
	if !strings.HasPrefix(k.Name, prefix) {
		return ""
	}
	return k.Env()
}
