package hub_test

import (
	"errors"
	"strings"
	"testing"

	"hermes-mobile/frame"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/hub"
	"hermes-mobile/internal/notify"
)

// A card is marked where a person has to look closely, also when it is shown again after a restart,
// and no other is.
func TestCardSaysThatItIsOdd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.connect("d")
	odd := approvalCard("odd", 0)
	odd.Command = "rm \u202e/ emos# fr-"
	cut := approvalCard("cut", 0)
	cut.Cut = true // by the agent, which knows no more of it
	w.post("d", agent.Ask{Card: approvalCard("plain", 0)}, agent.Ask{Card: odd}, agent.Ask{Card: cut})
	for range 2 {
		for _, want := range []struct {
			id  string
			odd bool
		}{{"plain", false}, {"odd", true}, {"cut", true}} {
			if p := expect[*frame.Prompt](c); p.ID != want.id || p.Odd != want.odd {
				t.Errorf("%s", show(p))
			}
		}
		c.drop()
		w.restart()
		c = w.connect("d")
	}
}

// An option that lets the agent do something is in a notification only where all of the question
// is, as it is. Elsewhere its token decides nothing either, whoever signed it; the safe option
// always works.
func TestPushActionNeedsTheWholeQuestion(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 121)
	for name, tc := range map[string]struct {
		change func(*agent.Card)
		body   string
		offers string
	}{
		"all of it":        {func(*agent.Card) {}, "may I?\nrm", "once deny"},
		"emphasis":         {func(c *agent.Card) { c.Text = "**may** I run\n`rm`?" }, "may I run rm?\nrm", "once deny"},
		"as long as it is": {func(c *agent.Card) { c.Command = long[1:] }, "may I?\n" + long[1:], "once deny"},
		"a confirmation": {func(c *agent.Card) {
			c.Kind, c.Command, c.Options[1].ID = frame.SlashConfirm, "", "cancel"
		}, "may I?", "once cancel"},
		"a long command":    {func(c *agent.Card) { c.Command = long }, "may I?\n" + long[2:] + "…", "deny"},
		"a long text":       {func(c *agent.Card) { c.Text = long }, long[2:] + "…\nrm", "deny"},
		"a cut at the end":  {func(c *agent.Card) { c.Command = long[3:] + "; rm -rf ~" }, "may I?\n" + long[3:] + ";…", "deny"},
		"turned around":     {func(c *agent.Card) { c.Command = "rm \u202e/ emos# fr-" }, "may I?\nrm [U+202E]/ emos# fr-", "deny"},
		"zero width":        {func(c *agent.Card) { c.Command = "rm\u200b\u200b" }, "may I?\nrm[U+200B][U+200B]", "deny"},
		"blank lines":       {func(c *agent.Card) { c.Command = "ls" + strings.Repeat("\n", 61) + "rm -rf ~" }, "may I?\nls … 60 blank lines … rm -rf ~", "deny"},
		"two lines":         {func(c *agent.Card) { c.Command = "ls\nrm -rf ~" }, "may I?\nls rm -rf ~", "deny"},
		"two spaces":        {func(c *agent.Card) { c.Command = "rm  x" }, "may I?\nrm x", "deny"},
		"a tab":             {func(c *agent.Card) { c.Command = "rm\tx" }, "may I?\nrm␉x", "deny"},
		"Hebrew":            {func(c *agent.Card) { c.Command = "cat \u05d0 > \u05d1" }, "may I?\ncat \u05d0 > \u05d1", "deny"},
		"a link":            {func(c *agent.Card) { c.Text = "may [I](https://evil.example)?" }, "may I?\nrm", "deny"},
		"a heading":         {func(c *agent.Card) { c.Text = "# may I?" }, "may I?\nrm", "deny"},
		"a turned text":     {func(c *agent.Card) { c.Text = "\u202eyam" }, "[U+202E]yam\nrm", "deny"},
		"a turned reason":   {func(c *agent.Card) { c.Description = "\u202ex" }, "may I?\nrm", "deny"},
		"a hidden label":    {func(c *agent.Card) { c.Options[0].Label = "O\u200bnce" }, "may I?\nrm", "deny"},
		"a long label":      {func(c *agent.Card) { c.Options[0].Label = long }, "may I?\nrm", "deny"},
		"cut by the agent":  {func(c *agent.Card) { c.Cut = true }, "may I?\nrm", "deny"},
		"a clarify card":    {func(c *agent.Card) { c.Kind, c.Command = frame.Clarify, "" }, "may I?", ""},
		"an unknown kind":   {func(c *agent.Card) { c.Kind = "of_the_future" }, "may I?\nrm", ""},
		"a command besides": {func(c *agent.Card) { c.Kind, c.Command, c.Options[1].ID = frame.SlashConfirm, long, "cancel" }, "may I?\n" + long[2:] + "…", "cancel"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newPushWorld(t, func(o *hub.Options) { o.PushActions = []byte("key") })
			c := w.connect("d")
			for _, kind := range []string{"webpush", "unifiedpush"} {
				w.register(c, map[string]any{"content": true, "kind": kind})
			}
			c.drop()
			card := approvalCard("c1", 0)
			tc.change(&card)
			w.post("d", agent.Ask{Card: card})
			token, safe := "", ""
			for range 2 {
				n := w.notified()
				var offers []string
				for _, a := range n.Actions {
					offers = append(offers, a.ID)
					token, safe = a.Token, a.ID
				}
				if n.Body != tc.body || strings.Join(offers, " ") != tc.offers {
					t.Fatalf("%s offers %q, not %q", n.raw.Body, offers, tc.offers)
				}
			}
			for _, o := range card.Options {
				if strings.Contains(" "+tc.offers+" ", " "+o.ID+" ") {
					continue
				}
				if got, err := w.hub.Act(ctx, w.hub.ActionToken("d", "c1", o.ID)); !errors.Is(err, notify.ErrCut) {
					t.Errorf("%s, which is not offered: %+v %v", o.ID, got, err)
				}
			}
			w.idle()
			if tc.offers == "" {
				return
			}
			if got, err := w.hub.Act(ctx, token); err != nil || got.OptionID != safe {
				t.Errorf("%s: %+v %v", safe, got, err)
			}
		})
	}
}

