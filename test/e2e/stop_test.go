package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	"hermes-mobile/device"
	"hermes-mobile/test/hermes"
)

// stopTurn: the stop button ends a turn.
func stopTurn(t *testing.T, w *world) {
	p := w.phone(t, "stop")
	stopped(t, w, p, func() {
		if err := p.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// stopWord: the word does the same, also while the turn runs.
func stopWord(t *testing.T, w *world) {
	p := w.phone(t, "stop-word")
	stopped(t, w, p, func() { p.Say("/stop") })
}

// asked waits until the model was asked this.
func (w *world) asked(t *testing.T, text string) {
	t.Helper()
	w.request(t, text+" asked of the model", func(r hermes.Request) bool { return r.LastUser() == text })
}

// request waits for a line of the model's log.
func (w *world) request(t *testing.T, what string, match func(hermes.Request) bool) {
	t.Helper()
	for end := time.Now().Add(patience); !slices.ContainsFunc(w.model.Requests(), match); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not seen: %s", what)
		}
	}
}

func stopped(t *testing.T, w *world, p *Phone, stop func()) {
	mark := p.Mark()
	word := "For " + p.ID + " FM:slow(30)"
	id := p.Say(word)
	if w.newer() {
		Wait(p, mark, "some text", func(m device.Message) bool { return strings.Contains(m.Text, "Line 0001") })
	} else {
		Wait(p, mark, "the indicator", func(a device.Activity) bool { return a.Typing })
	}
	w.asked(t, word)
	began := time.Now()
	stop()
	if w.newer() {
		m := p.Answered(mark, id)
		if !m.Interrupted || m.Text == "" || !strings.HasPrefix(modelLines(900), m.Text) {
			t.Errorf("the end is %+v", m)
		}
	}
	p.Idle()
	took := time.Since(began)
	t.Logf("the turn ended after %v", took.Round(time.Millisecond))
	if took > 25*time.Second { // by itself it would take 30
		t.Errorf("the turn ended %v after it was stopped", took)
	}
	if w.newer() { // the older version reads the model's answer to its end, in vain
		w.request(t, "the end of the model's answer", func(r hermes.Request) bool { return r.Kind == "aborted" })
	}
	p.Ask("And now FM:text(after the stop)", "after the stop") // the older version joins it to what was stopped
	p.Idle()
	for _, m := range p.Finals(mark) {
		if m.ReplyTo == id && !m.Interrupted {
			t.Errorf("of the stopped turn came %+v", m)
		}
	}
}
