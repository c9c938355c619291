package chaos

import (
	"fmt"
	"strings"

	"hermes-mobile/device"
	"hermes-mobile/test/gateway"
)

// violation is a promise that was broken.
type violation struct {
	promise string
	text    string
	chat    string // whose trace tells more
	word    string // what to look for there
}

// checker compares what the phones and the sender know with what the gateway recorded.
type checker struct {
	w     *world
	found []violation
}

func (c *checker) broken(promise, chat, word, format string, args ...any) {
	c.found = append(c.found, violation{promise: promise, chat: chat, word: word, text: fmt.Sprintf(format, args...)})
}

// The promises, in the words of the protocol.
const (
	handed   = "an accepted message is handed to the agent, and acted on exactly once (§3)"
	inOrder  = "messages are handed over in the order accepted (§3)"
	once     = "a reply reaches its device exactly once, and no other device (§4)"
	order    = "replies come in order (§4)"
	cut      = "a message that was cut is a beginning of what was being said (§4)"
	decided  = "a card is decided exactly once, and prompt_done says what the agent was told (§7)"
	files    = "files arrive whole (§5)"
	delivers = "what was answered with delivered arrives exactly once (§8)"
	shared   = "each device of a shared conversation is told once what another one said (§8)"
	rested   = "it comes to rest when nothing breaks any more; what is named here may be on its way still"
	sane     = "nothing else goes wrong"
)

// check returns every broken promise.
func (w *world) check() []violation {
	c := &checker{w: w}
	acted := map[string][]gateway.Input{}
	chats := map[string]string{}
	for _, p := range w.phones {
		chats[p.id] = p.chat
	}
	var inputs []gateway.Input
	for _, gw := range w.gws {
		for _, in := range gw.Acted() {
			if w.gwOf(in.Chat) != gw {
				c.broken(handed, in.Chat, in.Text, "a gateway acted on %.60q of %s, which the other one serves", in.Text, in.Chat)
			}
			inputs = append(inputs, in)
		}
	}
	for _, in := range inputs {
		from, _, _ := strings.Cut(number(in.Text), ".") // who sent it
		if chat, known := chats[from]; !known || chat != in.Chat {
			c.broken(handed, in.Chat, in.Text, "the agent acted on %.60q in the conversation of %s", in.Text, in.Chat)
			continue
		}
		acted[from] = append(acted[from], in)
	}
	replies := map[string][]gateway.Reply{}
	for _, gw := range w.gws {
		for _, r := range gw.Replies() {
			replies[r.Chat] = append(replies[r.Chat], r)
		}
	}
	decisions := map[string][]gateway.Decision{}
	for _, gw := range w.gws {
		for _, d := range gw.Decisions() {
			decisions[d.Chat] = append(decisions[d.Chat], d)
		}
	}
	for _, p := range w.phones { // all is quiet: nobody else takes two of these locks
		p.mu.Lock()
		defer p.mu.Unlock()
	}
	for _, p := range w.phones {
		c.inputs(p, acted[p.id])
		c.replies(p, replies[p.chat])
		c.cards(p, decisions[p.chat], w.answers(p))
		c.deliveries(p)
		c.echos(p, acted)
		for _, n := range p.notes {
			c.broken(sane, p.id, "--", "%s: %s", p.id, n)
		}
	}
	w.mu.Lock()
	for _, d := range w.deliveries {
		if d.err != nil {
			c.broken(delivers, "", "", "delivery %s to %s failed: %v", d.id, d.to, d.err)
		}
	}
	w.mu.Unlock()
	for _, gw := range w.gws {
		for _, f := range gw.Faults() {
			if w.clockSet.Load() && strings.Contains(f, "refused with 401") {
				continue // its token was of another time
			}
			c.broken(sane, "", "!!", "the gateway: %s", f)
		}
	}
	for _, line := range w.srv.errors() {
		c.broken(sane, "", "", "the server's log: %s", line)
	}
	return c.found
}

