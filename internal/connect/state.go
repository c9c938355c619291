package connect

import (
	"hermes-mobile/gateway"
	"hermes-mobile/internal/vault"
)

// Step is where the setup is.
type Step string

// The steps, in their order. Unlock comes where credentials are kept in a file that needs a passphrase.
const (
	Welcome Step = "welcome"
	Remote  Step = "remote"
	Local   Step = "local"
	Auth    Step = "auth"
	Unlock  Step = "unlock"
	Test    Step = "test"
	Done    Step = "done"
)

// State is what a face shows.
type State struct {
	Step    Step `json:"step"`
	Editing bool `json:"editing"` // a profile is in use: the person may leave without a change

	Remote   string           `json:"remote"`
	Local    string           `json:"local"`
	Insecure bool             `json:"insecure"`
	Auth     gateway.AuthMode `json:"auth"`
	Username string           `json:"username"`
	// Kept: a credential for this gateway and account is there, so the person need not enter it.
	Kept bool `json:"kept"`

	// Jobs is what the person answered to whether scheduled jobs are used that the gateway does not advertise, and NoJobs says that
	// there is this question: the gateway that was tested advertises none, as no measured version does.
	Jobs   gateway.JobAccess `json:"jobs"`
	NoJobs bool              `json:"no_jobs"`

	Vault    VaultState `json:"vault"`
	Problems []Problem  `json:"problems"` // of what was entered last
	Result   *Result    `json:"result,omitempty"`
}

// VaultState tells where credentials are kept, and what is needed for it.
type VaultState struct {
	Kind    vault.Kind    `json:"kind"`
	State   vault.State   `json:"state"`
	Problem vault.Problem `json:"problem,omitempty"`
}

// Code names a problem for a face that has words of its own for it.
type Code string

// The codes of problems.
const (
	Invalid     Code = "invalid"     // see Text
	Missing     Code = "missing"     //
	NotHTTPS    Code = "not_https"   // plain http where it is not allowed
	Lost        Code = "lost"        // what was kept cannot be read
	Passphrase  Code = "passphrase"  // wrong or too short
	Unreachable Code = "unreachable" // nothing answers
	NoName      Code = "no_name"     // the host has no address
	Slow        Code = "slow"        // no answer in time
	Certificate Code = "certificate" // nobody vouches for it
	KeyChanged  Code = "key_changed" // not the pinned key
	SignIn      Code = "sign_in"     // the credential is wrong
	Other       Code = "other"       // another gateway than the one that was learnt
	NotTried    Code = "not_tried"   // another address has to be proven first
	PlainHTTP   Code = "plain_http"  // it is no TLS server, and answers http
)

// Problem is what is wrong, with the field it is about.
type Problem struct {
	Field string `json:"field"` // remote, local, auth, username, secret, passphrase, profile
	Code  Code   `json:"code"`
	Text  string `json:"text"` // one plain sentence
}

// Result is what the compatibility test found.
type Result struct {
	Passed   bool      `json:"passed"`
	Attempts []Attempt `json:"attempts"` // Local first

	noJobs bool // the gateway advertises no scheduled jobs
}

// Attempt is what became of one address.
type Attempt struct {
	Kind gateway.RouteKind `json:"kind"`
	Host string            `json:"host"` // for the person who typed it
	OK   bool              `json:"ok"`
	Used bool              `json:"used"` // it is the route of now
	// Version of Hermes, where it answered.
	Version string `json:"version,omitempty"`
	Code    Code   `json:"code,omitempty"`
	Text    string `json:"text,omitempty"`
	// Pin is the key that the host showed, where the person may decide to trust it.
	Pin         string `json:"pin,omitempty"`
	Certificate string `json:"certificate,omitempty"` // what its certificate says of itself
	// MayGo: the setup can go on without this address, which the person has to say.
	MayGo bool `json:"may_go,omitempty"`
}

// Action is what a person does.
type Action struct {
	Do       Do               `json:"do"`
	Remote   string           `json:"remote,omitempty"`
	Local    string           `json:"local,omitempty"`
	Insecure bool             `json:"insecure,omitempty"`
	Auth     gateway.AuthMode `json:"auth,omitempty"`
	Username string           `json:"username,omitempty"`
	// Secret is the token, the password or the passphrase; empty keeps what there is.
	Secret gateway.Secret    `json:"-"`
	Kind   gateway.RouteKind `json:"kind,omitempty"` // whose key is trusted
	Jobs   gateway.JobAccess `json:"jobs,omitempty"`
	Pin    string            `json:"pin,omitempty"`
}

// Do names an action.
type Do string

// The actions.
const (
	Begin     Do = "begin"   // past the welcome
	SetRemote Do = "remote"  //
	SetLocal  Do = "local"   //
	SetAuth   Do = "auth"    //
	Open      Do = "unlock"  // the vault, with a passphrase
	ForgetAll Do = "forget"  // what the vault has and cannot read
	TestNow   Do = "test"    //
	Trust     Do = "trust"   // pin a key, and test
	Relearn   Do = "relearn" // take a gateway that was exchanged, and test
	Decline   Do = "decline" // do without the Local address, and test
	SetJobs   Do = "jobs"    // use scheduled jobs that are not advertised, or not
	Back      Do = "back"    //
	Edit      Do = "edit"    // open again
	Leave     Do = "leave"   // give up an edit
)
