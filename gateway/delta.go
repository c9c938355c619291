package gateway

import (
	"hermes-mobile/internal/onepass"
	"hermes-mobile/internal/sse"
)

// A stream consists mostly of deltas, thousands of them with the same few fields. They are decoded
// in one pass here, without the frame that has all fields. Everything else is left to decode, which
// alone defines what events mean. A fuzz test compares the two.

// deltaDecoder is a decoder that decodes plain deltas in one pass.
type deltaDecoder interface {
	// delta decodes an event that is one piece of text and nothing else. If it returns false, it
	// changed nothing and the event is for decode. It leaves out the position, which fillMeta adds.
	delta(ev sse.Event) (Delta, bool)
}

// same returns have if it equals b, else a new string. IDs repeat with every event.
func same(have string, b []byte) string {
	if have == string(b) {
		return have
	}
	return string(b)
}

// piece returns a delta of the current segment. After a tool call, text starts a new segment, which
// is not a plain delta.
func (t *turnText) piece(meta Meta, text []byte) (Delta, bool) {
	if t.tool || len(text) == 0 {
		return Delta{}, false
	}
	t.has = true
	d := Delta{Meta: meta, Segment: t.current, Text: string(text)}
	t.reply.append(d.Segment, d.Text)
	return d, true
}

func (d *runDecoder) delta(ev sse.Event) (Delta, bool) {
	if d.over {
		return Delta{}, false
	}
	p := &d.parser
	p.Reset(ev.Data)
	var at float64
	var text []byte
	meta := Meta{SessionID: d.sessionID}
	named := false
	ok := p.Object(func(name []byte) (ok bool) {
		switch string(name) {
		case "event":
			var value []byte
			value, ok = p.Str()
			named = string(value) == "message.delta"
		case "run_id":
			var value []byte
			value, ok = p.Str()
			meta.RunID = same(d.runID, value)
		case "timestamp":
			at, ok = p.Num()
		case "seq":
			_, ok = p.Num()
		case "delta":
			text, ok = p.Keep()
		}
		return ok
	})
	if !ok || !p.Over() || !named || meta.RunID != "" && meta.RunID != d.runID {
		return Delta{}, false
	}
	meta.Time = atSeconds(at)
	return d.text.piece(meta, text)
}

func (d *sessionDecoder) delta(ev sse.Event) (Delta, bool) {
	if d.over || ev.Name != "assistant.delta" || d.runID == "" {
		return Delta{}, false
	}
	p := &d.parser
	p.Reset(ev.Data)
	var at float64
	var text []byte
	meta := Meta{}
	ok := p.Object(func(name []byte) (ok bool) {
		var value []byte
		switch string(name) {
		case "session_id":
			value, ok = p.Str()
			meta.SessionID = same(d.sessionID, value)
		case "run_id":
			value, ok = p.Str()
			meta.RunID = same(d.runID, value)
		case "message_id":
			value, ok = p.Str()
			d.messageID = same(d.messageID, value)
			meta.MessageID = d.messageID
		case "ts":
			at, ok = p.Num()
		case "seq":
			_, ok = p.Num()
		case "delta":
			text, ok = p.Keep()
		}
		return ok
	})
	if !ok || !p.Over() || meta.SessionID != d.sessionID || meta.RunID != d.runID {
		return Delta{}, false
	}
	meta.Time = atSeconds(at)
	delta, ok := d.text.piece(meta, text)
	d.streamed = d.streamed || ok
	return delta, ok
}

func (d *completionsDecoder) delta(ev sse.Event) (Delta, bool) {
	if d.over || ev.Name != "" || d.id == "" {
		return Delta{}, false
	}
	p := &d.parser
	p.Reset(ev.Data)
	var created float64
	var text []byte
	ours := false
	ok := p.Object(func(name []byte) (ok bool) {
		switch string(name) {
		case "id":
			var value []byte
			value, ok = p.Str()
			ours = string(value) == d.id
		case "object", "model", "system_fingerprint", "service_tier":
			_, ok = p.Str()
			ok = ok || p.Null()
		case "usage":
			ok = p.Null()
		case "created":
			created, ok = p.Num()
		case "choices":
			ok = text == nil && p.Take('[')
			if ok {
				text, ok = onlyChoice(p)
			}
			ok = ok && p.Take(']')
		}
		return ok
	})
	if !ok || !p.Over() || !ours {
		return Delta{}, false
	}
	return d.text.piece(Meta{MessageID: d.id, Time: atSeconds(created)}, text)
}

// onlyChoice decodes the single choice of a chunk that has text and does not end the reply.
func onlyChoice(p *onepass.Parser) (text []byte, ok bool) {
	ok = p.Object(func(name []byte) (ok bool) {
		switch string(name) {
		case "index":
			var n float64
			n, ok = p.Num()
			ok = ok && n == 0
		case "finish_reason", "logprobs":
			ok = p.Null()
		case "delta":
			ok = p.Object(func(name []byte) (ok bool) {
				switch string(name) {
				case "content":
					text, ok = p.Keep()
				case "role":
					_, ok = p.Str()
				case "refusal":
					ok = p.Null()
				}
				return ok
			})
		}
		return ok
	})
	return text, ok
}
