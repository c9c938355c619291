package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"hermes-mobile/internal/config"
	"hermes-mobile/internal/server"
)

func serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the server: devices and the Hermes gateway connect to it",
		Long: `Run the server. Every setting is a flag, an environment variable, or a key of hermes-mobile.yaml in the data folder;
MOBILE_* settings are also read from the .env of the Hermes home. Flags win over the environment, the environment over files.
Secrets have no flag: they would show in the list of processes.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return serve(cmd) },
	}
	for _, k := range config.Keys() {
		if name := k.Flag(); name != "" && name != "data" {
			cmd.Flags().String(name, "", fmt.Sprintf("%s (%s)", k.Help, k.Env()))
		}
	}
	return cmd
}

func serve(cmd *cobra.Command) error {
	cfg, warnings, err := settings(cmd)
	for _, w := range warnings {
		fmt.Fprintln(cmd.ErrOrStderr(), "warning:", w)
	}
	if err != nil {
		return err
	}
	log := logger(cmd.ErrOrStderr(), cfg)
	ctx, stop := context.WithCancel(cmd.Context())
	defer stop()
	s, err := server.New(ctx, cfg, version, log)
	if err != nil {
		return err
	}
	s.Banner(cmd.OutOrStdout())

	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	defer signal.Stop(reload)
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	for {
		select {
		case err := <-done:
			return err
		case <-reload:
			next, _, err := settings(cmd)
			if err == nil {
				err = s.Reload(next)
			}
			if err != nil {
				log.Error("the settings were not read again", "error", err)
			}
		}
	}
}

func logger(w io.Writer, cfg *config.Config) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(cfg.LogLevel)) // checked by config
	o := &slog.HandlerOptions{Level: level}
	if cfg.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}
