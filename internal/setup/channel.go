package setup

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// The places where Hermes looks for its home channel. It reads .env in each turn and before each job.
// Without the plugin it knows the connection only as "relay", for which Hermes 0.22 and newer rejects
// /sethome. With the plugin, the variable decides where jobs go, and config.yaml decides what the
// model knows and where notices go. Hermes' own /sethome writes both.
const (
	envRelayHome  = "RELAY_HOME_CHANNEL"
	envPluginHome = "MOBILE_HOME_CHANNEL"
	channelPath   = "platforms." + pluginPlatform + ".home_channel"
)

// stepChannel marks a run that wrote the home channel, which can be reverted alone.
const stepChannel = "home channel"

// Channel is the home channel in the files of a Hermes home.
type Channel struct {
	// Gateway is the id of this Hermes' gateway. It is empty if the home is not set up.
	Gateway string
	// Plugin reports that the plugin is installed and the connection has the platform's name.
	Plugin bool
	// Variable is the variable that Hermes reads, and Device is its value.
	Variable, Device string
}

// ReadChannel reads the home channel of a Hermes home. named reports that its gateway has shown that it knows
// the platform's name.
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

// NewChannelPlan plans how to make a user's device the home channel of Hermes.
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

// channelWants returns the values for config.yaml. Ids need no escapes in quotes.
func channelWants(device, user string) (list []want) {
	for _, v := range [][2]string{{"platform", pluginPlatform}, {"chat_id", device}, {"name", device}, {"user_id", user}} {
		list = append(list, want{path: strings.Split(channelPath+"."+v[0], "."), text: `"` + v[1] + `"`})
	}
	return list
}

// WriteChannel reverts an earlier home channel and writes a new plan. So the undo record always holds the
// state before the first one.
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

// UndoChannel reverts what WriteChannel wrote, and nothing else.
func UndoChannel(data, home string) ([]Undone, error) { return undo(data, home, stepChannel) }

// ChannelByHand returns what to write on the machine of another Hermes. relay and plugin select the forms that
// may be right there.
func ChannelByHand(device, user string, relay, plugin bool) string {
	var parts []string
	if relay {
		parts = append(parts, "  add to ~/.hermes/.env:\n    "+envRelayHome+"="+device)
	}
	if plugin {
		parts = append(parts, fmt.Sprintf("  add to ~/.hermes/.env:\n    %s=%s\n  and to ~/.hermes/config.yaml (merge with existing keys):\n"+
			"    platforms: {%s: {home_channel: {platform: %s, chat_id: %q, name: %q, user_id: %q}}}",
			envPluginHome, device, pluginPlatform, pluginPlatform, device, device, user))
	}
	return strings.Join(parts, "\nor, if it has the plugin (GATEWAY_RELAY_PLATFORMS="+pluginPlatforms+"):\n")
}
