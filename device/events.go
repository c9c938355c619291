package device

import "hermes-mobile/frame"

// Event is what comes out of [Device.Events]: one of the types of this file, as a value. Ignore those you do not know.
type Event interface{ event() }

// Message is a reply as it stands: redraw the one with this ID. Until Final, Text is what there is so far, and a later
// Message replaces it; such steps are live only, and a slow loop sees the newest. The Final one is durable.
type Message struct {
	ID          string
	Text        string
	Final       bool
	Interrupted bool   // the turn was cut and this is what there was
	ReplyTo     string // id of the message that began the turn
	Source      string // frame.SourceCron for a scheduled message, else empty
	Job         string // the scheduled job's name
}

// File is a complete file from the agent (§5). Kind is image, voice, video, document, animation, audio, or one not known
// yet. Either Data holds it, or URL names where [Device.Download] fetches it, or Err says why it could not be taken.
// Filename is as the server sent it: check it before using it as a path. Durable.
type File struct {
	ID       string
	Kind     string
	Mime     string
	Filename string
	Caption  string
	Size     int64 // bytes; 0 where not known
	ReplyTo  string
	Source   string
	URL      string
	Data     []byte
	Err      error
}

// CardShown is a question card (§7), to be answered with [Device.Answer] until CardDone. Again: it was shown before
// (after a reconnect, say) and the seconds left are new: it is the same card when the ID is. Show it by the rule of
// [frame.Visible] and [frame.VisibleCommand], say why it is odd where Odd or [frame.Odd] says so, and let nobody choose an
// option of [frame.Grants] before the end of the card was on the screen.
type CardShown struct {
	frame.Prompt
	Again bool
}

// CardDone says how a card ended. OptionID is what was done, which may differ from what was asked (§7). Durable.
type CardDone struct {
	ID       string
	OptionID string
	Expired  bool
	By       *frame.Peer // in a shared conversation, the device that answered
}

// Echo is what another device of a shared conversation said (§8): show it as the person's own. Durable.
type Echo struct{ frame.Echo }

// Attachment is the file or voice message of the Echo, for [Device.Download]; ok is false where it brought none.
func (e Echo) Attachment() (f File, ok bool) {
	if e.File == nil {
		return File{}, false
	}
	return File{ID: e.ID, Kind: e.File.Kind, Mime: e.File.Mime, Filename: e.File.Filename, Caption: e.Text, Size: e.File.Size, ReplyTo: e.ReplyTo,
		URL: e.File.URL}, true
}

// Notice tells of another device of the user: it is new, has joined a conversation, or has more rights (§8); with Config.Notices
// only. Show it to a person. Where it is Revocable, [Device.RevokeDevice] shuts that device out. Durable.
type Notice struct{ frame.Notice }

// Receipt is the end of something that was sent: the server has it, or Err says why it never will (*frame.Error).
type Receipt struct {
	ID          string
	Duplicate   bool // the server had it already
	Queued      bool // the agent is away and gets it later
	Unconfirmed bool // this server gives no receipts: it was written to the connection, no more is known
	Err         error
}

// Activity is what the indicator and the avatar show. It goes off by itself when signs of work stop or the link drops.
type Activity struct {
	Typing bool
	Avatar string // idle, thinking or speaking
}

// Tool tells what the agent is doing (§6); with Config.Tools only.
type Tool struct{ frame.Tool }

// StatusChanged carries the new status. A slow loop sees the newest only.
type StatusChanged struct{ Status }

// HistoryLost: the server could not go on from where this device was (§4). What it still has follows, some of it perhaps
// seen before; what fell between is gone.
type HistoryLost struct{}

// Problem is an error that belongs to nothing that was sent: an error frame without ref (*frame.Error), a frame that
// could not be read, or a store that failed. The device goes on.
type Problem struct{ Err error }

// Unknown is a frame of a type this version does not know, with its JSON, for an app that does.
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
