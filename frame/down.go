package frame

import "time"

// Down is a frame from the server to a device. Only the types of this package implement it.
type Down interface{ down() }

// Ready answers an accepted Hello. Token is set only after pairing: it is the device's own token,
// which the device stores and uses from then on.
type Ready struct {
	Session      string       `json:"session"`
	AvatarURL    string       `json:"avatar_url,omitzero"`
	Capabilities Capabilities `json:"capabilities"`
	Protocol     int          `json:"protocol"`
	Server       string       `json:"server"`
	Approved     bool         `json:"approved"`
	Agent        AgentState   `json:"agent"`
	Resume       Span         `json:"resume"`
	Token        string       `json:"token,omitzero"`
}

// AgentState tells whether the server can reach the agent now.
type AgentState string

// The states of an agent. While the agent is away (offline), the server accepts messages and queues
// them.
const (
	Online AgentState = "online"
	Away   AgentState = "away"
)

// Span tells which durable frames follow a Ready: those from From to To, none where From > To.
// Lost: the server cannot resume at the client's cursor and sends all it has.
type Span struct {
	Epoch string `json:"epoch"`
	From  int64  `json:"from"`
	To    int64  `json:"to"`
	Lost  bool   `json:"lost"`
}

// Capabilities tells what this connection to the agent supports now. Absent or false means: do not
// use. Sizes are in bytes.
type Capabilities struct {
	Text     bool     `json:"text"`
	Audio    bool     `json:"audio"`
	Media    bool     `json:"media"`
	Prompt   bool     `json:"prompt"`
	Edit     bool     `json:"edit"`
	Typing   bool     `json:"typing"`
	Avatar   bool     `json:"avatar"`
	Deliver  bool     `json:"deliver"`
	Resume   bool     `json:"resume"`
	Accepted bool     `json:"accepted"`
	Stop     bool     `json:"stop"`
	Steer    bool     `json:"steer"` // the agent can add a text to the running turn: see Text.Steer
	Delta    bool     `json:"delta"`
	Tool     bool     `json:"tool"`
	MediaURL bool     `json:"media_url"`
	Push     bool     `json:"push"`
	Shared   bool     `json:"shared"` // other devices share the conversation
	Call     []string `json:"call"`
	// MediaKinds lists the kinds of files that the agent accepts, where it does not accept all: see
	// Media.Kind.
	MediaKinds []string `json:"media_kinds,omitzero"`

	MaxMediaBytes int64 `json:"max_media_bytes"`
	MaxFrameBytes int64 `json:"max_frame_bytes"`
	ChunkBytes    int64 `json:"chunk_bytes"`
	MaxParts      int   `json:"max_parts"`
	MinChunkBytes int64 `json:"min_chunk_bytes"`
	MaxUploads    int   `json:"max_uploads"`
	PromptSeconds int   `json:"prompt_seconds"`

	// AnswersAt is when a new device may answer cards, and AnswersIn the seconds until then,
	// rounded up. Until then Prompt is false. Both are absent where the device need not wait.
	AnswersAt time.Time `json:"answers_at,omitzero"`
	AnswersIn int       `json:"answers_in,omitzero"`
}

// CapabilitiesChanged replaces the capabilities and agent state of Ready (t is "capabilities").
type CapabilitiesChanged struct {
	Capabilities Capabilities `json:"capabilities"`
	Agent        AgentState   `json:"agent"`
}

// Approved tells a waiting device that the owner approved it.
type Approved struct{}

// Accepted acknowledges a message: the server stored it, and it will reach the agent. Queued: the
// agent is offline.
type Accepted struct {
	ID        string `json:"id,omitzero"`
	Duplicate bool   `json:"duplicate"`
	Queued    bool   `json:"queued"`
}

// Delivered acknowledges a Deliver. Queued: the device is offline and gets it later.
type Delivered struct {
	ID     string `json:"id,omitzero"`
	Queued bool   `json:"queued"`
}

// Chunk numbers the pieces of a long reply.
type Chunk struct {
	Index int `json:"index"`
	Total int `json:"total"`
}

