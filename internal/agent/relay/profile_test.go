package relay

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"hermes-mobile/internal/agent"
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
	r.answer(cards[0], agent.Answer{OptionID: "deny"})
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

// profiled is a rig whose gateway serves profiles, as the test says.
func profiled(t *testing.T, served *[]string, change func(*Options)) *rig {
	t.Helper()
	var mu sync.Mutex
	r := newRig(t, func(o *Options) {
		o.Known = map[string]Version{"gw": Newer}
		o.Profiles = func(string) []string {
			mu.Lock()
			defer mu.Unlock()
			return *served
		}
		if change != nil {
			change(o)
		}
	})
	r.until("the profiles to be known", func() bool { return (len(r.a.Methods("tel")) > 0) == (len(*served) > 1) })
	return r
}

func (r *rig) call(device, method, params string) (string, error) {
	b, err := r.a.Call(context.Background(), agent.Call{Device: device, Method: method, Params: []byte(params)})
	return string(b), err
}

// A conversation uses the profile that was chosen for it, from its next turn on; cards and stops go to the profile that they are of.
func TestChosenProfile(t *testing.T) {
	served := []string{"default", "work", "main", "", "wo\u202erk", "<b>", "Work", "../work"}
	stored := map[string]string{}
	r := profiled(t, &served, func(o *Options) {
		o.Chosen = map[string]string{"old": "work"}
		o.Choose = func(_ context.Context, device, profile string) error {
			if device == "unlucky" {
				return errors.New("the disk is full")
			}
			stored[device] = profile
			return nil
		}
	})
	p := r.dial()
	profile := func(ev map[string]any) any { return ev["source"].(map[string]any)["profile"] }
	list := func(device string) string {
		t.Helper()
		got, err := r.call(device, agent.ProfilesList, "{}")
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := list("tel"); got != `{"profiles":[{"name":"default","current":true},{"name":"work","current":false},{"name":"main","current":false}]}` {
		t.Errorf("listed %s", got)
	}
	for params, code := range map[string]string{`{}`: agent.BadParams, `{"name":7}`: agent.BadParams, `[]`: agent.BadParams, `{"name":""}`: agent.BadParams, `{"name":"other"}`: agent.NotFound, `{"name":"Work"}`: agent.NotFound,
		`{"name":"../work"}`: agent.NotFound} {
		var refused *agent.CallError
		if _, err := r.call("tel", agent.ProfilesChoose, params); !errors.As(err, &refused) || refused.Code != code {
			t.Errorf("%s: %v", params, err)
		}
	}
	if _, err := r.call("unlucky", agent.ProfilesChoose, `{"name":"work"}`); err == nil || strings.Contains(list("unlucky"), `"work","current":true`) {
		t.Errorf("a choice that is not stored: %v", err)
	}
	if len(stored) != 0 {
		t.Errorf("stored %v", stored)
	}
	if got, err := r.call("tel", agent.ProfilesChoose, `{"name":"work"}`); err != nil || got != `{"ok":true}` || stored["tel"] != "work" {
		t.Errorf("%s %v, stored %v", got, err, stored)
	}
	if got := list("tel"); !strings.Contains(got, `{"name":"work","current":true}`) || strings.Count(got, "true") != 1 {
		t.Errorf("listed %s", got)
	}
	r.say("tel", 1, "hi")
	ev := p.event()
	if profile(ev) != "work" {
		t.Errorf("the first message goes to %v", profile(ev))
	}
	mid := ev["message_id"].(string)
	p.react("tel", mid, eyes, false)
	p.ok(with(approval("aa.1"), "work"))
	// Another one is chosen while the turn runs: the turn stays what it is.
	if _, err := r.call("tel", agent.ProfilesChoose, `{"name":"default"}`); err != nil {
		t.Fatal(err)
	}
	r.answer(r.h.asks("tel")[0], agent.Answer{OptionID: "deny"})
	if got := profile(p.event()); got != "work" {
		t.Errorf("the answer of a card goes to %v", got)
	}
	r.a.Stop("tel")
	if f := p.expect("interrupt_inbound"); f["session_key"] != "agent:work:relay:dm:tel" {
		t.Errorf("the stop is for %v", f["session_key"])
	}
	p.end("tel", mid)
	r.pass(3 * time.Second)
	r.say("tel", 2, "and?")
	if ev = p.event(); profile(ev) != "default" {
		t.Errorf("the next message goes to %v", profile(ev))
	}
	// What was chosen in an earlier life holds, and another conversation has its own.
	r.say("old", 3, "hi")
	if got := profile(p.event()); got != "work" {
		t.Errorf("after a restart it goes to %v", got)
	}
	r.say("other", 4, "hi")
	if got := profile(p.event()); got != nil {
		t.Errorf("another conversation goes to %v", got)
	}
	for name, want := range map[string]string{"": "main", "default": "main", "main": "main~", "work": "work"} {
		if got := namespace(name); got != want {
			t.Errorf("%q is named %q", name, got)
		}
	}
}

// A profile that is served no more gets nothing, and the person is told; where there is nothing to choose from, nothing is offered.
func TestProfileThatIsGone(t *testing.T) {
	served := []string{"default", "work"}
	r := profiled(t, &served, func(o *Options) { o.Chosen = map[string]string{"tel": "gone"} })
	p := r.dial()
	rc := &receipt{}
	r.a.Hand(agent.Input{N: 1, Device: "tel", Kind: agent.Text, Text: "hi"}, rc.taken)
	r.until("refused", func() bool { return rc.calls() == 1 })
	if rc.is(nil) || rc.is(agent.ErrAway) || !strings.Contains(rc.got[0].Error(), "gone") {
		t.Errorf("%v", rc.got)
	}
	if _, err := r.call("tel", agent.ProfilesChoose, `{"name":"work"}`); err != nil {
		t.Fatal(err)
	}
	r.say("tel", 2, "hi")
	if got := p.event()["source"].(map[string]any)["profile"]; got != "work" {
		t.Errorf("it goes to %v", got)
	}
	one := []string{"default"}
	r = profiled(t, &one, func(o *Options) { o.Chosen = map[string]string{"tel": "work"} })
	if got := r.a.Methods("tel"); got != nil {
		t.Errorf("offered %v", got)
	}
	if _, err := r.call("tel", agent.ProfilesList, "{}"); err == nil {
		t.Error("one profile is listed")
	}
	p = r.dial()
	r.say("tel", 1, "hi")
	if got := p.event()["source"].(map[string]any)["profile"]; got != nil {
		t.Errorf("a gateway with one profile is asked for %v", got)
	}
}
