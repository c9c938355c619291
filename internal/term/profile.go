package term

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"hermes-mobile/device"
)

// profiler is the part of a *device.Device that /profile uses.
type profiler interface {
	Status() device.Status
	Profiles(ctx context.Context) ([]device.Profile, error)
	ChooseProfile(ctx context.Context, name string) error
}

// own reports whether a line is a command of this program now. Without profiles to choose from,
// /profile goes to the agent.
func own(s string, d profiler) (command, bool) {
	c, ok := parseCommand(s)
	if ok && c.name == "profile" && !slices.Contains(d.Status().Capabilities.Call, "profiles.choose") {
		return command{}, false
	}
	return c, ok
}

// profile chooses a profile, or lists all of them when no name is given.
func profile(ctx context.Context, d profiler, name string) string {
	if name != "" {
		if err := d.ChooseProfile(ctx, name); err != nil {
			return fmt.Sprintf("Could not choose %s: %s", line(name), reason(err))
		}
		return "The conversation now uses the profile " + line(name) + "."
	}
	list, err := d.Profiles(ctx)
	if err != nil {
		return "Could not list the profiles: " + reason(err)
	}
	var names []string
	for _, p := range list {
		name := line(p.Name)
		if p.Current {
			name += " (in use)"
		}
		names = append(names, name)
	}
	return "Profiles: " + strings.Join(names, ", ") + ". Choose one with /profile NAME."
}
