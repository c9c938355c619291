package hub

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/rivo/uniseg"

	"hermes-mobile/frame"
	"hermes-mobile/internal/push"
)

// notice is what a device is notified of.
type notice struct {
	entry *entry // the newest, or the newest card
	id    string // of entry
	ids   []string
	count int
	life  time.Duration
}

// noticeBody is the text of a notification.
type noticeBody struct {
	Type    string         `json:"type"`
	ID      string         `json:"id,omitempty"` // what it is about, one of those below
	IDs     []string       `json:"ids"`
	Count   int            `json:"count"`
	Title   string         `json:"title,omitempty"`
	Body    string         `json:"body,omitempty"`
	Kind    string         `json:"kind,omitempty"`   // of a notice
	Device  string         `json:"device,omitempty"` // that a notice is about, by its name
	Actions []noticeAction `json:"actions,omitempty"`
}

// noticeAction is an option of a card that the notification itself can choose.
type noticeAction struct {
	ID    string `json:"id"`
	Label string `json:"label"`
	Token string `json:"token"`
}

// Bounds of what is shown of a message.
const (
	maxTitle = 60
	maxWords = 120
)

// agentTitle stands for the agent.
const agentTitle = "Hermes"

// note makes the notification for one target.
func (s *session) note(n notice, t push.Target) push.Note {
	e := n.entry
	body := noticeBody{ID: n.id, IDs: n.ids, Count: n.count}
	topic := "messages"
	switch {
	case e.Prompt != nil:
		body.Type, topic = "card", e.Prompt.ID
	case e.Notice != nil:
		body.Type, topic = "notice", "notice\n"+e.Notice.Device.ID
	case e.Media != nil:
		body.Type = "file"
	default:
		body.Type = "message"
	}
	if t.Content {
		body.Title, body.Body = words(e)
		if n := e.Notice; n != nil {
			body.Kind, body.Device = n.Kind, clip(cmp.Or(n.Device.Name, n.Device.ID), maxTitle)
		}
		if e.Prompt != nil && s.unanswerable() == nil && s.hub.PushActions != nil && t.Encrypted() {
			body.Actions = s.actions(e.Prompt)
		}
	}
	return push.Note{Body: fit(body), TTL: n.life, Urgent: e.Prompt != nil || e.Notice != nil, Topic: s.topic(topic)}
}

// withdrawal makes the notification that takes others back.
func (s *session) withdrawal(ids []string) push.Note {
	topic := "" // what is still shown must not be replaced by it
	if len(s.push.shown) == 0 {
		topic = s.topic("messages")
	}
	if len(ids) == 1 {
		if _, isCard, err := s.hub.store.Card(s.hub.ctx, ids[0]); err == nil && isCard {
			topic = s.topic(ids[0])
		}
	}
	return push.Note{Body: fit(noticeBody{Type: "withdraw", IDs: ids, Count: len(ids)}), TTL: s.hub.OutboxLife, Topic: topic}
}

// topic is how the push service knows notifications that replace one another (RFC 8030 §5.4). It says nothing to it.
func (s *session) topic(of string) string {
	sum := sha256.Sum256([]byte(s.dev.Epoch + "\n" + s.id + "\n" + of))
	return base64.RawURLEncoding.EncodeToString(sum[:18])
}

// fit encodes a notification so that it is not too large: the oldest ids go first, then the actions.
func fit(n noticeBody) []byte {
	for {
		var out bytes.Buffer
		enc := json.NewEncoder(&out)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(n); err != nil {
			panic(fmt.Sprintf("hub: encode a notification: %v", err)) // strings and numbers only
		}
		text := bytes.TrimSpace(out.Bytes())
		switch {
		case len(text) <= push.MaxBody:
			return text
		case len(n.IDs) > 1:
			n.IDs = n.IDs[1:]
		case n.Actions != nil:
			n.Actions = nil
		default:
			n.Title, n.Body, n.Device, n.IDs = "", "", "", []string{}
		}
	}
}

// words are title and text of what an entry says.
func words(e *entry) (title, text string) {
	title = agentTitle
	switch {
	case e.Prompt != nil:
		text, _ = question(e.Prompt)
	case e.Notice != nil:
		text = noticeWords(e.Notice)
	case e.Media != nil:
		text = plain(cmp.Or(e.Media.Caption, e.Media.Filename))
	case e.Message != nil:
		title, text = cmp.Or(e.Message.Job, agentTitle), plain(e.Message.Text)
	}
	return clip(frame.Visible(title).String(), maxTitle), text
}

// question is what a notification says of a card: its text and, in a second line, the command. all reports whether the
// person sees the whole of both in it, as they are: nothing was cut, hidden, or put into one line. Marks of emphasis in the
// text may be missing.
func question(p *frame.Prompt) (text string, all bool) {
	text = plain(p.Text)
	all = !p.Odd && !frame.Odd(p) && text == oneLine(strong.ReplaceAllString(p.Text, ""))
	if p.Command != "" {
		shown := frame.VisibleCommand(p.Command)
		line := clip(oneLine(shown.Folded()), maxWords)
		all = all && line == p.Command
		text = strings.TrimSpace(text + "\n" + line)
	}
	return text, all
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// noticeWords say what a notice tells of.
func noticeWords(n *frame.Notice) string {
	device := clip(strings.Join(strings.Fields(cmp.Or(n.Device.Name, n.Device.ID)), " "), maxTitle)
	switch n.Kind {
	case frame.DeviceJoined:
		return device + " takes part in a conversation of yours now. If you don't know it, revoke it."
	case frame.RightsChanged:
		return device + " has more rights now. If you don't know it, revoke it."
	}
	return device + " has access to your agent now. If you don't know it, revoke it."
}

// Marks of Markdown that are not words.
var (
	fences  = regexp.MustCompile("(?m)^[ \t]*(```|~~~).*$")
	leaders = regexp.MustCompile(`(?m)^[ \t]*(#{1,6}|>|[-*+])[ \t]+`)
	links   = regexp.MustCompile(`!?\[([^\]\n]*)\]\([^)\n]*\)`)
	strong  = regexp.MustCompile("\\*\\*|__|`")
)

// plain is the beginning of a text without Markdown's marks, in one line, with nothing hidden in it.
func plain(text string) string {
	if len(text) > 8<<10 {
		text = strings.ToValidUTF8(text[:8<<10], "")
	}
	text = frame.Visible(text).String()
	text = fences.ReplaceAllString(text, "")
	text = leaders.ReplaceAllString(text, "")
	text = links.ReplaceAllString(text, "$1")
	text = strong.ReplaceAllString(text, "")
	return clip(oneLine(text), maxWords)
}

// clip cuts a text between characters as people see them, so that at most n remain.
func clip(text string, n int) string {
	rest, state := text, -1
	for i := 0; i < n && rest != ""; i++ {
		_, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
	}
	if rest == "" {
		return bound(text, n)
	}
	return bound(text[:len(text)-len(rest)], n-1) + "…"
}

// bound keeps a character of a thousand code points from being one.
func bound(text string, n int) string {
	runes := []rune(text)
	return string(runes[:min(len(runes), n)])
}
