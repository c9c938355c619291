package relay

import (
	"testing"
	"time"

	"hermes-mobile/internal/chat"
)

// with is an op of a gateway that serves several profiles.
func with(op map[string]any, profile any) map[string]any {
	op["metadata"] = obj("profile", profile)
	return op
}

// The profile that a gateway names comes back with everything that is said in the same conversation, and in no other.
func TestProfileIsEchoed(t *testing.T) {
	r := newRig(t, nil)
	p := r.dial()
	profile := func(ev map[string]any) any { return ev["source"].(map[string]any)["profile"] }
	r.say("tel", 1, "hi")
	ev := p.event()
	if got := profile(ev); got != nil {
		t.Errorf("before the gateway named a profile: %v", got)
	}
	for name, want := range map[string]any{"is_bot": false, "message_is_edit": false, "one_to_one_verified": true} {
		if got := ev["source"].(map[string]any)[name]; got != want {
			t.Errorf("%s is %v", name, got)
		}
	}
	mid := ev["message_id"].(string)
	p.react("tel", mid, eyes, false)
	p.ok(with(obj("op", "send", "chat_id", "tel", "content", "yes", "reply_to", mid), "work"))
	p.ok(with(approval("aa.1"), "work"))
	cards := r.h.asks("tel")
	r.answer(cards[0], chat.Answer{OptionID: "deny"})
	if got := profile(p.event()); got != "work" {
		t.Errorf("the answer goes to the profile %v", got)
	}
	p.end("tel", mid)
	r.pass(3 * time.Second)
	r.say("tel", 2, "and?")
	if got := profile(p.event()); got != "work" {
		t.Errorf("the next message goes to the profile %v", got)
	}
	r.say("other", 3, "hi")
	if got := profile(p.event()); got != nil {
		t.Errorf("another conversation goes to the profile %v", got)
	}
}

// What is no profile changes nothing.
func TestOddProfiles(t *testing.T) {
	r := newRig(t, nil)
	p := r.dial()
	long := make([]byte, maxProfile+1)
	for i := range long {
		long[i] = 'p'
	}
	mid := p.turn("tel", 1, "hi")
	for _, odd := range []any{nil, "", string(long)} {
		p.ok(with(obj("op", "edit", "chat_id", "tel", "message_id", "x", "content", "y"), odd))
	}
	p.end("tel", mid)
	r.pass(3 * time.Second)
	r.say("tel", 2, "and?")
	if got := p.event()["source"].(map[string]any)["profile"]; got != nil {
		t.Errorf("profile %v", got)
	}
}

// A card lives for as long as the gateway waits for its answer, where it says so.
func TestTimeoutOfPrompt(t *testing.T) {
	r := newRig(t, nil)
	p := r.dial()
	p.turn("tel", 1, "hi")
	var want []time.Duration
	for timeout, life := range map[any]time.Duration{45: 45 * time.Second, 0.5: 500 * time.Millisecond, "90": 90 * time.Second, 0: 0, -3: 0, "soon": 0, 1e300: 0, "NaN": 0} {
		op := approval("aa.1")
		op["timeout_s"] = timeout
		p.ok(op)
		want = append(want, life)
	}
	for i, card := range r.h.asks("tel") {
		if card.Life != want[i] {
			t.Errorf("card %d lives %v, want %v", i, card.Life, want[i])
		}
	}
	if n := len(r.h.asks("tel")); n != len(want) {
		t.Errorf("%d cards", n)
	}
}
