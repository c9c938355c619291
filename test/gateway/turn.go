package gateway

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// chat is a conversation: its inputs are worked on one after the other.
type chat struct {
	id    string
	queue []*Input
	busy  bool
	last  *Input // whose turn was the last to end
	wake  chan struct{}
}

func (g *Gateway) chat(c *chat) {
	for g.ctx.Err() == nil {
		g.mu.Lock()
		var in *Input
		if c.busy = len(c.queue) > 0; c.busy {
			in = c.queue[0]
			c.queue = c.queue[1:]
			in.Acted++
			g.rec.acted = append(g.rec.acted, in)
		}
		g.tellLocked()
		g.mu.Unlock()
		if in != nil {
			g.turn(in)
			g.mu.Lock()
			c.last = in
			g.mu.Unlock()
			continue
		}
		select {
		case <-c.wake:
		case <-g.ctx.Done():
		}
	}
}

// turn works on one input.
func (g *Gateway) turn(in *Input) {
	g.mark(in, "👀", false)
	g.typing(in)
	verb, rest, _ := strings.Cut(in.Text, " ")
	switch verb {
	case "echo":
		g.say(in, "reply "+rest)
	case "ask":
		option := g.ask(in, rest)
		g.say(in, "decided "+rest+" "+option)
	case "file":
		g.say(in, "filed "+rest)
		g.sendFile(in, rest)
	case "take":
		sha := g.fetch(in)
		g.say(in, "took "+rest+" "+sha)
	default:
		g.say(in, "did not understand "+in.Text)
	}
	g.mark(in, "👀", true)
	g.mark(in, "✅", false)
}

// againAfter is how long after a new link the last marks are given again: a server that was restarted has to read first
// which turns there were.
const againAfter = 250 * time.Millisecond

// markAgain gives the last marks of each conversation in which no turn runs.
func (g *Gateway) markAgain(l *link) {
	t := time.NewTimer(againAfter)
	defer t.Stop()
	select {
	case <-t.C:
	case <-l.gone:
		return
	}
	g.mu.Lock()
	var ends []*Input
	for _, c := range g.chats {
		if !c.busy && c.last != nil {
			ends = append(ends, c.last)
		}
	}
	g.mu.Unlock()
	for _, in := range ends {
		for _, remove := range []bool{true, false} {
			g.op(map[string]any{"op": "react", "chat_id": in.Chat, "message_id": in.MessageID, "emoji": map[bool]string{true: "👀", false: "✅"}[remove],
				"remove": remove, "metadata": map[string]any{}})
		}
	}
}

// pause waits about as long as a step takes.
func (g *Gateway) pause() { g.sleep(g.cfg.Pace/2 + rand.N(g.cfg.Pace)) }

// mark puts an emoji on a message of the person, or takes it off.
func (g *Gateway) mark(in *Input, emoji string, remove bool) {
	for g.ctx.Err() == nil {
		_, out := g.op(map[string]any{"op": "react", "chat_id": in.Chat, "message_id": in.MessageID, "emoji": emoji, "remove": remove,
			"metadata": map[string]any{}})
		if out == done || out == refused && !g.cfg.Patient || g.cfg.LoseMarks {
			return
		}
		if out == refused {
			g.sleep(200 * time.Millisecond)
		}
		if _, err := g.online(); err != nil {
			return
		}
	}
}

func (g *Gateway) typing(in *Input) {
	g.op(map[string]any{"op": "typing", "chat_id": in.Chat, "metadata": map[string]any{}})
}

// say streams a text as drafts, which are only shown while there is a link, and then sends it.
func (g *Gateway) say(in *Input, text string) {
	id := rand.Int64N(1 << 49)
	runes := []rune(text)
	steps := rand.IntN(5)
	if g.cfg.Kind {
		steps = max(steps, 1)
	}
	for i := 1; i <= steps && g.ctx.Err() == nil; i++ {
		g.pause()
		_, out := g.op(map[string]any{"op": "draft", "chat_id": in.Chat, "draft_id": id, "content": string(runes[:len(runes)*i/(steps+1)+1]), "final": false,
			"metadata": map[string]any{"reply_to_message_id": in.MessageID}})
		if i == 1 && g.cfg.Kind && out != done && out != refused {
			if _, err := g.online(); err != nil {
				return
			}
			i--
		}
	}
	g.pause()
	g.reply(&Reply{Chat: in.Chat, Text: text, ReplyTo: in.MessageID})
}

