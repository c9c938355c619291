package doctor

import (
	"context"
	"errors"
	"io/fs"

	"hermes-mobile/internal/config"
	"hermes-mobile/internal/setup"
)

// LookHermes looks at the Hermes of this machine. Of its profiles the one counts that is told of a server, else the one that is
// active. version asks for its version, which may take long; nil leaves that out.
func LookHermes(ctx context.Context, cfg *config.Config, version func(ctx context.Context, home string) setup.Version) *Hermes {
	h := &Hermes{}
	homes, err := setup.Homes(cfg.HermesHome)
	if errors.Is(err, fs.ErrPermission) {
		h.Exists, h.Hidden, h.Home = true, true, setup.Home{Path: cfg.HermesHome}
		return h
	}
	if err != nil {
		return h
	}
	h.Exists = true
	h.Hidden = setup.Hidden(homes[0])
	for i, home := range homes {
		files, err := setup.ReadFiles(home)
		told := err == nil && files.Broken == nil && relayOf(files).complete()
		if i == 0 || told || home.Active && (h.Files == nil || !relayOf(h.Files).complete()) {
			h.Home, h.Files, h.Unread = home, files, err
		}
		if told {
			break
		}
	}
	if p, ok := setup.Running(h.Home); ok {
		h.Process = &p
		if h.Files != nil {
			h.Files.Inherit(p)
		}
	}
	if version != nil {
		h.Version = version(ctx, h.Home.Path)
	}
	return h
}

// AskVersion finds the version of the Hermes that belongs to a home, by running it where nothing else tells.
func AskVersion(ctx context.Context, home string) setup.Version {
	if v, path := setup.LookVersion(home); v.Known() || path == "" {
		return v
	}
	v, _ := setup.FindVersion(ctx, home)
	return v
}
