package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"hermes-mobile/internal/config"
	"hermes-mobile/internal/setup"
)

// ProbeHermes probes the Hermes on this machine. It uses the profile that is set up for a server, or else
// the active one. version asks for Hermes' version, which may take long; nil skips that.
func ProbeHermes(ctx context.Context, cfg *config.Config, version func(ctx context.Context, home string) setup.Version) *Hermes {
	h := &Hermes{}
	homes, err := setup.Homes(cfg.HermesHome)
	if errors.Is(err, fs.ErrPermission) {
		h.Exists, h.Hidden, h.Home = true, true, setup.Home{Path: cfg.HermesHome}
		return h
	}
	if err != nil {
		return h
	}
	h.Exists = true
	h.Hidden = setup.Hidden(homes[0])
	for i, home := range homes {
		files, err := setup.ReadFiles(home)
		ready := err == nil && files.Broken == nil && relayOf(files).complete()
		if i == 0 || ready || home.Active && (h.Files == nil || !relayOf(h.Files).complete()) {
			h.Home, h.Files, h.Unread = home, files, err
		}
		if ready {
			break
		}
	}
	h.Jobs = setup.FailedJobs(h.Home)
	if p, ok := setup.Running(h.Home); ok {
		h.Process = &p
		if h.Files != nil {
			h.Files.Inherit(p)
		}
	}
	if version != nil {
		h.Version = version(ctx, h.Home.Path)
	}
	switch {
	case h.Files == nil:
	case h.Files.TooMuch():
		h.Files, h.Unread = nil, h.Files.Broken
	default:
		h.Files.Broken = h.Files.Refused(h.Version)
	}
	return h
}

// AskVersion returns the version of the Hermes that belongs to a home. It runs Hermes only if no file names
// the version.
func AskVersion(ctx context.Context, home string) setup.Version {
	if v, path := setup.LookVersion(home); v.Known() || path == "" {
		return v
	}
	v, _ := setup.FindVersion(ctx, home)
	return v
}

// byValue returns a setting of Hermes that an environment variable can override.
func byValue(f *setup.Files, env, path string, otherwise any) any {
	if s, ok := f.Env(env); ok {
		return s
	}
	if x, ok := f.Value(path); ok {
		return x
	}
	return otherwise
}

// busyAck reports whether Hermes answers a message during a turn with a note that it is busy.
func busyAck(f *setup.Files) bool {
	return truthy(byValue(f, "HERMES_GATEWAY_BUSY_ACK_ENABLED", "display.busy_ack_enabled", true))
}

// busyMode returns what Hermes does with a message during a turn.
func busyMode(f *setup.Files) string {
	return strings.ToLower(fmt.Sprint(byValue(f, "HERMES_GATEWAY_BUSY_INPUT_MODE", "display.busy_input_mode", "interrupt")))
}

// Steers reports whether the gateway with this id belongs to this Hermes and adds a message during a turn to
// that turn. The settings must say so, and the gateway must have read them.
func (h *Hermes) Steers(id string) bool {
	f := h.Files
	if f == nil || f.Broken != nil || relayOf(f).id != id || busyAck(f) || busyMode(f) != "steer" {
		return false
	}
	return h.Process == nil || h.Process.Since.IsZero() || !f.Changed.After(h.Process.Since.Add(startsWithin))
}

// startsWithin is the time that a gateway needs to read its settings, and the accuracy of its start time.
const startsWithin = 2 * time.Second
