// Package agent is the contract between the hub and the agents: what an agent does ([Agent]) and what it
// reports to a conversation ([Host] with [Event]). It knows neither the device protocol nor any agent, and
// imports the standard library only.
//
// A conversation belongs to one device and is named by its device id. The hub submits the inputs of a
// conversation one at a time: the next one when the turn of the last has ended. So an agent never gets a
// second message in the middle of a turn unless it asked for it with [Agent.Admits].
package agent

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"math/rand/v2"
	"time"
)

// ErrAway is returned when the agent is offline. The hub keeps the input or the answer, and submits it
// again when the status of the agent says online.
var ErrAway = errors.New("the agent is offline")

// ErrOwnTurn is returned when an input cannot join the turn that it names (Input.Joins). The hub submits it
// again as one that begins a turn.
var ErrOwnTurn = errors.New("the message cannot join the running turn")

// ErrNoDevice is returned when there is no such device, or it was revoked.
var ErrNoDevice = errors.New("no such device")

// Agent is a backend that answers the messages of users. Its methods never block, because they may be
// called from a session's own queue. Except for Run, all may be called from several goroutines at once, and
// only after Run has begun.
type Agent interface {
	// Name returns the kind of the agent for logs and status, such as relay or demo.
	Name() string
	// Run serves until ctx ends, and owns every goroutine of the agent. It returns when all of them have
	// ended.
	Run(ctx context.Context, host Host) error
	// Status returns what the agent can do for a device now. It must be cheap. Host.Changed says when it
	// may differ.
	Status(device string) Status
	// Hand submits an input, which begins a turn that the agent ends with Done. The agent calls taken, the
	// ack, exactly once, from any goroutine. nil means that the input is safe with the agent: a crash of
	// this process would not lose it, or the agent accepts that it is submitted again with Input.Handed.
	// After ErrAway the hub keeps it. Any other error rejects it for good, in words for the user.
	Hand(in Input, taken func(error))
	// Admits reports whether an input may be submitted while a turn of its conversation is running.
	Admits(in Input) bool
	// Stop interrupts the running turn of a device, if there is one. The agent ends the turn with Done as
	// usual.
	Stop(device string)
	// Answer tells the agent how a card was decided. taken is the ack as in Hand: nil settles the card, and
	// After ErrAway the hub keeps the decision and calls Answer again when the agent is back. It may also
	// call it again after a restart.
	Answer(card Card, answer Answer, taken func(error))
}

// Status is what an agent can do for one device now.
type Status struct {
	Online  bool
	Edit    bool // it streams replies
	Typing  bool // it says that it works
	Prompt  bool // it asks by cards
	Stop    bool // a turn can be interrupted
	Steer   bool // a text can join the running turn, see Input.Joins
	Tool    bool // it says which tools it uses
	FilesIn bool // it takes files and voice messages
	Images  bool // it takes images, and nothing else unless FilesIn or AnyFile is set
	AnyFile bool // it takes files of every kind, but no voice messages
	Files   bool // it sends files
	// Detail is a short sentence for the owner: which gateway and version, or why the agent is offline.
	Detail string
}

// Host is the hub as an agent sees it. Its methods may be called from several goroutines at once.
type Host interface {
	// Post gives events to the conversation of a device. The events of one call are applied together, in
	// order, and everything durable in them is stored in one transaction. It never blocks. Calls from one
	// goroutine keep their order. done, if it is not nil, is called once from any goroutine: with nil when
	// everything is stored and will reach the device whatever happens, else with the reason, and then
	// nothing was applied. An unknown or revoked device gives ErrNoDevice.
	Post(device string, done func(error), events ...Event)
	// Changed tells the hub that Status or Admits may have changed, for any device. The hub tells the
	// devices, and submits the inputs that wait.
	Changed()
	// OpenCards returns the open cards of a device, oldest first. It may block on the store.
	OpenCards(ctx context.Context, device string) ([]Card, error)
}

// Files stores the bytes of files by the hash of their content.
type Files interface {
	// Put stores a file. It fails if r has more than max bytes.
	Put(r io.Reader, max int64) (hash string, size int64, err error)
	// Open opens a stored file.
	Open(hash string) (io.ReadSeekCloser, error)
	// LocalCopy makes a copy with this name for an agent on the same machine, and returns its absolute
	// path.
	LocalCopy(hash, filename string) (path string, err error)
}

// Input is a message of a user.
type Input struct {
	N          int64  // its number in the store, growing, never reused
	Device     string // the conversation
	DeviceName string
	User       string
	UserName   string
	ID         string // the app's own id of the message; may be empty
	Kind       InputKind
	Text       string // the text, the caption of a file, or the words of a voice message if the app knows them
	ReplyTo    string // the id of the message to which the user replies; may be empty
	Quote      string // the text of that message, if it is still known
	File       *File  // for Voice and Media
	Steer      bool   // a text that should join the turn that was running when it came
	Handed     bool   // it was acknowledged in an earlier run of this process; what became of it is not known
	Cards      []Card // with Handed: the open cards of its turn
	Texts      int    // with Handed: how many final messages and files of its turn are stored

	// Joins is the number of the input whose running turn this one joins, if Admits allows it: the model
	// reads it in the midst of its work. If it is too late for that, the agent rejects it with ErrOwnTurn,
	// or answers it like any other. It is 0 for inputs that begin a turn.
	Joins int64 `json:"-"`
}

// InputKind says what an Input is.
type InputKind int

// The kinds of input.
const (
	Text  InputKind = iota
	Voice           // a voice message: File, perhaps Text
	Media           // a file: File.Kind is image, video, document or audio
)

// File describes a stored file.
type File struct {
	Kind string // image, voice, video, document, animation, audio
	Mime string
	Name string
	Hash string
	Size int64 // in bytes
}

// Card is a question to the user.
type Card struct {
	ID          string // from NewID; the hub uses it as it is
	N           int64  // the input whose turn asks; 0 if none
	Kind        string // exec_approval, slash_confirm, clarify or another
	Text        string
	Command     string
	Cut         bool // Command is only the beginning of what would run
	Description string
	Options     []Option
	Life        time.Duration // the agent's own time limit; 0: the configured one
	State       []byte        // a few bytes of the agent's own, returned with Answer, also after a restart
}

// Option is one choice of a card. Style is primary, danger or empty.
type Option struct {
	ID    string `json:"id"`
	Label string `json:"label"`
	Style string `json:"style"`
}

// Answer is how a card was decided. OptionID is always one of the card's, or the safe value. For a clarify
// card it is "other" with the user's own words in Text, and a clarify card that expired has neither.
type Answer struct {
	OptionID string
	Text     string
	Expired  bool // nobody answered in time
}

// NewID returns a random id for a message, file or card. It is unique and not secret. Each op of a stream
// needs one, so it comes from math/rand/v2, which the system seeds, and which takes a hundredth of the time
// of crypto/rand.
func NewID() string {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, 16), rand.Uint64())
	b = binary.BigEndian.AppendUint64(b, rand.Uint64())
	return hex.EncodeToString(b[:9])
}
