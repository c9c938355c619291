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

// version is set by the release build: -ldflags "-X main.version=…".
var version = "0.1.0"

func root() *cobra.Command {
	cobra.EnableCommandSorting = false // list commands in the order a newcomer needs them
	cmd := group(&cobra.Command{
		Use:   "hermes-mobile",
		Short: "Chat with your own Hermes Agent from a phone, a browser, a terminal, or any app",
		Long: `hermes-mobile is a server between your devices and your own Hermes Agent. Phones connect to it,
and the Hermes gateway dials in to it. Start it with "hermes-mobile serve", then chat from another
terminal with "hermes-mobile chat".

Most other commands talk to the running server that uses the same data folder. The exit status is 0
on success, 1 on failure, and 2 if the command line is invalid.`,
		Example: `  hermes-mobile serve     # start the server in one terminal
  hermes-mobile pair      # in another terminal, show a QR code for your phone
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
	f.String("data", "", "data `folder` of the server (MOBILE_DATA, default ~/.local/share/hermes-mobile)")
	f.String("config", "", "settings `file` (default hermes-mobile.yaml in the data folder)")
	_ = cmd.MarkPersistentFlagDirname("data")
	_ = cmd.MarkPersistentFlagFilename("config", "yaml", "yml")
	return cmd
}

// settings loads the settings, including the flags of this command line. Most commands ignore the
// warnings.
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
	// Commands print the path, and the user may copy it into a shell in another folder.
	if cfg.Data, err = filepath.Abs(cfg.Data); err != nil {
		return nil, warnings, err
	}
	return cfg, warnings, nil
}

// running returns a client for the server that uses the data folder.
func running(cmd *cobra.Command) (*server.Client, error) {
	cfg, _, err := settings(cmd)
	if err != nil {
		return nil, err
	}
	return server.NewClient(cfg.Data), nil
}

// hostname returns the display name of this machine.
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

// notRunning adds a hint to the error that no server is running.
func notRunning(cmd *cobra.Command, err error) error {
	if !errors.Is(err, server.ErrNotRunning) {
		return err
	}
	start := "hermes-mobile serve"
	if f := cmd.Flags().Lookup("data"); f != nil && f.Changed {
		start += " --data " + shellquote.Word(f.Value.String())
	}
	return hint(err, "start it with: "+start+" (if it uses another data folder, pass --data)")
}
