//go:build unix

package hermes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// TestSetupOrder shows who wins: the test over the files that are there, and these over the defaults.
func TestSetupOrder(t *testing.T) {
	home := t.TempDir()
	config, env := filepath.Join(home, "config.yaml"), filepath.Join(home, ".env")
	if err := os.WriteFile(config, []byte("approvals:\n  timeout: 7\n  mode: smart\nown:\n  key: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(env, []byte("GATEWAY_RELAY_URL=http://127.0.0.1:2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := Setup{
		Version: V022, RelayURL: "http://127.0.0.1:1", Env: []string{"MINE=1"},
		ConfigExtra: map[string]any{"approvals": map[string]any{"timeout": 3}},
	}
	if err := s.write(home); err != nil {
		t.Fatal(err)
	}

	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Approvals struct {
			Mode    string
			Timeout int
		}
		Own     struct{ Key int }
		Display struct {
			Ack bool `yaml:"busy_ack_enabled"`
		}
	}
	got.Display.Ack = true
	if err := yaml.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if got.Approvals.Mode != "smart" || got.Approvals.Timeout != 3 || got.Own.Key != 1 || got.Display.Ack {
		t.Errorf("config.yaml:\n%s", text)
	}

	if text, err = os.ReadFile(env); err != nil {
		t.Fatal(err)
	}
	// The last line of a name counts.
	if ours, theirs := strings.Index(string(text), ":1\n"), strings.Index(string(text), ":2\n"); ours < 0 || theirs < ours {
		t.Errorf(".env:\n%s", text)
	}
	if !strings.HasSuffix(string(text), "MINE=1\n") {
		t.Errorf(".env:\n%s", text)
	}
	if err := (Setup{Version: V022, RelayID: "x"}).write(home); err == nil {
		t.Error("an id without a secret is taken")
	}
}
