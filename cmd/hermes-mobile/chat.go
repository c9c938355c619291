package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"hermes-mobile/device"
	"hermes-mobile/frame"
	"hermes-mobile/internal/access"
	"hermes-mobile/internal/atomicfile"
	"hermes-mobile/internal/cert"
	"hermes-mobile/internal/server"
	"hermes-mobile/internal/term"
)

type chatFlags struct {
	tokenFile, pair, name, save, fingerprint string
	plain, noColor, mouse                    bool
}

func chatCommand() *cobra.Command {
	var f chatFlags
	cmd := &cobra.Command{
		Use:   "chat [ADDRESS|LINK]",
		Short: "Talk to the agent from this terminal",
		Long: `Talk to the agent from this terminal. Without an argument it joins the server that runs on this machine, and pairs itself.
With a link of "hermes-mobile pair" it redeems the one-time code in it; with an address it needs --token-file or --pair once.
Which certificate the server must have is in the link too, and is kept.

Where input or output is no terminal it reads a message from each line and prints the replies as text.`,
		Example: `  hermes-mobile chat
  hermes-mobile chat 'https://agent.example.com/#pair=7KQ4-M2XD'
  hermes-mobile chat wss://agent.example.com/ws --token-file token.txt
  echo "What is on my calendar today?" | hermes-mobile chat`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			target := ""
			if len(args) > 0 {
				target = args[0]
			}
			return talk(cmd, target, f)
		},
	}
	cmd.Flags().StringVar(&f.tokenFile, "token-file", "", "file that holds the app token; - reads it from the standard input's first line")
	cmd.Flags().StringVar(&f.pair, "pair", "", "one-time code of hermes-mobile pair")
	cmd.Flags().StringVar(&f.name, "name", "", "name of this device for display (default: the machine's name)")
	cmd.Flags().StringVar(&f.save, "save", "", "folder for received files (default: hermes in the Downloads folder)")
	cmd.Flags().StringVar(&f.fingerprint, "fingerprint", "", "SHA-256 of the server's certificate or of its authority, as hermes-mobile status shows it there (default: from the link)")
	cmd.Flags().BoolVar(&f.plain, "plain", false, "line mode, also on a terminal")
	cmd.Flags().BoolVar(&f.noColor, "no-color", false, "no colours")
	cmd.Flags().BoolVar(&f.mouse, "mouse", false, "let the mouse wheel scroll")
	return cmd
}

func talk(cmd *cobra.Command, target string, f chatFlags) error {
	cfg, _, err := settings(cmd)
	if err != nil {
		return err
	}
	c := device.Config{PairCode: f.pair, Fingerprint: f.fingerprint, Tools: true, Notices: true}
	if target == "" {
		var st server.Status
		if err := server.NewClient(cfg.Data).Get(cmd.Context(), "/status", &st); err != nil {
			return notRunning(cmd, err)
		}
		if err := here(&c, st); err != nil {
			return err
		}
	} else if err := aim(&c, target); err != nil {
		return err
	}
	if f.tokenFile != "" {
		if c.Token, err = readToken(f.tokenFile); err != nil {
			return err
		}
	}
	dir := filepath.Join(cfg.Data, "chat", place(c.URL, target))
	if c.Device.ID, err = ownID(dir); err != nil {
		return err
	}
	if target != "" {
		if c.Fingerprint, err = pin(dir, c.Fingerprint); err != nil {
			return err
		}
	}
	c.Device.Platform, c.Device.App = "terminal", "hermes-mobile/"+version
	if c.Device.Name = f.name; c.Device.Name == "" {
		c.Device.Name = hostname()
	}
	store, err := device.NewFileStore(filepath.Join(dir, "store"))
	if err != nil {
		return err
	}
	c.Store = store
	if err := credentials(cmd.Context(), &c, store, target, cfg.Data); err != nil {
		return err
	}
	err = term.Run(cmd.Context(), term.Options{Config: c, In: cmd.InOrStdin(), Out: stdout(cmd), Err: cmd.ErrOrStderr(), SaveDir: f.save,
		Plain: f.plain, NoColor: f.noColor, Mouse: f.mouse})
	if errors.Is(err, context.Canceled) {
		return nil // Ctrl+C
	}
	return err
}

