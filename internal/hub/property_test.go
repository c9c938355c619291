package hub_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"slices"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"

	"hermes-mobile/frame"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/store"
)

// journal is the model of one device's conversation: what is durable, in order, and how far the
// device has come.
type journal struct {
	epoch   string
	entries []durable
	floor   int64 // everything up to it is gone
	sent    int64 // newest number that some connection was sent
	waiting []string
	turn    *hand
	stream  string   // id of the message that is being said, empty if none
	steps   []string // its texts so far
	begun   map[string]bool
	ids     int
	sentIDs []string // ids of messages
}

type durable struct {
	seq  int64
	id   string
	text string
	cut  bool // interrupted
}

func (j *journal) newest() int64 {
	if len(j.entries) == 0 {
		return j.floor
	}
	return j.entries[len(j.entries)-1].seq
}

func (j *journal) after(seq int64) (list []durable) {
	for _, e := range j.entries {
		if e.seq > seq {
			list = append(list, e)
		}
	}
	return list
}

func (j *journal) forget(seq int64) {
	seq = min(seq, j.newest())
	j.floor, j.sent = max(j.floor, seq), max(j.sent, seq)
	j.entries = slices.DeleteFunc(j.entries, func(e durable) bool { return e.seq <= seq })
}

// player is a device that checks everything it gets against the journal.
type player struct {
	t     *rapid.T
	w     *world
	j     *journal
	c     *client // nil: not connected
	delta bool
	tail  bool
	want  []durable         // durable frames this connection must get, in order
	shown map[string]string // texts of streamed messages as the device shows them
}

const device = "d"

func (p *player) connect() {
	t, j := p.t, p.j
	opts := []option{}
	p.delta, p.tail = rapid.Bool().Draw(t, "delta"), rapid.Bool().Draw(t, "tail")
	switch {
	case p.delta && p.tail:
		opts = append(opts, withTail())
	case p.delta:
		opts = append(opts, withDelta())
	case p.tail: // alone it asks for nothing
		opts = append(opts, func(d *dialing) { d.hello.Accept = []string{frame.AcceptTail} })
	}
	cursor := rapid.SampledFrom([]string{"none", "newest", "old", "future", "other epoch"}).Draw(t, "cursor")
	if j.epoch == "" {
		cursor = "none" // the first connection
	}
	from, lost := j.sent, false
	seq := j.newest()
	switch cursor {
	case "old":
		seq = rapid.Int64Range(0, j.newest()).Draw(t, "seq")
	case "future":
		seq += rapid.Int64Range(1, 1<<40).Draw(t, "beyond")
	}
	if cursor != "none" {
		epoch := j.epoch
		if cursor == "other epoch" {
			epoch = "e" + epoch
		}
		opts = append(opts, withResume(epoch, seq))
		from, lost = seq, epoch != j.epoch || seq < j.floor || seq > j.newest()
		if lost {
			from = j.floor
		}
	}
	p.want, p.shown = j.after(from), map[string]string{}
	if cursor != "none" && !lost {
		j.forget(seq)
	}
	p.c = p.w.connect(device, opts...)
	r := p.c.Ready.Resume
	if j.epoch == "" {
		j.epoch = r.Epoch
	}
	if r.Epoch != j.epoch || r.From != from+1 || r.To != j.newest() || r.Lost != lost {
		t.Fatalf("resumed %+v, want from %d to %d lost %v", r, from+1, j.newest(), lost)
	}
	p.catchUp()
	if j.stream != "" && p.shown[j.stream] != j.steps[len(j.steps)-1] {
		t.Fatalf("after the reconnect %q is shown of the message that is being said, it has come to %q", p.shown[j.stream], j.steps[len(j.steps)-1])
	}
}

// catchUp takes everything up to now, which must be exactly what was wanted.
func (p *player) catchUp() {
	for _, f := range p.c.sync() {
		switch f := f.(type) {
		case *frame.Message:
			p.message(f)
		case *frame.Accepted, *frame.CapabilitiesChanged:
		default:
			if !indicator(f) {
				p.t.Fatalf("unexpected %s", show(f))
			}
		}
	}
	if len(p.want) > 0 {
		p.t.Fatalf("%d durable frames are missing, the next is %+v", len(p.want), p.want[0])
	}
	p.j.sent = max(p.j.sent, p.j.newest())
}

