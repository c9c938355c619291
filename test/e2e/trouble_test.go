package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"hermes-mobile/device"
	"hermes-mobile/frame"
	"hermes-mobile/internal/doctor"
	"hermes-mobile/test/hermes"
)

// TestDirectTrouble: what goes wrong between the server and the API of the real Hermes, one thing after the other, and at the
// end that no secret is where it should not be.
func TestDirectTrouble(t *testing.T) {
	both(t, func(t *testing.T, v hermes.Version) {
		w := &world{t: t, version: v, model: hermes.Model(t)}
		w.gateway = startAPI(t, v, func(s *hermes.Setup) {
			s.ModelURL = w.model.URL
			s.ConfigExtra = map[string]any{"gateway": map[string]any{"api_server": map[string]any{"max_concurrent_runs": 2}}}
		})
		api := w.gateway.API()
		w.server = NewServer(t, "MOBILE_API_URL="+api.URL, "MOBILE_API_KEY="+api.Key, "MOBILE_RELAY_ID=", "MOBILE_RELAY_SECRET=", "MOBILE_FRONT_API=1")
		w.server.Agent = "direct"
		w.server.Start()
		for _, s := range []struct {
			name string
			run  func(*testing.T, *world)
		}{{"provider_fails", troubleProvider}, {"oversize", troubleOversize}, {"files", directFiles}, {"full", troubleFull}, {"deleted", troubleDeleted},
			{"stopped_server", troubleStoppedServer}, {"killed_at_a_card", troubleKilledAtACard}, {"versions", troubleVersions}, {"doctor", troubleDoctor}, {"secrets", troubleSecrets}} {
			t.Run(s.name, func(t *testing.T) { s.run(t, w) })
		}
	})
}

// read counts how often the model read a message as the newest one.
func (w *world) read(message string) (n int) {
	for _, r := range w.model.Requests() {
		if r.Kind == "chat" && r.LastUser() == message {
			n++
		}
	}
	return n
}

