package relay

import (
	"strings"
	"testing"

	"hermes-mobile/internal/agent"
)

// homes counts how often a device was made the home channel.
func (h *fakeHost) homes(device string) (n int) {
	for _, ev := range h.all(device) {
		if _, ok := ev.(agent.Home); ok {
			n++
		}
	}
	return n
}

// What a person is told who sends /sethome: a newer gateway refuses it where it knows the connection as "relay" only.
func TestSetHome(t *testing.T) {
	const said = "gateway.set_home.save_failed"
	for name, c := range map[string]struct {
		names, platform string
		version         Version
		ours            bool
	}{
		"newer":               {version: Newer, ours: true},
		"newer after a job":   {version: Newer, platform: "relay", ours: true},
		"not known yet":       {ours: true},
		"newer, unknown name": {version: Newer, names: "mobile", ours: true},
		"newer, known name":   {version: Newer, names: "mobile", platform: "mobile"},
		"older":               {version: Older},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(o *Options) { o.Known = map[string]Version{"gw": c.version} })
			var names []string
			if c.names != "" {
				names = []string{c.names}
			}
			p := r.dial(names...)
			if c.platform != "" {
				p.send(obj("type", "outbound", "requestId", "known", "platform", c.platform, "action", obj("op", "typing", "chat_id", "other")))
				p.expect("outbound_result")
			}
			r.say("tel", 1, " /sethome ")
			p.event()
			if c.version != Older {
				p.react("tel", "m1-x", "👀", false)
			}
			first := p.reply("tel", "m1-x", said)
			if again := p.reply("tel", "m1-x", said); again != first {
				t.Errorf("a repeat is another message")
			}
			f := r.h.finals("tel")
			if len(f) != 1 || (f[0].Text != said) != c.ours || strings.Contains(f[0].Text, "home channel now") != c.ours {
				t.Errorf("the answers are %+v", f)
			}
			if n := r.h.homes("tel"); n != 1 {
				t.Errorf("it was made the home channel %d times", n)
			}
		})
	}
}

// A quoted message reaches the model of a gateway that reads no reply_to.
func TestQuoteForOlder(t *testing.T) {
	const own = "0123456789abcdef01"
	long := strings.Repeat("é", maxQuote+7)
	for name, c := range map[string]struct {
		version                    Version
		text, replyTo, quote, want string
	}{
		"of the agent":    {Older, "yes", own, "cron says hi", "[Replying to your previous message: \"cron says hi\"]\n\nyes"},
		"of the person":   {Older, "yes", "app-0", "lunch?", "[Replying to: \"lunch?\"]\n\nyes"},
		"long":            {Older, "yes", own, long, "[Replying to your previous message: \"" + long[:2*maxQuote] + "\"]\n\nyes"},
		"command":         {Older, "/status", own, "x", "/status"},
		"no longer known": {Older, "yes", own, "", "yes"},
		"newer":           {Newer, "yes", own, "cron says hi", "yes"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(o *Options) { o.Known = map[string]Version{"gw": c.version} })
			p := r.dial()
			rc := &receipt{}
			r.a.Hand(agent.Input{N: 1, Device: "tel", ID: "app-1", Text: c.text, ReplyTo: c.replyTo, Quote: c.quote}, rc.taken)
			ev := p.event()
			if ev["text"] != c.want || ev["reply_to_message_id"] != c.replyTo {
				t.Errorf("the event is %v", ev)
			}
		})
	}
	t.Run("answer to a question", func(t *testing.T) {
		r := newRig(t, func(o *Options) { o.Known = map[string]Version{"gw": Older} })
		p := r.dial()
		r.say("tel", 1, "hi")
		p.event()
		p.ok(obj("op", "send", "chat_id", "tel", "content", "❓ Which one?\n1. Red\n2. Blue", "reply_to", nil))
		in := agent.Input{N: 2, Device: "tel", ID: "app-2", Text: "2", ReplyTo: own, Quote: "❓ Which one?"}
		r.until("admitted", func() bool { return r.a.Admits(in) })
		r.a.Hand(in, (&receipt{}).taken)
		if ev := p.event(); ev["text"] != "2" {
			t.Errorf("the event is %v", ev)
		}
	})
}