// Message is a reply or a piece of one (doc/protocol.md §4). Without Append, Text is the text of
// the chunk, or with Edit the whole text so far. With Append, the frame carries only the text added
// after At UTF-16 code units, or at the end where At is 0. Then Edit has no meaning; leaving it out
// gives the short form that AcceptTail allows. Final messages have a Seq.
type Message struct {
	ID          string  `json:"id"`
	Text        string  `json:"text"`
	Edit        bool    `json:"edit"`
	Append      *string `json:"append"`
	At          int     `json:"at"`
	Chunk       Chunk   `json:"chunk"`
	Final       bool    `json:"final"`
	Interrupted bool    `json:"interrupted"`
	ReplyTo     string  `json:"reply_to"`
	Source      string  `json:"source"` // SourceCron for scheduled messages, otherwise empty
	Job         string  `json:"job"`    // name of the scheduled job
	Seq         int64   `json:"seq"`
}

// SourceCron marks scheduled messages in Message.Source and Media.Source.
const SourceCron = "cron"

// Media is a file or a part of one, in either direction (doc/protocol.md §5). Up, Kind is image,
// video, document or audio; down it can also be voice or animation. Down, the last part has Final,
// and a file over the limit has a URL and no Data. Size is the size of the whole file in bytes. Up
// it is an optional hint with which the server rejects a file early where it has no space.
type Media struct {
	ID       string `json:"id,omitzero"`
	Kind     string `json:"kind,omitzero"`
	Mime     string `json:"mime,omitzero"`
	Filename string `json:"filename,omitzero"`
	Caption  string `json:"caption,omitzero"`
	Size     int64  `json:"size,omitzero"`
	Part     int    `json:"part"`
	Parts    int    `json:"parts"`
	Final    bool   `json:"final,omitzero"`
	ReplyTo  string `json:"reply_to,omitzero"`
	Source   string `json:"source,omitzero"`
	URL      string `json:"url,omitzero"`
	Seq      int64  `json:"seq,omitzero"`
	Data     []byte `json:"data,omitempty"`
}

// Prompt is a card: a question to the user (doc/protocol.md §7). Command and Description come with
// exec_approval. Odd: it holds characters that do not show as themselves, or is longer than a
// screen, so the user must look closely.
type Prompt struct {
	ID             string    `json:"id"`
	Kind           string    `json:"kind"`
	Text           string    `json:"text"`
	Command        string    `json:"command,omitzero"`
	Description    string    `json:"description,omitzero"`
	Odd            bool      `json:"odd,omitzero"`
	Options        []Option  `json:"options"`
	Session        string    `json:"session"`
	TimeoutSeconds int       `json:"timeout_seconds"`
	ExpiresAt      time.Time `json:"expires_at"`
	Seq            int64     `json:"seq,omitzero"`
}

// The kinds of cards. A client shows an unknown kind with its options, too.
const (
	ExecApproval = "exec_approval"
	SlashConfirm = "slash_confirm"
	Clarify      = "clarify"
)

// OtherOption is the option of a clarify card that stands for the user's own words.
const OtherOption = "other"

// The safe options: DenyOption of an exec_approval card, CancelOption of a slash_confirm card. They
// apply when nobody answers in time.
const (
	DenyOption   = "deny"
	CancelOption = "cancel"
)

// Option is one button of a card. Style is "primary", "danger" or empty.
type Option struct {
	ID    string `json:"id"`
	Label string `json:"label"`
	Style string `json:"style"`
}

// PromptDone tells how a card ended. PromptID and ID are the same. In a shared conversation, By is
// the device that answered.
type PromptDone struct {
	PromptID string `json:"prompt_id"`
	ID       string `json:"id"`
	OptionID string `json:"option_id,omitzero"`
	Expired  bool   `json:"expired"`
	By       *Peer  `json:"by,omitzero"`
	Seq      int64  `json:"seq,omitzero"`
}

// Peer is a device of a shared conversation (doc/protocol.md §8). Name is for display and may be
// empty.
type Peer struct {
	ID   string `json:"id"`
	Name string `json:"name,omitzero"`
}

