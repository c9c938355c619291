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

// Options are the settings that Hermes gets.
type Options struct {
	Home    Home
	Version Version
	URL     string // of the server, as the gateway reaches it
	// ID and Secret are the gateway's credentials. Without a secret, the plan is only for display.
	ID, Secret string
	// Accepted are all pairs that the server accepts. If .env already has one of them, it stays.
	Accepted map[string]string
	Replace  bool // replace the settings of another connector
	Plugin   bool
	// Apart is for a server with its own account; nil: it uses its owner's account.
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

// Plan is a checked set of changes that are not written yet.
type Plan struct {
	Options
	Files []*File
	// Conflicts are settings of another connector, which need a separate consent.
	Conflicts []string
	// Notes are notes for the owner.
	Notes []string
	// ByHand are the keys that the owner must set.
	ByHand []*ByHand
	step   string // kind of the run, see step.Kind
}

// Names of Hermes' files and of the variables that setup writes.
const (
	configFile   = "config.yaml"
	envFile      = ".env"
	envURL       = "GATEWAY_RELAY_URL"
	envID        = "GATEWAY_RELAY_ID"
	envSecret    = "GATEWAY_RELAY_SECRET"
	envPlatforms = "GATEWAY_RELAY_PLATFORMS"
)

// ErrPlugin means that the plugin would break this version of Hermes.
var ErrPlugin = errors.New("the plugin requires Hermes 0.22 or newer: in older versions approvals, questions, streaming, and scheduled jobs would fail")

// wants returns the values that config.yaml needs, in the order of writing. The relay address is in two
// places: with the first alone the gateway does not connect. Unlike the environment variable, these keys leave
// other messengers enabled.
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
		want{path: path("display.busy_ack_enabled"), text: "false"}, // its ack stalls the gateway for half a minute
		want{path: path("display.busy_input_mode"), text: "steer"},  // the server's own queue holds messages back
		want{path: path("display.platforms.relay.tool_progress"), text: `"off"`, also: []string{"false"}})
	if plugin {
		list = append(list,
			want{path: path("display.platforms." + pluginPlatform + ".tool_progress"), text: `"off"`, also: []string{"false"}},
			want{path: path("plugins.enabled"), text: pluginName, item: true})
	}
	return list
}

// NewPlan plans the changes. It returns an error if setup can't write anything.
func NewPlan(o Options) (*Plan, error) {
	if o.Plugin && !o.Version.Plugins() {
		if o.Version.known() {
			return nil, fmt.Errorf("%w (this is %s)", ErrPlugin, o.Version)
		}
		return nil, fmt.Errorf("%w (the version is unknown: set it with --hermes-version)", ErrPlugin)
	}
	p := &Plan{Options: o}
	env, config, err := readBoth(o.Home)
	if err != nil {
		return nil, err
	}
	p.Files = []*File{env, config} // the secret comes first: a gateway that restarts in between still has the old address
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

// maxFile is the largest file of Hermes that setup reads.
const maxFile = 8 << 20

// readFile reads a file for a plan. mode is for a file that does not exist yet.
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
			p.conflict("config.yaml: %s is %s, the address of another connector, which the gateway would leave", w.key(), hideUser(s))
		}
	}
	if err := p.apply(f, list); err != nil {
		return err
	}
	if on, _ := lookup(before.value, []string{"streaming", "enabled"}); on == true && p.Version.known() && !p.Version.Streams() {
		p.note("config.yaml: streaming.enabled is on, but Hermes %s can't stream over a relay, so replies arrive in two pieces; set it to false if no other messenger needs it", p.Version)
	}
	return nil
}

// apply sets values in config.yaml, and collects those that the owner must set by hand.
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

// set sets a variable of .env.
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
		p.note(".env: setup moves %s to config.yaml, because the variable makes Hermes 0.22 disable every other messenger (Telegram, …)", envURL)
		if strings.TrimRight(old, "/") != strings.TrimRight(p.URL, "/") {
			p.conflict(".env: %s is %s, the address of another connector, which the gateway would leave", envURL, hideUser(old))
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
		p.conflict(".env: %s and %s are set to values that the server on this data folder does not accept", envID, envSecret)
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
			p.note("with the plugin, Hermes knows the connection as %s as well as %s: each device starts a new conversation in Hermes. The earlier session stays in the list, and an undo returns to it", pluginPlatform, relayPlatform)
		}
		if !hasPlatform(names, pluginPlatform) || !hasPlatform(names, relayPlatform) {
			if err := f.set(envPlatforms, pluginPlatforms); err != nil {
				return err
			}
		}
	case hasNames && p.Version.Plugins() && hasPlatform(names, pluginPlatform) && !p.pluginThere():
		p.note(".env: %s=%s is set without the plugin, so Hermes can't deliver scheduled jobs; run this with --plugin, or remove the line", envPlatforms, names)
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

// protect removes the permissions of other users from a .env that setup writes.
func (p *Plan) protect(f *File) {
	if f.changed() && f.Exists && f.Mode&0o077 != 0 {
		p.note(".env: other users could read it, so setup changes its mode to 600")
		f.Mode = 0o600
	}
}

func (p *Plan) note(format string, args ...any) {
	p.Notes = append(p.Notes, fmt.Sprintf(format, args...))
}

func (p *Plan) conflict(format string, args ...any) {
	p.Conflicts = append(p.Conflicts, fmt.Sprintf(format, args...))
}

// hideUser removes the user and the password from an address.
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

// Restart returns the command that restarts the gateway.
func (p *Plan) Restart() string {
	hermes := "hermes"
	if p.Home.Profile != "" {
		hermes += " -p " + p.Home.Profile
	}
	return fmt.Sprintf("%s gateway restart (or stop it and run: %s gateway run)", hermes, hermes)
}
