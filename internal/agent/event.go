package agent

// Event is something an agent says to a conversation. The types in this file are all there are.
type Event interface{ event() }

// Say is a message of the agent, or a step of one. Steps of a message have its ID and the whole text so far; the last has
// Final and the authoritative text. A message that was begun and gets no Final is ended as interrupted with its turn.
// After Final its ID is used up.
type Say struct {
	ID          string // NewID
	Text        string
	Final       bool
	Interrupted bool   // with Final: the turn was cut, this is what there was
	ReplyTo     string // Input.ID of the turn, empty for what nobody asked for
	N           int64  // Input.N of the turn, 0 for what nobody asked for
	Source      string // "cron" for scheduled messages
	Job         string // the scheduled job's name
	// Repeats, with Final, is set when the agent may be saying again what it said before: then nothing is stored when the
	// turn N, or where N is 0 the last turn that said something, has a final message of exactly this text.
	Repeats string
	Settles string // id of the card whose decision this is the effect of: stored together
}

// SendFile is a file of the agent. It is stored in Files before.
type SendFile struct {
	ID      string // NewID
	File    File
	Caption string
	ReplyTo string
	N       int64
	Source  string
	Job     string
}

// Ask shows a card.
type Ask struct{ Card Card }

// CloseCard: the agent decided by itself, or no longer waits. OptionID is what it did, if it said so. A card that is
// decided already stays as it is.
type CloseCard struct {
	ID       string
	OptionID string
	Expired  bool
}

// Working tells that the agent works on this conversation: the indicator goes on, and stays on while this is repeated at
// least every 15 s or a turn is running. Agents that cannot tell never send it.
type Working struct{}

// ToolStep tells about the use of a tool. State is started, progress, done or failed.
type ToolStep struct {
	ID, Name, State, Title, Text string
	N                            int64
}

// Home makes this device the home channel.
type Home struct{}

// Given notes that an input, or the decision of a card, is about to be given to the agent's backend, which would not know it
// if it came again. When that is stored, a later life of this process hands the input over as Handed, and does not tell the
// decision again. Back takes it back: it was not given after all.
type Given struct {
	N    int64
	Card string
	Back bool
}

// Done ends the turn of input N: the indicator goes off and the next input is handed over.
type Done struct {
	N           int64
	Interrupted bool // messages that are still open are ended as interrupted, which they are otherwise, too
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