// Echo is a message that another device of a shared conversation sent (doc/protocol.md §8). ID is
// the id of the message, as replies name it. Text is its text or caption.
type Echo struct {
	ID      string    `json:"id,omitzero"`
	From    Peer      `json:"from"`
	Text    string    `json:"text,omitzero"`
	ReplyTo string    `json:"reply_to,omitzero"`
	File    *EchoFile `json:"file,omitzero"`
	Seq     int64     `json:"seq,omitzero"`
}

// EchoFile is the file or voice message (kind voice) of an Echo. Size is in bytes. URL is as in
// Media.
type EchoFile struct {
	Kind     string `json:"kind"`
	Mime     string `json:"mime"`
	Filename string `json:"filename"`
	Size     int64  `json:"size"`
	URL      string `json:"url"`
}

// Notice tells a device what happened to another device of its user (doc/protocol.md §8). Only
// clients that requested AcceptNotice get it. Revocable: this device may revoke the other one, with
// the call devices.revoke.
type Notice struct {
	ID     string       `json:"id"`
	Kind   string       `json:"kind"` // DeviceAdded, DeviceJoined, RightsChanged, or one of a later version
	Device NoticeDevice `json:"device"`
	User   string       `json:"user"`
	// Conversation is the device whose conversation it joined, with DeviceJoined.
	Conversation string `json:"conversation,omitzero"`
	// Rights lists the rights it got, with RightsChanged: write, answer, call.
	Rights    []string  `json:"rights,omitzero"`
	At        time.Time `json:"at"`
	Revocable bool      `json:"revocable"`
	Seq       int64     `json:"seq,omitzero"`
}

// NoticeDevice is the device that a Notice is about. The device itself reports Name and Platform,
// which may be empty.
type NoticeDevice struct {
	ID       string `json:"id"`
	Name     string `json:"name,omitzero"`
	Platform string `json:"platform,omitzero"`
}

// The kinds of notices.
const (
	DeviceAdded   = "device_added"   // the user has a new device
	DeviceJoined  = "device_joined"  // the device joined the conversation of another device
	RightsChanged = "rights_changed" // the device got more rights
)

// Typing tells that the agent works, or with Stop that it is done.
type Typing struct {
	Stop bool `json:"stop,omitzero"`
}

// Avatar is the state that the avatar shows: idle, thinking or speaking.
type Avatar struct {
	State string `json:"state"`
}

// Tool tells what the agent is doing, for display (doc/protocol.md §6). State is started, progress,
// done or failed.
type Tool struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	State string `json:"state"`
	Title string `json:"title,omitzero"`
	Text  string `json:"text,omitzero"`
	Turn  string `json:"turn,omitzero"`
}

// Pong answers a Ping with the server's time.
type Pong struct {
	ID   string    `json:"id,omitzero"`
	Time time.Time `json:"time"`
}

// Result answers a Call: Result holds JSON, or Err says why the call failed.
type Result struct {
	ID     string     `json:"id"`
	Result []byte     `json:"-"`
	Err    *CallError `json:"error,omitzero"`
}

// CallError says why a call failed. It is also a Go error.
type CallError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Error returns the code and the message.
func (e *CallError) Error() string { return e.Code + ": " + e.Message }

// Error is an error frame, and a Go error. Message is one plain sentence that says what to do. Ref
// is the id of the frame it is about. RetryAfter is in seconds, zero where it does not apply.
type Error struct {
	Code       Code   `json:"code"`
	Message    string `json:"message"`
	Ref        string `json:"ref,omitzero"`
	RetryAfter int    `json:"retry_after,omitzero"`
}

// Error returns the code and the message.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// Unknown is a frame of a type that this package does not know. Clients ignore it.
type Unknown struct {
	Type string `json:"-"`
}

func (*Ready) down()               {}
func (*CapabilitiesChanged) down() {}
func (*Approved) down()            {}
func (*Accepted) down()            {}
func (*Delivered) down()           {}
func (*Message) down()             {}
func (*Media) down()               {}
func (*Prompt) down()              {}
func (*PromptDone) down()          {}
func (*Echo) down()                {}
func (*Notice) down()              {}
func (*Typing) down()              {}
func (*Avatar) down()              {}
func (*Tool) down()                {}
func (*Pong) down()                {}
func (*Result) down()              {}
func (*Error) down()               {}
func (*Unknown) down()             {}
