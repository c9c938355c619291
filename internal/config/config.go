// Package config reads the settings of "hermes-mobile serve", checks them, and
// hands them on as one typed struct.
//
// A setting is looked for in this order, and the first place that has it wins:
//
//  1. the command line's flags,
//  2. the process environment,
//  3. hermes-mobile.yaml in the data folder (or the file given with --config),
//  4. the file .env in the Hermes home.
//
// So where the yaml file and .env both set a key, the yaml file wins. An empty
// value counts as not set, in every one of these places. Of .env, which belongs
// to Hermes, only MOBILE_*, GATEWAY_RELAY_ID, GATEWAY_RELAY_SECRET and
// API_SERVER_KEY are read. Secrets have no flag, because a command line is visible to everybody on
// the machine.
//
// The table of keys is in key.go; it also feeds the flags' help and the
// documentation.
package config

import (
	"net/url"
	"strings"
)

// A Config is a full set of checked settings, as [Load] returns it. Every field
// has its default filled in.
type Config struct {
	Host string // IP address without brackets, or a host name
	Port int    // 0: the system picks one
	Path string // of the device endpoint, such as "/ws"

	// Comma lists of token or label=token, checked but not split. No token and
	// no label stands twice in them. Each may be empty.
	Token              Secret // the app's own, as a rule one token without a label
	ExtraTokens        Secret
	ExtraTokensBindSet bool   // the owner said which of the two
	ExtraTokensBind    bool   // names in ExtraTokens are ids of devices
	DeliverTokens      Secret // these may only deliver

	AllowedDevices []string // nil: every device
	AllowedUsers   []string
	AllowAllUsers  bool

	AllowedOrigins []string // scheme://host[:port], in lower case
	TrustedProxies string   // comma list of addresses and prefixes, or "none"
	PublicURL      string   // without a slash at the end; empty: the Host of the request

	TLS         string // "off", "auto", "self" or "files"
	TLSEmail    string // of auto, may be empty
	TLSACME     string // of auto; empty: Let's Encrypt
	TLSACMERoot string // of auto, a path; empty: the roots of the system
	TLSCert     string // of files, a path
	TLSKey      string // of files, a path

	Push        string   // "on" or "off"
	PushContact string   // mailto: or https:, may be empty
	PushHosts   []string // host names and addresses, in lower case
	PushActions bool

	OfflineDelivery string // "queue" or "reject"
	AvatarURL       string

	PromptSeconds int
	MaxMediaBytes int64
	OutboxDays    int
	OutboxEntries int
	OutboxBytes   int64
	MaxData       int64  // bytes below the data folder; 0: decided at the start by the free space
	MaxDeviceData int64  // bytes that one device may store in a day; 0: a part of that
	Sync          string // "always" or "interval"

	MetricsToken Secret
	Steer        string // whether gateways add messages to running turns: "auto", "on" or "off"
	Admin        string // who can open the admin UI: "off", "local" or "on"
	AdminToken   Secret // in clear, or an argon2id hash of it; empty: nobody logs in from another machine
	AdminPasskey string // for logging in from another machine: "optional", "required" or "both"
	AdminClear   string // the file that holds the admin token in clear, as in a message; empty: no file does

	FrontAPI    bool   // serve Hermes' API to users who log in
	APIURL      string // of Hermes' API server, without a slash at the end
	APIKey      Secret // of the same; empty: none was found
	APIKind     string // "hermes" or "openai"
	APISessions string // "own" or "all"
	WakeURL     Secret // is fetched while messages wait and a gateway is away; empty: none is
	APIJobs     string // "on": scheduled jobs are used though Hermes does not advertise them; "off"; empty: the owner said nothing
	APIModel    string // that turns use where nobody chose one; empty: the server's own, or the first of its list

	AuditDays int // that the audit log keeps an entry

	LogLevel  string // "debug", "info", "warn" or "error"
	LogFormat string // "text" or "json"

	Data             string // data folder; Load does not create it
	HermesHome       string // empty only when there is no home directory and no HERMES_HOME
	HermesHomeExists bool

	Agent    string // what to run: "relay", "direct" or "demo"; "auto" is already decided
	AgentWhy string // one sentence that says which agent, and why
	AgentSet bool   // the owner chose it; else it was found

	Gateways []Gateway

	Warnings []Warning // those that Load returned
}

// PublicHost returns the host of PublicURL without its port, empty where there is none.
func (c *Config) PublicHost() string {
	u, err := url.Parse(c.PublicURL)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// PushSubject returns who push services are told runs this server, and why notifications cannot be sent where it is empty.
func (c *Config) PushSubject() (subject, why string) {
	switch {
	case c.Push == "off":
		return "", "MOBILE_PUSH is off"
	case c.PushContact != "":
		return c.PushContact, ""
	case strings.HasPrefix(c.PublicURL, "https:"):
		return c.PublicURL, ""
	}
	return "", "push services want to know who runs this server, and neither MOBILE_PUSH_CONTACT nor an https MOBILE_PUBLIC_URL is set"
}

// A Gateway is one Hermes gateway that may dial in to the relay.
type Gateway struct {
	ID     string // may contain a colon
	Secret Secret
	Name   string // for people; empty: none

	// Devices says whom the gateway serves: device ids, "user:<id>", or "*"
	// for everybody whom no other gateway names. No entry stands at two gateways.
	Devices []string

	Local     *bool  // runs on this machine? nil: decide by the peer's address
	PublicURL string // replaces Config.PublicURL for this gateway's devices
	WakeURL   Secret // is asked for while messages wait and the gateway is away; empty: Config.WakeURL

	// Profiles are those of its profiles that devices may choose; none: those that a gateway of this machine's Hermes home serves.
	Profiles []string
}
