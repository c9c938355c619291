package relay

import "testing"

// A question of an older gateway may be the very first thing it says in a conversation, at once.
func TestOlderAsksAtOnce(t *testing.T) {
	for _, question := range []string{"❓ Which color?\n\n  1. Red\n  2. Blue", "⚠️ Dangerous command. Reply `/approve` or `/deny`."} {
		r := newRig(t, func(o *Options) { o.Known = map[string]Version{"gw": Older} })
		p := r.dial()
		r.say("tel", 1, "hi")
		p.event()
		p.ok(obj("op", "send", "chat_id", "tel", "content", "📬 No home channel is set for Relay. Type /sethome …"))
		r.settle()
		if r.a.Admits(text("tel", 2, "Blue")) {
			t.Error("a notice was taken for a question")
		}
		p.ok(obj("op", "send", "chat_id", "tel", "content", question))
		r.settle()
		if !r.a.Admits(text("tel", 2, "Blue")) {
			t.Errorf("the answer to %q is not admitted", question)
		}
	}
}
