package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
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
		Short: "Chat with the agent in this terminal",
		Long: `Chat with the agent in this terminal.

Without an argument, the command connects to the server on this machine and pairs itself. With a link
from "hermes-mobile pair", it uses the pairing code in the link and pins the server's certificate. With
an address, pass --token-file or --pair the first time.

If standard input or output is not a terminal, the command sends each input line as a message and
prints the replies as text.`,
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
	cmd.Flags().StringVar(&f.tokenFile, "token-file", "", "`file` with an app token; - reads the first line of standard input")
	cmd.Flags().StringVar(&f.pair, "pair", "", "pairing `code` from hermes-mobile pair")
	cmd.Flags().StringVar(&f.name, "name", "", "display `name` of this device (default: the host name)")
	cmd.Flags().StringVar(&f.save, "save", "", "`folder` for received files (default: hermes in the Downloads folder)")
	cmd.Flags().StringVar(&f.fingerprint, "fingerprint", "", "`SHA-256` fingerprint of the server's certificate or its CA, as hermes-mobile status shows it (default: from the link)")
	cmd.Flags().BoolVar(&f.plain, "plain", false, "use line mode even in a terminal")
	cmd.Flags().BoolVar(&f.noColor, "no-color", false, "disable colors")
	cmd.Flags().BoolVar(&f.mouse, "mouse", false, "scroll with the mouse wheel")
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

// here configures a connection to the server on this machine, which reports its own certificate.
func here(c *device.Config, st server.Status) error {
	c.URL = st.Address
	switch {
	case c.Fingerprint != "" || st.TLS.Mode == cert.Off:
	case st.TLS.Fingerprint != "":
		c.Fingerprint = st.TLS.Fingerprint
	case st.Local != "": // this machine may not resolve the certificate's name
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

// pin stores the fingerprint from a link. If the link has none, it returns the stored one.
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

// aim configures a connection to an address, or to a link from "pair" with its code in the
// fragment.
func aim(c *device.Config, target string) error {
	u, err := url.Parse(target)
	if err != nil || u.Host == "" {
		return fmt.Errorf("invalid address %q: use an address such as wss://agent.example.com/ws, or the link from hermes-mobile pair", clean(target))
	}
	fragment, err := url.ParseQuery(u.Fragment)
	if err != nil {
		return fmt.Errorf("invalid link: cannot parse the part after #: %w", err)
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

// place returns the name of the folder that stores a conversation's state.
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

// ownID returns the device id of this terminal, which it creates the first time.
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
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read the token from %s: %w", path, err)
	}
	return "", fmt.Errorf("%s: the first line holds no token", path)
}

// credentials makes sure that c has a token or a pairing code. On the server's own machine, the
// terminal pairs itself.
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
		return &hinted{errors.New("this terminal has no token for this server yet"),
			"run hermes-mobile pair on the server and pass its code with --pair, or use --token-file"}
	}
	var inv server.Invitation
	if err := server.NewClient(data).Post(ctx, "/pair", server.Command{}, &inv); err != nil {
		return err
	}
	c.PairCode = inv.Code
	return nil
}
