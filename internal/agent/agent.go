// Package agent holds the words that the hub and the agents share, and the two contracts between them: what an agent does
// ([Agent]) and what it says back to a conversation ([Host] with [Event]). It knows neither the device protocol nor any
// agent, and imports the standard library only.
//
// A conversation belongs to one device and is named by its device id. Inputs of one conversation are handed over one at a
// time: the next one when the turn of the last has ended, so an agent never meets a second message in the middle of a
// turn unless it asked for it with [Agent.Admits].
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

// ErrAway: the agent cannot be reached now. The hub keeps the input or the answer and hands it over again when the
// agent's status says online.
var ErrAway = errors.New("the agent is away")

// ErrOwnTurn: an input cannot join the turn that it should (Input.Joins). The hub hands it over again as one that begins a turn.
var ErrOwnTurn = errors.New("the message cannot join the running turn")

// Agent is what a backend does. Its methods never block: they may be called from a session's own queue. Except for Run,
// all may be called from several goroutines at once, and only after Run has begun.
type Agent interface {
	// Name is the agent's kind for logs and status: relay, demo.
	Name() string
	// Run serves until ctx ends and owns every goroutine of the agent. It returns when all of them have.
	Run(ctx context.Context, host Host) error
	// Status says what the agent can do for this device now. It must be cheap. Host.Changed tells when it may differ.
	Status(device string) Status
	// Hand gives the agent an input, which begins a turn that the agent ends with Done. The agent calls taken exactly
	// once, from any goroutine: with nil when the input is safe with it (a crash of this process would not lose it, or it
	// is content to be handed it again with Input.Handed), with ErrAway to have it kept, with another error to refuse it
	// for good in words for the person.
	Hand(in Input, taken func(error))
	// Admits reports whether an input may be handed over while a turn of its conversation is running.
	Admits(in Input) bool
	// Stop interrupts the running turn of a device, if there is one. The agent ends the turn with Done as ever.
	Stop(device string)
	// Answer tells the agent how a card was decided. taken as in Hand: nil settles the card, ErrAway keeps it to be told
	// again. The same decision may be told again after a restart.
	Answer(card Card, answer Answer, taken func(error))
}

// Status is what an agent can do for one device now.
type Status struct {
	Online  bool
	Edit    bool // replies are streamed
	Typing  bool // it tells that it works
	Prompt  bool // it asks by cards
	Stop    bool // a turn can be interrupted
	Steer   bool // a turn can be told more while it runs, see Input.Joins
	Tool    bool // it tells what tools it uses
	FilesIn bool // it takes files and voice
	Images  bool // it takes images, and where neither FilesIn nor AnyFile is set nothing else
	AnyFile bool // it takes files of every kind, but no voice messages
	Files   bool // it sends files
	// Detail is a short sentence for the owner: which gateway and version, or why it is away.
	Detail string
}

// Host is what the hub offers an agent.
type Host interface {
	// Post gives events to a device's conversation. Events of one call are applied together, in order: what is durable in
	// them is stored in one transaction. It never blocks; calls from one goroutine keep their order. done, where it is not
	// nil, is called once from any goroutine: with nil when everything is stored (and will reach the device whatever
	// happens), else with why not, and then nothing of it was applied. An unknown or revoked device gives ErrNoDevice.
	Post(device string, done func(error), events ...Event)
	// Changed tells the hub that Status or Admits may have changed, for all devices: it tells them, and hands over what
	// waits.
	Changed()
	// OpenCards returns the cards of a device that are open, oldest first. It may block on the store.
	OpenCards(ctx context.Context, device string) ([]Card, error)
}

// ErrNoDevice: there is no such device, or it was revoked.
var ErrNoDevice = errors.New("no such device")

// Files is where the bytes of files are kept, by the hash of their content.
type Files interface {
	Put(r io.Reader, max int64) (hash string, size int64, err error) // fails when there are more than max bytes
	Open(hash string) (io.ReadSeekCloser, error)
	// LocalCopy makes a file with this name for an agent on the same machine and returns its absolute path.
	LocalCopy(hash, filename string) (path string, err error)
}

// Input is something a person sent.
type Input struct {
	N          int64  // number in the store, growing, never reused
	Device     string // the conversation
	DeviceName string
	User       string
	UserName   string
	ID         string // the app's own id of the message; may be empty
	Kind       InputKind
	Text       string // the text, the caption of a file, or the words of a voice message where the app knows them
	ReplyTo    string // id of the message that the person replies to; may be empty
	Quote      string // text of that message, where it is still known
	File       *File  // for Voice and Document
	Steer      bool   // a text that should join the turn that was running when it came
	Handed     bool   // it was taken in an earlier life of this process; what became of it is not known
	Cards      []Card // with Handed: the cards of its turn that are not settled
	Texts      int    // with Handed: how many final messages and files its turn had already stored

	// Joins is the number of the running turn's input that this one is to be added to, where Admits allows it: the model reads
	// it in the midst of its work. What cannot be added any more is refused with ErrOwnTurn, or answered like any other. 0 for
	// all other inputs, and for those that begin a turn.
	Joins int64 `json:"-"`
}

// InputKind tells what an Input is.
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
	Size int64
}

// Card is a question to the person.
type Card struct {
	ID          string // NewID; the hub uses it as it is
	N           int64  // the input whose turn asks; 0 if none
	Kind        string // exec_approval, slash_confirm, clarify or another
	Text        string
	Command     string
	Cut         bool // Command is only the beginning of what would run
	Description string
	Options     []Option
	Life        time.Duration // the agent's own time limit; 0 = the configured one
	State       []byte        // a few bytes of the agent's own, given back with Answer, also after a restart
}

// Option is one choice of a card. Style is primary, danger or empty.
type Option struct {
	ID    string `json:"id"`
	Label string `json:"label"`
	Style string `json:"style"`
}

// Answer is how a card was decided. OptionID is always one of the card's, or the safe value; for a clarify card it is
// "other" with Text for own words. A clarify card that expired has neither.
type Answer struct {
	OptionID string
	Text     string
	Expired  bool // nobody answered in time
}

// NewID returns a random id for a message, file or card. It is unique and no secret, and there is one for each op of a stream: the
// generator of math/rand/v2, which the system seeds, takes a hundredth of the time.
func NewID() string {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, 16), rand.Uint64())
	b = binary.BigEndian.AppendUint64(b, rand.Uint64())
	return hex.EncodeToString(b[:9])
}