// here aims at the server on this machine, whose certificate is known from itself.
func here(c *device.Config, st server.Status) error {
	c.URL = st.Address
	switch {
	case c.Fingerprint != "" || st.TLS.Mode == cert.Off:
	case st.TLS.Fingerprint != "":
		c.Fingerprint = st.TLS.Fingerprint
	case st.Local != "": // the certificate is for a name that this machine need not know
		u, err := url.Parse(st.Address)
		if err != nil {
			return err
		}
		c.URL = st.Local + u.Path
	case st.TLS.Leaf != "":
		c.Fingerprint = st.TLS.Leaf
	}
	return nil
}

// pin keeps the fingerprint that a link had, for the next time.
func pin(dir, given string) (string, error) {
	path := filepath.Join(dir, "fingerprint")
	if given == "" {
		text, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		return strings.TrimSpace(string(text)), err
	}
	return given, atomicfile.Replace(path, []byte(given+"\n"), atomicfile.Options{})
}

// aim takes an address, or a link of `pair` with its code in the fragment.
func aim(c *device.Config, target string) error {
	u, err := url.Parse(target)
	if err != nil || u.Host == "" {
		return fmt.Errorf("%q is no address: give one such as wss://agent.example.com/ws, or the link that hermes-mobile pair prints", clean(target))
	}
	fragment, err := url.ParseQuery(u.Fragment)
	if err != nil {
		return fmt.Errorf("the link is damaged after its #: %w", err)
	}
	u.Fragment, u.RawFragment = "", ""
	if code := fragment.Get("pair"); code != "" {
		c.PairCode = code
		path := fragment.Get("path")
		if path == "" {
			path = "/ws"
		}
		u.Path = strings.TrimSuffix(u.Path, "/") + path
	}
	if pin := fragment.Get("fingerprint"); pin != "" && c.Fingerprint == "" {
		c.Fingerprint = pin
	}
	c.URL = u.String()
	return nil
}

// place names the folder in which a conversation's state is kept.
func place(address, target string) string {
	if target == "" {
		return "here"
	}
	host := "server"
	if u, err := url.Parse(address); err == nil {
		host = strings.Map(func(r rune) rune {
			if r == '.' || r == '-' || 'a' <= r && r <= 'z' || '0' <= r && r <= '9' {
				return r
			}
			return '-'
		}, strings.ToLower(u.Host))
	}
	sum := sha256.Sum256([]byte(address))
	return host + "-" + hex.EncodeToString(sum[:4])
}

// ownID is the device id of this terminal: made once, and the same for ever.
func ownID(dir string) (string, error) {
	path := filepath.Join(dir, "device-id")
	if text, err := os.ReadFile(path); err == nil {
		if id := strings.TrimSpace(string(text)); frame.ValidID(id) {
			return id, nil
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	id := "terminal-" + access.NewSecret()[:10]
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return id, atomicfile.Replace(path, []byte(id+"\n"), atomicfile.Options{})
}

func readToken(path string) (string, error) {
	in := os.Stdin
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return "", term.Unreadable(path, err)
		}
		defer f.Close()
		in = f
	}
	line, err := bufio.NewReader(in).ReadString('\n')
	if token := strings.TrimSpace(line); token != "" {
		return token, nil
	}
	return "", fmt.Errorf("no token in %s: %w", path, errors.Join(err))
}

// credentials makes sure there is something to be let in by. On this machine the owner's terminal pairs itself.
func credentials(ctx context.Context, c *device.Config, store device.Store, target, data string) error {
	if c.Token != "" || c.PairCode != "" {
		return nil
	}
	saved, err := store.Load()
	if err != nil {
		return err
	}
	if saved.Token != "" {
		return nil
	}
	if target != "" {
		return &hinted{errors.New("this terminal has no token for that server yet"),
			"get a one-time code there with hermes-mobile pair and give it with --pair, or use --token-file"}
	}
	var inv server.Invitation
	if err := server.NewClient(data).Post(ctx, "/pair", server.Command{}, &inv); err != nil {
		return err
	}
	c.PairCode = inv.Code
	return nil
}
