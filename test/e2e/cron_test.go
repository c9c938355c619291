package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hermes-mobile/device"
	"hermes-mobile/frame"
)

// cronPatience is for a job of every minute, whose scheduler looks once a minute.
const cronPatience = 4 * time.Minute

func isCron(m device.Message) bool { return m.Final && m.Source == frame.SourceCron }

// checkCron: the message is what the job said, without what Hermes writes around it.
func checkCron(t *testing.T, m device.Message) {
	t.Helper()
	if m.Text != "cron says hi" || m.Job != "fake cron" || m.ReplyTo != "" || m.Interrupted {
		t.Errorf("the job's message is %+v", m)
	}
}

// cron: a job that was made in the chat reports there.
func cron(t *testing.T, w *world) {
	p := w.phone(t, "cron")
	p.Ask("FM:cron(origin) FM:text(made)", "made")
	began := time.Now()
	p.Idle()
	mark := p.Mark()
	m := WaitFor(p, mark, cronPatience, "the job's message", isCron)
	t.Logf("the job's message came after %v", time.Since(began).Round(time.Second))
	checkCron(t, m)
	p.Idle()
}

// cronAway: it waits for a phone that is away.
func cronAway(t *testing.T, w *world) {
	p := w.phone(t, "cron-away")
	p.Ask("FM:cron(origin) FM:text(made)", "made")
	p.Idle()
	mark := p.Mark()
	p.Leave()
	w.waiting(t, p.ID)
	p.Return(w.server)
	checkCron(t, WaitFor(p, mark, cronPatience, "the job's message", isCron))
}

// home: the device that says /sethome gets what is sent to home.
func home(t *testing.T, w *world) {
	p := w.phone(t, "home")
	mark := p.Mark()
	id := p.Say("/sethome")
	m := p.Answered(mark, id)
	t.Logf("/sethome was answered %q", m.Text)
	env, err := os.ReadFile(filepath.Join(w.gateway.Home(), ".env"))
	if err != nil {
		t.Fatal(err)
	}
	if stored := strings.Contains(string(env), "RELAY_HOME_CHANNEL=home"); stored == w.newer() {
		t.Errorf("Hermes has stored it: %v", stored)
	}
	p.Idle()
	for range 2 { // the second is a repeat
		out, err := w.server.CLI(t.Context(), "deliver", "--to", "home", "--text", "dinner is ready", "--id", "dinner")
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	p.Final(0, "the delivery", func(m device.Message) bool { return m.Text == "dinner is ready" })
	p.Ask("FM:text(thanks)", "thanks")
	n := 0
	for _, m := range p.Finals(0) {
		if m.Text == "dinner is ready" {
			n++
		}
	}
	if n != 1 {
		t.Errorf("the delivery came %d times: %+v", n, p.Finals(0))
	}
}
