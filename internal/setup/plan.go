package setup

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"hermes-mobile/internal/asowner"
	"hermes-mobile/internal/plaintext"
)

// Options say what Hermes is to be told.
type Options struct {
	Home    Home
	Version Version
	URL     string // of the server, as the gateway reaches it
	// ID and Secret let the gateway in. Without a secret the plan is for showing only.
	ID, Secret string
	// Accepted are further pairs that the server lets in: one that .env has already stays.
	Accepted map[string]string
	Replace  bool // the settings of another connector
	Plugin   bool
	// Apart is for a server with an account of its own; nil: it has that of its owner.
	Apart *Apart
}

// File is one file of the plan.
type File struct {
	Path    string
	Exists  bool
	Before  []byte
	After   []byte
	Mode    fs.FileMode
	Changes []Change
}

func (f *File) changed() bool {
	return !f.Exists && len(f.After) > 0 || !bytes.Equal(f.Before, f.After)
}

// Plan is what is to be written, worked out and checked, and nothing written yet.
type Plan struct {
	Options
	Files []*File
	// Conflicts are settings of another connector, which need a yes of their own.
	Conflicts []string
	// Notes are for the owner to know.
	Notes []string
	// ByHand is what could not be worked out.
	ByHand []*ByHand
	step   string // what kind of run it is, see step.Kind
}

// Names of Hermes' files and of the variables that are set.
const (
	configFile   = "config.yaml"
	envFile      = ".env"
	envURL       = "GATEWAY_RELAY_URL"
	envID        = "GATEWAY_RELAY_ID"
	envSecret    = "GATEWAY_RELAY_SECRET"
	envPlatforms = "GATEWAY_RELAY_PLATFORMS"
)

// ErrPlugin: the plug-in would break this version.
var ErrPlugin = errors.New("the plug-in needs Hermes 0.22 or newer: older ones look up the chat's connection by the plug-in's name, find none, and then approvals, questions, streaming and scheduled jobs fail")

// wants are the values that config.yaml needs, in the order in which they are written. The relay stands in both places: by the
// first alone the gateway does not connect, and unlike the environment variable they leave other messengers on.
func wants(v Version, url string, plugin bool) []want {
	url = strings.TrimRight(url, "/")
	path := func(key string) []string { return strings.Split(key, ".") }
	list := []want{
		{path: path("gateway.relay_url"), text: `"` + url + `"`, also: []string{url + "/"}},
		{path: path("platforms.relay.enabled"), text: "true"},
		{path: path("platforms.relay.extra.relay_url"), text: `"` + url + `"`, also: []string{url + "/"}},
	}
	if v.Streams() {
		list = append(list, want{path: path("streaming.enabled"), text: "true"})
	}
	list = append(list,
		want{path: path("display.busy_ack_enabled"), text: "false"}, // its ack makes the gateway deaf for half a minute
		want{path: path("display.busy_input_mode"), text: "steer"},  // our own queue holds what is to wait
		want{path: path("display.platforms.relay.tool_progress"), text: `"off"`, also: []string{"false"}})
	if plugin {
		list = append(list,
			want{path: path("display.platforms." + pluginPlatform + ".tool_progress"), text: `"off"`, also: []string{"false"}},
			want{path: path("plugins.enabled"), text: pluginName, item: true})
	}
	return list
}

