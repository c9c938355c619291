//go:build unix

package hermes

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// Setup says how a gateway is configured. Only Version is required; without RelayURL the gateway is
// told nothing about a relay, for tests that write the configuration themselves.
type Setup struct {
	Version Version

	// RelayURL is the connector's base address, as an http or ws URL.
	RelayURL string
	// RelayID and RelaySecret sign the gateway's token: both or neither.
	RelayID, RelaySecret string
	// ConfigForm puts the relay into config.yaml and not into .env. On 0.22.2 only this form leaves
	// the other platforms of a gateway running.
	ConfigForm bool

	// API turns the API server on, at an address of loopback that Gateway.API tells. It goes with a relay or without one.
	API bool
	// ApprovalSeconds is how long a command waits for a yes; 0 means 60.
	ApprovalSeconds int

	// ModelURL is the base address of an OpenAI-compatible API, as [FakeModel.URL].
	ModelURL string
	// Streaming turns on streamed replies, which 0.19.0 does not deliver well over a relay.
	Streaming bool

	// Queue lets what comes during a turn wait for one of its own, where setup has it added to the turn: for a test that does not
	// wait for the end of a turn, as a server does.
	Queue bool

	// Home is the HERMES_HOME to use; empty means one in the test's temporary folder. A .env and a
	// config.yaml that are there already are kept, and win over the harness's defaults.
	Home string
	// Env holds more lines KEY=VALUE of the .env file.
	Env []string
	// ConfigExtra is merged into config.yaml, map by map, over everything else.
	ConfigExtra map[string]any

	api API // chosen by New
}

func (s Setup) busyInputMode() string {
	if s.Queue {
		return "queue"
	}
	return "steer"
}

// baseConfig is the configuration every gateway starts with.
func (s Setup) baseConfig() map[string]any {
	c := map[string]any{
		"display": map[string]any{
			// An ack of the gateway's own wedges its reader for 30 s.
			"busy_ack_enabled": false,
			"busy_input_mode":  s.busyInputMode(),
			"platforms":        map[string]any{"relay": map[string]any{"tool_progress": "off"}},
		},
		"streaming": map[string]any{"enabled": s.Streaming},
		// manual always asks; the default lets a model judge first.
		"approvals": map[string]any{"mode": "manual", "timeout": cmp.Or(s.ApprovalSeconds, 60)},

		// Otherwise the first turn waits for a probe of the machine's Python tools.
		"agent": map[string]any{"environment_probe": false},

		// What follows keeps a run fast and quiet. Each of these asks the network, or the model in a
		// way that tests would have to filter out of its requests. Measured over 100 s with the
		// defaults, 0.19.0 asks for github.com (tirith, below), 0.22.2 for models.dev at once and for
		// its model catalogues at nousresearch.com, githubusercontent.com and openrouter.ai after
		// 30 s; with these settings neither asks for anything. The guard in guard/ refuses the rest.
		"model_catalog": map[string]any{"enabled": false},             // curated model lists, fetched 30 s after start
		"updates":       map[string]any{"check": false},               // release check
		"plugins":       map[string]any{"auto_update_check_hours": 0}, // plug-in update check
		"curator":       map[string]any{"enabled": false},             // background skill upkeep
		"lsp":           map[string]any{"enabled": false},             // language servers for edited files
		"onboarding":    map[string]any{"profile_build": "off"},       // offer added to the first message
		"memory":        map[string]any{"nudge_interval": 0},          // review by the model every 10 turns
		"skills":        map[string]any{"creation_nudge_interval": 0}, // the same for skills
		"auxiliary":     map[string]any{"title_generation": map[string]any{"enabled": false, "model_upgrade_enabled": false}},
	}
	if s.Version != V022 {
		// A command scanner, whose program is otherwise downloaded at the first start.
		c["security"] = map[string]any{"tirith_enabled": false}
	}
	if s.ModelURL != "" {
		base := strings.TrimSuffix(s.ModelURL, "/") + "/v1"
		c["model"] = map[string]any{
			"provider": "custom", "default": modelName, "base_url": base, "api_key": "fake-key",
			// Known, so that no list of models is asked for it.
			"context_length": 200000,
			// Pictures go to the model as they are; otherwise a side call describes them.
			"supports_vision": true,
		}
		// The fake transcribes voice messages too; without a provider Hermes only names the file.
		c["stt"] = map[string]any{"provider": "openai", "openai": map[string]any{"base_url": base, "api_key": "fake-key"}}
		if s.Version != V019 && s.Version != V0200 {
			// The registry of model metadata. 0.19.0 and 0.20.0 have no setting for its address. The fake
			// model answers 404 at once.
			c["models_dev"] = map[string]any{"url": strings.TrimSuffix(s.ModelURL, "/") + "/models-dev.json"}
		}
	}
	if s.RelayURL != "" && s.ConfigForm {
		gateway := map[string]any{"relay_url": s.RelayURL}
		if s.RelayID != "" {
			gateway["relay_id"], gateway["relay_secret"] = s.RelayID, s.RelaySecret
		}
		c["gateway"] = gateway
		c["platforms"] = map[string]any{"relay": map[string]any{
			"enabled": true, "extra": map[string]any{"relay_url": s.RelayURL},
		}}
	}
	return c
}

// baseEnv is the .env file every gateway starts with.
func (s Setup) baseEnv() []string {
	var env []string
	if s.RelayURL != "" && !s.ConfigForm {
		env = append(env, "GATEWAY_RELAY_URL="+s.RelayURL)
		if s.RelayID != "" {
			env = append(env, "GATEWAY_RELAY_ID="+s.RelayID, "GATEWAY_RELAY_SECRET="+s.RelaySecret)
		}
	}
	return append(env, s.api.env()...)
}

// write makes the home's .env and config.yaml.
func (s Setup) write(home string) error {
	if (s.RelayID == "") != (s.RelaySecret == "") {
		return errors.New("hermes: RelayID and RelaySecret belong together")
	}
	if err := os.MkdirAll(home, 0o700); err != nil {
		return fmt.Errorf("hermes: make the home: %w", err)
	}

	path := filepath.Join(home, "config.yaml")
	found := map[string]any{}
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("hermes: read the config: %w", err)
	}
	if err := yaml.Unmarshal(text, &found); err != nil {
		return fmt.Errorf("hermes: read %s: %w", path, err)
	}
	text, err = yaml.Marshal(merge(merge(s.baseConfig(), found), s.ConfigExtra))
	if err != nil {
		return fmt.Errorf("hermes: encode the config: %w", err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return fmt.Errorf("hermes: write the config: %w", err)
	}

	path = filepath.Join(home, ".env")
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("hermes: read the .env file: %w", err)
	}
	// Later lines win in a .env file: defaults, then what was there, then the test's own.
	lines := slices.Concat(s.baseEnv(), strings.Split(strings.TrimSpace(string(old)), "\n"), s.Env)
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		return fmt.Errorf("hermes: write the .env file: %w", err)
	}
	return nil
}

// merge returns base with over laid on it, map by map.
func merge(base, over map[string]any) map[string]any {
	out := maps.Clone(base)
	for key, value := range over {
		below, isMap := out[key].(map[string]any)
		if above, ok := value.(map[string]any); ok && isMap {
			out[key] = merge(below, above)
			continue
		}
		out[key] = value
	}
	return out
}