// The rule holds for the card of a shared conversation, whichever device presses.
func TestPushActionOfAMemberNeedsTheWholeQuestion(t *testing.T) {
	t.Parallel()
	w := newPushWorld(t, func(o *hub.Options) { o.PushActions = []byte("key") })
	_, tablet := w.share()
	w.register(tablet, map[string]any{"content": true})
	tablet.drop()
	card := approvalCard("c1", 0)
	card.Command = "ls\u200b"
	w.post("phone", agent.Ask{Card: card})
	if n := w.notified(); len(n.Actions) != 1 || n.Actions[0].ID != "deny" {
		t.Errorf("%s", n.raw.Body)
	}
	if got, err := w.hub.Act(ctx, w.hub.ActionToken("tablet", "c1", "once")); !errors.Is(err, notify.ErrCut) {
		t.Errorf("%+v %v", got, err)
	}
	w.idle()
}

// Nothing is hidden in the words of other notifications either.
func TestPushShowsWhatIsHidden(t *testing.T) {
	t.Parallel()
	w := newPushWorld(t, nil)
	w.away("d", map[string]any{"content": true})
	w.post("d", agent.Say{ID: "m1", Text: "see \u202ecod.exe 👨\u200d👩", Final: true, Source: frame.SourceCron, Job: "Good\u200b news"})
	if n := w.notified(); n.Title != "Good[U+200B] news" || n.Body != "see [U+202E]cod.exe 👨\u200d👩" {
		t.Errorf("%s", n.raw.Body)
	}
}
