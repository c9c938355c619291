package device

// position knows which durable frames came, so that each counts once (§4). Frames come in the order of their seq, but a
// long message or a file comes in pieces that share one, and another frame could come in between: then the cursor may not
// pass the unfinished one.
type position struct {
	at    int64            // everything up to here came
	above map[int64]bool   // came too, but something before is unfinished
	open  map[string]int64 // unfinished: key of the assembly to its seq
}

func newPosition(at int64) position {
	return position{at: at, above: map[int64]bool{}, open: map[string]int64{}}
}

// fresh reports whether the frame with this seq has not come yet. Frames without seq always are.
func (p *position) fresh(seq int64) bool {
	return seq == 0 || seq > p.at && !p.above[seq]
}

// begin notes that the pieces of an assembly have begun to come.
func (p *position) begin(key string, seq int64) {
	if _, ok := p.open[key]; !ok && seq > 0 {
		p.open[key] = seq
	}
}

// done notes a whole frame, and returns what the cursor is once it has been handled; 0 for a frame without seq.
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

// cut forgets what is unfinished: the link dropped, and the server sends it again from the beginning.
func (p *position) cut() { clear(p.open) }
