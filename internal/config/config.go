// Package config loads and checks the settings of the server, and returns them as one typed struct.
//
// Load reads settings from these places. An earlier place overrides a later one:
//
//  1. flags of the command line,
//  2. the process environment,
//  3. hermes-mobile.yaml in the data folder, or the file from --config,
//  4. the file .env in the Hermes home.
//
// An empty value counts as not set. From .env, which belongs to Hermes, Load reads only MOBILE_*,
// GATEWAY_RELAY_ID, GATEWAY_RELAY_SECRET, and API_SERVER_*. Secrets have no flag, because all users of the
// machine can see a command line.
//
// key.go has the table of settings. The help of the flags and the documentation are generated from it.
package config

import (
	"net/url"
	"strings"
)

// Config is a full set of checked settings from [Load], with defaults filled in.
type Config struct {
	Host string // IP address without brackets, or a host name
	Port int    // 0: the system picks one
	Path string // of the device endpoint, such as "/ws"

	// Comma-separated lists of token or label=token, checked but not split. Each may be empty. All tokens and
	// labels are different.
	Token              Secret // usually one token without a label
	ExtraTokens        Secret
	ExtraTokensBindSet bool   // the owner set ExtraTokensBind
	ExtraTokensBind    bool   // names in ExtraTokens are device ids
	DeliverTokens      Secret // these may only deliver messages

	AllowedDevices []string // nil: every device
	AllowedUsers   []string
	AllowAllUsers  bool

	AllowedOrigins []string // scheme://host[:port], in lower case
	TrustedProxies string   // comma-separated addresses and prefixes, or "none"
	PublicURL      string   // without a trailing slash; empty: the Host of the request

	TLS         string // "off", "auto", "self" or "files"
	TLSEmail    string // for auto; may be empty
	TLSACME     string // for auto; empty: Let's Encrypt
	TLSACMERoot string // for auto, a path; empty: the system's roots
	TLSCert     string // for files, a path
	TLSKey      string // for files, a path

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
	MaxData       int64  // bytes below the data folder; 0: the server decides at start, by the free space
	MaxDeviceData int64  // bytes that one device may store per day; 0: a part of MaxData
	Sync          string // "always" or "interval"

	MetricsToken Secret
	Steer        string // whether gateways add messages to running turns: "auto", "on", or "off"
	Admin        string // who can open the admin UI: "off", "local", or "on"
	AdminToken   Secret // in clear, or as an argon2id hash; empty: nobody can log in from another machine
	AdminPasskey string // for logins from another machine: "optional", "required", or "both"
	AdminClear   string // the place that contains the admin token in clear, for messages; empty: none

	FrontAPI    bool   // enable the API proxy
	APIURL      string // of Hermes' API server, without a trailing slash
	APIKey      Secret // of Hermes' API server; empty: not found
	APIKind     string // "hermes" or "openai"
	APISessions string // "own" or "all"
	WakeURL     Secret // fetched while messages wait and a gateway is offline; empty: none
	APIJobs     string // "on": use scheduled jobs even if Hermes does not advertise them; "off"; empty: not set
	APIModel    string // default model of turns; empty: the gateway's default, or the first in its list

	AuditDays int // how long the audit log keeps an entry

	LogLevel  string // "debug", "info", "warn" or "error"
	LogFormat string // "text" or "json"

	Data             string // data folder; Load does not create it
	HermesHome       string // empty only when there is no home directory and no HERMES_HOME
	HermesHomeExists bool

	Agent    string // "relay", "direct", or "demo"; Load resolves "auto"
	AgentWhy string // one sentence that names the agent and the reason
	AgentSet bool   // the owner chose the agent; otherwise Load did

	Gateways []Gateway

	Warnings []Warning // as returned by Load
}

// PublicHost returns the host of PublicURL without the port. It is empty if PublicURL is.
func (c *Config) PublicHost() string {
	u, err := url.Parse(c.PublicURL)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// PushSubject returns the contact for push services. If subject is empty, why says why the server cannot
// send notifications.
func (c *Config) PushSubject() (subject, why string) {
	switch {
	case c.Push == "off":
		return "", "MOBILE_PUSH is off"
	case c.PushContact != "":
		return c.PushContact, ""
	case strings.HasPrefix(c.PublicURL, "https:"):
		return c.PublicURL, ""
	}
	return "", "push services require a contact, and neither MOBILE_PUSH_CONTACT nor an https MOBILE_PUBLIC_URL is set"
}

// Gateway is one Hermes gateway that may dial in to the relay.
type Gateway struct {
	ID     string // may contain a colon
	Secret Secret
	Name   string // display name; may be empty

	// Devices lists the devices of the gateway: device ids, "user:<id>", or "*" for all devices that no
	// other gateway lists. An entry occurs at one gateway only.
	Devices []string

	Local     *bool  // whether it runs on this machine; nil: decide by the peer's address
	PublicURL string // overrides Config.PublicURL for this gateway's devices
	WakeURL   Secret // fetched while messages wait and the gateway is offline; empty: Config.WakeURL

	// Profiles are the Hermes profiles that devices may select. If empty, devices may select all profiles
	// that a gateway of this machine's Hermes home serves.
	Profiles []string
}
