package setup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"hermes-mobile/internal/asowner"
)

// Files is a read-only view of the settings of a Hermes home.
type Files struct {
	// Broken is why config.yaml cannot be read; nothing of it is known then.
	Broken error
	// Changed is when one of the two files was written last.
	Changed time.Time
	// EnvPath and ConfigPath are where they are, or would be.
	EnvPath, ConfigPath string
	// EnvMode are the rights of .env, where it is there and holds the secret of a gateway; 0 otherwise.
	EnvMode fs.FileMode

	document  *document // nil: it is broken
	config    any
	env       []byte
	inherited map[string]string
	home      string
}

// ReadFiles reads config.yaml and .env of a Hermes home. One that is missing is empty.
func ReadFiles(home Home) (*Files, error) {
	f := &Files{home: home.Path, ConfigPath: filepath.Join(home.Path, configFile), EnvPath: filepath.Join(home.Path, envFile)}
	config, err := readFile(f.ConfigPath, 0)
	if err != nil {
		return nil, err
	}
	env, err := readFile(f.EnvPath, 0)
	if err != nil {
		return nil, err
	}
	f.env = env.Before
	if _, secret := getenv(env.Before, envSecret); secret && env.Exists && runtime.GOOS != "windows" {
		f.EnvMode = env.Mode
	}
	d, err := parse(config.Before)
	if err != nil {
		f.Broken = err
	} else {
		f.config, f.document = d.value, d
	}
	for _, path := range []string{f.ConfigPath, f.EnvPath} {
		_ = asowner.Do(path, func() error { // one that is not there was not changed
			info, err := os.Stat(path)
			if err == nil && info.ModTime().After(f.Changed) {
				f.Changed = info.ModTime()
			}
			return err
		})
	}
	return f, nil
}

// Refused is why the Hermes of a version does not read config.yaml, also where it is valid YAML otherwise; nil: it does.
func (f *Files) Refused(v Version) error {
	if f.document == nil {
		return f.Broken
	}
	return f.document.readable(v, false)
}

// TooMuch reports whether config.yaml is too much to be looked at here, which says nothing of whether Hermes reads it.
func (f *Files) TooMuch() bool {
	b := (*Broken)(nil)
	return errors.As(f.Broken, &b) && b.Huge
}

// Env returns a variable of .env, or one that the gateway was started with; an empty one counts as not set.
func (f *Files) Env(name string) (string, bool) {
	if v, ok := getenv(f.env, name); ok {
		return v, true
	}
	v := f.inherited[name]
	return v, v != ""
}

// EnvWhere says where a variable that Env returns stands.
func (f *Files) EnvWhere(name string) string {
	if _, ok := getenv(f.env, name); ok {
		return f.EnvPath
	}
	return "the environment of the gateway"
}

// inheritable are the variables of a gateway's process that matter here.
var inheritable = []string{"GATEWAY_RELAY_", "HERMES_GATEWAY_", "API_SERVER_", publicOwn}

// Inherit takes over what a gateway was started with, by a service or a container, where that can be seen. What .env says
// counts more, as it does to Hermes.
func (f *Files) Inherit(p Process) {
	f.inherited = map[string]string{}
	for _, line := range environ(p.PID) {
		name, value, _ := strings.Cut(line, "=")
		if slices.ContainsFunc(inheritable, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			f.inherited[name] = strings.TrimSpace(value)
		}
	}
}

// Value returns what stands in config.yaml at a path such as gateway.relay_url.
func (f *Files) Value(path string) (any, bool) { return lookup(f.config, strings.Split(path, ".")) }

// Text is Value for a text; "" where there is none.
func (f *Files) Text(path string) string {
	v, _ := f.Value(path)
	s, _ := v.(string)
	return strings.TrimSpace(s)
}

// Keys returns the keys of the map at a path.
func (f *Files) Keys(path string) []string {
	v, _ := f.Value(path)
	return keysOf(v)
}

// Has reports whether a list at a path has an item.
func (f *Files) Has(path, item string) bool {
	v, _ := f.Value(path)
	list, _ := v.([]any)
	for _, x := range list {
		if x == any(item) {
			return true
		}
	}
	return false
}

// Plugin says how much of the plug-in that setup offers is there.
type Plugin struct {
	Name     string // of its folder, and in plugins.enabled
	Platform string // that it registers
	Manifest bool   // plugin.yaml
	Code     bool   // __init__.py
	Enabled  bool   // in config.yaml
	Named    bool   // GATEWAY_RELAY_PLATFORMS names its platform
	Old      bool   // and that of the time before it, by which older jobs report
}

// Plugin looks for the plug-in.
func (f *Files) Plugin() Plugin {
	there := func(file string) bool {
		path := filepath.Join(f.home, "plugins", pluginName, file)
		return asowner.Do(path, func() error {
			info, err := os.Stat(path)
			if err == nil && !info.Mode().IsRegular() {
				err = asowner.ErrNotRegular
			}
			return err
		}) == nil
	}
	p := Plugin{Name: pluginName, Platform: pluginPlatform, Manifest: there("plugin.yaml"), Code: there("__init__.py"),
		Enabled: f.Has("plugins.enabled", pluginName)}
	names, _ := f.Env(envPlatforms)
	p.Named, p.Old = hasPlatform(names, pluginPlatform), hasPlatform(names, relayPlatform)
	return p
}

// HideUser keeps a password in an address from being shown.
func HideUser(url string) string { return hideUser(url) }
