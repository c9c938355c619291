package setup

import (
	_ "embed"
	"path/filepath"
)

// The name-only plug-in: it gives Hermes 0.22 the platform's name, without which /sethome and "deliver: mobile" are refused.
// The relay carries the traffic.
const (
	pluginName     = "mobile-platform"
	pluginPlatform = "mobile"
	// relayPlatform is the name without the plug-in. Jobs that were made in a chat before it report by that name, and without it
	// they fail without a word.
	relayPlatform   = "relay"
	pluginPlatforms = pluginPlatform + "," + relayPlatform
)

var (
	//go:embed plugin/plugin.yaml
	pluginManifest []byte
	//go:embed plugin/init.py
	pluginCode []byte
)

// planPlugin adds the plug-in's two files. What is there already is replaced, and comes back with an undo.
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
