package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hermes-mobile/device"
	"hermes-mobile/frame"
	"hermes-mobile/test/hermes"
)

// TestSetup connects the real Hermes with one command, beside a messenger that it has already, uses all that the connection is
// for, and takes it back.
func TestSetup(t *testing.T) {
	both(t, func(t *testing.T, v hermes.Version) {
		other := newMessenger(t)
		w, before := newSetup(t, v, other)
		env := filepath.Join(w.gateway.Home(), ".env")

		if w.newer() {
			// What setup is for: by the environment variable the messenger would be switched off.
			put(t, env, string(before[env])+"GATEWAY_RELAY_URL="+w.server.Base()+"\n")
			w.gateway.Run()
			w.logs(t, "disabling directly-connected platform 'mattermost'")
			w.gateway.Stop()
			if n := other.asked.Load(); n > 0 {
				t.Errorf("the messenger was asked %d times", n)
			}
			before[env] = read(t, env)
		}

		p := w.setup(t)
		w.firstWords(t, p)
		away := w.pair(t, "tel-2")
		w.homeByCommand(t, p, away)
		w.files(t, p)
		jobs := []job{{"origin", p, p}, {"origin", away, away}}
		if !w.newer() { // the newer version refuses to make such a job
			jobs = append(jobs, job{"relay:" + away.ID, p, away})
		}
		w.makeJobs(t, jobs)
		got := w.runJobs(t, jobs, away, func() {})
		p.quotes(t, got[jobs[0].words()])
		w.approval(t, p)
		w.gateway.Stop()
		w.runJobs(t, jobs, away, w.gateway.Run)

		w.logs(t, "Connecting to mattermost")
		w.await(t, "the other messenger", func() bool { return other.asked.Load() > 0 })
		if strings.Contains(string(read(t, env)), "GATEWAY_RELAY_URL") {
			t.Error("the variable that switches others off is in .env still")
		}
		w.gateway.Stop()

		var again struct{ Written bool }
		w.server.JSON(t, &again, "setup", "--yes", "--wait", "0")
		if again.Written {
			t.Error("the second time something was written")
		}
		w.undo(t, before)
	})
}

// firstWords: what a phone says first is answered, and truthfully: the newer version refuses /sethome here.
func (w *world) firstWords(t *testing.T, p *Phone) {
	t.Helper()
	if w.newer() {
		mark := p.Mark()
		if m := p.Answered(mark, p.Say("/sethome")); !strings.Contains(m.Text, "home channel now") || !strings.Contains(m.Text, "setup --plugin") {
			t.Errorf("/sethome was answered %q", m.Text)
		}
		p.Idle()
	}
	mark := p.Mark()
	p.Ask("FM:text(hello)", "hello")
	p.Idle()
	if n := len(p.Finals(mark)); n != 2 {
		t.Errorf("beside the answer there is a notice that Hermes has no home channel; what came is %+v", p.Finals(mark))
	}
}

// homeByCommand: the owner chooses the home channel, and Hermes knows of it without a restart, from its next turn on: another
// phone that talks to it for the first time then is not told that it has none.
func (w *world) homeByCommand(t *testing.T, p, other *Phone) {
	t.Helper()
	var set struct {
		Device struct{ ID string }
		Hermes struct {
			Written          bool
			Variable, Device string
		}
	}
	w.server.JSON(t, &set, "home", "set", p.ID)
	if set.Device.ID != p.ID || !set.Hermes.Written || set.Hermes.Variable != "RELAY_HOME_CHANNEL" || set.Hermes.Device != p.ID {
		t.Errorf("home set says %+v", set)
	}
	p.Ask("FM:text(a turn)", "a turn")
	p.Idle()
	mark := other.Mark()
	other.Ask("FM:text(hello too)", "hello too")
	other.Idle()
	if all := other.Finals(mark); len(all) != 1 {
		t.Errorf("beside the answer came %+v", all)
	}
	mark = p.Mark()
	if out, err := w.server.CLI(t.Context(), "deliver", "--to", "home", "--text", "dinner is ready"); err != nil || out != "Sent to "+p.ID+" (home channel)\n" {
		t.Errorf("%v\n%s", err, out)
	}
	p.Final(mark, "the delivery", func(m device.Message) bool { return m.Text == "dinner is ready" })
}

// files go both ways, with the older version to the agent only.
func (w *world) files(t *testing.T, p *Phone) {
	t.Helper()
	p.pictureUp(t, 6)
	if w.newer() {
		p.fileDown(t, "view.png", "image", "image/png", picture(t, 7))
	} else {
		p.fileAsText(t)
	}
}

