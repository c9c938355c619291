package frame

import "time"

// Down is a frame from the server to a device. The types in this file are all there are.
type Down interface{ down() }

// Ready answers an accepted Hello. Token is set only after pairing: the device's own, to be kept and used from then on.
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

// AgentState tells whether the agent can be reached now.
type AgentState string

// The states of an agent. While it is away messages are accepted and wait.
const (
	Online AgentState = "online"
	Away   AgentState = "away"
)

// Span tells what follows a Ready: durable frames from From to To (nothing where From > To). Lost: the client's cursor
// could not be honoured, and all there is comes again.
type Span struct {
	Epoch string `json:"epoch"`
	From  int64  `json:"from"`
	To    int64  `json:"to"`
	Lost  bool   `json:"lost"`
}

// Capabilities says what this agent connection can do now. Absent or false means: do not use. Sizes are in bytes.
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
	Steer    bool     `json:"steer"` // a text may be added to the turn that runs: see Text.Steer
	Delta    bool     `json:"delta"`
	Tool     bool     `json:"tool"`
	MediaURL bool     `json:"media_url"`
	Push     bool     `json:"push"`
	Shared   bool     `json:"shared"` // the conversation is shared with other devices
	Call     []string `json:"call"`
	// MediaKinds are the kinds of files that the agent takes, where it does not take all: see Media.Kind.
	MediaKinds []string `json:"media_kinds,omitzero"`

	MaxMediaBytes int64 `json:"max_media_bytes"`
	MaxFrameBytes int64 `json:"max_frame_bytes"`
	ChunkBytes    int64 `json:"chunk_bytes"`
	MaxParts      int   `json:"max_parts"`
	MinChunkBytes int64 `json:"min_chunk_bytes"`
	MaxUploads    int   `json:"max_uploads"`
	PromptSeconds int   `json:"prompt_seconds"`

	// AnswersAt is when a device that is new may answer cards, and AnswersIn how many seconds that is away, rounded up. Until
	// then Prompt is false. Both are absent where the device does not wait.
	AnswersAt time.Time `json:"answers_at,omitzero"`
	AnswersIn int       `json:"answers_in,omitzero"`
}

// CapabilitiesChanged replaces what Ready said (t is "capabilities").
type CapabilitiesChanged struct {
	Capabilities Capabilities `json:"capabilities"`
	Agent        AgentState   `json:"agent"`
}

// Approved tells a waiting device that it was approved.
type Approved struct{}

// Accepted is the receipt for a message: it is stored and will reach the agent. Queued: the agent is away.
type Accepted struct {
	ID        string `json:"id,omitzero"`
	Duplicate bool   `json:"duplicate"`
	Queued    bool   `json:"queued"`
}

// Delivered is the receipt for a Deliver. Queued: the device is away and gets it later.
type Delivered struct {
	ID     string `json:"id,omitzero"`
	Queued bool   `json:"queued"`
}

// Chunk tells which piece of a long reply a Message is.
type Chunk struct {
	Index int `json:"index"`
	Total int `json:"total"`
}

// Message is a reply or a piece of one (doc/protocol.md §4). Without Append, Text is the chunk's text, or with Edit the
// whole text so far. With Append, only what was added after At UTF-16 code units comes, or at the end where At is 0: then Edit
// says nothing, and without it the frame is written as short as a client takes it that asked for AcceptTail. Final messages carry Seq.
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
	Source      string  `json:"source"` // SourceCron for scheduled messages, else empty
	Job         string  `json:"job"`    // the scheduled job's name
	Seq         int64   `json:"seq"`
}

// SourceCron marks scheduled messages in Message.Source and Media.Source.
const SourceCron = "cron"

// Media is a file or a part of one, in either direction (doc/protocol.md §5). Up, Kind is image, video, document or
// audio; down also voice and animation. Down, the last part has Final; a file over the limit comes with URL and no Data.
// Size is that of the whole file, in bytes; up it is optional, and a hint by which the server refuses early what has no room.
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

// Prompt is a question card (doc/protocol.md §7). Command and Description come with exec_approval. Odd: it holds
// characters that do not show as themselves, or is longer than a screen, so a person must look closely.
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

// Kinds of cards. An unknown one is shown with its options all the same.
const (
	ExecApproval = "exec_approval"
	SlashConfirm = "slash_confirm"
	Clarify      = "clarify"
)