// inputs checks the way up.
func (c *checker) inputs(p *phone, acted []gateway.Input) {
	times := map[string]int{}
	shas := map[string]string{}
	for _, in := range acted {
		times[in.Text]++
		shas[in.Text] = in.SHA
	}
	var texts, ups []string
	again := map[string]bool{}
	for _, m := range p.sent {
		receipt, accepted := "no receipt", false
		if r := m.receipt; r != nil {
			accepted = r.Err == ""
			receipt = fmt.Sprintf("receipt duplicate=%v queued=%v err=%q", r.Receipt.Duplicate, r.Receipt.Queued, r.Err)
		}
		n := times[m.text]
		delete(times, m.text)
		switch {
		case n == 0 && accepted:
			c.broken(handed, p.chat, m.text, "%s %s (%s) never reached the agent", p.id, m.id, receipt)
		case n == 0:
			c.broken(handed, p.chat, m.text, "%s %s was never accepted (%s)", p.id, m.id, receipt)
		case n > 1:
			c.broken(handed, p.chat, m.text, "%s %s (%s) was acted on %d times", p.id, m.id, receipt, n)
		case m.sha != "" && shas[m.text] != m.sha:
			c.broken(files, p.chat, m.text, "%s %s arrived with sha256 %.12s, it was sent with %.12s", p.id, m.id, shas[m.text], m.sha)
		}
		if n > 0 {
			if m.again {
				again[m.text] = true
			} else if m.sha != "" {
				ups = append(ups, m.text)
			} else {
				texts = append(texts, m.text)
			}
		}
	}
	for text, n := range times {
		c.broken(handed, p.id, text, "%s: the agent acted %d times on %.60q, which this device never sent", p.id, n, text)
	}
	// Texts have an order among themselves, and so have files: the SDK sends files behind.
	for _, sent := range [][]string{texts, ups} {
		i := 0
		for _, in := range acted {
			if again[in.Text] {
				continue
			}
			if i < len(sent) && in.Text == sent[i] {
				i++
			} else if strings.HasPrefix(in.Text, "take ") == (len(sent) > 0 && strings.HasPrefix(sent[0], "take ")) && i < len(sent) {
				c.broken(inOrder, p.chat, in.Text, "%s: the agent acted on %.50q where %.50q was due", p.id, in.Text, sent[i])
				break
			}
		}
	}
}

// replies checks the way down.
func (c *checker) replies(p *phone, sent []gateway.Reply) {
	want := map[string]*gateway.Reply{}
	for i := range sent {
		want[sent[i].Text] = &sent[i]
	}
	seen := map[string][]string{}
	ids := map[string]int{}
	last, at := "", -1
	index := map[string]int{}
	for i := range sent {
		index[sent[i].Text] = i
	}
	for _, g := range p.got {
		ids[g.id]++
		text, recovered := strings.CutPrefix(g.text, gateway.RecoveredPrefix)
		if strings.HasPrefix(text, "delivery ") || strings.HasPrefix(text, "✅ Noted ") {
			continue
		}
		if g.interrupted {
			begun := false
			for w := range want {
				begun = begun || strings.HasPrefix(w, text)
			}
			if !begun {
				c.broken(cut, p.chat, text, "%s got the cut message %s %.60q, which is no beginning of any reply to it", p.id, g.id, g.text)
			}
			continue
		}
		r := want[text]
		if r == nil {
			c.broken(once, p.chat, text, "%s got %s %.80q, which the agent never said to it", p.id, g.id, g.text)
			continue
		}
		how := "as it was"
		if recovered {
			how = "recovered"
		}
		seen[text] = append(seen[text], g.id+" "+how)
		if r.File != "" && g.file != r.File {
			c.broken(files, p.chat, text, "%s got %q with sha256 %.12s, it was sent with %.12s", p.id, text, g.file, r.File)
		}
		if len(seen[text]) > 1 {
			continue
		}
		if index[text] < at {
			c.broken(order, p.chat, text, "%s got %.50q after %.50q", p.id, text, last)
		}
		last, at = text, index[text]
	}
	for i := range sent {
		r, n := &sent[i], len(seen[sent[i].Text])
		switch {
		case n == 0 && r.File != "" && !r.Confirmed: // given up by the gateway, which said so
		case n == 0:
			c.broken(once, p.chat, r.Text, "%s never got %.60q (confirmed=%v, sent %d times, refusals %q)", p.id, r.Text, r.Confirmed, r.Sent, r.Refusals)
		case n > 1:
			c.broken(once, p.chat, r.Text, "%s got %.60q %d times: %s (sent %d times)", p.id, r.Text, n, strings.Join(seen[r.Text], ", "), r.Sent)
		}
	}
	for id, n := range ids {
		if n > 1 {
			c.broken(once, p.id, id, "%s got the end of message %s %d times", p.id, id, n)
		}
	}
	for _, m := range p.sent {
		if m.want != "" && len(seen[m.want]) == 0 {
			c.broken(once, p.chat, m.text, "%s %s has no answer", p.id, m.id)
		}
	}
}