// approval: a command runs when the person has said so, by a card or, with the older version, in words.
func (w *world) approval(t *testing.T, p *Phone) {
	t.Helper()
	if !w.newer() {
		p.answerInWords(t, "/approve", `"exit_code": 0`, "BLOCKED")
		return
	}
	mark := p.Mark()
	id := p.Say("FM:exec")
	card := p.Card(mark, frame.ExecApproval)
	if done := p.Choose(card, "once", ""); done.OptionID != "once" || done.Expired {
		t.Errorf("the card ended as %+v", done)
	}
	if m := p.Answered(mark, id); !strings.Contains(m.Text, `"exit_code": 0`) {
		t.Errorf("the command's result is %q", m.Text)
	}
	p.Idle()
}

// TestSetupPlugin: with the plug-in a phone can be Hermes' home channel, and jobs go to it and to others by the platform's name.
func TestSetupPlugin(t *testing.T) {
	t.Parallel()
	w, before := newSetup(t, hermes.V022, nil)
	p := w.setup(t)
	away := w.pair(t, "tel-2")
	env := filepath.Join(w.gateway.Home(), ".env")
	p.Ask("FM:text(hello)", "hello")
	away.Ask("FM:text(hello)", "hello")
	// A job that is made before the plug-in is there goes on reporting with it.
	old := job{"origin", away, away}
	w.makeJobs(t, []job{old})
	if out, err := w.server.CLI(t.Context(), "setup", "--yes", "--plugin", "--wait", "1ms"); err == nil || !strings.Contains(out, "starts a new conversation") || !strings.Contains(out, "was not restarted") {
		t.Errorf("setup --plugin beside a gateway that runs: %v\n%s", err, out)
	}
	w.gateway.Stop()
	w.gateway.Run()
	p.Ask("FM:text(hello again)", "hello again")
	p.Idle()
	away.Ask("FM:text(hello again)", "hello again")
	away.Idle()
	mark := away.Mark()
	if m := away.Answered(mark, away.Say("/sethome")); strings.Contains(m.Text, "Hermes itself keeps no home channel") {
		t.Errorf("/sethome was answered %q", m.Text)
	}
	away.Idle()
	if !strings.Contains(string(read(t, env)), "MOBILE_HOME_CHANNEL="+away.ID) {
		t.Errorf("Hermes has not stored the home channel")
	}
	var set struct {
		Hermes struct {
			Written          bool
			Variable, Device string
		}
	}
	w.server.JSON(t, &set, "home", "set", p.ID)
	if !set.Hermes.Written || set.Hermes.Variable != "MOBILE_HOME_CHANNEL" || set.Hermes.Device != p.ID {
		t.Errorf("home set says %+v", set)
	}
	jobs := []job{{"mobile", away, p}, {"mobile:" + away.ID, p, away}, {"all", away, p}, {"origin", p, p}}
	w.makeJobs(t, jobs)
	jobs = append(jobs, old)
	got := w.runJobs(t, jobs, away, func() {})
	p.quotes(t, got[jobs[0].words()])
	away.quotes(t, got[jobs[1].words()])
	w.gateway.Stop()
	w.server.Stop()
	w.server.Start()
	w.runJobs(t, jobs, away, w.gateway.Run)

	var now struct {
		Device *struct{ ID string }
		Hermes struct{ Device string }
	}
	if w.server.JSON(t, &now, "home", "clear"); now.Device != nil || now.Hermes.Device != away.ID {
		t.Errorf("home clear says %+v", now) // it was away's before, by Hermes' own doing
	}
	p.Leave()
	away.Leave()
	w.gateway.Stop()

	// Hermes itself has written to both files meanwhile: only our keys go.
	out, err := w.server.CLI(t.Context(), "setup", "--undo")
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for path := range before {
		text := string(read(t, path))
		for _, word := range []string{"mobile-platform", "relay_url", "GATEWAY_RELAY", "HOME_CHANNEL", "  mobile:"} {
			if strings.Contains(text, word) {
				t.Errorf("%s has %s still:\n%s", path, word, text)
			}
		}
		if left, _ := filepath.Glob(path + ".hermes-mobile-*"); len(left) > 0 {
			t.Errorf("there is %q still:\n%s", left, out)
		}
	}
	if _, err := os.Stat(filepath.Join(w.gateway.Home(), "plugins", "mobile-platform")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the plug-in's folder is left: %v", err)
	}
}

// pair pairs another phone, with the code of hermes-mobile pair.
func (w *world) pair(t *testing.T, id string) *Phone {
	t.Helper()
	var inv struct{ Code string }
	w.server.JSON(t, &inv, "pair")
	p := NewPhone(t, w.server, id, func(c *device.Config) { c.Token, c.PairCode = "", inv.Code })
	p.Online()
	return p
}

