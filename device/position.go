package device

// position records which durable frames came, so that each counts once (doc/protocol.md §4). Frames
// come in the order of their seq. But a long message or a file comes in pieces that share one seq,
// and another frame can come in between: then the cursor must not pass the unfinished one.
type position struct {
	at    int64            // everything up to here came
	above map[int64]bool   // came, too, after something unfinished
	open  map[string]int64 // unfinished: the key of the message or file to its seq
}

func newPosition(at int64) position {
	return position{at: at, above: map[int64]bool{}, open: map[string]int64{}}
}

// fresh reports whether the frame with this seq is new. A frame without a seq always is.
func (p *position) fresh(seq int64) bool {
	return seq == 0 || seq > p.at && !p.above[seq]
}

// begin records the first piece of a message or file.
func (p *position) begin(key string, seq int64) {
	if _, ok := p.open[key]; !ok && seq > 0 {
		p.open[key] = seq
	}
}

// done records a whole frame. It returns the cursor for after its handling, 0 for a frame without a
// seq.
func (p *position) done(key string, seq int64) int64 {
	delete(p.open, key)
	if seq == 0 {
		return 0
	}
	p.above[seq] = true
	limit := int64(1)<<62 - 1
	for _, s := range p.open {
		limit = min(limit, s)
	}
	for s := range p.above {
		if s < limit {
			p.at = max(p.at, s)
		}
	}
	for s := range p.above {
		if s <= p.at {
			delete(p.above, s)
		}
	}
	return p.at
}

// cut forgets unfinished pieces: the connection dropped, and the server sends them from the
// beginning.
func (p *position) cut() { clear(p.open) }
