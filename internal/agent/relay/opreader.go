package relay

import (
	"hash/maphash"

	"hermes-mobile/internal/onepass"
)

// Nearly all frames of a gateway are edits of streamed replies, each with the whole text so far. So
// they are read in one pass. That is faster than a struct decoded by the JSON package where the text
// has line breaks (BenchmarkReadDraft: 3.1 µs instead of 4.4 µs for 1.5 KB). Everything else goes to
// the tolerant decoder, and a fuzz test holds both to the same result.

// opReader reads one op after the other.
type opReader struct {
	onepass.Parser
	last action
	ids  interner
}

// read reads an outbound frame of the usual form. ok is false for a frame of any other form, which
// must then be decoded. A transient action is valid until the next call.
func (r *opReader) read(line []byte) (env envelope, a *action, ok bool) {
	r.Reset(line)
	a = &r.last
	*a = action{}
	acted := false
	ok = r.Object(func(name []byte) (ok bool) {
		switch string(name) {
		case "type":
			var value []byte
			value, ok = r.Str()
			ok = ok && string(value) == "outbound"
			env.Type = "outbound"
		case "requestId":
			env.RequestID, ok = r.text()
		case "platform":
			env.Platform, ok = r.id()
		case "action":
			ok = !acted && r.Peek() == '{'
			acted = true
			from := r.At()
			ok = ok && r.action(a)
			a.size = r.At() - from
		}
		return ok
	})
	if !ok || !r.Over() || !acted || env.Type == "" || a.ChatID == "" {
		return envelope{}, nil, false
	}
	a.requestID = env.RequestID
	if !a.transient() {
		kept := *a
		a = &kept
	}
	return env, a, true
}

// action reads the members of an action. It refuses cards and files: they are rare, and have more
// members than it knows.
func (r *opReader) action(a *action) bool {
	return r.Object(func(name []byte) (ok bool) {
		switch string(name) {
		case "op":
			a.Op, ok = r.op()
		case "chat_id":
			a.ChatID, ok = r.id()
		case "message_id":
			a.MessageID, ok = r.id()
		case "content":
			a.Content, ok = r.text()
		case "reply_to":
			a.ReplyTo, ok = r.id()
		case "emoji":
			a.Emoji, ok = r.id()
		case "draft_id":
			a.DraftID, ok = r.id()
		case "remove":
			a.Remove, ok = r.flag()
		case "final":
			a.Final, ok = r.flag()
		case "metadata":
			ok = r.metadata(&a.Metadata)
		case "prompt_kind", "prompt_id", "options", "media_kind", "source_url", "filename", "timeout_s":
		default:
			ok = r.Scalar()
		}
		return ok
	})
}

func (r *opReader) metadata(m *metadata) bool {
	if r.Null() {
		*m = metadata{}
		return true
	}
	return r.Object(func(name []byte) (ok bool) {
		switch string(name) {
		case "expect_edits":
			m.ExpectEdits, ok = r.flag()
		case "notify":
			m.Notify, ok = r.flag()
		case "reply_to_message_id":
			m.ReplyTo, ok = r.id()
		case "job_id":
			m.JobID, ok = r.id()
		case "profile":
			m.Profile, ok = r.id()
		default:
			ok = r.Scalar()
		}
		return ok
	})
}

func (r *opReader) op() (string, bool) {
	value, ok := r.Str()
	if !ok {
		return "", false
	}
	for _, op := range [...]string{"draft", "edit", "send", "typing", "react"} {
		if string(value) == op {
			return op, true
		}
	}
	return "", false
}

// value reads what a tolerant string takes: a string, a number or null.
func (r *opReader) value() ([]byte, bool) {
	switch r.Peek() {
	case '"':
		return r.Str()
	case 'n':
		return nil, r.Null()
	}
	return r.Number()
}

func (r *opReader) text() (string, bool) {
	b, ok := r.value()
	return string(b), ok
}

// id reads a value that is the same in most ops of a stream.
func (r *opReader) id() (string, bool) {
	b, ok := r.value()
	return r.ids.of(b), ok
}

// flag reads what a tolerant boolean takes, except 0 and 1.
func (r *opReader) flag() (value, ok bool) {
	if r.Peek() == 'n' {
		return false, r.Null()
	}
	return r.Bool()
}

// interner keeps short strings that come again and again, so that they are allocated once.
type interner [32]string

var internSeed = maphash.MakeSeed()

const maxInterned = 64

func (n *interner) of(b []byte) string {
	if len(b) == 0 || len(b) > maxInterned {
		return string(b)
	}
	kept := &n[maphash.Bytes(internSeed, b)%uint64(len(n))]
	if *kept != string(b) {
		*kept = string(b)
	}
	return *kept
}
