package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"hermes-mobile/internal/config"
	"hermes-mobile/internal/server"
	"hermes-mobile/internal/shellquote"
)

// version is set when a release is built: -ldflags "-X main.version=…".
var version = "0.1.0"

func root() *cobra.Command {
	cobra.EnableCommandSorting = false // in the order in which a newcomer needs them
	cmd := group(&cobra.Command{
		Use:   "hermes-mobile",
		Short: "Reach your own Hermes Agent from a phone, a browser, a terminal or any app",
		Long: `hermes-mobile is the server that phones connect to, and the Hermes gateway dials out to.
Start it with "hermes-mobile serve"; talk to it from another terminal with "hermes-mobile chat".

The other commands speak to the server that runs on the same data folder. They end with status 0 when it is done, 2 when
the command line is not understood, and 1 when something else went wrong.`,
		Example: `  hermes-mobile serve          # in one terminal
  hermes-mobile pair           # in another: a QR code for the phone
  hermes-mobile status`,
		Version:      version,
		SilenceUsage: true, SilenceErrors: true,
	}, serveCommand(), appCommand(), setupCommand(), pairCommand(), chatCommand(), statusCommand(), adminCommand(), doctorCommand(), devicesCommand(), pairingCommand(), tokenCommand(), usersCommand(),
		homeCommand(), deliverCommand(), deliveriesCommand(), auditCommand(), backupCommand(), versionCommand())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	strict(cmd)
	cmd.SetUsageTemplate(usageTemplate)
	cmd.SetVersionTemplate("hermes-mobile {{.Version}}\n")
	cmd.SetFlagErrorFunc(flagMisuse)
	cmd.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	f := cmd.PersistentFlags()
	f.String("data", "", "`folder` of the server's state (MOBILE_DATA, default ~/.local/share/hermes-mobile)")
	f.String("config", "", "`file` of settings (default hermes-mobile.yaml in the data folder)")
	_ = cmd.MarkPersistentFlagDirname("data")
	_ = cmd.MarkPersistentFlagFilename("config", "yaml", "yml")
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
	cfg, warnings, err := config.Load(src)
	if err != nil {
		return nil, warnings, err
	}
	// The path is shown, and typed again from another folder.
	if cfg.Data, err = filepath.Abs(cfg.Data); err != nil {
		return nil, warnings, err
	}
	return cfg, warnings, nil
}

// running returns a client of the server that runs on the data folder.
func running(cmd *cobra.Command) (*server.Client, error) {
	cfg, _, err := settings(cmd)
	if err != nil {
		return nil, err
	}
	return server.NewClient(cfg.Data), nil
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
	return out, notRunning(cmd, c.Get(ctx, path, &out))
}

func post[T any](ctx context.Context, cmd *cobra.Command, path string, in server.Command) (T, error) {
	var out T
	c, err := running(cmd)
	if err != nil {
		return out, err
	}
	return out, notRunning(cmd, c.Post(ctx, path, in, &out))
}

// notRunning adds what to do where no server answers.
func notRunning(cmd *cobra.Command, err error) error {
	if !errors.Is(err, server.ErrNotRunning) {
		return err
	}
	start := "hermes-mobile serve"
	if f := cmd.Flags().Lookup("data"); f != nil && f.Changed {
		start += " --data " + shellquote.Word(f.Value.String())
	}
	return hint(err, "start it with: "+start+" (or name the folder of the one that runs with --data)")
}
