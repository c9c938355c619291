package config

import (
	"slices"
	"strconv"
	"strings"

	"hermes-mobile/frame"
)

// Kind is the format of a setting's value.
type Kind string

// The kinds of values.
const (
	Text     Kind = "text"
	Number   Kind = "whole number"
	Bytes    Kind = "size" // a number of bytes, or a number with a unit
	YesNo    Kind = "yes or no"
	Choice   Kind = "one of"
	List     Kind = "comma-separated list"
	URL      Kind = "URL"
	Folder   Kind = "folder"
	File     Kind = "file"
	Password Kind = "secret"
	Entries  Kind = "list of gateways" // in the yaml file only
)

// Hermes' own names, which this program reads too.
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

// ignored are MOBILE_* names that Hermes itself uses for a platform called "mobile". They are neither
// settings of this program nor typing errors.
var ignored = []string{"MOBILE_HOME_CHANNEL", "MOBILE_HOME_CHANNEL_NAME", "MOBILE_HOME_CHANNEL_THREAD_ID"}

// Key describes one setting. The help of the flags and the documentation are generated from it.
type Key struct {
	Name    string   // in the environment, such as MOBILE_PORT
	Kind    Kind     // how the value is written
	Default string   // as written in the settings; empty: none, or Help describes it
	Choices []string // of a Choice
	Help    string   // one line

	set func(c *Config, v string) error // checks v and stores it; nil: the loader handles it
}

// Secret reports whether the value must never be shown.
func (k Key) Secret() bool { return k.Kind == Password }

// Flag returns the name of the command-line flag without dashes. It is empty for secrets, lists of
// gateways, and Hermes' own names, which have no flag.
func (k Key) Flag() string {
	if k.Secret() || k.Kind == Entries {
		return ""
	}
	return strings.ReplaceAll(k.YAML(), "_", "-")
}

// YAML returns the key in hermes-mobile.yaml. It is empty for Hermes' own names.
func (k Key) YAML() string {
	name, ours := strings.CutPrefix(k.Name, prefix)
	if !ours {
		return ""
	}
	return strings.ToLower(name)
}

