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

// LookHermes looks at the Hermes of this machine. Of its profiles the one counts that is told of a server, else the one that is
// active. version asks for its version, which may take long; nil leaves that out.
func LookHermes(ctx context.Context, cfg *config.Config, version func(ctx context.Context, home string) setup.Version) *Hermes {
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
		told := err == nil && files.Broken == nil && relayOf(files).complete()
		if i == 0 || told || home.Active && (h.Files == nil || !relayOf(h.Files).complete()) {
			h.Home, h.Files, h.Unread = home, files, err
		}
		if told {
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

// AskVersion finds the version of the Hermes that belongs to a home, by running it where nothing else tells.
func AskVersion(ctx context.Context, home string) setup.Version {
	if v, path := setup.LookVersion(home); v.Known() || path == "" {
		return v
	}
	v, _ := setup.FindVersion(ctx, home)
	return v
}

// byValue is a setting of Hermes that a variable overrides.
func byValue(f *setup.Files, env, path string, otherwise any) any {
	if s, ok := f.Env(env); ok {
		return s
	}
	if x, ok := f.Value(path); ok {
		return x
	}
	return otherwise
}

// busyAck reports whether Hermes says that it is busy when a message comes during a turn.
func busyAck(f *setup.Files) bool {
	return truthy(byValue(f, "HERMES_GATEWAY_BUSY_ACK_ENABLED", "display.busy_ack_enabled", true))
}

// busyMode is what Hermes does with such a message.
func busyMode(f *setup.Files) string {
	return strings.ToLower(fmt.Sprint(byValue(f, "HERMES_GATEWAY_BUSY_INPUT_MODE", "display.busy_input_mode", "interrupt")))
}

// Steers reports whether the gateway with this id is the one of this Hermes, and adds a message that comes during a turn to the
// turn: its settings say so, and it has read them.
func (h *Hermes) Steers(id string) bool {
	f := h.Files
	if f == nil || f.Broken != nil || relayOf(f).id != id || busyAck(f) || busyMode(f) != "steer" {
		return false
	}
	return h.Process == nil || h.Process.Since.IsZero() || !f.Changed.After(h.Process.Since.Add(startsWithin))
}

// startsWithin is how long after its start a gateway has surely read its settings; the start is known about so exactly.
const startsWithin = 2 * time.Second
