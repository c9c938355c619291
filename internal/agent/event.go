package agent

// Event is what an agent reports to a conversation. The types in this file are the only ones.
type Event interface{ event() }

// Say is a message of the agent, or an edit of one that is being streamed. The edits of a message have its
// ID and the whole text so far. The last one has Final and the authoritative text. A message that was begun
// and gets no Final is ended as interrupted with its turn. After Final its ID must not be used again.
type Say struct {
	ID          string // from NewID
	Text        string
	Final       bool
	Interrupted bool   // with Final: the turn was cut, and this is what there was
	ReplyTo     string // Input.ID of the turn; empty for a message for which nobody asked
	N           int64  // Input.N of the turn; 0 for a message for which nobody asked
	Source      string // "cron" for scheduled messages
	Job         string // the name of the scheduled job
	// Repeats, with Final, is set when the agent may be repeating a message. The hub then stores nothing
	// if the turn N, or if N is 0 the last turn that said something, has a final message of exactly this
	// text.
	Repeats string
	Settles string // the id of the card whose decision has this effect: both are stored together
}

// SendFile is a file of the agent. It must have been put into Files before.
type SendFile struct {
	ID      string // from NewID
	File    File
	Caption string
	ReplyTo string // see Say
	N       int64
	Source  string
	Job     string
}

// Ask shows a card.
type Ask struct{ Card Card }

// CloseCard closes a card because the agent decided by itself, or no longer waits. OptionID is what it did,
// if it said so. A card that is already decided stays as it is.
type CloseCard struct {
	ID       string
	OptionID string
	Expired  bool
}

// Working says that the agent works on this conversation. The indicator goes on, and stays on while this is
// repeated at least every 15 s or a turn is running. An agent that cannot tell never sends it.
type Working struct{}

// ToolStep reports the use of a tool. State is started, progress, done or failed.
type ToolStep struct {
	ID, Name, State, Title, Text string
	N                            int64 // Input.N of the turn
}

// Home makes this device the home channel.
type Home struct{}

// Given notes that an input, or the decision of a card, is about to be written to the backend of the agent,
// which would not recognize a repeat. Once that is stored, a later run of this process submits the input as
// Handed, and does not tell the decision again. Back revokes the note: it was not written after all.
type Given struct {
	N    int64  // of the input
	Card string // or the id of the card
	Back bool
}

// Done ends the turn of input N. The indicator goes off, and the hub submits the next input.
type Done struct {
	N           int64
	Interrupted bool // the turn was cut; messages that are still open are ended as interrupted in any case
}

func (Say) event()       {}
func (SendFile) event()  {}
func (Ask) event()       {}
func (CloseCard) event() {}
func (Working) event()   {}
func (ToolStep) event()  {}
func (Home) event()      {}
func (Given) event()     {}
func (Done) event()      {}
