package relay

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"hermes-mobile/internal/agent"
)

var update = flag.Bool("update", false, "write the expected transcripts anew")

// TestRecordings plays what real gateways sent (testdata/<version>/*.jsonl)
// and compares what comes out with a
// transcript beside it. The recorded connector's frames are what a hub would have
// made the agent do at that moment.
func TestRecordings(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*.jsonl")
	if err != nil || len(files) < 40 {
		t.Fatalf("only %d recordings, %v", len(files), err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(strings.TrimPrefix(f, "testdata/"), ".jsonl"), func(t *testing.T) {
			t.Parallel()
			got := play(t, f)
			want := strings.TrimSuffix(f, ".jsonl") + ".want"
			if *update {
				if err := os.WriteFile(want, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			b, err := os.ReadFile(want)
			if err != nil {
				t.Fatal(err)
			}
			if string(b) != got {
				t.Errorf("differs from %s:\n%s", want, got)
			}
		})
	}
}

type player struct {
	*rig
	p       *peer
	ids     map[string]string // recorded message id: ours
	n       int64
	inputs  map[string]int64 // number by device of the turn
	waiting map[string][]agent.Input
	expect  int // words that the agent sends by itself
	buffers map[string]string
	out     strings.Builder
	shown   map[string]int
	names   map[string]string
	inFrame []map[string]any
}

func play(t *testing.T, file string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pl := &player{
		rig: newRig(t, func(o *Options) { o.Known = nil }), ids: map[string]string{}, inputs: map[string]int64{}, buffers: map[string]string{},
		shown: map[string]int{}, names: map[string]string{}, waiting: map[string][]agent.Input{},
	}
	last := int64(0)
	lines := bytes.Split(bytes.TrimSpace(b), []byte("\n"))
	for i, line := range lines {
		var rec struct {
			at    int64
			kind  string
			value jsontext.Value
		}
		var parts []jsontext.Value
		if err := json.Unmarshal(line, &parts); err != nil {
			t.Fatal(err)
		}
		json.Unmarshal(parts[0], &rec.at)
		json.Unmarshal(parts[1], &rec.kind)
		rec.value = parts[2]
		pl.pass(time.Duration(rec.at-last) * time.Millisecond)
		last = rec.at
		pl.show()
		switch rec.kind {
		case "ws":
			var what string
			json.Unmarshal(rec.value, &what)
			pl.socket(what, i+1 < len(lines) && bytes.Contains(lines[i+1], []byte(`"close"`)))
		case "http":
			pl.http(rec.value)
		case "^":
			pl.up(rec.value, lines[i+1:])
		case "v":
			pl.down(rec.value)
		}
		pl.show()
	}
	pl.pass(7 * time.Minute)
	pl.show()
	return pl.out.String()
}

func (pl *player) socket(what string, refused bool) {
	switch {
	case what == "upgrade" && !refused:
		p, _, err := pl.dialAs("gw", "s3cret")
		if err != nil {
			pl.t.Fatal(err)
		}
		pl.p = p
	case what == "closed" && pl.p != nil:
		pl.p.conn.CloseNow()
		<-pl.p.gone
		pl.until("gone", func() bool { return !pl.a.Status("x").Online })
		pl.p = nil
	}
}

func (pl *player) need() {
	if pl.p == nil {
		pl.p = pl.dial("mobile")
	}
}

// up sends a frame of the gateway and waits for its answer.
func (pl *player) up(v jsontext.Value, rest [][]byte) {
	var f map[string]any
	if err := json.Unmarshal(v, &f); err != nil {
		pl.t.Fatal(err)
	}
	if f["type"] != "hello" {
		pl.need()
	}
	switch f["type"] {
	case "hello":
		pl.p.hello(f["platform"].(string))
		return
	case "going_idle":
		pl.p.send(f)
		pl.until("going_idle_ack", func() bool { return pl.frame("going_idle_ack") != nil })
		return
	case "inbound_ack":
		b := pl.buffers[f["bufferId"].(string)]
		if b == "" {
			return // of words that the agent has not sent yet
		}
		pl.p.send(map[string]any{"type": "inbound_ack", "bufferId": b})
		pl.p.send(map[string]any{"type": "outbound", "requestId": "sync", "action": map[string]any{"op": "get_chat_info", "chat_id": "sync"}})
		pl.until("ack", func() bool { return pl.frame("outbound_result") != nil })
		pl.settle()
		return
	}
	a := f["action"].(map[string]any)
	for _, k := range []string{"message_id", "reply_to"} {
		if id, ok := a[k].(string); ok && pl.ids[id] != "" {
			a[k] = pl.ids[id]
		}
	}
	if md, ok := a["metadata"].(map[string]any); ok {
		if id, ok := md["reply_to_message_id"].(string); ok && pl.ids[id] != "" {
			md["reply_to_message_id"] = pl.ids[id]
		}
	}
	if u, ok := a["source_url"].(string); ok {
		i := strings.LastIndex(u, "/")
		a["source_url"] = strings.Replace(u[:i+1], "PORT", "8787", 1) + pl.ids["last-upload"]
	}
	pl.p.send(f)
	var res map[string]any
	pl.until("result", func() bool { res = pl.frame("outbound_result"); return res != nil })
	r := res["result"].(map[string]any)
	if r["success"] != true {
		fmt.Fprintf(&pl.out, "refused %v: %v\n", a["op"], r["error"])
	}
	// Which id did the recorded connector give?
	for _, line := range rest {
		if bytes.Contains(line, []byte(fmt.Sprintf(`"requestId":"%s"`, f["requestId"]))) {
			var parts []jsontext.Value
			json.Unmarshal(line, &parts)
			var d struct {
				Result struct {
					MessageID string `json:"message_id"`
				} `json:"result"`
			}
			json.Unmarshal(parts[2], &d)
			if id, _ := r["message_id"].(string); id != "" && d.Result.MessageID != "" {
				pl.ids[d.Result.MessageID] = id
			}
			break
		}
	}
	pl.settle()
}

// frame takes the next frame of a kind from the agent; events are acknowledged
// when the recording does not do it.
func (pl *player) frame(kind string) map[string]any {
	for i, m := range pl.inFrame {
		if m["type"] == kind {
			pl.inFrame = append(pl.inFrame[:i:i], pl.inFrame[i+1:]...)
			return m
		}
	}
	for {
		select {
		case m := <-pl.p.in:
			if m["type"] == kind {
				return m
			}
			pl.inFrame = append(pl.inFrame, m)
		default:
			return nil
		}
	}
}

func (pl *player) note(m map[string]any) {
	ev := m["event"].(map[string]any)
	fmt.Fprintf(&pl.out, "> %s %q", ev["message_type"], ev["text"])
	if pr, ok := ev["prompt_response"].(map[string]any); ok {
		fmt.Fprintf(&pl.out, " answers %v with %v", pr["prompt_id"], pr["option_id"])
	}
	if ms, ok := ev["media"].([]any); ok {
		fmt.Fprintf(&pl.out, " file %v", ms[0].(map[string]any)["filename"])
	}
	pl.out.WriteString("\n")
}

// down makes the agent do what the recorded connector did.
func (pl *player) down(v jsontext.Value) {
	var f struct {
		Type     string `json:"type"`
		BufferID string `json:"bufferId"`
		Event    struct {
			Text        string  `json:"text"`
			MessageType string  `json:"message_type"`
			MessageID   *string `json:"message_id"`
			Source      struct {
				ChatID string `json:"chat_id"`
			} `json:"source"`
			Media []struct {
				Mime     string `json:"mime"`
				Filename string `json:"filename"`
			} `json:"media"`
			PromptResponse *struct {
				OptionID string `json:"option_id"`
			} `json:"prompt_response"`
		} `json:"event"`
		ChatID string `json:"chat_id"`
	}
	if err := json.Unmarshal(v, &f); err != nil {
		pl.t.Fatal(err)
	}
	switch f.Type {
	case "interrupt_inbound":
		pl.need()
		pl.a.Stop(f.ChatID)
		pl.until("interrupt", func() bool { return pl.frame("interrupt_inbound") != nil })
		pl.out.WriteString("> interrupt\n")
		return
	case "inbound":
	default:
		return
	}
	pl.need()
	ev, d := f.Event, f.Event.Source.ChatID
	var got error
	done := make(chan struct{})
	taken := func(err error) { got = err; close(done) }
	var frame map[string]any
	wait := func(needAck bool) {
		parked := false
		g := pl.a.routes.Load().list[0]
		g.seq.do(func() { c := g.conversations.all[d]; parked = c != nil && c.inputs.parked != nil })
		if parked { // the recorded connector did not wait
			pl.rest()
		}
		pl.until("inbound", func() bool {
			if frame == nil {
				frame = pl.frame("inbound")
			}
			select {
			case <-done:
				return true
			default:
				return frame != nil
			}
		})
		if frame == nil {
			return
		}
		pl.note(frame)
		if ev.MessageID != nil {
			pl.ids[*ev.MessageID] = frame["event"].(map[string]any)["message_id"].(string)
		}
		if f.BufferID != "" {
			pl.buffers[f.BufferID] = frame["bufferId"].(string)
			return
		}
		if needAck {
			pl.p.send(map[string]any{"type": "inbound_ack", "bufferId": frame["bufferId"]})
			<-done
		}
		pl.settle()
	}
	if ev.PromptResponse != nil {
		cards := pl.h.asks(d)
		card := cards[len(cards)-1]
		ans := agent.Answer{OptionID: ev.PromptResponse.OptionID}
		if ans.OptionID == "other" {
			ans.Text = "Green, please"
			pl.expect++
			pl.a.Answer(card, ans, taken)
			wait(false)
			pl.p.send(map[string]any{"type": "inbound_ack", "bufferId": frame["bufferId"]})
			return
		}
		pl.a.Answer(card, ans, taken)
		wait(true)
		return
	}
	if pl.expect > 0 && ev.Text == "Green, please" {
		pl.expect--
		pl.out.WriteString("words of the card:\n")
		close(done)
		frame = nil
		pl.until("words", func() bool { frame = pl.frame("inbound"); return frame != nil })
		done = make(chan struct{})
		pl.note(frame)
		pl.p.send(map[string]any{"type": "inbound_ack", "bufferId": frame["bufferId"]})
		return
	}
	pl.n++
	in := agent.Input{N: pl.n, Device: d, DeviceName: "Phone", User: "user-1", UserName: "Ann", ID: fmt.Sprint("app", pl.n), Text: ev.Text}
	if len(ev.Media) > 0 {
		in.Kind = agent.Media
		kind := map[string]string{"photo": "image"}[ev.MessageType]
		if kind == "" {
			kind = ev.MessageType
		}
		if kind == "voice" {
			in.Kind = agent.Voice
		}
		in.File = &agent.File{Kind: kind, Mime: ev.Media[0].Mime, Name: ev.Media[0].Filename, Hash: pl.files.put(pl.t, "content"), Size: 7}
	}
	g := pl.a.serves(d)
	g.seq.Lock()
	c := g.conversations.all[d]
	running := c != nil && c.turns.running != nil
	g.seq.Unlock()
	if running && !pl.a.Admits(in) {
		// A hub would hold it back; the recorded connector did not.
		fmt.Fprintf(&pl.out, "(held back: %q)\n", in.Text)
		return
	}
	if running {
		pl.out.WriteString("(admitted)\n")
	}
	pl.a.Hand(in, taken)
	wait(true)
	select {
	case <-done:
		if got != nil && !errors.Is(got, agent.ErrAway) {
			fmt.Fprintf(&pl.out, "refused %q: %v\n", in.Text, got)
		}
	default:
	}
}

func (pl *player) http(v jsontext.Value) {
	var h struct {
		Method, Path string
		Headers      map[string]string
		Body         string
	}
	if err := json.Unmarshal(v, &h, json.MatchCaseInsensitiveNames(true)); err != nil {
		pl.t.Fatal(err)
	}
	if h.Method != http.MethodPost || !strings.HasSuffix(h.Path, "/media") {
		return
	}
	req, _ := http.NewRequest(h.Method, pl.srv.URL+h.Path, strings.NewReader("0123456789"))
	req.Header.Set("Content-Type", h.Headers["Content-Type"])
	req.Header.Set("X-Media-Filename", h.Headers["X-Media-Filename"])
	req.Header.Set("Authorization", bearer("gw", "s3cret", pl.clock.now().Add(300*time.Second)))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		pl.t.Fatal(err)
	}
	defer resp.Body.Close()
	var id struct {
		ID string `json:"id"`
	}
	if err := json.UnmarshalRead(resp.Body, &id); err != nil {
		pl.t.Fatal(err)
	}
	pl.ids["last-upload"] = id.ID
	http.DefaultClient.CloseIdleConnections()
}

// show writes what the host was told since.
func (pl *player) show() {
	pl.h.mu.Lock()
	defer pl.h.mu.Unlock()
	alias := func(id string) string {
		if pl.names[id] == "" {
			pl.names[id] = fmt.Sprint("#", len(pl.names)+1)
		}
		return pl.names[id]
	}
	devices := make([]string, 0, len(pl.h.events))
	for d := range pl.h.events {
		devices = append(devices, d)
	}
	for _, d := range devices {
		events := pl.h.events[d][pl.shown[d]:]
		pl.shown[d] = len(pl.h.events[d])
		for _, e := range events {
			switch e := e.(type) {
			case agent.Say:
				mark := "…"
				if e.Final {
					mark = "."
				}
				if e.Interrupted {
					mark = "!"
				}
				text := e.Text
				if len(text) > 120 {
					text = fmt.Sprintf("%s … %s (%d)", text[:40], text[len(text)-40:], len(text))
				}
				fmt.Fprintf(&pl.out, "%s say%s %s %q", d, mark, alias(e.ID), text)
				if e.ReplyTo != "" {
					fmt.Fprintf(&pl.out, " to %s/%d", e.ReplyTo, e.N)
				}
				if e.Source != "" {
					fmt.Fprintf(&pl.out, " %s %s", e.Source, e.Job)
				}
				pl.out.WriteString("\n")
			case agent.Working, agent.Given:
			case agent.Ask:
				fmt.Fprintf(&pl.out, "%s ask %s %s of %d %q", d, alias(e.Card.ID), e.Card.Kind, e.Card.N, e.Card.Text)
				if e.Card.Command != "" {
					fmt.Fprintf(&pl.out, " command %q because %q", e.Card.Command, e.Card.Description)
				}
				for _, o := range e.Card.Options {
					fmt.Fprintf(&pl.out, " [%s]", o.ID)
				}
				pl.out.WriteString("\n")
			case agent.CloseCard:
				fmt.Fprintf(&pl.out, "%s close %s expired=%v\n", d, alias(e.ID), e.Expired)
			case agent.SendFile:
				fmt.Fprintf(&pl.out, "%s file %s %s %s %s %d bytes to %s/%d\n", d, alias(e.ID), e.File.Kind, e.File.Mime, e.File.Name, e.File.Size, e.ReplyTo, e.N)
			case agent.Done:
				fmt.Fprintf(&pl.out, "%s DONE %d interrupted=%v\n", d, e.N, e.Interrupted)
			default:
				fmt.Fprintf(&pl.out, "%s %T\n", d, e)
			}
		}
	}
}
