package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hermes-mobile/device"
	"hermes-mobile/frame"
)

// cronPatience is for the scheduler, which looks when the gateway starts and then once a minute.
const cronPatience = 4 * time.Minute

// job is a scheduled job of these tests: it says its words once while all runs, and once after a restart.
type job struct {
	target string // what the agent is told in "deliver"
	in, to *Phone // in whose chat it is made, and whom it is to reach
}

func (j job) words() string { return "to " + j.target + " of " + j.in.ID }

// makeJobs has the agent make jobs, in the chats of phones that talk to it.
func (w *world) makeJobs(t *testing.T, list []job) {
	t.Helper()
	for _, j := range list {
		j.in.Ask("FM:cron("+j.target+", "+j.words()+") FM:text(made "+j.words()+")", "made "+j.words())
		j.in.Idle()
	}
}

// due lets all jobs be due, as if their minute had passed.
func (w *world) due(t *testing.T) {
	t.Helper()
	path := filepath.Join(w.gateway.Home(), "cron", "jobs.json")
	var file map[string]any
	if err := json.Unmarshal(read(t, path), &file); err != nil {
		t.Fatal(err)
	}
	jobs, _ := file["jobs"].([]any)
	if len(jobs) == 0 {
		t.Fatalf("there are no jobs: %v", file)
	}
	for _, j := range jobs {
		j.(map[string]any)["next_run_at"] = time.Now().UTC().Format("2006-01-02T15:04:05.000000+00:00")
	}
	text, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	put(t, path+".new", string(text))
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// runJobs makes the jobs due, by what start does besides, and checks that each said its words once, to the right phone. One
// phone is away meanwhile, and is told when it comes back.
func (w *world) runJobs(t *testing.T, list []job, away *Phone, start func()) map[string]device.Message {
	t.Helper()
	marks := map[*Phone]int{}
	for _, j := range list {
		marks[j.to], marks[j.in] = j.to.Mark(), j.in.Mark()
	}
	known := w.records(t)
	away.Leave()
	w.due(t)
	start()
	began := time.Now()
	got := map[string]device.Message{}
	wait := func(j job) {
		t.Helper()
		m := WaitFor(j.to, marks[j.to], cronPatience, "the message "+j.words(), func(m device.Message) bool { return m.Final && m.Text == j.words() })
		if m.Source != frame.SourceCron || m.Job != "fake cron" || m.ReplyTo != "" || m.Interrupted {
			t.Errorf("the job's message is %+v", m)
		}
		got[j.words()] = m
	}
	for _, j := range list {
		if j.to != away {
			wait(j)
		}
	}
	forAway := 0
	for _, j := range list {
		if j.to == away {
			forAway++
		}
	}
	w.await(t, "what waits for the phone that is away", func() bool {
		return len(newer(w.records(t), known, away.ID, "queued")) == forAway
	})
	away.Return(w.server)
	for _, j := range list {
		if j.to == away {
			wait(j)
		}
	}
	t.Logf("the jobs' messages came after %v", time.Since(began).Round(time.Second))
	// What comes after them shows that nothing came twice.
	for p, mark := range marks {
		p.Online()
		p.Ask("FM:text(and on it goes)", "and on it goes")
		p.Idle()
		var want, have []string
		for _, j := range list {
			if j.to == p {
				want = append(want, j.words())
			}
		}
		for _, m := range p.Finals(mark) {
			if m.Source == frame.SourceCron {
				have = append(have, m.Text)
			}
		}
		slices.Sort(want)
		if slices.Sort(have); !slices.Equal(have, want) {
			t.Errorf("to %s came %q, want %q", p.ID, have, want)
		}
	}
	w.await(t, "that all was delivered", func() bool {
		return len(newer(w.records(t), known, "", "delivered")) == len(list)
	})
	away.Seen()
	w.await(t, "that it was seen", func() bool { return len(newer(w.records(t), known, away.ID, "seen")) == forAway })
	for _, r := range newer(w.records(t), known, "", "") {
		if r.Source != frame.SourceCron || r.Job != "fake cron" {
			t.Errorf("a record is %+v", r)
		}
	}
	return got
}

// deliveryRecord is a line of hermes-mobile deliveries.
type deliveryRecord struct {
	Number                     int64
	Device, Source, Job, State string
}

func (w *world) records(t *testing.T) (list []deliveryRecord) {
	t.Helper()
	w.server.JSON(t, &list, "deliveries", "--limit", "1000")
	return list
}

// newer are the records that came since, to a device and in a state where these are named.
func newer(list, known []deliveryRecord, device, state string) (out []deliveryRecord) {
	for _, r := range list {
		isKnown := slices.ContainsFunc(known, func(k deliveryRecord) bool { return k.Number == r.Number })
		if !isKnown && (device == "" || r.Device == device) && (state == "" || r.State == state || state == "delivered" && r.State == "seen") {
			out = append(out, r)
		}
	}
	return out
}

// await waits until something is so.
func (w *world) await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(cronPatience); !is(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s did not come: the records are %+v", what, w.records(t))
		}
	}
}

// quotes: what a person replies to a scheduled message reaches the agent with the words it replies to, which are in no
// session of the agent.
func (p *Phone) quotes(t *testing.T, m device.Message) {
	t.Helper()
	mark := p.Mark()
	out, err := p.Send(t.Context(), "FM:echo", device.InReplyTo(m.ID))
	if err != nil {
		t.Fatal(err)
	}
	p.Receipt(out)
	if a := p.Answered(mark, out.ID); !strings.Contains(a.Text, "[Replying to your previous message: \""+m.Text+"\"]") {
		t.Errorf("of the reply to %q the model saw %q", m.Text, a.Text)
	}
	p.Idle()
}

// home: the device that says /sethome gets what is sent to home.
func home(t *testing.T, w *world) {
	p := w.phone(t, "home")
	mark := p.Mark()
	id := p.Say("/sethome")
	m := p.Answered(mark, id)
	env := read(t, filepath.Join(w.gateway.Home(), ".env"))
	if stored := strings.Contains(string(env), "RELAY_HOME_CHANNEL=home"); stored == w.newer() {
		t.Errorf("Hermes has stored it: %v", stored)
	}
	if refused := strings.Contains(m.Text, "Hermes itself keeps no home channel"); refused != w.newer() {
		t.Errorf("/sethome was answered %q", m.Text)
	}
	p.Idle()
	for range 2 { // the second is a repeat
		out, err := w.server.CLI(t.Context(), "deliver", "--to", "home", "--text", "dinner is ready", "--id", "dinner")
		if err != nil || out != "Sent to home (home channel)\n" {
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
