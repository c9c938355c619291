package setup

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"hermes-mobile/internal/asowner"
)

// The public plugin: a WebSocket platform within the gateway itself that has our name, port and path, and registers the platform
// that ours registers, too.
const (
	publicName = "hermes-mobile"
	publicPort = 8787
	publicOwn  = "MOBILE_PORT"
)

// maxManifest bounds what is read of a plugin's manifest, and maxPlugins how many are looked at.
const (
	maxManifest = 64 << 10
	maxPlugins  = 500
)

// PublicPlugin is the public plugin hermes-mobile in a Hermes home.
type PublicPlugin struct {
	Folder  string
	Enabled bool // in config.yaml
	Port    int  // that it listens on
}

// PublicPlugin looks for the public plugin: a folder of its name, or one whose manifest has it.
func (f *Files) PublicPlugin() (p PublicPlugin, there bool) {
	root := filepath.Join(f.home, "plugins")
	var entries []os.DirEntry
	_ = asowner.Do(root, func() (err error) { // most homes have none
		entries, err = os.ReadDir(root)
		return err
	})
	name := ""
	for _, e := range entries[:min(len(entries), maxPlugins)] {
		folder := filepath.Join(root, e.Name())
		name = manifestName(folder)
		if name == "" && e.Name() == publicName && asowner.Do(folder, func() error { _, err := os.Stat(filepath.Join(folder, "__init__.py")); return err }) == nil {
			name = publicName // a manifest that cannot be read
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

// manifestName is the name that a plugin's manifest gives it, empty where there is none.
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
