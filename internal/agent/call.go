package agent

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
)

// Caller is an agent that answers calls of its devices (doc/protocol.md §9). The names of methods are those
// of the protocol, such as commands.list. Calls of the server itself (devices.*, push.*) never reach it.
type Caller interface {
	// Methods returns the calls that a device of this conversation may make now. It must be cheap, like
	// Agent.Status, and Host.Changed says when it may differ.
	Methods(device string) []string
	// Call answers a call that Methods named, and returns its result as JSON of at most MaxResult bytes.
	// An empty result counts as {}. It runs in a goroutine of its own, several at once even for one device.
	// It must return soon after ctx ends, which happens when the call takes too long or the server stops. A
	// call before or after Run gets ErrAway. The device is told a *CallError and ErrAway. Any other error
	// is logged, and the device is told that the agent failed.
	Call(ctx context.Context, call Call) (result []byte, err error)
}

// Call is a request of a device to the agent.
type Call struct {
	Device string // the conversation
	From   string // the device that asks: another one where it has joined that conversation
	User   string
	Method string
	Params []byte // a JSON object, never empty
}

// MaxResult bounds the result of a call in bytes, so that several fit into the queue of a slow device.
const MaxResult = 4 << 20

// CallError says why an agent rejected a call.
type CallError struct {
	Code    string // for programs, in lower case with underscores
	Message string // a plain sentence that tells the user what to do
}

// Error implements error.
func (e *CallError) Error() string { return e.Message }

// Codes of a CallError that several methods use.
const (
	BadParams = "bad_params" // the parameters do not have the form of the method
	NotFound  = "not_found"  // the parameters name something that does not exist
)

// CommandsList is the method that returns the commands of an agent as Commands. It has no parameters.
const CommandsList = "commands.list"

// Commands is the result of CommandsList.
type Commands struct {
	Commands []Command `json:"commands"`
}

// Command is a line that a user may send as a message.
type Command struct {
	Name        string `json:"name"` // as it is typed, from its slash on; it may have several words
	Description string `json:"description"`
	Args        string `json:"args,omitempty"` // what may follow, for display: [title]
}

// ProfilesList is the method that returns the profiles of an agent that has several, as Profiles.
// ProfilesChoose has a conversation use one from its next turn on. Its parameters are a ProfileChoice.
const (
	ProfilesList   = "profiles.list"
	ProfilesChoose = "profiles.choose"
)

// Profiles is the result of ProfilesList.
type Profiles struct {
	Profiles []Profile `json:"profiles"`
}

// Profile is one of several agents behind one gateway, with its own settings, memory and sessions.
type Profile struct {
	Name    string `json:"name"`
	Current bool   `json:"current"` // the conversation uses it
}

// ProfileChoice are the parameters of ProfilesChoose.
type ProfileChoice struct {
	Name string `json:"name"`
}

// Choice reads the parameters of ProfilesChoose and returns the chosen name, which is one of names. It
// returns a *CallError otherwise.
func Choice(params []byte, names []string) (string, error) {
	var c ProfileChoice
	if err := json.Unmarshal(params, &c); err != nil || c.Name == "" {
		return "", &CallError{Code: BadParams, Message: "name must be the name of a profile"}
	}
	if !slices.Contains(names, c.Name) {
		return "", &CallError{Code: NotFound, Message: "there is no profile with that name: choose one of " + strings.Join(names, ", ")}
	}
	return c.Name, nil
}