// newSetup prepares a Hermes home that knows nothing of a server, with an owner's own settings and words, and the server.
func newSetup(t *testing.T, v hermes.Version, other *messenger) (*world, map[string][]byte) {
	t.Helper()
	w := &world{t: t, version: v, model: hermes.Model(t)}
	extra := map[string]any{"display": map[string]any{"busy_ack_enabled": true, "busy_input_mode": "interrupt", "platforms": map[string]any{}}}
	if other != nil {
		extra["platforms"] = map[string]any{"mattermost": map[string]any{"enabled": true, "token": "mm-5f2c9b7e1d8a4036b1c2", "extra": map[string]any{"url": other.url}}}
	}
	setup := hermes.Setup{Version: v, ModelURL: w.model.URL, ConfigExtra: extra}
	w.gateway = hermes.New(t, setup)
	config, env := filepath.Join(w.gateway.Home(), "config.yaml"), filepath.Join(w.gateway.Home(), ".env")
	put(t, config, "# My own Hermes\n\n"+string(read(t, config))+"\n# the end\n")
	before := map[string][]byte{config: read(t, config), env: read(t, env)}
	w.server = NewServer(t, "HERMES_HOME="+w.gateway.Home(), "MOBILE_RELAY_ID=", "MOBILE_RELAY_SECRET=", "MOBILE_ALLOW_ALL_USERS=",
		"PATH="+programs(t, v)+string(os.PathListSeparator)+os.Getenv("PATH")).Start()
	return w, before
}

// programs is the folder of the hermes of a version, as it is on its owner's PATH.
func programs(t *testing.T, v hermes.Version) string {
	t.Helper()
	if err := hermes.Available(v); err != nil {
		t.Fatal(err)
	}
	cache := os.Getenv("HERMES_TEST_CACHE")
	if cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			t.Fatal(err)
		}
		cache = filepath.Join(home, ".cache", "hermes-mobile-test")
	}
	found, _ := filepath.Glob(filepath.Join(cache, string(v)+"-*", ".complete"))
	if len(found) == 0 {
		t.Fatalf("no hermes %s in %s", v, cache)
	}
	return filepath.Join(filepath.Dir(found[0]), "bin")
}

// setup runs the command, starts the gateway while it waits, and pairs a phone with the code that it ends with.
func (w *world) setup(t *testing.T, args ...string) *Phone {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	type result struct {
		out string
		err error
	}
	done := make(chan result, 1)
	go func() {
		out, err := w.server.CLI(ctx, append([]string{"setup", "--yes", "--json", "--wait", "90s"}, args...)...)
		done <- result{out, err}
	}()
	config := filepath.Join(w.gateway.Home(), "config.yaml")
	for end := time.Now().Add(patience); !strings.Contains(string(read(t, config)), "relay_url"); time.Sleep(20 * time.Millisecond) {
		select {
		case r := <-done:
			t.Fatalf("setup: %v\n%s", r.err, r.out)
		default:
		}
		if time.Now().After(end) {
			t.Fatal("setup wrote nothing")
		}
	}
	w.gateway.Run()
	r := <-done
	var said struct {
		Version   string `json:"hermes_version"`
		Connected bool
		Pair      struct{ Code string }
	}
	if err := json.Unmarshal([]byte(r.out), &said); r.err != nil || err != nil {
		t.Fatalf("setup: %v, %v\n%s", r.err, err, r.out)
	}
	if !strings.HasPrefix(string(w.version), said.Version+".") || !said.Connected || said.Pair.Code == "" {
		t.Fatalf("setup says\n%s", r.out)
	}
	p := NewPhone(t, w.server, "tel-1", func(c *device.Config) { c.Token, c.PairCode = "", said.Pair.Code })
	p.Online()
	return p
}

// undo takes everything back: byte for byte, with nothing left beside it.
func (w *world) undo(t *testing.T, before map[string][]byte) {
	t.Helper()
	out, err := w.server.CLI(t.Context(), "setup", "--undo")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for path, text := range before {
		if got := read(t, path); string(got) != string(text) {
			t.Errorf("undone, %s is\n%s\nand was\n%s\n%s", path, got, text, out)
		}
		if left, _ := filepath.Glob(path + ".hermes-mobile-*"); len(left) > 0 {
			t.Errorf("there is %q still", left)
		}
	}
}

// logs waits until Hermes' logs have a text.
func (w *world) logs(t *testing.T, text string) {
	t.Helper()
	for end := time.Now().Add(patience); !strings.Contains(w.gateway.Logs(), text); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("Hermes does not log %q", text)
		}
	}
}

// messenger is another messenger's server, which only counts how often it is asked.
type messenger struct {
	url   string
	asked atomic.Int64
}

func newMessenger(t *testing.T) *messenger {
	t.Helper()
	m := &messenger{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		m.asked.Add(1)
		http.Error(w, "{}", http.StatusServiceUnavailable)
	}))
	t.Cleanup(s.Close)
	m.url = s.URL
	return m
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
