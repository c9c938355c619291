package relay

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
)

// draftLine is a draft as a newer gateway sends it, with n lines of text so far.
func draftLine(request string, n int) []byte {
	text := strings.Repeat(`Each line of a reply is as long as a sentence, and the next begins after it.\n`, n)
	return fmt.Appendf(nil, `{"type":"outbound","requestId":%q,"action":{"op":"draft","chat_id":"tel","draft_id":337961842679854,`+
		`"content":"%s","final":false,"metadata":{"user_id":"user-1","reply_to_message_id":"m1-x"}}}`, request, text)
}

// strictFrame is what the reader of ops is compared with: a struct that the JSON package decodes.
type strictFrame struct {
	Type      string `json:"type"`
	RequestID string `json:"requestId"`
	Platform  string `json:"platform"`
	Action    struct {
		Op        string `json:"op"`
		ChatID    string `json:"chat_id"`
		MessageID string `json:"message_id"`
		Content   string `json:"content"`
		ReplyTo   string `json:"reply_to"`
		Emoji     string `json:"emoji"`
		Remove    bool   `json:"remove"`
		DraftID   int64  `json:"draft_id"`
		Final     bool   `json:"final"`
		Metadata  struct {
			ExpectEdits bool   `json:"expect_edits"`
			Notify      bool   `json:"notify"`
			ReplyTo     string `json:"reply_to_message_id"`
			JobID       string `json:"job_id"`
			Profile     string `json:"profile"`
		} `json:"metadata"`
	} `json:"action"`
}

// BenchmarkReadDraft compares the ways to read an op.
func BenchmarkReadDraft(b *testing.B) {
	line := draftLine("0123456789abcdef0123456789abcdef", 20)
	b.Run("onepass", func(b *testing.B) {
		b.ReportAllocs()
		var r opReader
		for b.Loop() {
			if _, _, ok := r.read(line); !ok {
				b.Fatal("the line was refused")
			}
		}
	})
	b.Run("strict", func(b *testing.B) {
		b.ReportAllocs()
		var f strictFrame
		for b.Loop() {
			f = strictFrame{}
			if err := json.Unmarshal(line, &f); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("tolerant", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var env envelope
			if err := decode(line, &env); err != nil {
				b.Fatal(err)
			}
			decodeAction(&env)
		}
	})
}

// BenchmarkDraft is a draft on its way from the socket to the hub, with its answer. It includes the
// other end of the connection, which decodes the answer.
func BenchmarkDraft(b *testing.B) {
	r := newRig(b, nil)
	r.ignore = "outbound_result"
	p := r.dial()
	rc := r.say("tel", 1, "hi")
	p.event()
	r.until("acknowledged", func() bool { return rc.is(nil) })
	r.settle()
	l := r.a.serves("tel").wire.link
	lines := make([][]byte, 200)
	for i := range lines {
		lines[i] = draftLine(fmt.Sprintf("%032d", i), 10+i/10)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		l.line(lines[i%len(lines)])
		i++
	}
}