// reply sends a message until the server has it. What was not confirmed is sent again in the form that is configured.
func (g *Gateway) reply(r *Reply) {
	g.mu.Lock()
	g.rec.replies = append(g.rec.replies, r)
	g.mu.Unlock()
	again := false
	for g.ctx.Err() == nil {
		action := map[string]any{"op": "send", "chat_id": r.Chat, "content": r.Text, "reply_to": nil, "metadata": map[string]any{"user_id": r.Chat}}
		switch {
		case again && g.cfg.Form == Recovered:
			action["content"] = RecoveredPrefix + r.Text
		case r.ReplyTo != "":
			action["reply_to"] = r.ReplyTo
			action["metadata"] = map[string]any{"user_id": r.Chat, "notify": true, "reply_to_message_id": r.ReplyTo}
		}
		res, out := g.op(action)
		g.mu.Lock()
		if out != unsent {
			r.Sent++
		}
		if r.Sent > 1 {
			g.rec.resent++
		}
		switch out {
		case done:
			r.Confirmed = true
		case refused:
			r.Refusals = append(r.Refusals, res.Error)
		}
		g.tellLocked()
		g.mu.Unlock()
		switch out {
		case done:
			return
		case refused:
			g.sleep(200 * time.Millisecond)
		default:
			again = again || out == lost // a late one gets the same frame again (§11)
			if _, err := g.online(); err != nil {
				return
			}
		}
	}
}

// ask shows a card and waits for its decision. When the result is lost a stock gateway forgets the prompt; then it is
// asked anew under another id, and the text tells the two apart.
func (g *Gateway) ask(in *Input, n string) string {
	for try := 1; g.ctx.Err() == nil; try++ {
		d := &Decision{Chat: in.Chat, PromptID: fmt.Sprintf("%s.%08x", g.nonce, rand.Uint32()), Text: fmt.Sprintf("May I do %s, try %d?", n, try),
			Options: []string{"once", "session", "deny"}}
		g.mu.Lock()
		g.rec.prompts[d.PromptID] = d
		g.rec.order = append(g.rec.order, d)
		g.mu.Unlock()
		var options []map[string]any
		for _, o := range d.Options {
			options = append(options, map[string]any{"id": o, "label": strings.ToUpper(o)})
		}
		_, out := g.op(map[string]any{"op": "prompt", "chat_id": in.Chat, "content": d.Text, "prompt_kind": "approval", "prompt_id": d.PromptID,
			"options": options, "reply_to": nil, "metadata": map[string]any{}})
		g.mu.Lock()
		d.Shown = out == done
		d.Dead = !d.Shown && d.Option == ""
		if out == refused && !g.cfg.Patient {
			g.rec.faults = append(g.rec.faults, "a prompt was refused in chat "+in.Chat)
		}
		g.mu.Unlock()
		if d.Dead {
			if out == refused {
				g.sleep(200 * time.Millisecond)
			}
			if _, err := g.online(); err != nil {
				return ""
			}
			continue
		}
		return g.decision(d)
	}
	return ""
}

func (g *Gateway) decision(d *Decision) string {
	for {
		g.mu.Lock()
		option, changed := d.Option, g.changed
		g.mu.Unlock()
		if option != "" {
			return option
		}
		select {
		case <-changed:
		case <-g.ctx.Done():
			return ""
		}
	}
}

// decideLocked takes the answer to a prompt. The first one counts; a confirmation follows that is not waited for, as it is
// sent while the event is handled.
func (g *Gateway) decideLocked(in *Input, prompt, option string) {
	d := g.rec.prompts[prompt]
	if nonce, _, _ := strings.Cut(prompt, "."); d == nil && nonce != g.nonce {
		g.rec.strangers++ // of an earlier process: ignored without a word (§5)
		return
	}
	if d == nil || d.Chat != in.Chat {
		g.rec.faults = append(g.rec.faults, fmt.Sprintf("chat %s answered the prompt %q, which was never asked there", in.Chat, prompt))
		return
	}
	g.traceLocked(in.Chat, fmt.Sprintf("v answer %s to %q: %s", in.MessageID, d.Text, option))
	d.Answers++
	in.Acted++
	if !slices.Contains(d.Options, option) {
		g.rec.faults = append(g.rec.faults, fmt.Sprintf("chat %s answered %q with %q, which was no option", in.Chat, d.Text, option))
	}
	if d.Option == "" {
		d.Option = option
		g.cfg.OnOp("decision")
		if !d.Dead {
			g.work.Go(func() {
				g.op(map[string]any{"op": "send", "chat_id": in.Chat, "content": "✅ Noted " + option, "reply_to": nil, "metadata": map[string]any{"user_id": in.Chat}})
			})
		}
	}
}
