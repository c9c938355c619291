package doctor

import (
	"net/netip"
	"time"

	"hermes-mobile/internal/access"
	"hermes-mobile/internal/agent/relay"
	"hermes-mobile/internal/cert"
	"hermes-mobile/internal/config"
	"hermes-mobile/internal/quota"
	"hermes-mobile/internal/setup"
	"hermes-mobile/internal/store"
	"hermes-mobile/internal/strangers"
)

// Facts are the results of the probes. A fact that no probe collected is nil or empty, and Check skips it.
type Facts struct {
	Now    time.Time
	Config *config.Config
	// Warnings are the warnings about settings that still apply.
	Warnings []config.Warning
	// Gateways are the gateways that the server accepts, including the one whose secret it created.
	Gateways []config.Gateway

	Server       *Server // nil: not running
	Pairing      error   // why the pairing files are unreadable
	Hermes       *Hermes
	Folder       *Folder
	APIProxy     *APIProxy // nil: disabled
	Port         *Port
	Public       *Public
	Certificates []Certificate
}

// Server is the state of the running server.
type Server struct {
	Address     string      // host:port that it listens on
	TLS         *cert.State // nil: plain HTTP
	Started     time.Time
	AgentOnline bool
	AgentDetail string
	Relay       *relay.State // nil: another agent
	API         *API         // for the agent direct; nil: another agent

	StoreFailed bool       // within the last minute
	Storage     *quota.Use // nil: unknown
	PushOff     string     // why notifications do not work although they are on
	Aging       []store.Aging

	Devices   []access.Rejected // rejected at hello
	Requests  []access.Rejected // rejected before hello; Code is the HTTP status
	Forwarded []access.Rejected // untrusted peers that send forwarding headers
	Strangers []strangers.Drops
}

// API is the state of the API that the agent direct uses.
type API struct {
	URL        string
	NoKey      bool // no key is set
	KeyRefused bool
	Another    bool   // a different gateway answers than before
	Down       error  // why the API does not work; nil: it works, or was not tried yet
	Version    string // of Hermes; may be empty
	Older      bool   // the version has limits, see api_older
	Elsewhere  bool   // on another machine, or not Hermes
}

// Hermes is the state of the Hermes on this machine.
type Hermes struct {
	Home    setup.Home
	Exists  bool
	Hidden  bool // belongs to another account, and its settings are unreadable
	Version setup.Version
	Files   *setup.Files // nil: unreadable
	Unread  error        // why they are unreadable
	Process *setup.Process
	Jobs    []setup.FailedJob // jobs whose last result was not delivered
}

// Folder is the state of the data folder.
type Folder struct {
	Path     string
	Unwrit   error    // why it is not writable
	Free     uint64   // bytes that the server may use
	Total    uint64   // 0: unknown
	Readable []string // files with secrets that other users can read
	Future   time.Time
	FutureOf string // the file with the latest modification time, Future
}

// APIProxy is the state of the API proxy.
type APIProxy struct {
	URL   string // of Hermes' API server
	NoKey bool   // there is no key for it
	Down  error  // why Hermes' API server does not work
	Users int    // negative: unknown
}

// Port is the state of the port that the server would listen on.
type Port struct {
	Address string
	Taken   bool
	Holder  string // the program that uses it; empty: unknown
	Free    int    // another port that is free; 0: not probed
}

// Public is the result of probing the public address from this machine.
type Public struct {
	URL     string
	Result  PublicResult
	Detail  string
	Hidden  bool       // a proxy makes requests look as if they came from the server's machine
	Exposed []Exposure // what strangers can read but must not
}

// PublicResult is the outcome of probing the public address.
type PublicResult string

// The results.
const (
	PublicGood        PublicResult = "good"
	PublicUnreachable PublicResult = "unreachable"
	PublicLogin       PublicResult = "login"
	PublicOther       PublicResult = "other server"
	PublicNoUpgrade   PublicResult = "no upgrade"
	PublicBuffers     PublicResult = "buffers"
)

// Certificate is a certificate of the server, from a probe of the public address or from the server itself.
type Certificate struct {
	Host     string // the host that it must be valid for
	Names    []string
	Issuer   string
	From, To time.Time
	BadName  bool
	Unknown  bool     // not signed by a CA that this machine trusts
	Chain    []string // problems of its chain
}

// refusedFrom formats the address of a rejected client.
func refusedFrom(a netip.Addr) string {
	if !a.IsValid() {
		return "an unknown address"
	}
	return a.String()
}