// NewPlan works out what has to be written. An error means that nothing can be.
func NewPlan(o Options) (*Plan, error) {
	if o.Plugin && !o.Version.Plugins() {
		if o.Version.known() {
			return nil, fmt.Errorf("%w (this is %s)", ErrPlugin, o.Version)
		}
		return nil, fmt.Errorf("%w; the version of this one is unknown, name it with --hermes-version", ErrPlugin)
	}
	p := &Plan{Options: o}
	env, config, err := readBoth(o.Home)
	if err != nil {
		return nil, err
	}
	p.Files = []*File{env, config} // the secret first: a gateway that restarts in between has the old address
	if err := p.planConfig(config); err != nil {
		return nil, err
	}
	if err := p.planEnv(env); err != nil {
		return nil, err
	}
	if o.Plugin {
		if err := p.planPlugin(); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// maxFile bounds what is read of a file of Hermes.
const maxFile = 8 << 20

// readFile reads a file for a plan; mode is for one that is not there.
func readFile(path string, mode fs.FileMode) (*File, error) {
	f := &File{Path: path, Mode: mode}
	text, info, err := asowner.ReadFile(path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, err
	}
	if _, err := plaintext.Trim(text); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f.Exists, f.Before, f.After, f.Mode = true, text, text, info.Mode().Perm()
	return f, nil
}

func (p *Plan) planConfig(f *File) error {
	before, err := parse(f.Before)
	if err != nil {
		return err
	}
	if err := before.readable(p.Version, true); err != nil {
		return err
	}
	list := wants(p.Version, p.URL, p.Plugin)
	for _, w := range list {
		old, _ := lookup(before.value, w.path)
		if s, ok := old.(string); ok && s != "" && w.path[len(w.path)-1] == "relay_url" && !before.has(w) {
			p.conflict("config.yaml: %s is %s, the address of another connector: a gateway has one, and would leave that one", w.key(), hideUser(s))
		}
	}
	if err := p.apply(f, list); err != nil {
		return err
	}
	if on, _ := lookup(before.value, []string{"streaming", "enabled"}); on == true && p.Version.known() && !p.Version.Streams() {
		p.note("config.yaml: streaming.enabled is on, and Hermes %s cannot stream over a relay: phones get a first fragment and then the rest; set it to false if no other messenger needs it", p.Version)
	}
	return nil
}

// apply sets values in config.yaml, and notes those that have to be set by hand.
func (p *Plan) apply(f *File, list []want) error {
	if strings.Count(string(f.After), "\n") > fewLines {
		d, err := parse(f.After)
		if err != nil {
			return err
		}
		if done, err := p.applyLong(d, f, list); done || err != nil {
			return err
		}
	}
	return p.applyEach(f, list)
}

// set gives a variable of .env a value.
func (f *File) set(name, value string) error {
	out, c, err := setenv(f.After, name, value)
	if err != nil {
		return err
	}
	if f.After = out; c != nil {
		f.Changes = append(f.Changes, *c)
	}
	return nil
}

func (p *Plan) planEnv(f *File) error {
	if old, ok := getenv(f.Before, envURL); ok {
		p.note(".env: %s is set, and moves to config.yaml: as a variable it makes Hermes 0.22 switch every other messenger (Telegram, …) off", envURL)
		if strings.TrimRight(old, "/") != strings.TrimRight(p.URL, "/") {
			p.conflict(".env: %s is %s, the address of another connector: a gateway has one, and would leave that one", envURL, hideUser(old))
		}
		f.After = unsetenv(f.After, envURL)
		f.Changes = append(f.Changes, Change{Key: envURL, Old: old})
	}
	id, hasID := getenv(f.Before, envID)
	secret, hasSecret := getenv(f.Before, envSecret)
	if known, ok := p.Accepted[id]; hasID && hasSecret && ok && known == secret {
		p.ID, p.Secret = id, secret
	}
	if hasID && id != p.ID || hasSecret && p.Secret != "" && secret != p.Secret {
		p.conflict(".env: %s and %s are set, and are not those that the server on this data folder lets in", envID, envSecret)
	}
	if err := f.set(envID, p.ID); err != nil {
		return err
	}
	if p.Secret != "" || !hasSecret {
		if err := f.set(envSecret, p.Secret); err != nil {
			return err
		}
	}
	names, hasNames := getenv(f.Before, envPlatforms)
	switch {
	case p.Plugin:
		if !hasPlatform(names, pluginPlatform) {
			p.note("with the plug-in Hermes knows the connection as %s as well as %s: each device's conversation begins anew in Hermes, its earlier session stays in the list, and an undo goes back to it", pluginPlatform, relayPlatform)
		}
		if !hasPlatform(names, pluginPlatform) || !hasPlatform(names, relayPlatform) {
			if err := f.set(envPlatforms, pluginPlatforms); err != nil {
				return err
			}
		}
	case hasNames && p.Version.Plugins() && hasPlatform(names, pluginPlatform) && !p.pluginThere():
		p.note(".env: %s=%s without the plug-in: scheduled jobs cannot be delivered; run this with --plugin, or take the line out", envPlatforms, names)
	}
	p.protect(f)
	return nil
}

// hasPlatform reports whether a list of platforms names one.
func hasPlatform(names, platform string) bool {
	for name := range strings.SplitSeq(names, ",") {
		if strings.TrimSpace(name) == platform {
			return true
		}
	}
	return false
}

// protect takes the rights of others off a .env that is written.
func (p *Plan) protect(f *File) {
	if f.changed() && f.Exists && f.Mode&0o077 != 0 {
		p.note(".env: others could read it: its mode becomes 600")
		f.Mode = 0o600
	}
}

func (p *Plan) note(format string, args ...any) {
	p.Notes = append(p.Notes, fmt.Sprintf(format, args...))
}

func (p *Plan) conflict(format string, args ...any) {
	p.Conflicts = append(p.Conflicts, fmt.Sprintf(format, args...))
}

// hideUser keeps a password in an address from being shown.
func hideUser(url string) string {
	if scheme, rest, ok := strings.Cut(url, "://"); ok {
		host, path, _ := strings.Cut(rest, "/")
		if i := strings.LastIndexByte(host, '@'); i >= 0 {
			return scheme + "://…@" + host[i+1:] + "/" + path
		}
	}
	return url
}

// Done reports whether there is nothing to write.
func (p *Plan) Done() bool {
	for _, f := range p.Files {
		if f.changed() {
			return false
		}
	}
	return len(p.ByHand) == 0 && p.Apart.Done()
}

// Restart is how the gateway is started again.
func (p *Plan) Restart() string {
	hermes := "hermes"
	if p.Home.Profile != "" {
		hermes += " -p " + p.Home.Profile
	}
	return fmt.Sprintf("%s gateway restart (or end it and start it again: %s gateway run)", hermes, hermes)
}
