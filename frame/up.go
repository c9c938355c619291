package frame

// Up is a frame from a device to the server. The types in this file are all there are.
type Up interface{ up() }

// Hello is the first frame of every connection (doc/protocol.md §2).
type Hello struct {
	Token  string   `json:"token,omitzero"` // the app's or the device's own token
	Pair   string   `json:"pair,omitzero"`  // a one-time pairing code instead of a token
	Device Device   `json:"device"`
	User   User     `json:"user,omitzero"`
	Accept []string `json:"accept,omitzero"` // opt-in features: AcceptDelta, AcceptTail, AcceptTool, AcceptNotice
	// Resume is the cursor of a client that keeps one. A malformed one decodes to a cursor of no epoch, which matches none.
	Resume *Cursor `json:"resume,omitzero"`
}

// Features a client may ask for in Hello.Accept. Unknown names are ignored.
const (
	AcceptDelta  = "delta"  // streamed steps that only grow come as Message.Append
	AcceptTail   = "tail"   // with AcceptDelta: so may the final of a streamed message
	AcceptTool   = "tool"   // Tool frames
	AcceptNotice = "notice" // Notice frames: the client shows them to a person
)

// Device is one installation of an app. ID is 1 to 128 characters of A-Z a-z 0-9 . _ - : @ and must stay the same; the
// rest is optional, for display, and cut to 128 characters.
type Device struct {
	ID       string `json:"id"`
	Name     string `json:"name,omitzero"`
	Platform string `json:"platform,omitzero"`
	App      string `json:"app,omitzero"`
}

// User is who owns one or more devices. ID has the form of a device id and defaults to it.
type User struct {
	ID   string `json:"id,omitzero"`
	Name string `json:"name,omitzero"`
}

// Cursor says what a client has stored: every durable frame up to Seq of the outbox life Epoch (doc/protocol.md §4).
type Cursor struct {
	Epoch string `json:"epoch"`
	Seq   int64  `json:"seq"`
}

// Text is a message to the agent. ID is the client's own, 1 to 128 printable characters, the same when it is sent again;
// without one the message cannot be protected from doubles.
type Text struct {
	ID      string `json:"id,omitzero"`
	Text    string `json:"text"`
	ReplyTo string `json:"reply_to,omitzero"`
	Steer   bool   `json:"steer,omitzero"` // to be added to the turn that runs; else it waits for its own
}

// Audio is a voice message. Format is wav, ogg, m4a, mp3 or webm; Text, where the app recognised the speech itself, goes
// to the agent beside the file.
type Audio struct {
	ID     string `json:"id,omitzero"`
	Format string `json:"format"`
	Data   []byte `json:"data"`
	Text   string `json:"text,omitzero"`
}

// Answer is the answer to a question card (t is "prompt"). Either OptionID, or Text, or OptionID "other" with Text.
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

// Ack says that everything up to Seq is stored on the device; Seen, that a person was shown it; Token, that the token which
// Ready gave is stored (doc/protocol.md §8).
type Ack struct {
	Seq   int64 `json:"seq"`
	Seen  bool  `json:"seen,omitzero"`
	Token bool  `json:"token,omitzero"`
}

// Deliver sends a text, a file or both to another device (doc/protocol.md §8). To is a device id, mobile:<device id>, or
// home. File fields are used when Data is set.
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

// Ping is answered by Pong, for platforms that cannot see WebSocket control frames.
type Ping struct {
	ID string `json:"id,omitzero"`
}

// Call asks for something of the control plane (doc/protocol.md §9); it is answered by Result. Params is a JSON object.
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
