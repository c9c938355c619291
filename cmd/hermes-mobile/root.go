package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"hermes-mobile/internal/config"
	"hermes-mobile/internal/server"
)

// version is set when a release is built: -ldflags "-X main.version=…".
var version = "0.1.0"

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "hermes-mobile",
		Short: "Reach your own Hermes Agent from a phone, a browser, a terminal or any app",
		Long: `hermes-mobile is the server that phones connect to, and the Hermes gateway dials out to.
Start it with "hermes-mobile serve"; talk to it from another terminal with "hermes-mobile chat".`,
		SilenceUsage: true, SilenceErrors: true,
	}
	cmd.PersistentFlags().String("data", "", "folder of the server's state (MOBILE_DATA; default ~/.local/share/hermes-mobile)")
	cmd.PersistentFlags().String("config", "", "settings file (default hermes-mobile.yaml in the data folder)")
	cmd.AddCommand(serveCommand(), pairCommand(), pairingCommand(), devicesCommand(), tokenCommand(), deliverCommand(), chatCommand(),
		statusCommand(), backupCommand(), versionCommand())
	return cmd
}

// settings reads the settings with the flags the person gave. The warnings are for commands that care.
func settings(cmd *cobra.Command) (*config.Config, []config.Warning, error) {
	src := config.FromOS()
	src.Flags = map[string]string{}
	for _, k := range config.Keys() {
		name := k.Flag()
		if name == "" {
			continue
		}
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed {
			src.Flags[name] = f.Value.String()
		}
	}
	if f := cmd.Flags().Lookup("config"); f != nil && f.Changed {
		src.ConfigFile = f.Value.String()
	}
	return config.Load(src)
}

// running returns a client of the server that runs on the data folder.
func running(cmd *cobra.Command) (*server.Client, error) {
	cfg, _, err := settings(cmd)
	if err != nil {
		return nil, err
	}
	return server.NewClient(cfg.Data), nil
}

// absolute makes a path mean the same to the server as to the person.
func absolute(path string) (string, error) {
	p, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return p, nil
}

// hostname names this machine for display.
func hostname() string {
	name, err := os.Hostname()
	if err != nil || name == "" {
		return "terminal"
	}
	return name
}

func get[T any](ctx context.Context, cmd *cobra.Command, path string) (T, error) {
	var out T
	c, err := running(cmd)
	if err != nil {
		return out, err
	}
	return out, c.Get(ctx, path, &out)
}

func post[T any](ctx context.Context, cmd *cobra.Command, path string, in server.Command) (T, error) {
	var out T
	c, err := running(cmd)
	if err != nil {
		return out, err
	}
	return out, c.Post(ctx, path, in, &out)
}
