package hub

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"hermes-mobile/frame"
	"hermes-mobile/internal/store"
)

// entry is the content of an outbox row, by its kind. Times and parts are worked out when it is sent.
type entry struct {
	seq     int64
	ended   *display          // of the streamed message that this is the final of; nil if it was read from the store
	Message *frame.Message    `json:"message,omitempty"`
	Media   *frame.Media      `json:"media,omitempty"`
	Hash    string            `json:"hash,omitempty"` // of the file
	Prompt  *frame.Prompt     `json:"prompt,omitempty"`
	Done    *frame.PromptDone `json:"done,omitempty"`
	Echo    *frame.Echo       `json:"echo,omitempty"`
	Notice  *frame.Notice     `json:"notice,omitempty"`
}

func (e *entry) kind() store.Kind {
	switch {
	case e.Message != nil:
		return store.KindMessage
	case e.Media != nil:
		return store.KindMedia
	case e.Prompt != nil:
		return store.KindPrompt
	case e.Echo != nil:
		return store.KindEcho
	case e.Notice != nil:
		return store.KindNotice
	}
	return store.KindPromptDone
}

// encode returns the stored form of an entry.
func (e *entry) encode() []byte {
	if m := e.Message; m != nil {
		return append(m.AppendJSON(append(make([]byte, 0, len(m.Text)+160), `{"message":`...)), '}')
	}
	body, err := json.Marshal(e)
	if err != nil {
		panic(fmt.Sprintf("hub: encode outbox entry: %v", err)) // strings and numbers only
	}
	return body
}

// readEntry decodes the result of encode, or of encoding/json in an older version. The newer library takes half the time,
// and a device that comes back waits for it.
func readEntry(body []byte) (*entry, error) {
	e := &entry{}
	if err := jsonv2.Unmarshal(body, e, jsontext.AllowInvalidUTF8(true)); err != nil {
		return nil, err
	}
	return e, nil
}

// readPrompt returns the card that a stored entry shows, nil if it shows none.
func readPrompt(body []byte) *frame.Prompt {
	e, err := readEntry(body)
	if err != nil {
		return nil
	}
	return e.Prompt
}

// secondsLeft is the time that a card has, in seconds.
func secondsLeft(expires time.Time) int { return max(0, int(time.Until(expires).Seconds())) }

// display is what a connection shows of a streamed message.
type display struct {
	conn  *conn  // that was sent a step of it; nil: none
	text  string // of the last step that was sent
	units int    // UTF-16 length of text
}

// shorten makes m say what it adds to what c shows of the message, if it only adds to it. Otherwise m stays whole.
func (d *display) shorten(c *conn, m *frame.Message) bool {
	added, ok := strings.CutPrefix(m.Text, d.text)
	if !ok || !c.delta || d.conn != c {
		return false
	}
	m.Text, m.Append, m.At = "", &added, d.units
	if m.Edit = !c.tail; c.tail && !m.Final {
		m.At = 0 // the end: the final has the place, by which a device that lacks something notices
	}
	return true
}
