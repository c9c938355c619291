package gateway

// A stream is deltas mostly, thousands of them with the same few members, so these are read in one pass and without the
// frame of all fields. Whatever is not a plain delta is left to decode, which alone says what events mean; a fuzz test
// holds the two together.

// deltaDecoder is a decoder that reads plain deltas in one pass.
type deltaDecoder interface {
	// delta reads an event that is one piece of text and nothing else. Where it is not, nothing has changed, and the event
	// is for decode. The position is left out: complete knows it.
	delta(ev ServerEvent) (Delta, bool)
}

// same is have where that is what b says, else a new string: ids repeat with every event.
func same(have string, b []byte) string {
	if have == string(b) {
		return have
	}
	return string(b)
}

// piece is the delta of the current segment. After a tool call text begins a new one, and that is not plain.
func (t *turnText) piece(meta Meta, text []byte) (Delta, bool) {
	if t.tool || len(text) == 0 {
		return Delta{}, false
	}
	t.has = true
	d := Delta{Meta: meta, Segment: t.current, Text: string(text)}
	t.reply.append(d.Segment, d.Text)
	return d, true
}

func (d *runDecoder) delta(ev ServerEvent) (Delta, bool) {
	if d.over {
		return Delta{}, false
	}
	p := &d.parser
	p.reset(ev.Data)
	var at float64
	var text []byte
	meta := Meta{SessionID: d.sessionID}
	named := false
	ok := p.object(func(name []byte) (ok bool) {
		switch string(name) {
		case "event":
			var value []byte
			value, ok = p.str()
			named = string(value) == "message.delta"
		case "run_id":
			var value []byte
			value, ok = p.str()
			meta.RunID = same(d.runID, value)
		case "timestamp":
			at, ok = p.num()
		case "seq":
			_, ok = p.num()
		case "delta":
			text, ok = p.keep()
		}
		return ok
	})
	if !ok || !p.over() || !named || meta.RunID != "" && meta.RunID != d.runID {
		return Delta{}, false
	}
	meta.Time = atSeconds(at)
	return d.text.piece(meta, text)
}

func (d *sessionDecoder) delta(ev ServerEvent) (Delta, bool) {
	if d.over || ev.Name != "assistant.delta" || d.runID == "" {
		return Delta{}, false
	}
	p := &d.parser
	p.reset(ev.Data)
	var at float64
	var text []byte
	meta := Meta{}
	ok := p.object(func(name []byte) (ok bool) {
		var value []byte
		switch string(name) {
		case "session_id":
			value, ok = p.str()
			meta.SessionID = same(d.sessionID, value)
		case "run_id":
			value, ok = p.str()
			meta.RunID = same(d.runID, value)
		case "message_id":
			value, ok = p.str()
			d.messageID = same(d.messageID, value)
			meta.MessageID = d.messageID
		case "ts":
			at, ok = p.num()
		case "seq":
			_, ok = p.num()
		case "delta":
			text, ok = p.keep()
		}
		return ok
	})
	if !ok || !p.over() || meta.SessionID != d.sessionID || meta.RunID != d.runID {
		return Delta{}, false
	}
	meta.Time = atSeconds(at)
	delta, ok := d.text.piece(meta, text)
	d.streamed = d.streamed || ok
	return delta, ok
}

func (d *completionsDecoder) delta(ev ServerEvent) (Delta, bool) {
	if d.over || ev.Name != "" || d.id == "" {
		return Delta{}, false
	}
	p := &d.parser
	p.reset(ev.Data)
	var created float64
	var text []byte
	ours := false
	ok := p.object(func(name []byte) (ok bool) {
		switch string(name) {
		case "id":
			var value []byte
			value, ok = p.str()
			ours = string(value) == d.id
		case "object", "model", "system_fingerprint", "service_tier":
			_, ok = p.str()
			ok = ok || p.null()
		case "usage":
			ok = p.null()
		case "created":
			created, ok = p.num()
		case "choices":
			ok = text == nil && p.take('[')
			if ok {
				text, ok = p.choice()
			}
			ok = ok && p.take(']')
		}
		return ok
	})
	if !ok || !p.over() || !ours {
		return Delta{}, false
	}
	return d.text.piece(Meta{MessageID: d.id, Time: atSeconds(created)}, text)
}

// choice reads the one choice of a chunk that is text and does not end the reply.
func (p *parser) choice() (text []byte, ok bool) {
	ok = p.object(func(name []byte) (ok bool) {
		switch string(name) {
		case "index":
			var n float64
			n, ok = p.num()
			ok = ok && n == 0
		case "finish_reason", "logprobs":
			ok = p.null()
		case "delta":
			ok = p.object(func(name []byte) (ok bool) {
				switch string(name) {
				case "content":
					text, ok = p.keep()
				case "role":
					_, ok = p.str()
				case "refusal":
					ok = p.null()
				}
				return ok
			})
		}
		return ok
	})
	return text, ok
}