// troubleProvider: the provider of the model answers 500. 0.19 gives up after some seconds, and 0.22 tries for minutes, in which
// the person can stop it.
func troubleProvider(t *testing.T, w *world) {
	p := w.phone(t, "provider")
	mark := p.Mark()
	id := p.Say("FM:status(500)")
	if w.newer() {
		await(t, "a second try", func() bool { return w.read("FM:status(500)") > 1 })
		if err := p.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	m := p.Answered(mark, id)
	if says := map[bool]string{true: "stopped", false: "The turn failed"}[w.newer()]; !strings.Contains(m.Text, says) {
		t.Errorf("the person reads %q", m.Text)
	}
	p.Idle()
	p.Ask("/new", "A new session")
	p.Idle()
	p.Ask("FM:text(better)", "better")
}

func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// troubleOversize: what the gateway would cut or refuse is told, and never sent.
func troubleOversize(t *testing.T, w *world) {
	p := w.phone(t, "oversize")
	text := "FM:text(x) " + strings.Repeat("y", 65537-len("FM:text(x) "))
	mark := p.Mark()
	id := p.Say(text)
	if m := p.Answered(mark, id); !strings.Contains(m.Text, "65537 characters") {
		t.Errorf("of a long text the person reads %q", m.Text)
	}
	p.Idle()
	whole := "FM:text(kept) " + strings.Repeat("y", 65536-len("FM:text(kept) "))
	p.Ask(whole, "kept")
	if n := w.read(whole); n != 1 || w.read(text) != 0 {
		t.Errorf("the model read the longest text %d times, and the one that is longer %d times", n, w.read(text))
	}
}

// troubleFull: Hermes takes no more turns than it is set to, and a message waits until there is room.
func troubleFull(t *testing.T, w *world) {
	a, b, c := w.phone(t, "full-a"), w.phone(t, "full-b"), w.phone(t, "full-c")
	ma, mb, mc := a.Mark(), b.Mark(), c.Mark()
	ia, ib := a.Say("FM:slow(4)"), b.Say("FM:slow(4)")
	for p, mark := range map[*Phone]int{a: ma, b: mb} {
		Wait(p, mark, "some text", func(m device.Message) bool { return strings.Contains(m.Text, "Line 0001") })
	}
	api := w.gateway.API()
	if status, _ := (caller{t, api.URL, api.Key, nil}).call("POST", "/v1/runs", `{"input":"FM:text(refused)"}`); status != 429 {
		t.Errorf("Hermes is not full: %d", status)
	}
	out := c.Submit("FM:text(room)")
	c.Final(mc, "the answer when there is room", func(m device.Message) bool { return m.Text == "room" })
	c.Receipt(out)
	a.Answered(ma, ia)
	b.Answered(mb, ib)
	for _, p := range []*Phone{a, b, c} {
		p.Idle()
	}
	if w.read("FM:text(room)") != 1 {
		t.Error("it was run more than once")
	}
}

// troubleDeleted: the session is deleted behind our back, and the conversation goes on.
func troubleDeleted(t *testing.T, w *world) {
	p := w.phone(t, "deleted")
	p.Ask("FM:text(before)", "before")
	p.Idle()
	api := w.gateway.API()
	list := ask[struct{ Sessions []directSession }](t, p, "sessions.list", "{}").Sessions
	if len(list) != 1 {
		t.Fatalf("sessions %+v", list)
	}
	(caller{t, api.URL, api.Key, nil}).must("DELETE", "/api/sessions/"+list[0].ID, "")
	p.Ask("FM:text(after)", "after")
	p.Idle()
	mark := p.Mark()
	(caller{t, api.URL, api.Key, nil}).call("DELETE", "/api/sessions/"+list[0].ID, "")
	id := p.Upload(device.FileOptions{Kind: "image", Name: "dot.png", Mime: "image/png", Caption: "FM:text(image)", Data: onePixel(t)})
	if m := p.Answered(mark, id); !strings.Contains(m.Text, "image") || strings.Contains(m.Text, "refused") {
		t.Errorf("with an image: %q", m.Text)
	}
	p.Idle()
}

// troubleStoppedServer: the server is stopped politely in the middle of a turn and started again: what there was is ended as
// interrupted, and the answer comes whole and once.
func troubleStoppedServer(t *testing.T, w *world) {
	p := w.phone(t, "stopped")
	mark := p.Mark()
	id := p.Say("FM:slow(5)")
	Wait(p, mark, "some text", func(m device.Message) bool { return strings.Contains(m.Text, "Line 0001") })
	w.server.Stop()
	w.server.Start()
	p.Final(mark, "the answer", func(m device.Message) bool { return m.ReplyTo == id && !m.Interrupted })
	p.Idle()
	p.Ask("FM:text(next)", "next")
	whole := slices.DeleteFunc(p.Finals(mark), func(m device.Message) bool { return m.ReplyTo != id || m.Interrupted })
	if len(whole) != 1 || strings.TrimSpace(whole[0].Text) != strings.TrimSpace(modelLines(900)) || w.read("FM:slow(5)") != 1 {
		t.Errorf("%d whole answers, and the model was asked %d times", len(whole), w.read("FM:slow(5)"))
	}
}

// troubleKilledAtACard: the server dies while a card is open. The card is answered in its next life, and the command runs once.
func troubleKilledAtACard(t *testing.T, w *world) {
	p := w.phone(t, "card")
	dir := filepath.Join(t.TempDir(), "gone")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	message := "FM:exec(rm -rf " + dir + ")"
	mark := p.Mark()
	id := p.Say(message)
	card := p.Card(mark, "exec_approval")
	w.server.Kill()
	w.server.Start()
	p.Online()
	if done := p.Choose(card, "once", ""); done.OptionID != "once" {
		t.Errorf("the card ended with %+v", done)
	}
	p.Answered(mark, id)
	p.Idle()
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Error("the command was allowed and did not run")
	}
	if n := w.read(message); n != 2 { // for the tool, and with its result
		t.Errorf("the model was asked %d times", n)
	}
	cards := 0
	for _, e := range p.Since(mark) {
		if c, ok := e.(device.CardShown); ok && c.ID != card.ID {
			cards++
		}
	}
	if cards > 0 {
		t.Errorf("%d more cards were shown", cards)
	}
}

// troubleDoctor: with all well the doctor finds nothing but the limits of 0.19, and says what he looked at.
func troubleDoctor(t *testing.T, w *world) {
	// The API proxy has no users yet.
	d := w.doctor(t)
	d.Issues = slices.DeleteFunc(d.Issues, func(f doctor.Issue) bool { return f.Code == "front_no_users" })
	if w.newer() {
		if len(d.Issues) > 0 {
			t.Errorf("the doctor finds %+v", d.Issues)
		}
	} else {
		mustFind(t, d, "api_older", "0.19")
	}
	if !strings.Contains(strings.Join(d.Checked, "\n"), "API          at "+w.gateway.API().URL) {
		t.Errorf("he has looked at %q", d.Checked)
	}
	var st struct {
		Detail string `json:"agent_detail"`
	}
	w.server.JSON(t, &st, "status")
	if !strings.Contains(st.Detail, "version "+string(w.version)) || strings.Contains(st.Detail, "remote address") { // there is one address, on this machine
		t.Errorf("the status says %q", st.Detail)
	}
}

