package e2e

import (
	"strings"
	"testing"

	"hermes-mobile/device"
	"hermes-mobile/test/hermes"
)

// TestDefaultSettings has gateways whose owner has not set what is advised: they answer a message that comes while they
// work with words of their own, and hear nothing for 30 s after that. So nothing may come to them then: each message has
// its own reply, whole and once, and other devices are served meanwhile.
func TestDefaultSettings(t *testing.T) {
	both(t, func(t *testing.T, v hermes.Version) {
		w := newWorld(t, v, func(s *hermes.Setup) {
			s.ConfigExtra = map[string]any{"display": map[string]any{"busy_ack_enabled": true, "busy_input_mode": "interrupt"}}
		})
		a, b := w.phone(t, "default-a"), w.phone(t, "default-b")
		b.Ask("FM:text(b is there)", "b is there")
		b.Idle()
		mark := a.Mark()
		first := a.Say("FM:slow(8)")
		Wait(a, mark, "the indicator", func(ev device.Activity) bool { return ev.Typing })
		second, status := a.Say("FM:text(the second)"), a.Say("/status")
		b.Ask("FM:text(b meanwhile)", "b meanwhile")
		if len(a.Finals(mark)) > 0 {
			t.Errorf("a's turn was over before b was answered: %+v", a.Finals(mark))
		}
		if m := a.Answered(mark, status); m.Text == "" || strings.Contains(m.Text, "Line") {
			t.Errorf("the status is %+v", m)
		}
		a.Idle()
		replies := map[string][]string{}
		for _, m := range a.Finals(mark) {
			if m.Interrupted {
				t.Errorf("%+v was cut", m)
			}
			replies[m.ReplyTo] = append(replies[m.ReplyTo], m.Text)
		}
		if got := replies[first]; len(got) != 1 || got[0] != modelLines(900) {
			t.Errorf("the first message was answered %q", got)
		}
		if got := replies[second]; len(got) != 1 || got[0] != "the second" {
			t.Errorf("the second message was answered %q", got)
		}
		if len(replies) != 3 || len(replies[status]) != 1 {
			t.Errorf("the replies are %q", replies)
		}
	})
}
