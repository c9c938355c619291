package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/spf13/cobra"

	xterm "github.com/charmbracelet/x/term"

	"hermes-mobile/device"
	"hermes-mobile/gateway"
	"hermes-mobile/internal/app"
	"hermes-mobile/internal/config"
	"hermes-mobile/internal/connect"
	"hermes-mobile/internal/term"
	"hermes-mobile/internal/vault"
)

// keyFDName is the environment variable with the file descriptor of the vault key.
const keyFDName = "HERMES_MOBILE_KEY_FD"

type appFlags struct {
	terminal, noBrowser, noKeyring, diagnostics, setup bool
	port, keyFD                                        int
}

func appCommand() *cobra.Command {
	f := appFlags{keyFD: -1}
	cmd := &cobra.Command{
		Use:   "app",
		Short: "Chat directly with your gateway from this machine, without a server",
		Long: `Chat directly with your own Hermes gateway from this machine, without a server. The command serves a
page that only your browser can open, and opens it. The first time, the page asks for the addresses of
your gateway.

The data folder is "app" inside the server's data folder, unless you pass --data. Credentials are
stored in the system keyring, or encrypted with a passphrase.`,
		Example: `  hermes-mobile app
  hermes-mobile app --terminal
  hermes-mobile app --diagnostics`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error { return runApp(cmd, f) },
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.BoolVar(&f.terminal, "terminal", false, "chat in this terminal instead of the browser")
	fl.BoolVar(&f.noBrowser, "no-browser", false, "print the link to the page instead of opening it")
	fl.BoolVar(&f.setup, "setup", false, "with --terminal, change the connection to the gateway")
	fl.BoolVar(&f.diagnostics, "diagnostics", false, "show the route to the gateway, why it was chosen, and the last failure, then exit")
	fl.IntVar(&f.port, "port", 0, "port of the page on this machine (default: a random port, stored in the data folder)")
	fl.IntVar(&f.keyFD, "key-fd", -1, "file descriptor that provides the key for the stored credentials ("+keyFDName+")")
	fl.BoolVar(&f.noKeyring, "no-keyring", false, "encrypt credentials with a passphrase instead of using the system keyring")
	jsonFlag(cmd)
	return cmd
}

func runApp(cmd *cobra.Command, f appFlags) error {
	if f.port < 0 || f.port > 65535 {
		return misuse(cmd, "--port %d: use a number from 0 to 65535", f.port)
	}
	data, err := appData(cmd)
	if err != nil {
		return err
	}
	o := app.Options{Data: data, Port: f.port, Version: version, NoKeyring: f.noKeyring}
	if o.Key, err = hostKey(cmd, f); err != nil {
		return err
	}
	if f.diagnostics {
		o.Log = slog.New(slog.DiscardHandler)
		if file, ok := cmd.InOrStdin().(*os.File); ok && xterm.IsTerminal(file.Fd()) && terminal(cmd.ErrOrStderr()) {
			screen := connect.Screen{In: file, Out: cmd.ErrOrStderr()}
			o.Passphrase = func(ctx context.Context) (gateway.Secret, error) {
				return screen.Secret(ctx, "Passphrase for the stored credentials", "")
			}
		}
		d, err := app.DiagnoseFolder(cmd.Context(), o)
		if err != nil {
			return err
		}
		return show(cmd, d, func(w io.Writer) { fmt.Fprint(w, d.Text) })
	}
	outliveReaders()
	log, closeLog, err := appLog(cmd, data, f.terminal)
	if err != nil {
		return err
	}
	defer closeLog()
	o.Log = log
	a, err := app.New(cmd.Context(), o)
	if errors.Is(err, app.ErrRunning) {
		return openRunning(cmd, f, data)
	}
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(cmd.Context())
	defer stop()
	var ended error
	var work sync.WaitGroup
	work.Go(func() {
		defer stop()
		ended = a.Run(ctx)
	})
	fmt.Fprintf(stdout(cmd), "hermes-mobile %s\n\n  page  %s/\n  data  %s\n\n", version, a.Origin(), data)
	if f.terminal {
		err = appTerminal(ctx, cmd, a, data, f.setup)
		stop()
	} else {
		openPage(cmd, f, a.Link())
		fmt.Fprintln(stdout(cmd), "  Press Ctrl-C to stop.")
	}
	work.Wait()
	if errors.Is(err, context.Canceled) {
		err = nil // Ctrl-C
	}
	return errors.Join(err, ended)
}

// appData returns the data folder of the app, which differs from that of a server on this machine.
func appData(cmd *cobra.Command) (string, error) {
	if f := cmd.Flags().Lookup("data"); f != nil && f.Changed {
		return filepath.Abs(f.Value.String())
	}
	data := config.DataFolder(config.FromOS()) // the server's other settings say nothing here, so a wrong one is no matter either
	if data == "" {
		return "", errors.New("no home directory found: pass the data folder with --data")
	}
	return filepath.Abs(filepath.Join(data, "app"))
}

// hostKey reads the vault key from the file descriptor that a host program passes.
func hostKey(cmd *cobra.Command, f appFlags) (gateway.Secret, error) {
	fd := f.keyFD
	if text := os.Getenv(keyFDName); fd < 0 && text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			return gateway.Secret{}, fmt.Errorf("%s=%q is not a file descriptor number", keyFDName, text)
		}
		fd = n
	} else if fd < 0 {
		if cmd.Flags().Changed("key-fd") {
			return gateway.Secret{}, misuse(cmd, "--key-fd %d is not a file descriptor number", fd)
		}
		return gateway.Secret{}, nil
	}
	return vault.KeyFrom(fd)
}