// cards checks questions and their answers. The text of a card is unique, so it tells which prompt of the agent it is.
func (c *checker) cards(p *phone, asked []gateway.Decision, answers map[string][]string) {
	byText := map[string]*gateway.Decision{}
	for i := range asked {
		byText[asked[i].Text] = &asked[i]
	}
	shown := map[string]int{}
	for _, k := range p.cards {
		shown[k.text]++
		d := byText[k.text]
		switch {
		case d == nil:
			c.broken(decided, p.chat, k.text, "%s was shown card %s %q, which the agent never asked it", p.id, k.id, k.text)
			continue
		case len(k.done) != 1:
			c.broken(decided, p.chat, k.text, "%s: card %s %q was told %d times how it ended: %v", p.id, k.id, k.text, len(k.done), k.done)
			continue
		}
		done := k.done[0]
		switch {
		case done.Expired && !c.w.clockSet.Load(): // a server that starts later than a card's end by its clock ends it
			c.broken(decided, p.chat, k.text, "%s: card %s %q expired, though it was answered with %v", p.id, k.id, k.text, k.answers)
		case d.Answers != 1:
			c.broken(decided, p.chat, k.text, "%s: the agent was told %d times how %q (card %s) was decided", p.id, d.Answers, k.text, k.id)
		case d.Option != done.OptionID:
			c.broken(decided, p.chat, k.text, "%s: card %s %q: prompt_done says %s, the agent was told %s", p.id, k.id, k.text, done.OptionID, d.Option)
		case !done.Expired && !contains(answers[k.id], by(p, &done)+done.OptionID):
			c.broken(decided, p.chat, k.text, "%s: card %s %q was decided as %s, the people chose of %v", p.id, k.id, k.text, by(p, &done)+done.OptionID, answers[k.id])
		}
	}
	for i := range asked {
		d := &asked[i]
		if n := shown[d.Text]; n > 1 || n == 0 && d.Shown {
			c.broken(decided, p.chat, d.Text, "%s was shown %q as %d cards", p.id, d.Text, n)
		}
	}
}

// answers returns what was chosen on the cards of a phone's conversation, and on which device where it shares that.
func (w *world) answers(p *phone) map[string][]string {
	all := map[string][]string{}
	for _, o := range w.phones {
		if o.chat != p.chat {
			continue
		}
		for id, k := range o.cards {
			for _, a := range k.answers {
				if o.shares() {
					a = o.id + ": " + a
				}
				all[id] = append(all[id], a)
			}
		}
	}
	return all
}

// by is who decided a card, as prompt_done says it to a phone that shares its conversation.
func by(p *phone, done *device.CardDone) string {
	switch {
	case !p.shares():
		return ""
	case done.By == nil:
		return "nobody: "
	}
	return done.By.ID + ": "
}

func (p *phone) shares() bool {
	return p.w.bad && (p == p.w.phones[sharedLead] || p == p.w.phones[sharedMember])
}

// echos checks what the devices of a shared conversation heard of each other.
func (c *checker) echos(p *phone, acted map[string][]gateway.Input) {
	came := map[string][]echo{}
	for _, e := range p.echos {
		came[e.from] = append(came[e.from], e)
	}
	for _, o := range c.w.phones {
		list := came[o.id]
		delete(came, o.id)
		if o == p || o.chat != p.chat {
			if len(list) > 0 {
				c.broken(shared, p.chat, list[0].text, "%s was told %d things that %s said, such as %.60q", p.id, len(list), o.id, list[0].text)
			}
			continue
		}
		times := map[string]int{}
		for _, e := range list {
			times[e.text]++
		}
		for _, in := range acted[o.id] {
			if n := times[in.Text]; n != 1 {
				c.broken(shared, p.chat, in.Text, "%s was told %d times that %s said %.60q", p.id, n, o.id, in.Text)
			}
		}
		if len(list) > len(acted[o.id]) {
			c.broken(shared, p.chat, "--", "%s was told %d things that %s said, the agent acted on %d", p.id, len(list), o.id, len(acted[o.id]))
		}
	}
	for from, list := range came {
		c.broken(shared, p.chat, list[0].text, "%s was told what %s said, which is no phone: %.60q", p.id, from, list[0].text)
	}
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// deliveries checks what came from the sender.
func (c *checker) deliveries(p *phone) {
	came := map[string][]seen{}
	for _, g := range p.got {
		if strings.HasPrefix(g.text, "delivery ") {
			came[g.text] = append(came[g.text], g)
		}
	}
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	for _, d := range c.w.deliveries {
		if d.to != p.id {
			continue
		}
		list := came[d.text]
		delete(came, d.text)
		switch {
		case len(list) == 0 && d.delivered:
			c.broken(delivers, p.id, d.text, "%s never got %s", p.id, d.id)
		case len(list) > 1:
			c.broken(delivers, p.id, d.text, "%s got %s %d times", p.id, d.id, len(list))
		case len(list) == 1 && d.sha != "" && list[0].file != d.sha:
			c.broken(files, p.id, d.text, "%s got %s with sha256 %.12s, it was sent with %.12s", p.id, d.id, list[0].file, d.sha)
		}
	}
	for text := range came {
		c.broken(delivers, p.chat, text, "%s got %q, which was for another device", p.id, text)
	}
}
