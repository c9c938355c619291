package relay

// Names that the agent passes to Options.Count.
const (
	CountRefused  = "refused"  // an upgrade or a file request without a valid bearer token
	CountWedge    = "wedge"    // an event was not acknowledged in time: the gateway stalled (doc/hermes/relay.md §7)
	CountBadLine  = "bad_line" // a frame that could not be decoded
	CountOverload = "overload" // a connection closed because the hub was too slow for it
	CountReplaced = "replaced" // a connection replaced by a newer one of the same gateway
	CountRepeat   = "repeat"   // a message that the conversation already had
	CountForeign  = "foreign"  // an op for a device that another gateway serves
)
