package frame

// Limits of the protocol, in bytes unless noted otherwise (doc/protocol.md §1, §3, §5). A server
// announces those that it can change in [Capabilities]; a client obeys the announced ones.
const (
	MaxFrame     = 16 << 20 // one frame on the wire
	MaxHello     = 4 << 10  // a hello on the wire; its sender has not authenticated yet
	MaxText      = 1 << 20  // text of one message, UTF-8
	MaxAudio     = 8 << 20  // one voice message
	MaxMedia     = 8 << 20  // one file, and all unfinished uploads of a device together
	ChunkBytes   = 3 << 20  // raw bytes in one part of a file
	MinChunk     = 4 << 10  // raw bytes in a part that is not the last
	MaxParts     = 2048     // parts of one file
	MaxUploads   = 8        // unfinished uploads of a device
	MaxDepth     = 64       // nesting of a frame, including the frame itself
	MaxID        = 128      // characters of a message id, device id or user id
	MaxName      = 128      // characters of a name, platform or app
	MessageChunk = 4000     // code points of one chunk of a reply that is not streamed

	MaxShownChars = 2000 // code points of a text or command; a card with more is odd (doc/protocol.md §7)
	MaxShownLines = 30   // lines of a text or command; a card with more is odd
	MaxShownLabel = 200  // code points of an option's label
	MaxBlankLines = 3    // blank lines in a row; more are folded
	MaxBlanks     = 40   // spaces or tabs in a row; more are folded
	MaxSameMarks  = 8    // equal marks in a row; more are folded
	MaxStack      = 4    // combining marks on one character; each further one is shown as a mark

	// PromptSeconds is the default lifetime of a card, in seconds.
	PromptSeconds = 300
)

// SessionPrefix precedes a device id in the name of its session as Hermes knows it:
// mobile:<device id>.
const SessionPrefix = "mobile:"