// Env returns the name of the environment variable. It is empty for settings that only the YAML file can
// hold.
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
		Help: "address to listen on; keep the loopback address unless TLS is on or a TLS proxy is in front",
		set:  func(c *Config, v string) error { return setHost(&c.Host, v) }},
	{Name: "MOBILE_PORT", Kind: Number, Default: "8787",
		Help: "port to listen on; 0 for any free port",
		set:  func(c *Config, v string) error { return setPort(&c.Port, v) }},
	{Name: "MOBILE_PATH", Kind: Text, Default: "/ws",
		Help: "path of the WebSocket endpoint for devices",
		set:  func(c *Config, v string) error { return setPath(&c.Path, v) }},

	{Name: "MOBILE_TOKEN", Kind: Password,
		Help: "access token for apps, at least 16 characters",
		set:  func(c *Config, v string) error { return setTokens(&c.Token, v) }},
	{Name: "MOBILE_EXTRA_TOKENS", Kind: Password,
		Help: "more access tokens, comma-separated: token, label=token, or device:ID=token for a single device",
		set:  func(c *Config, v string) error { return setTokens(&c.ExtraTokens, v) }},
	{Name: "MOBILE_EXTRA_TOKENS_BIND", Kind: YesNo,
		Help: "bind each name=token in MOBILE_EXTRA_TOKENS to the device with that id, as the Hermes plugin hermes-mobile does; if not set, the name is a label",
		set:  func(c *Config, v string) error { c.ExtraTokensBindSet = true; return setYesNo(&c.ExtraTokensBind, v) }},
	{Name: "MOBILE_DELIVER_TOKENS", Kind: Password,
		Help: "tokens that may only deliver messages, comma-separated: token or label=token",
		set:  func(c *Config, v string) error { return setTokens(&c.DeliverTokens, v) }},
	{Name: "MOBILE_ALLOWED_DEVICES", Kind: List,
		Help: "device ids that may connect; if not set, every device with a valid token",
		set:  func(c *Config, v string) error { return setIDs(&c.AllowedDevices, v, "device ids") }},
	{Name: "MOBILE_ALLOWED_USERS", Kind: List,
		Help: "user ids that need no approval; all other users need a pairing code or an approval",
		set:  func(c *Config, v string) error { return setUsers(&c.AllowedUsers, v) }},
	{Name: "MOBILE_ALLOW_ALL_USERS", Kind: YesNo, Default: "no",
		Help: "approve every user with a valid token",
		set:  func(c *Config, v string) error { return setYesNo(&c.AllowAllUsers, v) }},

	{Name: "MOBILE_ALLOWED_ORIGINS", Kind: List,
		Help: "origins of web apps on other hosts that may connect, such as https://app.example.com",
		set:  func(c *Config, v string) error { return setOrigins(&c.AllowedOrigins, v) }},
	{Name: "MOBILE_TRUSTED_PROXIES", Kind: List, Default: "127.0.0.0/8,::1/128",
		Help: "addresses and prefixes of proxies whose X-Forwarded-For the server trusts, or none",
		set:  func(c *Config, v string) error { return setProxies(&c.TrustedProxies, v) }},
	{Name: publicName, Kind: URL,
		Help: "public address of this server, for links and QR codes; if not set, the server uses the Host header of the request",
		set:  func(c *Config, v string) error { return setPublicURL(&c.PublicURL, v) }},

	{Name: tlsName, Kind: Choice, Default: "off", Choices: modes,
		Help: "source of the server's certificate: off (no TLS, or a proxy handles it), auto (an ACME CA such as Let's Encrypt), self (the server's own CA, which paired phones trust), files (your own files)",
		set:  func(c *Config, v string) error { return setChoice(&c.TLS, v, modes) }},
	{Name: "MOBILE_TLS_EMAIL", Kind: Text,
		Help: "with auto: email address for the CA",
		set:  func(c *Config, v string) error { return setEmail(&c.TLSEmail, v) }},
	{Name: "MOBILE_TLS_ACME", Kind: URL,
		Help: "with auto: directory URL of the ACME server; if not set, Let's Encrypt",
		set:  func(c *Config, v string) error { return setDirectory(&c.TLSACME, v) }},
	{Name: "MOBILE_TLS_ACME_ROOT", Kind: File,
		Help: "with auto: PEM file with the root certificate of a private ACME server",
		set:  func(c *Config, v string) error { c.TLSACMERoot = v; return nil }},
	{Name: "MOBILE_TLS_CERT", Kind: File,
		Help: "with files: PEM file with the certificate and its chain; the server reloads it when it changes",
		set:  func(c *Config, v string) error { c.TLSCert = v; return nil }},
	{Name: "MOBILE_TLS_KEY", Kind: File,
		Help: "with files: PEM file with the private key",
		set:  func(c *Config, v string) error { c.TLSKey = v; return nil }},

	{Name: "MOBILE_OFFLINE_DELIVERY", Kind: Choice, Default: "queue", Choices: offline,
		Help: "what to do with a delivery for an offline device: queue, or reject (the sender gets device_offline)",
		set:  func(c *Config, v string) error { return setChoice(&c.OfflineDelivery, v, offline) }},
	{Name: "MOBILE_AVATAR_URL", Kind: URL,
		Help: "web page that apps show as the avatar",
		set:  func(c *Config, v string) error { return setAvatarURL(&c.AvatarURL, v) }},
	{Name: "MOBILE_PROMPT_SECONDS", Kind: Number, Default: strconv.Itoa(frame.PromptSeconds),
		Help: "seconds until a question card expires, unless the agent sets a time",
		set:  func(c *Config, v string) error { return setNumber(&c.PromptSeconds, v, 1, 86400) }},
	{Name: "MOBILE_MAX_MEDIA_BYTES", Kind: Number, Default: strconv.Itoa(frame.MaxMedia),
		Help: "largest file in either direction, in bytes, from 1048576 (1 MiB) to 1073741824 (1 GiB)",
		set:  func(c *Config, v string) error { return setNumber(&c.MaxMediaBytes, v, 1<<20, 1<<30) }},
	{Name: "MOBILE_OUTBOX_DAYS", Kind: Number, Default: "7",
		Help: "days to keep a message for an offline device",
		set:  func(c *Config, v string) error { return setNumber(&c.OutboxDays, v, 1, 3650) }},
	{Name: "MOBILE_OUTBOX_ENTRIES", Kind: Number, Default: "10000",
		Help: "most messages to queue for one device",
		set:  func(c *Config, v string) error { return setNumber(&c.OutboxEntries, v, 1, 10_000_000) }},
	{Name: "MOBILE_OUTBOX_BYTES", Kind: Bytes, Default: "64MiB",
		Help: "most bytes of messages to queue for one device, files not counted, such as 64MiB; the server drops the oldest first",
		set:  func(c *Config, v string) error { return setSize(&c.OutboxBytes, v, leastOutbox, mostSize) }},
	{Name: "MOBILE_MAX_DATA", Kind: Bytes,
		Help: "storage limit for the data folder, such as 10GiB: files, unfinished uploads, and the database; if not set, 10GiB or half of the free space, whichever is less",
		set:  func(c *Config, v string) error { return setSize(&c.MaxData, v, leastData, mostSize) }},
	{Name: "MOBILE_MAX_DEVICE_DATA", Kind: Bytes,
		Help: "most bytes of files that one device or delivery token may send per day; if not set, a tenth of MOBILE_MAX_DATA, but at least one file of the largest size",
		set:  func(c *Config, v string) error { return setSize(&c.MaxDeviceData, v, 1<<20, mostSize) }},

	{Name: "MOBILE_SYNC", Kind: Choice, Default: "always", Choices: syncs,
		Help: "when to flush accepted messages to disk: always (before acknowledging them), interval (within 200 ms; a power loss may lose that much)",
		set:  func(c *Config, v string) error { return setChoice(&c.Sync, v, syncs) }},

	{Name: "MOBILE_PUSH", Kind: Choice, Default: "on", Choices: onOff,
		Help: "push notifications for offline devices that subscribed: on (needs a contact), off",
		set:  func(c *Config, v string) error { return setChoice(&c.Push, v, onOff) }},
	{Name: "MOBILE_PUSH_CONTACT", Kind: Text,
		Help: "mailto: or https: address that push services can contact; if not set, MOBILE_PUBLIC_URL if it is https",
		set:  func(c *Config, v string) error { return setContact(&c.PushContact, v) }},
	{Name: "MOBILE_PUSH_HOSTS", Kind: List,
		Help: "push services in your own network, such as ntfy.home.arpa; they may use private addresses and plain http",
		set:  func(c *Config, v string) error { return setHosts(&c.PushHosts, v) }},
	{Name: "MOBILE_PUSH_ACTIONS", Kind: YesNo, Default: "no",
		Help: "show buttons on approval notifications, to answer without opening the app",
		set:  func(c *Config, v string) error { return setYesNo(&c.PushActions, v) }},

	{Name: "MOBILE_FRONT_API", Kind: YesNo, Default: "no",
		Help: "enable the API proxy: Hermes' API for users who log in with a name and a password",
		set:  func(c *Config, v string) error { return setYesNo(&c.FrontAPI, v) }},
	{Name: apiURLName, Kind: URL, Default: "http://127.0.0.1:8642",
		Help: "address of Hermes' API server; if not set, the server also reads API_SERVER_HOST and API_SERVER_PORT from Hermes' .env",
		set:  func(c *Config, v string) error { return setAPIURL(&c.APIURL, v) }},
	{Name: apiKeyName, Kind: Password,
		Help: "key of Hermes' API server; if not set, MOBILE_API_KEY_FILE, or API_SERVER_KEY if the API server is on this machine",
		set:  func(c *Config, v string) error { return setAPIKey(&c.APIKey, v) }},
	{Name: apiKeyFile, Kind: File,
		Help: "file that contains only the key of Hermes' API server"},
	{Name: hermesAPIKey, Kind: Password,
		Help: "key of Hermes' API server, as in Hermes' own .env"},
	{Name: "MOBILE_API_KIND", Kind: Choice, Default: "hermes", Choices: []string{"hermes", "openai"},
		Help: "type of the server at MOBILE_API_URL: hermes, or openai (any other server with OpenAI's API, such as Ollama or llama.cpp)",
		set:  func(c *Config, v string) error { return setChoice(&c.APIKind, v, []string{"hermes", "openai"}) }},
	{Name: "MOBILE_API_MODEL", Kind: Text,
		Help: "model that the agent direct uses until a user selects another; if not set, the gateway's default, or the first chat model in its list",
		set:  func(c *Config, v string) error { return setModel(&c.APIModel, v) }},
	{Name: "MOBILE_API_SESSIONS", Kind: Choice, Default: "own", Choices: []string{"own", "all"},
		Help: "Hermes sessions that a device sees with the agent direct: own (sessions it started), all (every session, and the jobs)",
		set:  func(c *Config, v string) error { return setChoice(&c.APISessions, v, []string{"own", "all"}) }},
	{Name: "MOBILE_API_JOBS", Kind: YesNo,
		Help: "use the scheduled jobs of Hermes' API (/api/jobs) even if Hermes does not advertise them; they work with all tested versions, but a later one may change them; if not set, use them only if advertised",
		set:  func(c *Config, v string) error { return setAPIJobs(&c.APIJobs, v) }},

	{Name: "MOBILE_METRICS_TOKEN", Kind: Password,
		Help: "bearer token for /metrics and the details of /readyz",
		set:  func(c *Config, v string) error { return setToken(&c.MetricsToken, v) }},
	{Name: adminName, Kind: Choice, Default: "local", Choices: adminModes,
		Help: "who can open the admin UI at /admin: local (users on this machine, with a link from hermes-mobile admin), on (also from elsewhere, with the admin token), off (nobody); the default is on if MOBILE_ADMIN_TOKEN is set",
		set:  func(c *Config, v string) error { return setChoice(&c.Admin, v, adminModes) }},
	{Name: adminTokenName, Kind: Password,
		Help: "admin token to log in to the admin UI from elsewhere, preferably as a hash from hermes-mobile admin hash",
		set:  func(c *Config, v string) error { return setAdminToken(&c.AdminToken, v) }},
	{Name: "MOBILE_ADMIN_PASSKEY", Kind: Choice, Default: "optional", Choices: passkeyModes,
		Help: "passkeys for the admin UI: optional (a passkey or the admin token), required (a passkey), both (the admin token, then a passkey); a link from hermes-mobile admin always works",
		set:  func(c *Config, v string) error { return setChoice(&c.AdminPasskey, v, passkeyModes) }},
	{Name: "MOBILE_AUDIT_DAYS", Kind: Number, Default: "365",
		Help: "days to keep entries of the audit log, at least 7",
		set:  func(c *Config, v string) error { return setNumber(&c.AuditDays, v, 7, 3650) }},
	{Name: "MOBILE_LOG_LEVEL", Kind: Choice, Default: "info", Choices: levels,
		Help: "least severe messages to log",
		set:  func(c *Config, v string) error { return setChoice(&c.LogLevel, v, levels) }},
	{Name: "MOBILE_LOG_FORMAT", Kind: Choice, Default: "text", Choices: formats,
		Help: "format of the log",
		set:  func(c *Config, v string) error { return setChoice(&c.LogFormat, v, formats) }},

	{Name: dataName, Kind: Folder,
		Help: "data folder, with the database and hermes-mobile.yaml; if not set, $XDG_DATA_HOME/hermes-mobile or ~/.local/share/hermes-mobile"},
	{Name: hermesHomeName, Kind: Folder,
		Help: "Hermes home, read only from the environment; if not set, ~/.hermes"},

	{Name: agentName, Kind: Choice, Default: "auto", Choices: agents,
		Help: "agent that answers: relay (a Hermes gateway that dials in), direct (Hermes' API at MOBILE_API_URL, or another server with OpenAI's API), demo (built in), auto (relay if Hermes is found, otherwise demo)",
		set:  func(c *Config, v string) error { return setAgent(&c.Agent, v) }},
	{Name: relayID, Kind: Text,
		Help: "id of the Hermes gateway; with MOBILE_RELAY_SECRET, it overrides GATEWAY_RELAY_ID"},
	{Name: relaySecret, Kind: Password,
		Help: "secret of the Hermes gateway; with MOBILE_RELAY_ID, it overrides GATEWAY_RELAY_SECRET"},
	{Name: hermesRelayID, Kind: Text,
		Help: "id of the Hermes gateway, as in Hermes' own .env"},
	{Name: hermesRelaySecret, Kind: Password,
		Help: "secret for GATEWAY_RELAY_ID"},
	{Name: "MOBILE_RELAY_WAKE_URL", Kind: Password,
		Help: "URL to GET to wake the gateway while it is offline and messages are waiting; repeated until it connects",
		set:  func(c *Config, v string) error { return setWakeURL(&c.WakeURL, v) }},
	{Name: "MOBILE_STEER", Kind: Choice, Default: "auto", Choices: steers,
		Help: "add a new message to the running turn: auto (if Hermes on this machine has display.busy_input_mode: steer and busy_ack_enabled: false), on (all gateways have these settings), off",
		set:  func(c *Config, v string) error { return setChoice(&c.Steer, v, steers) }},
	{Name: gatewaysName, Kind: Entries,
		Help: "gateways that may dial in, each with id, secret, name, devices, local, public_url, wake_url, and profiles; only in hermes-mobile.yaml"},
}

// keyNamed returns the table's entry for an environment name.
func keyNamed(name string) (Key, bool) {
	i := slices.IndexFunc(table, func(k Key) bool { return k.Name == name })
	if i < 0 {
		return Key{}, false
	}
	return table[i], true
}

// names lists the nonempty results of f for all keys.
func names(f func(Key) string) []string {
	var all []string
	for _, k := range table {
		if n := f(k); n != "" {
			all = append(all, n)
		}
	}
	return all
}

// envName returns the name of k for suggestions in the environment and in .env. It leaves out Hermes' own
// names: the loader only reports unknown names with our prefix.
func envName(k Key) string {
	if !strings.HasPrefix(k.Name, prefix) {
		return ""
	}
	return k.Env()
}
