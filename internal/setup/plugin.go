package setup

import (
	_ "embed"
	"path/filepath"
)

// The name-only plug-in gives Hermes 0.22 the platform's name. Without the name, Hermes rejects
// /sethome and "deliver: mobile". The traffic goes through the relay.
const (
	pluginName     = "mobile-platform"
	pluginPlatform = "mobile"
	// relayPlatform is the name without the plug-in. Jobs that a chat created before the plug-in
	// report to that name. Without the name, they fail silently.
	relayPlatform   = "relay"
	pluginPlatforms = pluginPlatform + "," + relayPlatform
)

var (
	//go:embed plugin/plugin.yaml
	pluginManifest []byte
	//go:embed plugin/init.py
	pluginCode []byte
)

// planPlugin adds the plug-in's two files. It replaces existing files, which an undo restores.
func (p *Plan) planPlugin() error {
	for _, part := range []struct {
		name string
		text []byte
	}{{"plugin.yaml", pluginManifest}, {"__init__.py", pluginCode}} {
		f, err := readFile(filepath.Join(p.Home.Path, "plugins", pluginName, part.name), 0o644)
		if err != nil {
			return err
		}
		f.After = part.text
		p.Files = append(p.Files, f)
	}
	return nil
}

func (p *Plan) pluginThere() bool {
	f, err := readFile(filepath.Join(p.Home.Path, "plugins", pluginName, "__init__.py"), 0)
	return err == nil && f.Exists
}
