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
	// Broken is the error of an unreadable config.yaml. Its settings are unknown then.
	Broken error
	// Changed is the time of the last change to either file.
	Changed time.Time
	// EnvPath and ConfigPath are the paths of the files, which may not exist yet.
	EnvPath, ConfigPath string
	// EnvMode is the file mode of .env if it contains the secret of a gateway, otherwise 0.
	EnvMode fs.FileMode

	document  *document // nil: config.yaml is broken
	config    any
	env       []byte
	inherited map[string]string
	home      string
}

// ReadFiles reads config.yaml and .env of a Hermes home. It treats a missing file as an empty one.
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
		_ = asowner.Do(path, func() error { // a missing file has no time of change
			info, err := os.Stat(path)
			if err == nil && info.ModTime().After(f.Changed) {
				f.Changed = info.ModTime()
			}
			return err
		})
	}
	return f, nil
}

// Refused returns the reason why a version of Hermes rejects config.yaml, which may be valid YAML
// otherwise. It returns nil if Hermes accepts it.
func (f *Files) Refused(v Version) error {
	if f.document == nil {
		return f.Broken
	}
	return f.document.readable(v, false)
}

// TooMuch reports whether config.yaml is too large to parse here. Hermes may still accept it.
func (f *Files) TooMuch() bool {
	b := (*Broken)(nil)
	return errors.As(f.Broken, &b) && b.Huge
}

// Env returns a variable of .env, or else of the gateway's environment. An empty one counts as not
// set.
func (f *Files) Env(name string) (string, bool) {
	if v, ok := getenv(f.env, name); ok {
		return v, true
	}
	v := f.inherited[name]
	return v, v != ""
}

// EnvWhere returns the source of a variable that Env returns.
func (f *Files) EnvWhere(name string) string {
	if _, ok := getenv(f.env, name); ok {
		return f.EnvPath
	}
	return "the environment of the gateway"
}

// inheritable are the prefixes of the variables that Inherit reads.
var inheritable = []string{"GATEWAY_RELAY_", "HERMES_GATEWAY_", "API_SERVER_", publicOwn}

// Inherit reads the environment of a running gateway, which a service or a container may set, if
// this process may read it. A variable in .env takes precedence, as in Hermes.
func (f *Files) Inherit(p Process) {
	f.inherited = map[string]string{}
	for _, line := range environ(p.PID) {
		name, value, _ := strings.Cut(line, "=")
		if slices.ContainsFunc(inheritable, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			f.inherited[name] = strings.TrimSpace(value)
		}
	}
}

// Value returns the value in config.yaml at a path such as gateway.relay_url.
func (f *Files) Value(path string) (any, bool) { return lookup(f.config, strings.Split(path, ".")) }

// Text returns the text in config.yaml at a path, or an empty string.
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

// Has reports whether the list at a path has an item.
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

// Plugin reports which parts of setup's plug-in are installed.
type Plugin struct {
	Name     string // of its folder, and in plugins.enabled
	Platform string // the platform that it registers
	Manifest bool   // plugin.yaml exists
	Code     bool   // __init__.py exists
	Enabled  bool   // config.yaml enables it
	Named    bool   // GATEWAY_RELAY_PLATFORMS contains its platform
	Old      bool   // and the relay's earlier platform, to which older jobs report
}

// Plugin inspects the plug-in.
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

// HideUser returns an address without its user and password.
func HideUser(url string) string { return hideUser(url) }