// appLog logs to standard error, or to a file while the chat uses the terminal.
func appLog(cmd *cobra.Command, data string, toFile bool) (*slog.Logger, func(), error) {
	w, end := cmd.ErrOrStderr(), func() {}
	level := slog.LevelWarn
	if toFile {
		if err := os.MkdirAll(data, 0o700); err != nil {
			return nil, nil, fmt.Errorf("create the data folder: %w (use another one with --data)", err)
		}
		file, err := os.OpenFile(filepath.Join(data, "app.log"), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return nil, nil, fmt.Errorf("open the log file: %w", err)
		}
		w, end, level = file, func() { _ = file.Close() }, slog.LevelInfo
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level})), end, nil
}

// openPage opens the page in the browser, or prints its link.
func openPage(cmd *cobra.Command, f appFlags, link string) {
	out := stdout(cmd)
	if !f.noBrowser {
		if app.OpenBrowser(link) == nil {
			fmt.Fprintln(out, "  Opening the page in your browser.")
			return
		}
		fmt.Fprintln(out, "  Could not open a browser.")
	}
	fmt.Fprintf(out, "  Open this link in a browser on this machine. It works once, for two minutes:\n\n    %s\n\n  For a new link, run hermes-mobile app again while this one is running.\n", link)
}

// openRunning opens the page of an app that is already running.
func openRunning(cmd *cobra.Command, f appFlags, data string) error {
	if f.terminal {
		return hint(errors.New("the app is already running on data folder "+data), "stop it first, or chat in its page: hermes-mobile app")
	}
	link, err := app.Running(cmd.Context(), data)
	if err != nil {
		return err
	}
	fmt.Fprintln(cmd.OutOrStdout(), "  The app is already running.")
	openPage(cmd, f, link)
	return nil
}

// appTerminal runs the app in this terminal: it connects the gateway if needed, then starts the chat.
func appTerminal(ctx context.Context, cmd *cobra.Command, a *app.App, data string, again bool) error {
	in, out := cmd.InOrStdin(), stdout(cmd)
	prompter := connect.Prompter(connect.Screen{In: in, Out: out})
	plain := false
	if file, ok := in.(*os.File); ok && (!xterm.IsTerminal(file.Fd()) || !term.Capable(out)) {
		lines := connect.NewLines(in, out)
		prompter, in, plain = lines, lines.Rest(), true
	}
	run := connect.Run
	if again {
		run = connect.Reconnect
	}
	if err := run(ctx, a.Machine(), prompter); err != nil {
		return err
	}
	dir := filepath.Join(data, "terminal")
	id, err := ownID(dir)
	if err != nil {
		return err
	}
	store, err := device.NewFileStore(filepath.Join(dir, "store"))
	if err != nil {
		return err
	}
	client := a.Client()
	defer client.CloseIdleConnections()
	c := device.Config{URL: a.Address(), HTTPClient: client, Store: store, Tools: true, Notices: true}
	c.Device.ID, c.Device.Name, c.Device.Platform, c.Device.App = id, hostname(), "terminal", "hermes-mobile/"+version
	saved, err := store.Load()
	if err != nil {
		return err
	}
	if saved.Token == "" {
		if c.PairCode, err = a.PairingCode(ctx); err != nil {
			return err
		}
	}
	return term.Run(ctx, term.Options{Config: c, In: in, Out: out, Err: cmd.ErrOrStderr(), Plain: plain, AgentOffline: a.Offline})
}