// troubleSecrets: after all of that, and a login at the API proxy, no secret is in the log, in the data folder, in the
// arguments of the process or in what the commands and calls tell.
func troubleSecrets(t *testing.T, w *world) {
	addUser(t, w.server, "anna")
	anna := logIn(t, w.server, "anna")
	anna.turn("hello")
	api := w.gateway.API()
	secrets := map[string]string{"API key": api.Key, "token": w.server.Token, "password": frontPassword}
	look := func(where string, data []byte) {
		for name, secret := range secrets {
			if bytes.Contains(data, []byte(secret)) {
				t.Errorf("the %s stands in %s", name, where)
			}
		}
	}
	p := w.phone(t, "secrets")
	look("the answer of route.show", ask[json.RawMessage](t, p, "route.show", "{}"))
	p.Ask("/status", "version")
	for _, m := range p.Finals(0) {
		look("a message", []byte(m.Text))
	}
	for _, command := range [][]string{{"status", "--json"}, {"status"}, {"doctor"}, {"doctor", "--json"}} {
		out, _ := w.server.CLI(t.Context(), command...)
		look(fmt.Sprint("the output of ", command), []byte(out))
	}
	w.server.mu.Lock()
	pid := w.server.cmd.Process.Pid
	w.server.mu.Unlock()
	line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err == nil {
		look("the process's arguments", line)
	}
	w.server.Stop()
	log, err := os.ReadFile(w.server.log.Name())
	if err != nil {
		t.Fatal(err)
	}
	look("the log", log)
	files := 0
	err = filepath.WalkDir(w.server.Data, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		look("the data folder's "+e.Name(), data)
		files++
		return err
	})
	if err != nil || files == 0 {
		t.Errorf("%d files, %v", files, err)
	}
}

// TestDirectOther: a server with OpenAI's API that is not Hermes.
func TestDirectOther(t *testing.T) {
	t.Parallel()
	model := hermes.Model(t)
	s := NewServer(t, "MOBILE_API_KIND=openai", "MOBILE_API_URL="+model.URL, "MOBILE_RELAY_ID=", "MOBILE_RELAY_SECRET=")
	s.Agent = "direct"
	s.Start()
	p := NewPhone(t, s, "phone")
	p.Online()
	if c := p.Status().Capabilities; !c.Edit || !c.Stop || c.Prompt {
		t.Errorf("capabilities %+v", c)
	}
	p.Ask("FM:text(one)", "one")
	p.Idle()
	s.Stop() // what was said is known after a restart
	s.Start()
	p.Ask("FM:history", "messages: 3")
	p.Idle()
	mark := p.Mark()
	id := p.Upload(device.FileOptions{Kind: "image", Name: "dot.png", Mime: "image/png", Caption: "FM:echo", Data: onePixel(t)})
	if m := p.Answered(mark, id); !strings.Contains(m.Text, "image_url image/png") {
		t.Errorf("the model saw %q", m.Text)
	}
	p.Idle()
	mark = p.Mark()
	id = p.Say("FM:slow(60)")
	Wait(p, mark, "some text", func(m device.Message) bool { return strings.Contains(m.Text, "Line 0001") })
	if err := p.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if m := p.Answered(mark, id); !m.Interrupted {
		t.Errorf("the end is %+v", m)
	}
	p.Idle()
	p.Ask("/new", "A new conversation")
	p.Idle()
	p.Ask("FM:history", "messages: 1")
	p.Idle()
	mark = p.Mark()
	id = p.Say("FM:status(400)")
	if m := p.Answered(mark, id); !strings.Contains(m.Text, "fake failure") {
		t.Errorf("of a failure the person reads %q", m.Text)
	}
	p.Idle()
	mark = p.Mark()
	id = p.Say("FM:slow(60)")
	Wait(p, mark, "some text", func(m device.Message) bool { return strings.Contains(m.Text, "Line 0001") })
	s.Kill() // nothing keeps such a turn, and the person is told
	s.Start()
	p.Final(mark, "the word that it is lost", func(m device.Message) bool {
		return m.ReplyTo == id && strings.Contains(m.Text, "Check before you send it again")
	})
	p.Agent(frame.Online)
	p.Ask("FM:text(on)", "on")
}