func (p *player) message(m *frame.Message) {
	t := p.t
	text := m.Text
	if m.Append != nil {
		old := p.shown[m.ID]
		at := len(utf16.Encode([]rune(old)))
		if p.tail && !m.Final {
			at = 0
		}
		if !p.delta || m.Final && !p.tail || m.At != at {
			t.Fatalf("append at %d to %q (delta %v, tail %v): %s", m.At, old, p.delta, p.tail, show(m))
		}
		text = old + *m.Append
	}
	if m.Final {
		if len(p.want) == 0 {
			t.Fatalf("%s was not to come", show(m))
		}
		next := p.want[0]
		p.want = p.want[1:]
		if m.ID != next.id || m.Seq != next.seq || text != next.text || m.Interrupted != next.cut {
			t.Fatalf("%s, want %+v", show(m), next)
		}
		delete(p.shown, m.ID)
		return
	}
	if m.ID != p.j.stream && !p.j.begun[m.ID] {
		t.Fatalf("a step of an unknown message %s", show(m))
	}
	if m.ID == p.j.stream && !slices.Contains(p.j.steps, text) {
		t.Fatalf("the device shows %q, which was never said: %q", text, p.j.steps)
	}
	if m.Seq != 0 {
		t.Fatalf("a step has a number: %s", show(m))
	}
	p.shown[m.ID] = text
}

// stored learns the numbers of what was added, from the store: they may skip, and only grow.
func (p *player) stored(want ...durable) {
	rows, err := p.w.store.Outbox(ctx, 1, p.j.newest(), 100)
	ok(p.t, err)
	if len(rows) != len(want) {
		p.t.Fatalf("%d entries were stored, want %d: %+v", len(rows), len(want), want)
	}
	for i, row := range rows {
		want[i].seq = row.Seq
		p.j.entries = append(p.j.entries, want[i])
		if p.c != nil {
			p.want = append(p.want, want[i])
		}
	}
}

func (p *player) final(events ...agent.Event) (list []durable) {
	for _, e := range events {
		if s, is := e.(agent.Say); is && s.Final {
			list = append(list, durable{id: s.ID, text: s.Text, cut: s.Interrupted})
		}
	}
	return list
}

// endStream is the end that an open message gets when its turn or the server ends.
func (p *player) endStream() []durable {
	j := p.j
	if j.stream == "" {
		return nil
	}
	d := durable{id: j.stream, text: j.steps[len(j.steps)-1], cut: true}
	j.stream, j.steps = "", nil
	return []durable{d}
}

// nextTurn takes what the hub must hand over now.
func (p *player) nextTurn() {
	j := p.j
	if j.turn != nil || len(j.waiting) == 0 {
		return
	}
	h := p.w.take()
	if h.Text != j.waiting[0] {
		p.t.Fatalf("handed %q, want %q", h.Text, j.waiting[0])
	}
	j.waiting, j.turn = j.waiting[1:], &h
}

func (p *player) newID() string { p.j.ids++; return fmt.Sprint("s", p.j.ids) }

// cutText is the text of a message in the outbox that a crash cut.
func cutText(t *rapid.T, rows []store.Out) string {
	var e struct{ Message struct{ Text string } }
	if len(rows) != 1 {
		t.Fatalf("%d entries follow a crash in mid-message, want its end", len(rows))
	}
	ok(t, json.Unmarshal(rows[0].Body, &e))
	return e.Message.Text
}

// fewer has rapid make 30 checks in place of 100, unless the command line says how many: each is a
// world of its own and takes a second with the race detector.
func fewer(t *testing.T) {
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "rapid.checks" })
	if checks := flag.Lookup("rapid.checks"); !chosen {
		before := checks.Value.String()
		ok(t, checks.Value.Set("30"))
		t.Cleanup(func() { ok(t, checks.Value.Set(before)) })
	}
}

