package e2e

import (
	"strings"
	"testing"

	"hermes-mobile/device"
	"hermes-mobile/frame"
	"hermes-mobile/test/hermes"
)

// TestGenerations has the generations between the oldest and the newest do the core of what a phone wants, at the same time. What
// takes long is tried with those two only.
func TestGenerations(t *testing.T) {
	t.Parallel()
	for _, v := range hermes.Between {
		t.Run(string(v), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, v)
			scenarios := map[string]func(*testing.T, *world){
				"away": away, "card stopped": cardStopped, "choose": choose, "files": files, "order": order, "steer": steer, "stop": stopTurn, "stream": stream,
			}
			if v == hermes.V0200 {
				t.Run("allow", func(t *testing.T) { allow(t, w) })
			} else {
				scenarios["approve"], scenarios["clarify"], scenarios["new"] = approve, clarify, startAfresh
			}
			t.Run("talk", func(t *testing.T) {
				for name, scenario := range scenarios {
					t.Run(name, func(t *testing.T) { t.Parallel(); scenario(t, w) })
				}
			})
			t.Run("job", w.jobAfterARestart)
			t.Run("killed", func(t *testing.T) {
				w.interrupted(t, "phone gateway killed", func(t *testing.T, p *Phone) { w.gateway.Kill(); w.whileDown(t, p) })
			})
		})
	}
}

// allow: a command is allowed, and runs. 0.20.0 hears nothing for 30 s after it was told, so nothing else goes on meanwhile.
func allow(t *testing.T, w *world) {
	p := w.phone(t, "allow")
	mark := p.Mark()
	p.Say("FM:exec FM:text(it ran)")
	p.Choose(p.Card(mark, frame.ExecApproval), "once", "")
	p.Final(mark, "the answer", func(m device.Message) bool { return m.Text == "it ran" })
	p.Idle()
	if ran := w.results(t, "FM:exec FM:text(it ran)"); len(ran) != 1 || !strings.Contains(ran[0], `"exit_code": 0`) {
		t.Errorf("the tool's results are %q", ran)
	}
	p.Ask("FM:text(on it goes)", "on it goes")
}

// choose: a choice of the person reaches the agent, and stalls no generation.
func choose(t *testing.T, w *world) {
	p := w.phone(t, "choose")
	mark := p.Mark()
	id := p.Say("FM:clarify")
	if done := p.Choose(p.Card(mark, frame.Clarify), "c1", ""); done.Expired || done.OptionID != "c1" {
		t.Errorf("the card ended as %+v", done)
	}
	if m := p.Answered(mark, id); !strings.Contains(m.Text, "Blue") {
		t.Errorf("the choice gave %q", m.Text)
	}
	p.Idle()
	if all := p.Finals(mark); len(all) != 1 {
		t.Errorf("%d messages came: %+v", len(all), all)
	}
}

// files: one of each kind goes up, and one comes down.
func files(t *testing.T, w *world) {
	p := w.phone(t, "files")
	p.pictureUp(t, 1)
	p.documentUp(t, w)
	p.fileDown(t, "view.png", "image", "image/png", picture(t, 2))
}

// jobAfterARestart: a job that was made in a chat reports there when the gateway was restarted, also to a phone that is away.
func (w *world) jobAfterARestart(t *testing.T) {
	p, away := w.phone(t, "job"), w.phone(t, "job-away")
	jobs := []job{{"origin", p, p}, {"origin", away, away}}
	w.makeJobs(t, jobs)
	w.gateway.Stop()
	w.runJobs(t, jobs, away, w.gateway.Run)
}
