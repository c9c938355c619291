package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"hermes-mobile/internal/config"
	"hermes-mobile/internal/server"
	"hermes-mobile/internal/shellquote"
)

func serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:        "serve",
		SuggestFor: []string{"start", "run", "server", "up"},
		Short:      "Run the server that devices and the Hermes gateway connect to",
		Long: `Run the server. You can set each setting as a flag, as an environment variable, or as a key in
hermes-mobile.yaml in the data folder. The server also reads MOBILE_* variables from .env in the Hermes
home. Flags override the environment, and the environment overrides files.

On SIGHUP, the server reloads tokens and the certificate, and closes connections whose token is gone.
SIGTERM and Ctrl-C stop the server. Devices reconnect on their own when it is back.

` + flagless(),
		Example: `  hermes-mobile serve
  hermes-mobile serve --agent demo --port 9000
  hermes-mobile serve --public-url https://agent.example.com`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error { return serve(cmd) },
	}
	cmd.Flags().SortFlags = false // keep the order of the documentation
	for _, k := range config.Keys() {
		name := k.Flag()
		if name == "" || name == "data" {
			continue
		}
		help := fmt.Sprintf("%s (%s", k.Help, k.Env())
		if k.Default != "" {
			help += ", default " + k.Default
		}
		cmd.Flags().Var(&setting{kind: placeholder(k)}, name, help+")")
		if k.Kind == config.File {
			_ = cmd.MarkFlagFilename(name)
		}
		if k.Kind == config.YesNo {
			cmd.Flags().Lookup(name).NoOptDefVal = "true"
		}
		if len(k.Choices) > 0 {
			_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(k.Choices, cobra.ShellCompDirectiveNoFileComp))
		}
	}
	return cmd
}

// flagless lists the settings without a flag. A secret in a flag would show in the process list.
func flagless() string {
	var b strings.Builder
	b.WriteString("Settings without a flag:\n")
	for _, k := range config.Keys() {
		name := k.Env()
		if name == "" {
			name = k.YAML() + ":"
		}
		if k.Flag() == "" {
			help := strings.ReplaceAll(ansi.Wordwrap(k.Help, 75, ""), "\n", "\n"+strings.Repeat(" ", 25))
			fmt.Fprintf(&b, "  %-21s  %s\n", name, help)
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// setting is the value of a flag. Package config checks it together with all other settings.
type setting struct{ text, kind string }

func (s *setting) String() string     { return s.text }
func (s *setting) Set(v string) error { s.text = v; return nil }
func (s *setting) Type() string       { return s.kind }

// placeholder names the value in the help of a flag.
func placeholder(k config.Key) string {
	switch k.Kind {
	case config.YesNo:
		return "bool" // pflag shows it as a flag without a value
	case config.Number:
		return "number"
	case config.List:
		return "list"
	case config.URL:
		return "url"
	case config.File:
		return "file"
	case config.Choice:
		if !strings.Contains(k.Help, k.Choices[0]) {
			return strings.Join(k.Choices, "|")
		}
		return "name"
	}
	return "text"
}

func serve(cmd *cobra.Command) error {
	cfg, warnings, err := settings(cmd)
	for _, w := range warnings {
		fmt.Fprintln(cmd.ErrOrStderr(), "warning:", w)
	}
	if err != nil {
		return err
	}
	outliveReaders()
	log := logger(cmd.ErrOrStderr(), cfg)
	server.LimitMemory(os.DirFS("/"), log)
	ctx, stop := context.WithCancel(cmd.Context())
	defer stop()
	s, err := server.New(ctx, cfg, version, log)
	if err != nil {
		return err
	}
	attached := hasTerminal() && !signal.Ignored(syscall.SIGHUP) // ignored if started with nohup, to outlive its window
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	defer signal.Stop(reload)
	s.Banner(stdout(cmd), program(cmd), onScreen(stdout(cmd))) // scripts send signals once they have read it
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	for {
		select {
		case err := <-done:
			return err
		case <-reload:
			if attached && !hasTerminal() { // the terminal window was closed
				stop()
				continue
			}
			next, _, err := settings(cmd)
			if err == nil {
				err = s.Reload(next)
			}
			if err != nil {
				log.Error("reload failed", "err", err)
			}
		}
	}
}

// onScreen reports whether w is a terminal, whose output nothing stores.
func onScreen(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(f.Fd())
}

// hasTerminal reports whether this process has a controlling terminal. It loses it when the window closes.
func hasTerminal() bool {
	f, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return false
	}
	_ = f.Close()
	return true
}

// program returns the start of other command lines: this program, with the same data folder.
func program(cmd *cobra.Command) string {
	name := os.Args[0]
	if found, err := exec.LookPath(filepath.Base(name)); err == nil && filepath.IsAbs(name) && found == name {
		name = filepath.Base(name)
	}
	data := os.Getenv("MOBILE_DATA") // the other terminal may not have it
	if f := cmd.Flags().Lookup("data"); f != nil && f.Changed {
		data = f.Value.String()
	}
	if data != "" {
		name += " --data " + shellquote.Word(data)
	}
	if f := cmd.Flags().Lookup("config"); f != nil && f.Changed {
		name += " --config " + shellquote.Word(f.Value.String())
	}
	return name
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
