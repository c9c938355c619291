package relay

import "hermes-mobile/internal/onepass"

// Steps of streamed replies are nearly all that a gateway sends, each with the whole text so far. They are read in one
// pass; a fuzz test holds that to what decode and readAction make of the same line.

// opReader reads one op after the other.
type opReader struct {
	onepass.Parser
	last action
}

// read reads an outbound frame of the usual form. Where it is of another, ok is false, and decode is asked. The action of what
// passes by, a step or a sign of life, is valid until the next one is read.
func (p *opReader) read(line []byte) (env envelope, a *action, ok bool) {
	p.Reset(line)
	a = &p.last
	*a = action{}
	acted := false
	ok = p.Object(func(name []byte) (ok bool) {
		switch string(name) {
		case "type":
			var value []byte
			value, ok = p.Str()
			ok = ok && string(value) == "outbound"
			env.Type = "outbound"
		case "requestId":
			env.RequestID, ok = looseText(&p.Parser)
		case "platform":
			env.Platform, ok = looseText(&p.Parser)
		case "action":
			ok = !acted && p.Peek() == '{'
			acted = true
			from := p.At()
			ok = ok && a.read(&p.Parser)
			a.bytes = p.At() - from
		}
		return ok
	})
	if !ok || !p.Over() || !acted || env.Type == "" || a.ChatID == "" {
		return envelope{}, nil, false
	}
	a.requestID = string(env.RequestID)
	if !a.passing() {
		kept := *a
		a = &kept
	}
	return env, a, true
}

// passing reports whether nothing of an op is needed once it has been applied.
func (a *action) passing() bool {
	switch a.Op {
	case "typing", "react":
		return true
	case "draft":
		return !bool(a.Final)
	}
	return false
}

// read reads the members of an action. Cards and files are rare, and have more of them than this knows.
func (a *action) read(p *onepass.Parser) bool {
	return p.Object(func(name []byte) (ok bool) {
		switch string(name) {
		case "op":
			var value []byte
			value, ok = p.Str()
			switch string(value) {
			case "draft", "edit", "send", "typing", "react":
				a.Op = loose(value)
			default:
				ok = false
			}
		case "chat_id":
			a.ChatID, ok = looseText(p)
		case "message_id":
			a.MessageID, ok = looseText(p)
		case "content":
			a.Content, ok = looseText(p)
		case "reply_to":
			a.ReplyTo, ok = looseText(p)
		case "emoji":
			a.Emoji, ok = looseText(p)
		case "draft_id":
			a.DraftID, ok = looseText(p)
		case "remove":
			a.Remove, ok = flagged(p)
		case "final":
			a.Final, ok = flagged(p)
		case "metadata":
			ok = a.Metadata.read(p)
		case "prompt_kind", "prompt_id", "options", "media_kind", "source_url", "filename", "timeout_s":
		default:
			ok = p.Scalar()
		}
		return ok
	})
}

func (m *metadata) read(p *onepass.Parser) bool {
	if p.Null() {
		*m = metadata{}
		return true
	}
	return p.Object(func(name []byte) (ok bool) {
		switch string(name) {
		case "expect_edits":
			m.ExpectEdits, ok = flagged(p)
		case "notify":
			m.Notify, ok = flagged(p)
		case "reply_to_message_id":
			m.ReplyTo, ok = looseText(p)
		case "job_id":
			m.JobID, ok = looseText(p)
		case "profile":
			m.Profile, ok = looseText(p)
		default:
			ok = p.Scalar()
		}
		return ok
	})
}

// looseText reads what a loose takes.
func looseText(p *onepass.Parser) (loose, bool) {
	switch c := p.Peek(); {
	case c == '"':
		s, ok := p.Str()
		return loose(s), ok
	case c == 'n':
		return "", p.Null()
	}
	n, ok := p.Number()
	return loose(n), ok
}

// flagged reads what a boolean takes, but for 0 and 1.
func flagged(p *onepass.Parser) (boolean, bool) {
	if p.Peek() == 'n' {
		return false, p.Null()
	}
	value, ok := p.Bool()
	return boolean(value), ok
}