// OtherOption is the option of a clarify card that stands for the person's own words.
const OtherOption = "other"

// The safe options: DenyOption of an exec_approval card, CancelOption of a slash_confirm card. Each is taken where nobody
// answers in time.
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

// PromptDone says how a card ended. PromptID and ID are the same. In a shared conversation By is the device that answered.
type PromptDone struct {
	PromptID string `json:"prompt_id"`
	ID       string `json:"id"`
	OptionID string `json:"option_id,omitzero"`
	Expired  bool   `json:"expired"`
	By       *Peer  `json:"by,omitzero"`
	Seq      int64  `json:"seq,omitzero"`
}

// Peer is a device of a shared conversation (doc/protocol.md §8), with its name for display, which may be empty.
type Peer struct {
	ID   string `json:"id"`
	Name string `json:"name,omitzero"`
}

// Echo is what another device of a shared conversation said (doc/protocol.md §8). ID is the message's own, by which
// replies name it; Text is its text or caption.
type Echo struct {
	ID      string    `json:"id,omitzero"`
	From    Peer      `json:"from"`
	Text    string    `json:"text,omitzero"`
	ReplyTo string    `json:"reply_to,omitzero"`
	File    *EchoFile `json:"file,omitzero"`
	Seq     int64     `json:"seq,omitzero"`
}

// EchoFile is the file or voice message (kind voice) of an Echo. Size is in bytes; URL as in Media.
type EchoFile struct {
	Kind     string `json:"kind"`
	Mime     string `json:"mime"`
	Filename string `json:"filename"`
	Size     int64  `json:"size"`
	URL      string `json:"url"`
}

// Notice tells a device what happened to another device of its user (doc/protocol.md §8). It comes to clients that asked for
// AcceptNotice. Revocable: this device may revoke the other one, with the call devices.revoke.
type Notice struct {
	ID     string       `json:"id"`
	Kind   string       `json:"kind"` // DeviceAdded, DeviceJoined, RightsChanged, or one that is not known yet
	Device NoticeDevice `json:"device"`
	User   string       `json:"user"`
	// Conversation is the device whose conversation it has joined, with DeviceJoined.
	Conversation string `json:"conversation,omitzero"`
	// Rights are those that it was given, with RightsChanged: write, answer, call.
	Rights    []string  `json:"rights,omitzero"`
	At        time.Time `json:"at"`
	Revocable bool      `json:"revocable"`
	Seq       int64     `json:"seq,omitzero"`
}

// NoticeDevice is the device that a Notice is about. Name and Platform are what it says of itself, and may be empty.
type NoticeDevice struct {
	ID       string `json:"id"`
	Name     string `json:"name,omitzero"`
	Platform string `json:"platform,omitzero"`
}

// Kinds of notices.
const (
	DeviceAdded   = "device_added"   // it is new for the user
	DeviceJoined  = "device_joined"  // it takes part in the conversation of another device
	RightsChanged = "rights_changed" // it may do more than before
)

// Typing: the agent works, or with Stop it is done.
type Typing struct {
	Stop bool `json:"stop,omitzero"`
}

// Avatar is the state to show: idle, thinking or speaking.
type Avatar struct {
	State string `json:"state"`
}

// Tool tells what the agent is doing, for display (doc/protocol.md §6). State is started, progress, done or failed.
type Tool struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	State string `json:"state"`
	Title string `json:"title,omitzero"`
	Text  string `json:"text,omitzero"`
	Turn  string `json:"turn,omitzero"`
}

// Pong answers Ping with the server's time.
type Pong struct {
	ID   string    `json:"id,omitzero"`
	Time time.Time `json:"time"`
}

// Result answers Call: Result holds JSON, or Err says why not.
type Result struct {
	ID     string     `json:"id"`
	Result []byte     `json:"-"`
	Err    *CallError `json:"error,omitzero"`
}

// CallError is why a call was not done.
type CallError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Error is an error frame, and a Go error. Message is one plain sentence that says what to do; Ref is the id of the frame
// it is about; RetryAfter is in seconds, zero where it does not apply.
type Error struct {
	Code       Code   `json:"code"`
	Message    string `json:"message"`
	Ref        string `json:"ref,omitzero"`
	RetryAfter int    `json:"retry_after,omitzero"`
}

// Error returns the code and the sentence.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// Unknown is a frame of a type this package does not know; clients ignore it.
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
