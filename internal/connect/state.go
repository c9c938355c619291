package connect

import (
	"hermes-mobile/gateway"
	"hermes-mobile/internal/vault"
)

// Step is a step of the wizard.
type Step string

// The steps, in order. Unlock occurs only if a passphrase protects the credentials.
const (
	Welcome Step = "welcome"
	Remote  Step = "remote"
	Local   Step = "local"
	Auth    Step = "auth"
	Unlock  Step = "unlock"
	Test    Step = "test"
	Done    Step = "done"
)

// State is what the page or the terminal shows.
type State struct {
	Step    Step `json:"step"`
	Editing bool `json:"editing"` // a profile is in use, so the user may leave without a change

	Remote   string           `json:"remote"`
	Local    string           `json:"local"`
	Insecure bool             `json:"insecure"`
	Auth     gateway.AuthMode `json:"auth"`
	Username string           `json:"username"`
	// Kept reports that a credential for this gateway and account is stored, so the user need not enter it.
	Kept bool `json:"kept"`

	// Jobs is the user's answer to whether to use scheduled jobs that the gateway does not advertise. NoJobs
	// reports that the question applies: the tested gateway advertises no jobs, as no measured version does.
	Jobs   gateway.JobAccess `json:"jobs"`
	NoJobs bool              `json:"no_jobs"`

	Vault    VaultState `json:"vault"`
	Problems []Problem  `json:"problems"` // of the last action
	Result   *Result    `json:"result,omitempty"`
}

// VaultState describes where credentials are stored, and whether the vault is open.
type VaultState struct {
	Kind    vault.Kind    `json:"kind"`
	State   vault.State   `json:"state"`
	Problem vault.Problem `json:"problem,omitempty"`
}

// Code identifies a problem, for a page that has its own texts.
type Code string

// The codes of problems.
const (
	Invalid     Code = "invalid"     // see Text
	Missing     Code = "missing"     //
	NotHTTPS    Code = "not_https"   // plain http where it is not allowed
	Lost        Code = "lost"        // stored data is unreadable
	Passphrase  Code = "passphrase"  // wrong or too short
	Unreachable Code = "unreachable" // nothing answers
	NoName      Code = "no_name"     // the host has no address
	Slow        Code = "slow"        // no answer in time
	Certificate Code = "certificate" // not trusted or not valid
	KeyChanged  Code = "key_changed" // not the pinned key
	SignIn      Code = "sign_in"     // the credential is wrong
	Other       Code = "other"       // another gateway than the known one
	NotTried    Code = "not_tried"   // the other address must pass first
	PlainHTTP   Code = "plain_http"  // not a TLS server, but answers plain HTTP
)

// Problem is a problem with a field.
type Problem struct {
	Field string `json:"field"` // remote, local, auth, username, secret, passphrase, profile
	Code  Code   `json:"code"`
	Text  string `json:"text"` // one plain sentence
}

// Result is the result of the compatibility test.
type Result struct {
	Passed   bool      `json:"passed"`
	Attempts []Attempt `json:"attempts"` // Local first

	noJobs bool // the gateway advertises no scheduled jobs
}

// Attempt is the result for one address.
type Attempt struct {
	Kind gateway.RouteKind `json:"kind"`
	Host string            `json:"host"` // for display
	OK   bool              `json:"ok"`
	Used bool              `json:"used"` // the route that the client uses
	// Version is the version of Hermes, if it answered.
	Version string `json:"version,omitempty"`
	Code    Code   `json:"code,omitempty"`
	Text    string `json:"text,omitempty"`
	// Pin is the fingerprint of the host's key, if the user may decide to trust it.
	Pin         string `json:"pin,omitempty"`
	Certificate string `json:"certificate,omitempty"` // describes its certificate
	// CanSkip reports that the user may continue without this address.
	CanSkip bool `json:"may_go,omitempty"`
}

// Action is an action of the user.
type Action struct {
	Do       Do               `json:"do"`
	Remote   string           `json:"remote,omitempty"`
	Local    string           `json:"local,omitempty"`
	Insecure bool             `json:"insecure,omitempty"`
	Auth     gateway.AuthMode `json:"auth,omitempty"`
	Username string           `json:"username,omitempty"`
	// Secret is the token, the password, or the passphrase. An empty one keeps the stored one.
	Secret gateway.Secret    `json:"-"`
	Kind   gateway.RouteKind `json:"kind,omitempty"` // of the address whose key the user trusts
	Jobs   gateway.JobAccess `json:"jobs,omitempty"`
	Pin    string            `json:"pin,omitempty"`
}

// Do is the kind of an action.
type Do string

// The actions.
const (
	Begin     Do = "begin"   // leave the welcome step
	SetRemote Do = "remote"  //
	SetLocal  Do = "local"   //
	SetAuth   Do = "auth"    //
	Open      Do = "unlock"  // unlock the vault with a passphrase
	ForgetAll Do = "forget"  // delete the stored credentials
	TestNow   Do = "test"    //
	Trust     Do = "trust"   // pin a key, and test
	Relearn   Do = "relearn" // accept a replaced gateway, and test
	Decline   Do = "decline" // continue without the local address, and test
	SetJobs   Do = "jobs"    // decide about scheduled jobs that are not advertised
	Back      Do = "back"    //
	Edit      Do = "edit"    // change a connected gateway
	Leave     Do = "leave"   // discard the changes
)
