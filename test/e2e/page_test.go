package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"hermes-mobile/test/hermes"
)

// TestPage runs web/test/journey.hermes.test.ts: a user in a real browser, with the real Hermes.
func TestPage(t *testing.T) {
	if why := noPage(); why != "" {
		t.Skip(why)
	}
	both(t, func(t *testing.T, v hermes.Version) {
		w := newWorld(t, v)
		w.journey(t, "journey.hermes", "HERMES_JOURNEY")
		if !w.heardVoice() {
			t.Errorf("the model was not given the transcript of a voice message: %q", w.transcripts())
		}
	})
}

// TestPageDirect runs web/test/agent.hermes.test.ts: a user of what Hermes' API offers.
func TestPageDirect(t *testing.T) {
	if why := noPage(); why != "" {
		t.Skip(why)
	}
	both(t, func(t *testing.T, v hermes.Version) {
		newDirect(t, v, "MOBILE_API_SESSIONS=all", "MOBILE_API_JOBS=on").journey(t, "agent.hermes", "HERMES_JOURNEY_DIRECT")
	})
}

// journey runs a test of the page. The variable passes the server's address.
func (w *world) journey(t *testing.T, name, variable string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "test/run.mjs", name)
	cmd.Dir = filepath.Join("..", "..", "web")
	cmd.Env = append([]string{variable + "=" + w.server.Base() + "/", "HERMES_JOURNEY_BINARY=" + w.server.Binary, "CHROMIUM=" + os.Getenv("CHROMIUM")}, w.server.Env...)
	if w.newer() {
		cmd.Env = append(cmd.Env, "HERMES_JOURNEY_NEWER=1")
	}
	// A browser and its pages are processes below it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("the page with Hermes %s: %v\n%s", w.version, err, out)
	}
	t.Logf("%s", out)
}

// heardVoice reports whether the model got a transcript of at least half a second of sound.
func (w *world) heardVoice() bool {
	for _, text := range w.transcripts() {
		var size int
		if _, err := fmt.Sscanf(text, "transcript of %d bytes", &size); err != nil || size < 16_000 {
			continue
		}
		for _, r := range w.model.Requests() {
			if strings.Contains(r.LastUser(), text) {
				return true
			}
		}
	}
	return false
}

// transcripts returns the transcripts of voice messages.
func (w *world) transcripts() (list []string) {
	for _, r := range w.model.Requests() {
		if r.Kind == "transcription" {
			list = append(list, r.Reply)
		}
	}
	return list
}

// noPage returns what the tests of the web page lack, or an empty string.
func noPage() string {
	if out, err := exec.Command("bash", filepath.Join("..", "web", "node.sh")).CombinedOutput(); err != nil {
		return strings.TrimSpace(string(out))
	}
	if _, err := os.Stat(filepath.Join("..", "..", "web", "node_modules", "playwright-core")); err != nil {
		return "the packages of the web page are missing: run test/web/packages.sh"
	}
	for _, path := range []string{os.Getenv("CHROMIUM"), "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"} {
		if _, err := os.Stat(path); path != "" && err == nil {
			return ""
		}
	}
	return "Chromium is missing: run test/web/install.sh as root, or set CHROMIUM to its path"
}
