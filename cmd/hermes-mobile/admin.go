package main

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"hermes-mobile/internal/app"
	"hermes-mobile/internal/config"
	"hermes-mobile/internal/passhash"
	"hermes-mobile/internal/server"
)

func adminCommand() *cobra.Command {
	var only bool
	cmd := jsonFlag(&cobra.Command{
		Use:   "admin [COMMAND]",
		Short: "Open the admin UI in a browser",
		Long: `Open the admin UI of the running server in a browser. The command gets a one-time link from the
server, valid for two minutes. The link logs the browser in for 12 hours, or until the server restarts.
No password is needed: access to the data folder proves that you own the server.

In an SSH session, or on a machine without a display, the command prints the link instead.`,
		Example: `  hermes-mobile admin
  hermes-mobile admin --print`,
		Args:        takes(),
		Annotations: map[string]string{alone: "yes"},
		RunE:        func(cmd *cobra.Command, _ []string) error { return openAdmin(cmd, only) },
	})
	cmd.Flags().BoolVar(&only, "print", false, "print the link instead of opening it")
	cmd.AddCommand(jsonFlag(&cobra.Command{
		Use:   "hash",
		Short: "Hash an admin token for MOBILE_ADMIN_TOKEN",
		Long: `Hash an admin token with argon2id. Set MOBILE_ADMIN_TOKEN to the hash, and your settings hold no
secret that opens the admin UI.

The command asks for the token at the terminal, or reads one line from standard input. A token has at
least 16 characters. Keep the token in a password manager: the hash does not reveal it.`,
		Example: `  hermes-mobile admin hash
  openssl rand -hex 32 | tee admin-token | hermes-mobile admin hash`,
		Args: takes(),
		RunE: hashAdminToken,
	}), passkeysCommand())
	return cmd
}

func openAdmin(cmd *cobra.Command, only bool) error {
	link, err := post[server.AdminLink](cmd.Context(), cmd, "/admin/link", server.Command{})
	if err != nil {
		return err
	}
	return show(cmd, link, func(w io.Writer) {
		if !only && !elsewhere() {
			open := link.Here
			if open == "" {
				open = link.Elsewhere
			}
			if app.OpenBrowser(open) == nil {
				fmt.Fprintln(w, "Opening the admin UI in your browser.")
				return
			}
		}
		showAdminLink(w, link)
	})
}

// elsewhere reports whether the user is on another machine and cannot see a browser opened on this one.
func elsewhere() bool { return os.Getenv("SSH_CONNECTION") != "" || os.Getenv("SSH_TTY") != "" }

func showAdminLink(w io.Writer, link server.AdminLink) {
	until := link.Expires.Local().Format("15:04:05")
	if link.Elsewhere != "" {
		fmt.Fprintf(w, "Open this link in a browser. It works once, until %s:\n\n  %s\n", until, link.Elsewhere)
		if link.Here != "" {
			fmt.Fprintf(w, "\nOr, in a browser on this machine:\n\n  %s\n", link.Here)
		}
		return
	}
	fmt.Fprintf(w, "Open this link in a browser on this machine. It works once, until %s:\n\n  %s\n", until, link.Here)
	if u, err := url.Parse(link.Here); err == nil && elsewhere() {
		fmt.Fprintf(w, "\nTo open it on your own computer, run this there first to forward the port:\n\n  ssh -L %s:%s %s\n", u.Port(), u.Host, hostname())
	}
}

func hashAdminToken(cmd *cobra.Command, _ []string) error {
	token, err := askSecret(cmd, "Admin token: ", func(token string) error {
		if err := config.CheckAdminToken(token); err != nil {
			return fmt.Errorf("the admin token %w", err)
		}
		if strings.HasPrefix(token, passhash.Prefix) {
			return errors.New("the admin token is already a hash")
		}
		return nil
	})
	if err != nil {
		return err
	}
	hash := passhash.New(passhash.DefaultCost, token).String()
	return show(cmd, map[string]string{"hash": hash}, func(w io.Writer) {
		fmt.Fprintln(w, hash)
		fmt.Fprintln(cmd.ErrOrStderr(), "Set MOBILE_ADMIN_TOKEN to this line and restart the server. Use single quotes in a shell and in .env.")
	})
}
