package setup

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// Where Hermes looks for its home channel; it reads .env anew in each turn and before each job. Without the plug-in it knows the connection as "relay" only, for which /sethome is
// refused from 0.22 on. With it the variable decides where a job goes, and config.yaml what is told to the model and to whom
// notices go; Hermes' own /sethome writes both.
const (
	envRelayHome  = "RELAY_HOME_CHANNEL"
	envPluginHome = "MOBILE_HOME_CHANNEL"
	channelPath   = "platforms." + pluginPlatform + ".home_channel"
)

// stepChannel marks a run that wrote the home channel, which can be taken back alone.
const stepChannel = "home channel"

// Channel is what a Hermes home says of its home channel.
type Channel struct {
	// Gateway is the id by which this Hermes dials a server; empty where it dials none.
	Gateway string
	// Plugin: it has the plug-in, and the connection has the platform's name.
	Plugin bool
	// Variable is where it looks, and Device what stands there.
	Variable, Device string
}

// ReadChannel reads what a Hermes home says. named: its gateway has proved that it knows the platform's name.
func ReadChannel(home Home, named bool) (Channel, error) {
	env, config, err := readBoth(home)
	if err != nil {
		return Channel{}, err
	}
	d, err := parse(config.Before)
	if err != nil {
		return Channel{}, err
	}
	c := Channel{Variable: envRelayHome}
	if c.Gateway, _ = getenv(env.Before, envID); c.Gateway == "" {
		if id, ok := lookup(d.value, []string{"gateway", "relay_id"}); ok {
			c.Gateway = fmt.Sprint(id)
		}
	}
	names, _ := getenv(env.Before, envPlatforms)
	first, _, _ := strings.Cut(names, ",")
	enabled := d.has(want{path: []string{"plugins", "enabled"}, text: pluginName, item: true})
	p := &Plan{Options: Options{Home: home}}
	if strings.TrimSpace(first) == pluginPlatform && (named || enabled && p.pluginThere()) {
		c.Plugin, c.Variable = true, envPluginHome
	}
	c.Device, _ = getenv(env.Before, c.Variable)
	if id, ok := lookup(d.value, strings.Split(channelPath+".chat_id", ".")); ok && c.Plugin && c.Device == "" {
		c.Device = fmt.Sprint(id)
	}
	return c, nil
}

func readBoth(home Home) (env, config *File, err error) {
	if env, err = readFile(filepath.Join(home.Path, envFile), 0o600); err != nil {
		return nil, nil, err
	}
	config, err = readFile(filepath.Join(home.Path, configFile), 0o600)
	return env, config, err
}

// NewChannelPlan works out how Hermes is told that a device of a user is its home channel.
func NewChannelPlan(home Home, c Channel, device, user string) (*Plan, error) {
	env, config, err := readBoth(home)
	if err != nil {
		return nil, err
	}
	d, err := parse(config.Before)
	if err == nil {
		err = d.readable(Version{}, false)
	}
	if err != nil {
		return nil, err
	}
	p := &Plan{Options: Options{Home: home}, step: stepChannel, Files: []*File{env}}
	if err := env.set(c.Variable, device); err != nil {
		return nil, err
	}
	p.protect(env)
	if c.Plugin {
		p.Files = append(p.Files, config)
		return p, p.apply(config, channelWants(device, user))
	}
	return p, nil
}

// channelWants are the values of config.yaml. Ids need no escapes in quotes.
func channelWants(device, user string) (list []want) {
	for _, v := range [][2]string{{"platform", pluginPlatform}, {"chat_id", device}, {"name", device}, {"user_id", user}} {
		list = append(list, want{path: strings.Split(channelPath+"."+v[0], "."), text: `"` + v[1] + `"`})
	}
	return list
}

// WriteChannel writes a plan of NewChannelPlan in the place of an earlier one, so that what is noted is how it was before the
// first of them.
func WriteChannel(data string, home Home, c Channel, device, user string, now time.Time) (p *Plan, backups []string, err error) {
	if p, err = NewChannelPlan(home, c, device, user); err != nil || len(p.ByHand) > 0 || p.Done() {
		return p, nil, err
	}
	if _, err := undo(data, home.Path, stepChannel); err != nil {
		return p, nil, err
	}
	fresh, err := NewChannelPlan(home, c, device, user)
	if err != nil {
		return p, nil, err
	}
	backups, err = fresh.Write(data, now)
	return p, backups, err
}

// UndoChannel takes back what WriteChannel wrote, and nothing else.
func UndoChannel(data, home string) ([]Undone, error) { return undo(data, home, stepChannel) }

// ChannelByHand says what to write on the machine of a Hermes elsewhere. relay and plugin say which of the two ways may be the
// right one there.
func ChannelByHand(device, user string, relay, plugin bool) string {
	var parts []string
	if relay {
		parts = append(parts, "  add to ~/.hermes/.env:\n    "+envRelayHome+"="+device)
	}
	if plugin {
		parts = append(parts, fmt.Sprintf("  add to ~/.hermes/.env:\n    %s=%s\n  and to ~/.hermes/config.yaml, or merge with the keys that are there:\n"+
			"    platforms: {%s: {home_channel: {platform: %s, chat_id: %q, name: %q, user_id: %q}}}",
			envPluginHome, device, pluginPlatform, pluginPlatform, device, device, user))
	}
	return strings.Join(parts, "\nor, where it has the plug-in (GATEWAY_RELAY_PLATFORMS="+pluginPlatforms+"):\n")
}
