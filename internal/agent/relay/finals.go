package relay

import (
	"slices"
	"strings"
	"time"

	"hermes-mobile/internal/agent"
)

const (
	keepFinals = 15 * time.Minute
	maxFinals  = 32
	// maxFinalBytes bounds the kept texts of a conversation. The newest is kept whatever its length.
	maxFinalBytes = 256 << 10
)

// final is a message that a conversation has.
type final struct {
	id, wire, replyID, text string
	at                      time.Time
	stored                  bool
	waiting                 []func(error) // for its store
}

// whenStored calls then with the outcome of the store, now or later.
func (f *final) whenStored(then func(error)) {
	if f.stored {
		then(nil)
		return
	}
	f.waiting = append(f.waiting, then)
}

// settle notes the outcome of the store and tells those that wait for it.
func (f *final) settle(err error) {
	f.stored = err == nil
	for _, then := range f.waiting {
		then(err)
	}
	f.waiting = nil
}

// finals are the last messages of a conversation, kept for a while to recognize repeats: the gateway
// sends a reply again when it missed our answer (doc/hermes/relay.md §10, §11).
type finals struct {
	list []*final
}

func (fs *finals) add(replyID string, say agent.Say, now time.Time) *final {
	f := &final{id: say.ID, replyID: replyID, text: say.Text, at: now}
	fs.list = append(fs.list, f)
	size := 0
	for i := len(fs.list) - 1; i >= 0; i-- {
		if size += len(fs.list[i].text); i < len(fs.list)-maxFinals || size > maxFinalBytes && i < len(fs.list)-1 {
			fs.list = slices.Delete(fs.list, 0, i+1)
			break
		}
	}
	return f
}

func (fs *finals) drop(f *final) {
	fs.list = slices.DeleteFunc(fs.list, func(x *final) bool { return x == f })
}

// repeated returns the message that a send repeats, or nil. That is one of the same turn with the
// same text. Or its text follows a line of explanation, in a send that answers nothing
// ("♻️ Recovered reply …", §10) or the same turn ("(Response formatting failed, plain text:)", §11).
// The words of the explanation are translated, so only its shape counts, and the text must have been
// a reply: two equal notices are two notices.
func (fs *finals) repeated(a *action, now time.Time) *final {
	text := a.Content
	replyID := a.replyID()
	for i := len(fs.list) - 1; i >= 0; i-- {
		f := fs.list[i]
		if f.replyID == "" || f.text == "" || now.Sub(f.at) > keepFinals {
			continue
		}
		if f.replyID == replyID && (f.text == text || f.text == finalText(text)) {
			return f
		}
		if replyID != "" && replyID != f.replyID {
			continue
		}
		prefix, ok := strings.CutSuffix(text, f.text)
		prefix = strings.TrimRight(prefix, " ")
		if !ok || len(prefix) > maxPrefix || !strings.HasSuffix(prefix, "\n") {
			continue
		}
		head := strings.TrimRight(prefix, "\n")
		switch {
		case strings.Contains(head, "\n"):
		case replyID == "" && isRecovered(head):
			return f
		case replyID != "" && strings.HasPrefix(head, "(") && strings.HasSuffix(head, ":)"):
			return f
		}
	}
	return nil
}

// edited returns what is known of a message that is edited and not open: whose turn it belongs to,
// and whether it already has this text. replyID is the turn that runs.
func (fs *finals) edited(wire, replyID, text string) (of string, same bool) {
	of = replyID
	for _, f := range fs.list {
		known := f.wire == wire || f.id == wire
		if known {
			of = f.replyID
		}
		if f.text == finalText(text) && (known || f.replyID != "" && f.replyID == of) {
			return of, true
		}
	}
	return of, false
}
