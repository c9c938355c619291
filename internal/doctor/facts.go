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

// Facts are what was seen. What was not looked at is nil or empty, and nothing is found there.
type Facts struct {
	Now    time.Time
	Config *config.Config
	// Warnings are those of the settings that still hold.
	Warnings []config.Warning
	// Gateways are those that the server lets in, also the one whose secret it made itself.
	Gateways []config.Gateway

	Server       *Server // nil: none is running
	Pairing      error   // why the pairing files cannot be read
	Hermes       *Hermes
	Folder       *Folder
	Front        *Front // nil: Hermes' API is not served
	Port         *Port
	Public       *Public
	Certificates []Certificate
}

// Server is how the running server is.
type Server struct {
	Address     string      // host:port that it listens on
	TLS         *cert.State // nil: it speaks plain HTTP
	Started     time.Time
	AgentOnline bool
	AgentDetail string
	Relay       *relay.State // nil: another agent
	API         *API         // of the agent direct; nil: another agent

	StoreFailed bool       // a moment ago
	Storage     *quota.Use // nil: not known
	PushOff     string     // why there are no notifications, where the owner has not switched them off
	Aging       []store.Aging

	Devices   []access.Rejected // turned away at hello
	Requests  []access.Rejected // turned away before it; Code is the HTTP status
	Forwarded []access.Rejected // peers that are not trusted and send forwarding headers
	Strangers []strangers.Drops
}

// API is how the agent direct finds the API that it speaks to.
type API struct {
	URL        string
	NoKey      bool // none is set
	KeyRefused bool
	Another    bool   // what answers is not the gateway that was there before
	Down       error  // why it cannot be used; nil: it can, or was not tried yet
	Version    string // of Hermes, as far as it is known
	Older      bool   // it is of the version with limits
	Elsewhere  bool   // it is on another machine, or no Hermes
}

// Hermes is the Hermes of this machine.
type Hermes struct {
	Home    setup.Home
	Exists  bool
	Hidden  bool // it belongs to another account, and its settings cannot be seen
	Version setup.Version
	Files   *setup.Files // nil: they cannot be read
	Unread  error        // why not
	Process *setup.Process
	Jobs    []setup.FailedJob // whose last result did not arrive
}

// Folder is the data folder.
type Folder struct {
	Path     string
	Unwrit   error    // why it cannot be written
	Free     uint64   // bytes for us
	Total    uint64   // 0: not known
	Readable []string // files with secrets that others may read
	Future   time.Time
	FutureOf string // a file that was written later than now, by our clock
}

// Front is the front door of Hermes' API.
type Front struct {
	URL   string // of the API server
	NoKey bool   // for it
	Down  error  // why the API server cannot be used
	Users int    // negative: not known
}

// Port is the port that a server would listen on.
type Port struct {
	Address string
	Taken   bool
	Holder  string // in words; empty: not known
	Free    int    // another port that is free; 0: none was looked for
}

// Public is what happens at the public address, seen from here.
type Public struct {
	URL    string
	Result PublicResult
	Detail string
	Hidden bool      // something in between has requests look as if they came from the server's machine
	Open   []Opening // what a stranger can read there, and must not
}

// PublicResult is how a try of the public address ended.
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

// Certificate is one that the server is reached by. It comes from a look at the public address, or from the server itself.
type Certificate struct {
	Host     string // that it should be for
	Names    []string
	Issuer   string
	From, To time.Time
	BadName  bool
	Unknown  bool     // not signed by an authority that this machine knows
	Chain    []string // what is wrong with its chain, in sentences
}

// refusedFrom is an address in words.
func refusedFrom(a netip.Addr) string {
	if !a.IsValid() {
		return "an unknown address"
	}
	return a.String()
}
