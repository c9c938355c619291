package setup

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"hermes-mobile/internal/asowner"
)

// The public plugin is a WebSocket platform inside the gateway. It has the same name, port, and
// path as this server, and registers the same platform as our plug-in.
const (
	publicName = "hermes-mobile"
	publicPort = 8787
	publicOwn  = "MOBILE_PORT"
)

// Limits of the search for the public plugin.
const (
	maxManifest = 64 << 10 // bytes of a manifest
	maxPlugins  = 500      // folders
)

// PublicPlugin is the public plugin hermes-mobile in a Hermes home.
type PublicPlugin struct {
	Folder  string
	Enabled bool // in config.yaml
	Port    int  // the port that it listens on
}

// PublicPlugin finds the public plugin: a folder whose manifest has its name, or a folder of that
// name.
func (f *Files) PublicPlugin() (p PublicPlugin, there bool) {
	root := filepath.Join(f.home, "plugins")
	var entries []os.DirEntry
	_ = asowner.Do(root, func() (err error) { // most homes have no plug-ins
		entries, err = os.ReadDir(root)
		return err
	})
	name := ""
	for _, e := range entries[:min(len(entries), maxPlugins)] {
		folder := filepath.Join(root, e.Name())
		name = manifestName(folder)
		if name == "" && e.Name() == publicName && asowner.Do(folder, func() error { _, err := os.Stat(filepath.Join(folder, "__init__.py")); return err }) == nil {
			name = publicName // its manifest is unreadable
		}
		if strings.ReplaceAll(name, "_", "-") == publicName {
			p.Folder, there = folder, true
			break
		}
	}
	if !there {
		return p, false
	}
	p.Enabled = f.Has("plugins.enabled", name) || f.Has("plugins.enabled", filepath.Base(p.Folder))
	p.Port = publicPort
	text, _ := f.Env(publicOwn)
	if v, set := f.Value("platforms." + pluginPlatform + ".extra.port"); text == "" && set {
		text = fmt.Sprint(v)
	}
	if n, err := strconv.Atoi(strings.TrimSpace(text)); err == nil && n > 0 && n < 1<<16 {
		p.Port = n
	}
	return p, true
}

// manifestName returns the name in a plug-in's manifest, or an empty string.
func manifestName(folder string) string {
	for _, file := range []string{"plugin.yaml", "plugin.yml"} {
		text, _, err := asowner.ReadFile(filepath.Join(folder, file), maxManifest)
		if err != nil {
			continue
		}
		d, err := parse(text)
		if err != nil {
			continue
		}
		v, _ := lookup(d.value, []string{"name"})
		name, _ := v.(string)
		return strings.TrimSpace(name)
	}
	return ""
}
