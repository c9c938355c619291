package agent

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
)

// Caller is an agent that answers calls of its devices (doc/protocol.md §9), beside what every Agent does. The names of
// methods are those of the protocol, such as commands.list; those of the server itself (devices.*, push.*) are never given
// to it.
type Caller interface {
	// Methods are the calls that a device of this conversation may make now. It must be cheap, like Agent.Status, and
	// Host.Changed tells when it may differ.
	Methods(device string) []string
	// Call does one that Methods named, and returns its result as JSON, MaxResult bytes at most; nothing counts as {}. It
	// runs in a goroutine of its own, several at once also of one device, and must return soon after ctx ends, which it
	// does when the call takes too long or the server stops. One that comes before Run or after it gets ErrAway. A *CallError is told to the device, and so is ErrAway; any
	// other error is logged, and the device hears that the agent failed.
	Call(ctx context.Context, call Call) (result []byte, err error)
}

// Call is something that a device asks the agent for.
type Call struct {
	Device string // the conversation
	From   string // the device that asks: another one where it has joined that conversation
	User   string
	Method string
	Params []byte // a JSON object, never empty
}

// MaxResult bounds the result of a call in bytes, so that several fit beside what else waits for a slow device.
const MaxResult = 4 << 20

// CallError is why an agent did not do a call. Code is for programs, in small letters and underscores; Message is a plain
// sentence for the person that says what to do.
type CallError struct {
	Code    string
	Message string
}

func (e *CallError) Error() string { return e.Message }

// Codes of a CallError that several methods have.
const (
	BadParams = "bad_params" // the parameters do not have the form that the method asks for
	NotFound  = "not_found"  // what the parameters name is not there
)

// CommandsList is the method that tells what commands an agent has; its result is a Commands. It has no parameters.
const CommandsList = "commands.list"

// Commands is the result of CommandsList.
type Commands struct {
	Commands []Command `json:"commands"`
}

// Command is a line that a person may send as a message.
type Command struct {
	Name        string `json:"name"` // how it is typed, from its slash on; it may be of several words
	Description string `json:"description"`
	Args        string `json:"args,omitempty"` // what may follow, for display: [title]
}

// ProfilesList tells the profiles of an agent that has several; its result is a Profiles. ProfilesChoose has a conversation use one from
// its next turn on; its parameters are a ProfileChoice.
const (
	ProfilesList   = "profiles.list"
	ProfilesChoose = "profiles.choose"
)

// Profiles is the result of ProfilesList.
type Profiles struct {
	Profiles []Profile `json:"profiles"`
}

// Profile is one of several agents behind one gateway, with settings, memory and sessions of its own.
type Profile struct {
	Name    string `json:"name"`
	Current bool   `json:"current"` // the conversation uses it
}

// ProfileChoice are the parameters of ProfilesChoose.
type ProfileChoice struct {
	Name string `json:"name"`
}

// Choice reads the parameters of ProfilesChoose: the name of one of the profiles there are.
func Choice(params []byte, names []string) (string, error) {
	var c ProfileChoice
	if err := json.Unmarshal(params, &c); err != nil || c.Name == "" {
		return "", &CallError{Code: BadParams, Message: "name must be the name of a profile"}
	}
	if !slices.Contains(names, c.Name) {
		return "", &CallError{Code: NotFound, Message: "there is no profile of that name: choose one of " + strings.Join(names, ", ")}
	}
	return c.Name, nil
}
