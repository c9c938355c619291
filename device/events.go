package device

import "hermes-mobile/frame"

// Event is an event of [Device.Events]: a value of one of the types below that have an event
// method. Ignore types that you do not know.
type Event interface{ event() }

// Message is the current state of a reply: redraw the one with this ID. Until Final, Text is the
// text so far, and a later Message replaces it. Such edits are live only, and a slow loop sees only
// the newest. The Final one is durable.
type Message struct {
	ID          string
	Text        string
	Final       bool
	Interrupted bool   // the turn ended early, and this is the text so far
	ReplyTo     string // id of the message that began the turn
	Source      string // frame.SourceCron for a scheduled message, otherwise empty
	Job         string // name of the scheduled job
}

// File is a complete file from the agent (doc/protocol.md §5). Kind is image, voice, video,
// document, animation, audio, or one of a later version. Either Data holds the content, or
// [Device.Download] fetches it from URL, or Err says why the device did not accept it. The server
// chose Filename: check it before you use it as a path. Durable.
type File struct {
	ID       string
	Kind     string
	Mime     string
	Filename string
	Caption  string
	Size     int64 // in bytes; 0 where unknown
	ReplyTo  string
	Source   string
	URL      string
	Data     []byte
	Err      error
}

// CardShown is a card (doc/protocol.md §7). The user answers it with [Device.Answer] until
// CardDone. Again marks a card that came before, for example before a reconnect; its remaining
// seconds are new. Prepare the texts with [frame.Visible] and the command with
// [frame.VisibleCommand]. Where Odd or [frame.Odd] is true, tell the user why. Enable the options
// of [frame.Grants] only after the end of the card was on the screen.
type CardShown struct {
	frame.Prompt
	Again bool
}

// CardDone tells how a card ended. OptionID is the option that took effect, which may differ from
// the answer (doc/protocol.md §7). Durable.
type CardDone struct {
	ID       string
	OptionID string
	Expired  bool
	By       *frame.Peer // in a shared conversation, the device that answered
}

// Echo is a message that another device of a shared conversation sent (doc/protocol.md §8). Show it
// as the user's own. Durable.
type Echo struct{ frame.Echo }

// Attachment returns the file or voice message of the echo, for [Device.Download]. It reports false
// for an echo without a file.
func (e Echo) Attachment() (f File, ok bool) {
	if e.File == nil {
		return File{}, false
	}
	return File{ID: e.ID, Kind: e.File.Kind, Mime: e.File.Mime, Filename: e.File.Filename, Caption: e.Text, Size: e.File.Size, ReplyTo: e.ReplyTo,
		URL: e.File.URL}, true
}

// Notice reports another device of the user that is new, joined a conversation, or got more rights
// (doc/protocol.md §8). It needs Config.Notices. Show it to the user. Where it is Revocable,
// [Device.RevokeDevice] revokes that device. Durable.
type Notice struct{ frame.Notice }

// Receipt tells the result of sending a message, a file or an answer: the server acknowledged it,
// or Err says why it never will. Err is a [*frame.Error], [ErrClosed], or the error of reading a
// file.
type Receipt struct {
	ID          string
	Duplicate   bool // the server already had it
	Queued      bool // the agent is offline and gets it later
	Unconfirmed bool // the server sends no acks: the device wrote it to the connection and knows no more
	Err         error
}

// Activity is the state of the typing indicator and the avatar. Both turn off when signs of work
// stop or the connection drops.
type Activity struct {
	Typing bool
	Avatar string // idle, thinking or speaking
}

// Tool tells what the agent is doing (doc/protocol.md §6). It needs Config.Tools.
type Tool struct{ frame.Tool }

// StatusChanged holds the new status. A slow loop sees only the newest.
type StatusChanged struct{ Status }

// HistoryLost tells that the server could not resume where this device was (doc/protocol.md §4). It
// sends what it still has, so some history may be missing or repeated.
type HistoryLost struct{}

// Problem is an error that concerns no message of the app: an error frame without a ref
// ([*frame.Error]), a malformed frame, or a failed store. The device keeps running.
type Problem struct{ Err error }

// Unknown is a frame of a type that this version does not know, with its JSON.
type Unknown struct {
	Type string
	Raw  []byte
}

func (Message) event()       {}
func (File) event()          {}
func (CardShown) event()     {}
func (CardDone) event()      {}
func (Echo) event()          {}
func (Notice) event()        {}
func (Receipt) event()       {}
func (Activity) event()      {}
func (Tool) event()          {}
func (StatusChanged) event() {}
func (HistoryLost) event()   {}
func (Problem) event()       {}
func (Unknown) event()       {}
