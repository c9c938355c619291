package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hermes-mobile/device"
	"hermes-mobile/test/hermes"
)

// TestProfiles: a gateway of the newer version that serves several profiles. A phone sees which there are, and its conversation goes on in
// the one that it chooses, also after a restart of the server.
func TestProfiles(t *testing.T) {
	t.Parallel()
	home, err := os.MkdirTemp("", "hp") // a short path, for the gateway's socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	w := &world{t: t, version: hermes.V022, model: hermes.Model(t)}
	w.server = NewServer(t, "HERMES_HOME="+home).Start()
	w.gateway = hermes.New(t, hermes.Setup{Version: w.version, Home: home, RelayURL: w.server.Base(), RelayID: w.server.ID, RelaySecret: w.server.Secret, ModelURL: w.model.URL,
		Streaming: true, ConfigExtra: map[string]any{"gateway": map[string]any{"multiplex_profiles": true}}})
	work := filepath.Join(home, "profiles", "work")
	if err := os.MkdirAll(work, 0o700); err != nil {
		t.Fatal(err)
	}
	config, err := os.ReadFile(filepath.Join(home, "config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"config.yaml": strings.ReplaceAll(string(config), "multiplex_profiles: true", "{}"), "SOUL.md": "You are the profile for WORKING-HOURS.\n", ".env": "X=1\n"} {
		if err := os.WriteFile(filepath.Join(work, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.gateway.Run()
	w.warm("first")

	p := w.phone(t, "profiles")
	for end := time.Now().Add(patience); !slices.Contains(p.Status().Capabilities.Call, "profiles.choose"); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("profiles are not offered")
		}
	}
	names := func() (all []string, current string) {
		t.Helper()
		list, err := p.Profiles(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, profile := range list {
			all = append(all, profile.Name)
			if profile.Current {
				current = profile.Name
			}
		}
		return all, current
	}
	if all, current := names(); strings.Join(all, " ") != "default work" || current != "default" {
		t.Errorf("the profiles %q, of which %q is used", all, current)
	}
	asked := func(word string) (atWork bool) {
		t.Helper()
		p.Ask("FM:text("+word+")", word)
		p.Idle()
		for _, r := range w.model.Requests() {
			if strings.Contains(r.LastUser(), "FM:text("+word+")") {
				return strings.Contains(fmt.Sprint(r.Messages), "WORKING-HOURS")
			}
		}
		t.Fatalf("the model was not asked for %s", word)
		return false
	}
	if asked("one") {
		t.Error("before a choice the other profile answers")
	}
	if err := p.ChooseProfile(t.Context(), "work"); err != nil {
		t.Fatal(err)
	}
	if !asked("two") {
		t.Error("the chosen profile does not answer")
	}
	if err := p.ChooseProfile(t.Context(), "none"); err == nil {
		t.Error("a profile that there is not was chosen")
	}
	mark := p.Mark()
	id := p.Say("FM:slow(30)")
	Wait(p, mark, "some text", func(m device.Message) bool { return strings.Contains(m.Text, "Line 0001") })
	if err := p.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if m := p.Answered(mark, id); len(m.Text) >= len(modelLines(900)) {
		t.Error("the turn of a profile cannot be stopped")
	}
	p.Idle()
	w.server.Kill()
	w.server.Start()
	p.Online()
	if !asked("three") {
		t.Error("after a restart the choice is forgotten")
	}
	if _, current := names(); current != "work" {
		t.Errorf("after a restart %q is shown", current)
	}
	if err := p.ChooseProfile(t.Context(), "default"); err != nil {
		t.Fatal(err)
	}
	if asked("four") {
		t.Error("the profile that was left still answers")
	}
}
