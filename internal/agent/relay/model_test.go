package relay

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"hermes-mobile/internal/agent"
)

// TestAnyOps sends ops in any order and checks what must hold whatever a gateway
// does: every op is answered, a message has one final and nothing after it, one
// that was begun gets it, and an input ends once.
func TestAnyOps(t *testing.T) {
	for seed := range uint64(25) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(seed, 1))
			r := newRig(t, nil)
			r.ignore = "interrupt_inbound"
			p := r.dial()
			pick := func(of ...any) any { return of[rnd.IntN(len(of))] }
			ids := []any{"never", nil}
			n, running := int64(0), int64(0)
			mid := any("m0-x")
			texts := []any{"", "Hello ▉", "Hello world", "Hello", "\n\nHi", "▉", "a (1/2)", "MEDIA:/x", "♻️ Recovered:\n\nHello", nil, strings.Repeat("x", 5000)}
			for range 300 {
				if running == 0 || len(r.h.dones("tel")) == int(n) {
					n++
					running = n
					rc := r.say("tel", n, "go")
					mid = p.event()["message_id"]
					r.until("taken", func() bool { return rc.is(nil) })
				}
				act := obj("chat_id", "tel", "op", pick("send", "send", "edit", "edit", "draft", "typing", "react", "prompt", "send_media", "delete", "x"),
					"content", pick(texts...), "message_id", pick(append(ids, mid)...), "reply_to", pick(nil, mid, "m1-x", "else"),
					"draft_id", rnd.IntN(3), "final", rnd.IntN(20) == 0, "emoji", pick("👀", "✅", "❌"), "remove", rnd.IntN(2) == 0,
					"prompt_kind", pick("approval", "clarify", nil), "prompt_id", pick("aa.1", "bb.2", ""),
					"options", []any{obj("id", "once"), obj("id", pick("deny", "cancel", "other"))}, "source_url", pick("http://x/y", "/relay/media/z", ""),
					"metadata", obj("notify", rnd.IntN(3) == 0, "expect_edits", rnd.IntN(3) == 0, "reply_to_message_id", pick(nil, mid), "job_id", pick(nil, nil, nil, "j")))
				if id, ok := p.op(act)["message_id"].(string); ok && id != "" {
					ids = append(ids, id)
				}
				switch rnd.IntN(40) {
				case 0:
					r.a.Stop("tel")
				case 1:
					r.pass(time.Duration(rnd.IntN(90)) * time.Second)
				case 2:
					p.conn.CloseNow()
					r.until("gone", func() bool { return !r.a.Status("tel").Online })
					p = r.dial()
				}
			}
			for _, card := range r.h.asks("tel") {
				g := r.a.serves("tel")
				g.seq.do(func() { g.conversations.all["tel"].cards.gone(card.ID) })
			}
			r.pass(idleCard + time.Minute)
			begun, final := map[string]bool{}, map[string]bool{}
			ended := map[int64]int{}
			for _, e := range r.h.all("tel") {
				switch e := e.(type) {
				case agent.Say:
					if final[e.ID] {
						t.Errorf("%s goes on after its end: %+v", e.ID, e)
					}
					begun[e.ID] = true
					final[e.ID] = e.Final
					if e.Text == "" || strings.HasSuffix(e.Text, cursor) && e.Source == "" {
						t.Errorf("text %q", e.Text)
					}
				case agent.Done:
					ended[e.N]++
				}
			}
			for id := range begun {
				if !final[id] {
					t.Errorf("%s has no end", id)
				}
			}
			for i := int64(1); i <= n; i++ {
				if ended[i] != 1 {
					t.Errorf("input %d ended %d times", i, ended[i])
				}
			}
		})
	}
}

// Neither texts nor secrets nor tokens get into the log.
func TestLogIsDiscreet(t *testing.T) {
	var log bytes.Buffer
	r := newRig(t, func(o *Options) {
		o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	r.dialAs("gw", "wrong-s3cret")
	p := r.dial()
	mid := p.turn("tel", 1, "private words")
	p.reply("tel", mid, "private answer")
	p.reply("tel", mid, "private answer")
	p.ok(approval("aa.1"))
	p.raw([]byte("private garbage\n"))
	r.upload("gw", "s3cret", "private bytes", "image/png", "private.png")
	p.op(obj("op", "private", "chat_id", "tel", "content", "private"))
	p.end("tel", mid)
	r.say("tel", 2, "private words")
	p.expect("inbound")
	r.pass(2 * time.Second)
	p.conn.CloseNow()
	r.stop()
	s := log.String()
	for _, word := range []string{"private", "s3cret", "rm x", "Bearer ", "may I"} {
		if strings.Contains(s, word) {
			t.Errorf("%q is in the log:\n%s", word, s)
		}
	}
	if !strings.Contains(s, "stalled") || !strings.Contains(s, "wrong secret") {
		t.Errorf("the log says too little:\n%s", s)
	}
}

// The hub may end a turn by its own lease and hand the next input over.
func TestHubGaveUp(t *testing.T) {
	r := newRig(t, nil)
	p := r.dial()
	p.turn("tel", 1, "hi")
	rc := r.say("tel", 2, "next")
	mid := p.event()["message_id"].(string)
	r.until("taken", func() bool { return rc.is(nil) })
	if d := r.h.dones("tel"); len(d) != 1 || d[0].N != 1 {
		t.Errorf("%v", d)
	}
	p.reply("tel", mid, "answer")
	p.end("tel", mid)
	same(t, r.texts("tel"), "answer <app-2")
	if d := r.h.dones("tel"); len(d) != 2 || d[1].N != 2 {
		t.Errorf("%v", d)
	}
}
