package relay

// What Options.Count is called with.
const (
	CountRefused  = "refused"  // an upgrade or a file request without a right bearer
	CountWedge    = "wedge"    // an event was not acknowledged in time (relay-facts §7)
	CountBadLine  = "bad_line" // a frame that cannot be read
	CountOverload = "overload" // a connection closed because the hub was too slow for it
	CountReplaced = "replaced" // a connection replaced by a newer one of the same gateway
	CountRepeat   = "repeat"   // a message that the conversation had already
	CountForeign  = "foreign"  // an op for a device of another gateway
)
