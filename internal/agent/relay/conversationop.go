package relay

import (
	"log/slog"
	"net/url"
	"strings"
	"time"

	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/media"
)

// refusedHome is what a user is told who sends /sethome to a gateway that refuses it: that says no more
// than that nothing was saved, while our own home channel has moved.
const refusedHome = "This device is the server's home channel now: what is delivered to \"home\" comes here.\n\n" +
	"Hermes itself keeps no home channel on this connection. A scheduled job reports in the chat where it was made; to have jobs " +
	"report to a home channel, the owner adds the plug-in on Hermes' machine: hermes-mobile setup --plugin"

// op handles an op that says or asks something.
func (c *conversation) op(a *action) {
	c.used = c.now()
	if p := a.Metadata.Profile; p != "" && len(p) <= maxProfile {
		c.identity.named = p
	}
	c.turns.claim(a)
	switch a.Op {
	case "draft":
		c.answers.interim(a, "")
		c.streams.draft(a)
	case "edit":
		if card, ok := strings.CutPrefix(a.MessageID, cardPrefix); ok {
			c.cards.closed(a, card)
		} else {
			c.streams.edit(a)
		}
	case "send":
		c.turns.sawSend(a)
		if a.Metadata.JobID != "" {
			c.cron(a)
		} else if !c.cards.confirms(a) {
			c.send(a)
		}
	case "prompt":
		c.cards.prompt(a)
	case "send_media":
		c.media(a)
	}
}

// typing handles a typing op, which has been answered.
func (c *conversation) typing() {
	c.used = c.now()
	c.turns.typing(c.inputs.parked != nil)
}

// react handles a mark on a message of the user. The op has been answered.
func (c *conversation) react(a *action) {
	c.used = c.now()
	c.turns.react(a)
}

// send handles a message: a whole one, or the first piece of one that will be edited.
func (c *conversation) send(a *action) {
	c.truthful(a)
	repeats, of := c.recovered(a)
	replyID := a.replyID()
	t := c.turns.of(replyID)
	t.says(c.now())
	text, cut := cutCursor(a.Content)
	blank := strings.TrimSpace(text) == ""
	if blank && !a.Metadata.ExpectEdits {
		c.answers.accept(a, agent.NewID())
		c.sent(t, a)
		return
	}
	if f := c.streams.finals.repeated(a, c.now()); f != nil {
		c.count(CountRepeat)
		c.limited.write(slog.LevelInfo, "message repeated", "device", c.device, "message", f.id)
		f.whenStored(c.answers.stored(a, f.id))
		c.sent(t, a)
		return
	}
	if c.streams.expectsEdits(a) {
		c.streams.begin(t, a)
		return
	}
	if blank {
		c.answers.accept(a, agent.NewID())
		return
	}
	id, before := c.streams.takeOver(a)
	if before == nil && a.plain() {
		t = nil // nobody asked for it
	}
	say := t.say(id, finalText(text)) // after a tool 0.20.0 leaves blank lines before it
	say.Final, say.Repeats = true, repeats
	if of != nil {
		say.N = of.n
	}
	if t == nil && replyID != "" || t != nil && t.adopted { // it may repeat what it said in our earlier run
		say.Repeats = text
	}
	say.Interrupted = cut || t != nil && t.stopping
	c.streams.storeFinal(a, say, append(before, say)...)
	c.sent(c.turns.of(replyID), a)
}

// sent handles what a message says about the turn that it answers, which may be nil or over. It says
// nothing about a turn whose event was not sent yet.
func (c *conversation) sent(t *turn, a *action) {
	c.inputs.sent(a)
	if c.inputs.parked == nil {
		c.turns.sent(t, a)
	}
}

// truthful replaces the refusal of /sethome.
func (c *conversation) truthful(a *action) {
	if t := c.turns.of(a.replyID()); t != nil && t.home && c.traits.refusesHome() {
		a.Content = refusedHome
	}
}

// recovered reads a reply that the gateway sends again because it missed our answer
// (doc/hermes/relay.md §10). It returns the text without the line that says so, and the turn that was
// running when the connection was lost, if there was one: usually it is the reply to that.
func (c *conversation) recovered(a *action) (text string, of *turn) {
	if a.replyID() != "" || !isRecovered(a.Content) {
		return "", nil
	}
	head, text, ok := strings.Cut(a.Content, "\n")
	if text = strings.TrimLeft(text, "\n"); !ok || text == "" || len(head) > maxPrefix {
		return "", nil
	}
	if t := c.turns.running; t != nil && t.acked && (t.adopted || t.began.Before(c.wire.helloAt)) {
		t.content = true
		of = t
	}
	return text, of
}

// cron handles a scheduled message. It never belongs to a turn, whatever runs.
func (c *conversation) cron(a *action) {
	job, text := unwrapCron(a.Content, a.Metadata.JobID)
	if strings.TrimSpace(text) == "" {
		text = a.Content
	}
	id := agent.NewID()
	if strings.TrimSpace(text) == "" {
		c.answers.accept(a, id)
		return
	}
	c.reports.store(c.device, a.size, c.answers.stored(a, id), agent.Say{ID: id, Text: text, Final: true, Source: "cron", Job: job})
}

// media handles a file of the agent: one that was uploaded here, or a public address, which is passed
// on as a link and never fetched by us.
func (c *conversation) media(a *action) {
	t := c.turns.of(a.replyID())
	source, job, caption := "", "", a.Content
	if a.Metadata.JobID != "" {
		t, source = nil, "cron"
		job, caption = unwrapCron(caption, a.Metadata.JobID)
	} else if t == nil {
		t = c.turns.running // files follow their turn's text and name no message (recording 20)
	}
	t.says(c.now())
	c.turns.plainLast = time.Time{}
	id := agent.NewID()
	u, err := url.Parse(a.SourceURL)
	if err != nil {
		c.answers.fail(a, "not an address")
		return
	}
	if i := strings.LastIndex(u.Path, mediaPath+"/"); i >= 0 {
		f, owner, err := c.links.open(tokenUp, u.Path[i+len(mediaPath)+1:])
		if err != nil || owner != c.config().ID {
			c.answers.fail(a, "no such file, or its address has expired")
			return
		}
		f.Kind = mediaKind(a.MediaKind)
		if a.Filename != "" {
			f.Name = media.CleanName(a.Filename)
		}
		file := agent.SendFile{ID: id, File: f, Caption: caption, Source: source, Job: job}
		if t != nil {
			file.ReplyTo, file.N = t.inputID, t.n
		}
		c.reports.store(c.device, a.size, c.answers.stored(a, id), file)
		return
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		c.answers.fail(a, "not a public address")
		return
	}
	say := t.say(id, strings.TrimSpace(caption+"\n"+u.String()))
	say.Final, say.Source, say.Job = true, source, job
	c.reports.store(c.device, a.size, c.answers.stored(a, id), say)
}
