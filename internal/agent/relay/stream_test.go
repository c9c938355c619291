package relay

import (
	"fmt"
	"testing"
	"time"

	"hermes-mobile/internal/agent"
)

// texts returns the final messages in words: text, "!" for interrupted, and
// whether it answers.
func (r *rig) texts(d string) (out []string) {
	for _, s := range r.h.finals(d) {
		line := s.Text
		if s.Interrupted {
			line += " !"
		}
		if s.ReplyTo != "" {
			line += " <" + s.ReplyTo
		}
		out = append(out, line)
	}
	return out
}

func same(t *testing.T, got []string, want ...string) {
	t.Helper()
	if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func piece(mid, content string) map[string]any {
	return obj("op", "send", "chat_id", "tel", "content", content, "reply_to", mid, "metadata", obj("expect_edits", true, "reply_to_message_id", mid))
}

func edit(id, content string) map[string]any {
	return obj("op", "edit", "chat_id", "tel", "message_id", id, "content", content)
}

func draft(mid string, id int, content string) map[string]any {
	return obj("op", "draft", "chat_id", "tel", "draft_id", id, "content", content, "final", false, "metadata", obj("reply_to_message_id", mid))
}

func TestDraftForm(t *testing.T) {
	r := newRig(t, nil)
	p := r.dial()
	mid := p.turn("tel", 1, "hi")
	p.ok(draft(mid, 1, "\n\nHe"))
	p.ok(draft(mid, 1, "Hello\nMEDIA:/x"))
	p.ok(obj("op", "send", "chat_id", "tel", "content", "⚙️ tool"))
	p.ok(draft(mid, 2, "Hello wor")) // a new segment replaces the preview
	id := p.reply("tel", mid, "Hello world")
	p.ok(draft(mid, 2, "Hello worl")) // late
	p.ok(draft(mid, 3, "Second"))
	p.reply("tel", mid, "Second one")
	p.ok(draft(mid, 4, "Lost"))
	p.end("tel", mid)
	same(t, r.texts("tel"), "⚙️ tool", "Hello world <app-1", "Second one <app-1", "Lost ! <app-1")
	ids := map[string]bool{}
	var steps []string
	for _, e := range r.h.all("tel") {
		if s, ok := e.(agent.Say); ok && s.Text != "⚙️ tool" {
			ids[s.ID] = true
			if s.N != 1 || s.ReplyTo != "app-1" {
				t.Errorf("%+v", s)
			}
			if !s.Final {
				steps = append(steps, s.Text)
			}
			if s.Text == "Hello world" && s.ID != id {
				t.Error("another id than was answered")
			}
		}
	}
	if len(ids) != 3 {
		t.Errorf("%d messages", len(ids))
	}
	same(t, steps, "He", "Hello", "Hello wor", "Second", "Lost")
}

func TestEditForm(t *testing.T) {
	r := newRig(t, nil)
	p := r.dial()
	mid := p.turn("tel", 1, "hi")
	id := p.ok(piece(mid, "\n\nHel ▉"))
	p.ok(edit(id, "\n\nHello ▉"))
	p.ok(edit(id, "Hello."))
	p.ok(edit(id, "Hello."))        // again
	p.ok(edit(id, "Hello. And on")) // after its end: nothing is lost
	p.ok(edit(id, "Hello. And on and on"))
	// No cursor at all: the turn's end ends it.
	id = p.ok(piece(mid, "No"))
	p.ok(edit(id, "No cursor"))
	p.end("tel", mid)
	same(t, r.texts("tel"), "Hello. <app-1", "Hello. And on and on <app-1", "No cursor <app-1")
	// Tool progress is not marked: a send, then edits of it.
	mid = p.turn("tel", 9, "hi")
	id = p.ok(obj("op", "send", "chat_id", "tel", "content", "⚙️ a"))
	p.ok(edit(id, "⚙️ a\n⚙️ b"))
	p.ok(edit(id, "⚙️ a\n⚙️ b\n⚙️ c"))
	p.reply("tel", mid, "answer")
	p.end("tel", mid)
	r.pass(quietStream + time.Second)
	same(t, r.texts("tel")[3:], "⚙️ a", "answer <app-9", "⚙️ a\n⚙️ b\n⚙️ c")
	// Cut by the turn's end.
	mid = p.turn("tel", 2, "hi")
	p.ok(piece(mid, "Half of ▉"))
	p.end("tel", mid)
	same(t, r.texts("tel")[6:], "Half of ! <app-2")
	// Of no turn: it ends by itself.
	id = p.ok(obj("op", "send", "chat_id", "tel", "content", "⚙️ one", "metadata", obj("expect_edits", true)))
	p.ok(edit(id, "⚙️ one\n⚙️ two"))
	r.pass(quietStream + time.Second)
	same(t, r.texts("tel")[7:], "⚙️ one\n⚙️ two")
}

// doc/hermes/relay.md §7, §10: a stream that was cut goes on as a new message, with the
// rest or with the whole.
func TestStreamCut(t *testing.T) {
	r := newRig(t, nil)
	p := r.dial()
	mid := p.turn("tel", 1, "hi")
	id := p.ok(piece(mid, "Line one\nLine t ▉"))
	if got := p.reply("tel", mid, "Line one\nLine two"); got != id {
		t.Error("the whole text is another message")
	}
	p.end("tel", mid)
	mid = p.turn("tel", 2, "hi")
	p.ok(piece(mid, "Line one\nLine t ▉"))
	p.conn.CloseNow()
	r.until("gone", func() bool { return !r.a.Status("tel").Online })
	p = r.dial()
	p.ok(obj("op", "typing", "chat_id", "tel"))
	p.ok(obj("op", "send", "chat_id", "tel", "content", "wo\nLine three", "reply_to", nil, "metadata", obj("reply_to_message_id", mid, "notify", true)))
	p.end("tel", mid)
	same(t, r.texts("tel"), "Line one\nLine two <app-1", "Line one\nLine t <app-2", "wo\nLine three <app-2")
}

func TestRepeats(t *testing.T) {
	r := newRig(t, nil)
	p := r.dial()
	send := func(content, replyTo string, notify bool) string {
		var to any
		md := obj()
		if replyTo != "" {
			to = replyTo
		}
		if notify {
			md["notify"] = true
		}
		return p.ok(obj("op", "send", "chat_id", "tel", "content", content, "reply_to", to, "metadata", md))
	}
	mid := p.turn("tel", 1, "hi")
	first := p.reply("tel", mid, "alpha")
	if send("alpha", mid, true) != first {
		t.Error("a repeat of the turn")
	}
	send("(Response formatting failed, plain text:)\n\nalpha", mid, true)
	p.end("tel", mid)
	send("♻️ Recovered reply — the messaging platform reconnected, so this may be a duplicate:\n\nalpha", "", false)
	same(t, r.texts("tel"), "alpha <app-1")
	// What is no repeat.
	send("♻️ Recovered reply — again:\n\nbeta", "", false)
	send("notice", "", false)
	send("notice", "", false)
	send("Quote:\n\nalpha", "", false)
	mid = p.turn("tel", 2, "again")
	p.reply("tel", mid, "alpha")
	p.end("tel", mid)
	same(t, r.texts("tel")[1:], "♻️ Recovered reply — again:\n\nbeta", "notice", "notice", "Quote:\n\nalpha", "alpha <app-2")
	// A repeat of what could not be stored is stored.
	mid = p.turn("tel", 3, "more")
	r.h.set(false, fmt.Errorf("disk full"))
	if res := p.op(obj("op", "send", "chat_id", "tel", "content", "gamma", "reply_to", mid, "metadata", obj("notify", true))); res["success"] == true {
		t.Error("stored?")
	}
	r.h.set(false, nil)
	p.reply("tel", mid, "gamma")
	same(t, r.texts("tel")[6:], "gamma <app-3")
}

// A repeat of what is being stored waits for it.
func TestRepeatWhileStoring(t *testing.T) {
	r := newRig(t, nil)
	p := r.dial()
	mid := p.turn("tel", 1, "hi")
	r.h.set(true, nil)
	act := obj("op", "send", "chat_id", "tel", "content", "alpha", "reply_to", mid, "metadata", obj("notify", true))
	p.ask(act)
	p.ask(act)
	p.sync2()
	if len(p.in) != 0 {
		t.Error("answered before it was stored")
	}
	r.h.release()
	a := p.expect("outbound_result")["result"].(map[string]any)
	b := p.expect("outbound_result")["result"].(map[string]any)
	if a["success"] != true || a["message_id"] != b["message_id"] {
		t.Errorf("%v %v", a, b)
	}
	same(t, r.texts("tel"), "alpha <app-1")
}

func TestCronBesideTurn(t *testing.T) {
	r := newRig(t, nil)
	p := r.dial()
	mid := p.turn("tel", 1, "hi")
	id := p.ok(piece(mid, "Working ▉"))
	for range 2 {
		p.ok(obj("op", "send", "chat_id", "tel", "content", "Cronjob Response: tea\n(job_id: j1)\n-------------\n\nTea time\n\nTo stop or manage this job, …", "reply_to", nil,
			"metadata", obj("job_id", "j1", "notify", true)))
	}
	p.ok(edit(id, "Working well"))
	p.end("tel", mid)
	same(t, r.texts("tel"), "Tea time", "Tea time", "Working well <app-1")
	if s := r.h.finals("tel")[0]; s.Source != "cron" || s.Job != "tea" || s.N != 0 {
		t.Errorf("%+v", s)
	}
	if len(r.h.dones("tel")) != 1 {
		t.Error("cron ended a turn")
	}
}