func TestSessionAgainstModel(t *testing.T) {
	fewer(t)
	word := rapid.SampledFrom([]string{" one", " zwei", " 三", " 👩‍👩‍👧‍👦", "\n", " "})
	rapid.Check(t, func(t *rapid.T) {
		p := &player{t: t, w: newWorld(t, nil), j: &journal{begun: map[string]bool{}}, shown: map[string]string{}}
		j := p.j
		p.connect()
		needTurn := func(t *rapid.T) hand {
			if j.turn == nil {
				t.Skip("no turn runs")
			}
			return *j.turn
		}
		needConn := func(t *rapid.T) {
			if p.c == nil {
				t.Skip("not connected")
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"send": func(t *rapid.T) {
				needConn(t)
				id := p.newID()
				p.c.send(&frame.Text{ID: id, Text: "text " + id})
				j.waiting, j.sentIDs = append(j.waiting, "text "+id), append(j.sentIDs, id)
				p.catchUp()
				p.nextTurn()
			},
			"send again": func(t *rapid.T) {
				needConn(t)
				if len(j.sentIDs) == 0 {
					t.Skip("nothing was sent")
				}
				id := rapid.SampledFrom(j.sentIDs).Draw(t, "id")
				p.catchUp()
				p.c.send(&frame.Text{ID: id, Text: "again"})
				if a := find[*frame.Accepted](p.c, func(a *frame.Accepted) bool { return a.ID == id }); !a.Duplicate {
					t.Fatalf("%s was taken twice", id)
				}
			},
			"step": func(t *rapid.T) {
				h := needTurn(t)
				if j.stream == "" {
					j.stream, j.steps = p.newID(), []string{""}
					j.begun[j.stream] = true
				}
				text := j.steps[len(j.steps)-1] + word.Draw(t, "word")
				if rapid.IntRange(0, 5).Draw(t, "rewrite") == 0 {
					text = "rewritten" + text
				}
				j.steps = append(j.steps, text)
				p.w.post(device, agent.Say{ID: j.stream, Text: text, N: h.N, ReplyTo: h.ID})
			},
			"final": func(t *rapid.T) {
				h := needTurn(t)
				say := agent.Say{ID: j.stream, Text: "the end" + word.Draw(t, "word"), Final: true, N: h.N, ReplyTo: h.ID}
				if j.stream == "" {
					say.ID = p.newID()
				} else if rapid.Bool().Draw(t, "goes on") {
					say.Text = j.steps[len(j.steps)-1] + word.Draw(t, "more")
				}
				j.stream, j.steps = "", nil
				p.w.post(device, say)
				p.stored(p.final(say)...)
			},
			"unasked": func(t *rapid.T) {
				say := agent.Say{ID: p.newID(), Text: "by the way", Final: true}
				p.w.post(device, say)
				p.stored(p.final(say)...)
			},
			"done": func(t *rapid.T) {
				h := needTurn(t)
				events := []agent.Event{}
				if rapid.Bool().Draw(t, "with a text") {
					events = append(events, agent.Say{ID: p.newID(), Text: "last words", Final: true, N: h.N})
				}
				p.w.post(device, append(events, agent.Done{N: h.N})...)
				p.stored(append(p.final(events...), p.endStream()...)...)
				j.turn = nil
				p.nextTurn()
			},
			"ack": func(t *rapid.T) {
				needConn(t)
				p.catchUp()
				seq := rapid.Int64Range(0, j.newest()+1).Draw(t, "seq")
				p.c.send(&frame.Ack{Seq: seq})
				p.c.sync()
				j.forget(seq)
			},
			"read": func(t *rapid.T) {
				needConn(t)
				p.catchUp()
			},
			"reconnect": func(t *rapid.T) {
				if p.c != nil {
					p.catchUp()
					p.c.drop()
					until(t, "the device to be gone", func() bool { return !p.w.live(device) })
				}
				p.connect()
			},
			"disconnect": func(t *rapid.T) {
				needConn(t)
				p.catchUp()
				p.c.drop()
				until(t, "the device to be gone", func() bool { return !p.w.live(device) })
				p.c = nil
			},
			"restart": func(t *rapid.T) {
				if p.c != nil {
					p.catchUp()
				}
				p.w.restart()
				p.c = nil // what it still got comes from the store, which is looked at next
				last := p.endStream()
				p.stored(last...)
				if len(last) > 0 {
					dev, err := p.w.store.Device(ctx, device)
					ok(t, err)
					j.sent = max(j.sent, min(dev.Sent, j.newest())) // the end may have left before the connection was closed
				}
				if h := j.turn; h != nil {
					next := p.w.take()
					if next.N != h.N || !next.Handed || next.Text != h.Text {
						t.Fatalf("after a restart handed %+v, want the turn that ran", next.Input)
					}
					j.turn = &next
				}
			},
			"crash": func(t *rapid.T) {
				if p.c != nil {
					p.catchUp()
				}
				ok(t, p.w.store.Do(func(*store.Tx) error { return nil })) // after the writes that nobody waits for
				p.w = p.w.crash()
				p.c = nil
				dev, err := p.w.store.Device(ctx, device)
				ok(t, err)
				j.sent = max(dev.Sent, j.floor) // noted without anybody waiting: what is not on the disk comes again
				if h := j.turn; h != nil {
					next := p.w.take()
					if next.N != h.N || next.Text != h.Text {
						t.Fatalf("after a crash handed %+v, want the turn that ran", next.Input)
					}
					j.turn = &next
				}
				if j.stream != "" { // its text is stored now and then only
					rows, err := p.w.store.Outbox(ctx, 1, j.newest(), 1)
					ok(t, err)
					text := cutText(t, rows)
					if !slices.Contains(j.steps[1:], text) {
						t.Fatalf("after a crash %q is what was said, of %q", text, j.steps)
					}
					j.steps = append(j.steps, text)
				}
				p.stored(p.endStream()...)
			},
			"": func(t *rapid.T) { p.w.idle() },
		})
		if p.c == nil {
			p.connect()
		}
		p.catchUp()
		for j.turn != nil { // in the end every message that was begun has its end
			h := *j.turn
			p.w.post(device, agent.Done{N: h.N})
			p.stored(p.endStream()...)
			j.turn = nil
			p.nextTurn()
		}
		p.catchUp()
		if len(p.shown) > 0 {
			t.Fatalf("messages without an end: %v", p.shown)
		}
	})
}
