package notify

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/push"
)

// summary is what one notification tells: the newest entry, or the newest card, and how many there are.
type summary struct {
	Note
	id    string // of Note
	ids   []string
	count int
	life  time.Duration
}

// body is the JSON of a notification.
type body struct {
	Type    string   `json:"type"`
	ID      string   `json:"id,omitempty"` // of the entry it tells about, one of IDs
	IDs     []string `json:"ids"`
	Count   int      `json:"count"`
	Title   string   `json:"title,omitempty"`
	Body    string   `json:"body,omitempty"`
	Kind    string   `json:"kind,omitempty"`   // of a notice
	Device  string   `json:"device,omitempty"` // name of the device that a notice is about
	Actions []button `json:"actions,omitempty"`
}

// button is an option of a card that the notification itself can choose.
type button struct {
	ID    string `json:"id"`
	Label string `json:"label"`
	Token string `json:"token"`
}

// messagesTopic is the topic of all messages and files.
const messagesTopic = "messages"

// compose makes the notification for one endpoint.
func (d *Device) compose(n summary, t push.Target) push.Note {
	out := body{ID: n.id, IDs: n.ids, Count: n.count}
	topic := messagesTopic
	switch {
	case n.Prompt != nil:
		out.Type, topic = "card", n.Prompt.ID
	case n.Notice != nil:
		out.Type, topic = "notice", "notice\n"+n.Notice.Device.ID
	case n.Media != nil:
		out.Type = "file"
	default:
		out.Type = "message"
	}
	if t.Content {
		out.Title, out.Body = words(n.Note)
		if about := n.Notice; about != nil {
			out.Kind, out.Device = about.Kind, clip(cmp.Or(about.Device.Name, about.Device.ID), maxTitle)
		}
		if n.Prompt != nil && d.service.Key != nil && t.Encrypted() && d.host.MayAnswer() {
			out.Actions = d.buttons(n.Prompt)
		}
	}
	return push.Note{Body: fit(out), TTL: n.life, Urgent: n.Prompt != nil || n.Notice != nil, Topic: d.topic(topic)}
}

// buttons signs the options of a card that a notification may choose.
func (d *Device) buttons(p *frame.Prompt) (list []button) {
	for _, o := range Offered(p) {
		list = append(list, button{o.ID, o.Label, d.service.Sign(Action{d.id, p.ID, o.ID, p.ExpiresAt.Unix()})})
	}
	return list
}

// composeWithdrawal makes the notification that withdraws others.
func (d *Device) composeWithdrawal(ids []string) push.Note {
	topic := "" // it must not replace what is still shown
	if len(d.shown) == 0 {
		topic = d.topic(messagesTopic)
	}
	if len(ids) == 1 {
		if _, isCard, err := d.service.Store.Card(d.host.State().Context, ids[0]); err == nil && isCard {
			topic = d.topic(ids[0])
		}
	}
	return push.Note{Body: fit(body{Type: "withdraw", IDs: ids, Count: len(ids)}), TTL: d.service.Life, Topic: topic}
}

// topic names notifications that replace one another at the push service (RFC 8030 §5.4). It tells the service nothing.
func (d *Device) topic(of string) string {
	sum := sha256.Sum256([]byte(d.host.State().Epoch + "\n" + d.id + "\n" + of))
	return base64.RawURLEncoding.EncodeToString(sum[:18])
}

// fit encodes a notification within the size limit. It drops the oldest ids first, then the actions.
func fit(n body) []byte {
	for {
		var out bytes.Buffer
		enc := json.NewEncoder(&out)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(n); err != nil {
			panic(fmt.Sprintf("notify: encode notification: %v", err)) // strings and numbers only
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
