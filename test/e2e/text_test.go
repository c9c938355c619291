package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"hermes-mobile/device"
)

// modelLines is the text that the model makes of FM:long(size), and with size 900 of FM:slow.
func modelLines(size int) string {
	var b strings.Builder
	for i := range max(1, size/55) {
		fmt.Fprintf(&b, "Line %04d: the quick brown fox jumps over the lazy dog.\n", i+1)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// text: words go there and back as they are.
func text(t *testing.T, w *world) {
	p := w.phone(t, "text")
	for _, want := range []string{
		"alpha",
		"Ærøskøbing — 日本語 · العربية · 👩‍👩‍👧‍👦 e\u0301 \u200d",
		"**bold** `code` <b>&amp;</b> \\n {\"t\":\"text\"}",
	} {
		mark := p.Mark()
		id := p.Say("FM:text(" + want + ")")
		if m := p.Answered(mark, id); m.Text != want || m.Interrupted || m.Source != "" {
			t.Errorf("the answer to %q is %+v", want, m)
		}
	}
}

// steps are the texts of a message while it was written, without the final one.
func steps(p *Phone, mark int, id string) (list []string) {
	for _, ev := range p.Since(mark) {
		if m, ok := ev.(device.Message); ok && m.ID == id && !m.Final {
			list = append(list, m.Text)
		}
	}
	return list
}

// stream: a reply grows on the screen, and the end is exact; the older version sends it whole.
func stream(t *testing.T, w *world) {
	p := w.phone(t, "stream")
	mark := p.Mark()
	id := p.Say("FM:slow(4)")
	began := time.Now()
	m := p.Answered(mark, id)
	if want := modelLines(900); m.Text != want || m.Interrupted {
		t.Errorf("the reply is %+v", m)
	}
	seen := steps(p, mark, m.ID)
	t.Logf("%d steps in %v", len(seen), time.Since(began).Round(time.Millisecond))
	if !w.newer() {
		if len(seen) > 0 {
			t.Errorf("steps came: %q", seen)
		}
	} else if len(seen) < 4 {
		t.Errorf("only %d steps came", len(seen))
	}
	checkSteps(t, seen, m.Text)
	p.Idle()
	if all := p.Finals(mark); len(all) != 1 {
		t.Errorf("%d messages came: %+v", len(all), all)
	}
	if working := slices.ContainsFunc(p.Since(mark), func(ev device.Event) bool { a, ok := ev.(device.Activity); return ok && a.Typing }); !working {
		t.Error("the indicator was never on")
	}

	mark = p.Mark()
	id = p.Say("FM:plain")
	m = p.Answered(mark, id)
	if want := "Hello from the fake model. This is a plain answer in several deltas."; m.Text != want {
		t.Errorf("the reply is %q", m.Text)
	}
	checkSteps(t, steps(p, mark, m.ID), m.Text)
}

// checkSteps: each step begins with the one before it and holds nothing that is not meant for people.
func checkSteps(t *testing.T, seen []string, whole string) {
	t.Helper()
	before := ""
	for _, s := range append(seen, whole) {
		if !strings.HasPrefix(s, before) {
			t.Errorf("a step does not go on from the one before:\n%q\n%q", before, s)
		}
		if strings.Contains(s, "▉") || strings.Contains(s, "MEDIA") {
			t.Errorf("a step shows %q", s)
		}
		before = s
	}
}

// long: nothing of a long reply is lost where it is split on its way.
func long(t *testing.T, w *world) {
	p := w.phone(t, "long")
	for _, size := range []int{9000, 60_000, 120_000} {
		mark := p.Mark()
		id := p.Say(fmt.Sprintf("FM:long(%d)", size))
		m := p.Answered(mark, id)
		p.Idle()
		var b strings.Builder
		for _, m := range p.Finals(mark) {
			b.WriteString(m.Text)
		}
		if want := modelLines(size); b.String() != want {
			t.Errorf("of %d characters came %d in %d messages, the last is …%q", len(want), b.Len(), len(p.Finals(mark)), tailOf(m.Text, 200))
		}
	}
}

func tailOf(s string, n int) string { return s[max(0, len(s)-n):] }

// order: messages in a row are answered one after the other, each by its own reply.
func order(t *testing.T, w *world) {
	p := w.phone(t, "order")
	mark := p.Mark()
	var ids []string
	for i := range 3 {
		ids = append(ids, p.Receipt(p.Submit(fmt.Sprintf("FM:text(answer %d)", i))).ID)
	}
	p.Answered(mark, ids[2])
	p.Idle()
	all := p.Finals(mark)
	if len(all) != len(ids) {
		t.Fatalf("%d messages came: %+v", len(all), all)
	}
	for i, m := range all {
		if m.Text != fmt.Sprintf("answer %d", i) || m.ReplyTo != ids[i] {
			t.Errorf("answer %d is %+v", i, m)
		}
	}
}

// away: what is said while the phone is away arrives once, when it is back.
func away(t *testing.T, w *world) {
	p := w.phone(t, "away")
	mark := p.Mark()
	id := p.Say("FM:slow(4)")
	if w.newer() {
		Wait(p, mark, "a first step", func(m device.Message) bool { return m.Text != "" })
	}
	p.Leave()
	w.waiting(t, p.ID)
	p.Return(w.server)
	m := p.Answered(mark, id)
	if m.Text != modelLines(900) || m.Interrupted {
		t.Errorf("the reply is %+v", m)
	}
	p.Ask("FM:text(here again)", "here again")
	if n := len(p.Finals(mark)); n != 2 {
		t.Errorf("%d messages came: %+v", n, p.Finals(mark))
	}
}

// waiting waits until something is kept for a device that is away.
func (w *world) waiting(t *testing.T, id string) {
	t.Helper()
	for end := time.Now().Add(2 * patience); ; time.Sleep(100 * time.Millisecond) {
		var list []struct {
			ID        string
			Waiting   int
			Connected bool
		}
		w.server.JSON(t, &list, "devices", "list")
		for _, d := range list {
			if d.ID == id && d.Waiting > 0 && !d.Connected {
				return
			}
		}
		if time.Now().After(end) {
			t.Fatalf("nothing is kept for %s: %+v", id, list)
		}
	}
}

// busy: one device's turn, and a command typed into it, hold up nobody else.
func busy(t *testing.T, w *world) {
	a, b := w.phone(t, "busy-a"), w.phone(t, "busy-b")
	b.Ask("FM:text(b is there)", "b is there")
	b.Idle()
	markA, markB := a.Mark(), b.Mark()
	id := a.Say("FM:slow(10)")
	Wait(a, markA, "the indicator", func(ev device.Activity) bool { return ev.Typing })
	status := a.Say("/status")
	if m := b.Ask("FM:text(quick)", "quick"); strings.Contains(m.Text, "Line") {
		t.Errorf("b got %q", m.Text)
	}
	if len(a.Finals(markA)) > 0 {
		t.Errorf("a's turn was over before b was answered: %+v", a.Finals(markA))
	}
	if m := a.Answered(markA, id); m.Text != modelLines(900) || m.Interrupted {
		t.Errorf("a's reply is %+v", m)
	}
	if m := a.Answered(markA, status); m.Text == "" || strings.Contains(m.Text, "Line") {
		t.Errorf("the status is %+v", m)
	}
	if n := len(b.Finals(markB)); n != 1 {
		t.Errorf("b got %d messages: %+v", n, b.Finals(markB))
	}
}
