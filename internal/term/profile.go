package term

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"hermes-mobile/device"
)

// profiler is what /profile needs of the device.
type profiler interface {
	Status() device.Status
	Profiles(ctx context.Context) ([]device.Profile, error)
	ChooseProfile(ctx context.Context, name string) error
}

// own reports whether a line is a command of ours here: where the agent has no profiles to choose from, /profile is the agent's.
func own(s string, d profiler) (command, bool) {
	c, ok := parseCommand(s)
	if ok && c.name == "profile" && !slices.Contains(d.Status().Capabilities.Call, "profiles.choose") {
		return command{}, false
	}
	return c, ok
}

// profile chooses a profile, or says which there are where none is named.
func profile(ctx context.Context, d profiler, name string) string {
	if name != "" {
		if err := d.ChooseProfile(ctx, name); err != nil {
			return fmt.Sprintf("%s was not chosen: %s", line(name), reason(err))
		}
		return "From now on you talk to the profile " + line(name) + "."
	}
	list, err := d.Profiles(ctx)
	if err != nil {
		return "The profiles cannot be listed: " + reason(err)
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
