//go:build unix

package hermes

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience is far more than anything here takes, for a machine that is busy with other tests.
const patience = 90 * time.Second

// TestGateway shows that each version, as the harness configures it, dials a relay connector with a
// valid token and does what other tests build on, and that nothing of it leaves this machine.
func TestGateway(t *testing.T) {
	for _, version := range Versions {
		t.Run(string(version), func(t *testing.T) {
			t.Parallel()
			model, relay, g := start(t, Setup{Version: version, Queue: true})
			talk(t, relay, g, "in-1", "alpha")
			talk(t, relay, g, "in-2", "beta")
			if asked := model.Requests(); len(asked) != 2 || asked[1].LastUser() != "FM:text(beta)" || asked[1].Reply != "beta" {
				t.Errorf("the model was asked %+v", asked)
			}
			checkMedia(t, relay, g)
			checkApproval(t, relay, g)
			checkCLI(t, g)

			pid := g.Pid()
			g.Stop()
			if err := syscall.Kill(pid, 0); err == nil {
				t.Errorf("process %d is there after Stop", pid)
			}
			g.Run()
			hello(t, relay, g)
			talk(t, relay, g, "in-3", "gamma")
			if hosts := g.Outside(); len(hosts) > 0 {
				t.Errorf("the gateway tried to leave this machine: %q", hosts)
			}
		})
	}
}

// TestConfigForm shows the same for a relay that is set in config.yaml, and a hard restart.
func TestConfigForm(t *testing.T) {
	for _, version := range Versions {
		t.Run(string(version), func(t *testing.T) {
			t.Parallel()
			_, relay, g := start(t, Setup{Version: version, ConfigForm: true, Queue: true})
			talk(t, relay, g, "in-1", "alpha")
			g.Restart(true)
			hello(t, relay, g)
			talk(t, relay, g, "in-2", "beta")
			if strings.Contains(g.Logs(), relay.secret) {
				t.Error("the logs hold the secret")
			}
		})
	}
}

// start runs a gateway of s with a model and a connector, and waits for its hello.
func start(t *testing.T, s Setup) (*FakeModel, *connector, *Gateway) {
	t.Helper()
	model := Model(t)
	relay := newConnector(t, "gw:test", "not-a-secret-only-a-test")
	s.ModelURL, s.RelayURL, s.RelayID, s.RelaySecret = model.URL, relay.url, relay.id, relay.secret
	s.Streaming = s.Version == V022
	g := Start(t, s)
	hello(t, relay, g)
	return model, relay, g
}

func hello(t *testing.T, relay *connector, g *Gateway) {
	t.Helper()
	begin := time.Now()
	relay.await("hello", g, func(f frame) bool { return f.Type == "hello" })
	t.Logf("hello after %v", time.Since(begin).Round(time.Millisecond))
}

// talk says a text that the model gives back, and waits for the receipt and for the answer.
func talk(t *testing.T, relay *connector, g *Gateway, id, text string) {
	t.Helper()
	begin := time.Now()
	relay.say(event{ID: id, Text: "FM:text(" + text + ")", Type: "text"})
	relay.await("receipt", g, func(f frame) bool { return f.Type == "inbound_ack" && f.BufferID == "b-"+id })
	relay.await("reply", g, func(f frame) bool { return f.Action.Op == "send" && strings.TrimSpace(f.Action.Content) == text })
	t.Logf("reply after %v", time.Since(begin).Round(time.Millisecond))
}

// checkMedia sends a picture and a voice message by their paths, the one way that both versions know,
// and has the model say what it got.
func checkMedia(t *testing.T, relay *connector, g *Gateway) {
	t.Helper()
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 8, 8))); err != nil {
		t.Fatal(err)
	}
	voice := append([]byte("OggS\x00\x02"), make([]byte, 5000)...)
	for _, m := range []struct {
		kind, mime, name string
		data             []byte
		want             string
	}{
		{"photo", "image/png", "a.png", picture.Bytes(), fmt.Sprintf("sha256=%x", sha256.Sum256(picture.Bytes()))},
		{"voice", "audio/ogg", "a.ogg", voice, fmt.Sprintf("transcript of %d bytes", len(voice))},
	} {
		path := filepath.Join(t.TempDir(), m.name)
		if err := os.WriteFile(path, m.data, 0o600); err != nil {
			t.Fatal(err)
		}
		relay.say(event{
			ID: "in-" + m.kind, Text: "FM:echo", Type: m.kind,
			MediaURLs: []string{path}, Media: []media{{URL: path, MIME: m.mime}},
		})
		relay.await(m.kind, g, func(f frame) bool {
			return f.Action.Op == "send" && strings.Contains(f.Action.Content, "I saw") && strings.Contains(f.Action.Content, m.want)
		})
	}
}

// checkApproval has the agent run a command that must be approved, and denies it.
func checkApproval(t *testing.T, relay *connector, g *Gateway) {
	t.Helper()
	relay.say(event{ID: "in-exec", Text: "FM:exec FM:text(after)", Type: "text"})
	question := relay.await("approval", g, func(f frame) bool {
		return f.Action.Op == "prompt" || f.Action.Op == "send" && strings.Contains(f.Action.Content, "/approve")
	})
	if question.Action.Op == "send" { // 0.19.0 would be deaf for 30 s after a typed answer: stop the turn
		relay.interrupt()
		return
	}
	relay.say(event{
		ID: "in-deny", Text: "/deny", Type: "command",
		Prompt: &promptResponse{ID: question.Action.PromptID, Option: "deny"},
	})
	relay.await("the end of the turn", g, func(f frame) bool {
		return f.Action.Op == "send" && strings.TrimSpace(f.Action.Content) == "after"
	})
}

// checkCLI runs the commands that the pairing tests need.
func checkCLI(t *testing.T, g *Gateway) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if out, err := g.CLI(ctx, "pairing", "list"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	done, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := g.CLI(done, "pairing", "list"); err == nil {
		t.Error("CLI ignores its context")
	}
}
