package main

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"hermes-mobile/internal/access"
	"hermes-mobile/internal/server"
)

func tokenCommand() *cobra.Command {
	return group(&cobra.Command{Use: "token", Short: "Manage access tokens for apps: list, add, remove",
		Long: `List, add, and remove access tokens for apps. Give each app its own token, so that you can remove one
without the others. A paired phone has its own token, which "hermes-mobile devices" manages.`,
		Example: `  hermes-mobile token list
  hermes-mobile token add kitchen-tablet`},
		jsonFlag(&cobra.Command{Use: "list", Short: "List all tokens by label, without the secrets", Args: takes(), RunE: listTokens,
			Example: `  hermes-mobile token list`}),
		addTokenCommand(),
		jsonFlag(&cobra.Command{Use: "remove LABEL", Short: "Remove a token and close its connections", Args: takes("LABEL"), RunE: removeToken,
			Long: `Remove a token from "token add" or from the first start, and close its connections. To remove a token
from MOBILE_TOKEN, MOBILE_EXTRA_TOKENS, or MOBILE_DELIVER_TOKENS, edit that setting and send the server
SIGHUP.`,
			Example: `  hermes-mobile token remove kitchen-tablet`}))
}

// mayDo describes what each kind of token may do.
var mayDo = map[string]string{"app": "chat", "deliver": "deliver only"}

func listTokens(cmd *cobra.Command, _ []string) error {
	list, err := get[[]server.TokenInfo](cmd.Context(), cmd, "/tokens")
	if err != nil {
		return err
	}
	return show(cmd, list, func(w io.Writer) {
		table(w, "LABEL | MAY | DEVICE | SOURCE | EXPIRES | LAST USED", func(row func(...any)) {
			for _, t := range list {
				row(t.Label, mayDo[t.Kind], cmp.Or(t.Device, "any"), t.Source, expiryWords(t.Expires), usedWords(t.Used))
			}
		})
	})
}

// expiryWords formats the expiry of a token.
func expiryWords(at *time.Time) string {
	switch {
	case at == nil:
		return "never"
	case !at.After(time.Now()):
		return "expired " + at.Local().Format(time.DateTime)
	}
	return at.Local().Format(time.DateTime)
}

// usedWords formats the last use of a token.
func usedWords(at *time.Time) string {
	if at == nil {
		return "never"
	}
	return at.Local().Format(time.DateTime)
}

func addTokenCommand() *cobra.Command {
	var life tokenLife
	cmd := jsonFlag(&cobra.Command{Use: "add LABEL", Short: "Create a token for an app and show it once", Args: takes("LABEL"),
		Long: `Create a token for an app, and show it once. It is valid immediately. LABEL is 1 to 64 of A-Z a-z 0-9 . _ -

With --expires, the token expires after that time, and the server closes its connections.`,
		Example: `  hermes-mobile token add kitchen-tablet
  hermes-mobile token add guest --expires 7d`,
		RunE: func(cmd *cobra.Command, args []string) error { return addToken(cmd, args, life) }})
	cmd.Flags().Var(&life, "expires", "expire the token after this `duration`, such as 30d or 12h (default: never)")
	return cmd
}

func addToken(cmd *cobra.Command, args []string, life tokenLife) error {
	if !access.ValidLabel(args[0]) {
		return misuse(cmd, "invalid label %q: use 1 to 64 of A-Z a-z 0-9 . _ -", clean(args[0]))
	}
	t, err := post[server.NewToken](cmd.Context(), cmd, "/tokens/add", server.Command{Label: args[0], Seconds: life.seconds()})
	if err != nil {
		return err
	}
	return show(cmd, t, func(w io.Writer) { fmt.Fprintln(w, t.Token) })
}

func removeToken(cmd *cobra.Command, args []string) error {
	if _, err := post[any](cmd.Context(), cmd, "/tokens/remove", server.Command{Label: args[0]}); err != nil {
		return err
	}
	return show(cmd, map[string]string{"label": args[0], "done": "removed"}, func(w io.Writer) { fmt.Fprintf(w, "Removed %s\n", clean(args[0])) })
}
