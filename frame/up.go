package frame

// Up is a frame from a device to the server. Only the types of this package implement it.
type Up interface{ up() }

// Hello is the first frame of every connection (doc/protocol.md §2).
type Hello struct {
	Token  string   `json:"token,omitzero"` // the app's or the device's own token
	Pair   string   `json:"pair,omitzero"`  // a pairing code, instead of a token
	Device Device   `json:"device"`
	User   User     `json:"user,omitzero"`
	Accept []string `json:"accept,omitzero"` // opt-in features: AcceptDelta, AcceptTail, AcceptTool, AcceptNotice
	// Resume is the cursor of a client that keeps one. A malformed cursor decodes to one without an
	// epoch, which matches no outbox.
	Resume *Cursor `json:"resume,omitzero"`
}

// The features that a client can request in Hello.Accept. A server ignores names it does not know.
const (
	AcceptDelta  = "delta"  // edits of a streamed reply that only add text come as Message.Append
	AcceptTail   = "tail"   // with AcceptDelta: the final message of a streamed reply may come as Message.Append, too
	AcceptTool   = "tool"   // Tool frames
	AcceptNotice = "notice" // Notice frames, which the client shows to the user
)

// Device is one installation of an app. ID is 1 to 128 characters of A-Z a-z 0-9 . _ - : @ and must
// never change. The other fields are optional, for display, and cut to 128 characters.
type Device struct {
	ID       string `json:"id"`
	Name     string `json:"name,omitzero"`
	Platform string `json:"platform,omitzero"`
	App      string `json:"app,omitzero"`
}

// User owns one or more devices. ID follows the rules of a device id, and defaults to it.
type User struct {
	ID   string `json:"id,omitzero"`
	Name string `json:"name,omitzero"`
}

// Cursor tells what a client has stored: every durable frame up to Seq of the outbox that Epoch
// names (doc/protocol.md §4).
type Cursor struct {
	Epoch string `json:"epoch"`
	Seq   int64  `json:"seq"`
}

// Text is a message to the agent. The client chooses ID, 1 to 128 printable characters, and repeats
// it when it sends the message again. Without an ID the server cannot detect a duplicate.
type Text struct {
	ID      string `json:"id,omitzero"`
	Text    string `json:"text"`
	ReplyTo string `json:"reply_to,omitzero"`
	Steer   bool   `json:"steer,omitzero"` // add the text to the running turn; otherwise it waits for its own turn
}

// Audio is a voice message. Format is wav, ogg, m4a, mp3 or webm. Text is optional: where the app
// recognized the speech itself, the agent gets it beside the file.
type Audio struct {
	ID     string `json:"id,omitzero"`
	Format string `json:"format"`
	Data   []byte `json:"data"`
	Text   string `json:"text,omitzero"`
}

// Answer answers a card (t is "prompt"). It holds OptionID, or Text, or OptionID "other" with Text.
type Answer struct {
	ID       string `json:"id,omitzero"`
	PromptID string `json:"prompt_id"`
	OptionID string `json:"option_id,omitzero"`
	Text     string `json:"text,omitzero"`
}

// Stop interrupts the running turn.
type Stop struct {
	ID string `json:"id,omitzero"`
}

// Ack acknowledges that the device stored everything up to Seq. Seen: the user saw it. Token: the
// device stored the token that Ready gave it (doc/protocol.md §8).
type Ack struct {
	Seq   int64 `json:"seq"`
	Seen  bool  `json:"seen,omitzero"`
	Token bool  `json:"token,omitzero"`
}

// Deliver sends a text, a file or both to another device (doc/protocol.md §8). To is a device id,
// mobile:<device id>, or home. Kind, Mime and Filename describe the file in Data.
type Deliver struct {
	ID          string `json:"id,omitzero"`
	To          string `json:"to"`
	Text        string `json:"text,omitzero"`
	Kind        string `json:"kind,omitzero"`
	Mime        string `json:"mime,omitzero"`
	Filename    string `json:"filename,omitzero"`
	Data        []byte `json:"data,omitzero"`
	RequireLive bool   `json:"require_live,omitzero"`
}

// Ping requests a Pong, for platforms that hide WebSocket control frames.
type Ping struct {
	ID string `json:"id,omitzero"`
}

// Call requests something of the control plane (doc/protocol.md §9). The server answers with a
// Result. Params is a JSON object; nil is an empty one.
type Call struct {
	ID     string `json:"id"`
	Method string `json:"method"`
	Params []byte `json:"-"`
}

func (*Hello) up()   {}
func (*Text) up()    {}
func (*Audio) up()   {}
func (*Media) up()   {}
func (*Answer) up()  {}
func (*Stop) up()    {}
func (*Ack) up()     {}
func (*Deliver) up() {}
func (*Ping) up()    {}
func (*Call) up()    {}
