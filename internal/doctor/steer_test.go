package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What the settings of this machine's Hermes say about adding messages to a running turn, and whether the gateway has read them.
func TestSteers(t *testing.T) {
	steer := strings.Replace(right(t), "busy_input_mode: queue", "busy_input_mode: steer", 1)
	for name, c := range map[string]struct {
		config, env, id string
		changed         time.Duration // after the start of the gateway
		want            bool
	}{
		"set":               {steer, rightEnv, "gw-home", -time.Hour, true},
		"queue":             {right(t), rightEnv, "gw-home", -time.Hour, false},
		"default":           {model, rightEnv, "gw-home", -time.Hour, false},
		"another gateway":   {steer, rightEnv, "gw-other", -time.Hour, false},
		"ack on":            {strings.Replace(steer, "busy_ack_enabled: false", "busy_ack_enabled: true", 1), rightEnv, "gw-home", -time.Hour, false},
		"variable":          {right(t), rightEnv + "HERMES_GATEWAY_BUSY_INPUT_MODE=steer\n", "gw-home", -time.Hour, true},
		"variable wins":     {steer, rightEnv + "HERMES_GATEWAY_BUSY_INPUT_MODE=queue\n", "gw-home", -time.Hour, false},
		"not read yet":      {steer, rightEnv, "gw-home", time.Hour, false},
		"broken":            {steer + "\n\t- [", rightEnv, "gw-home", -time.Hour, false},
		"no settings":       {"", "", "", -time.Hour, false},
		"written just then": {steer, rightEnv, "gw-home", time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t, c.config, c.env).runs()
			found := ProbeHermes(t.Context(), h.config(), nil)
			if found.Process == nil {
				t.Skip("only Linux tells when a process was started")
			}
			for _, file := range []string{"config.yaml", ".env"} {
				at := found.Process.Since.Add(c.changed)
				ok(t, os.Chtimes(filepath.Join(h.path, file), at, at))
			}
			if got := ProbeHermes(t.Context(), h.config(), nil).Steers(c.id); got != c.want {
				t.Errorf("it steers: %v", got)
			}
		})
	}
}
