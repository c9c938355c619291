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
	return group(&cobra.Command{Use: "token", Short: "List, add and remove the tokens by which apps are let in",
		Long: `List, add and remove the tokens by which apps are let in. One app, one token: then one can be taken away alone.
A phone that is paired gets a token of its own, which is not listed here: see hermes-mobile devices.`,
		Example: `  hermes-mobile token list
  hermes-mobile token add kitchen-tablet`},
		jsonFlag(&cobra.Command{Use: "list", Short: "List the labels of all tokens, never the tokens", Args: takes(), RunE: listTokens,
			Example: `  hermes-mobile token list`}),
		addTokenCommand(),
		jsonFlag(&cobra.Command{Use: "remove LABEL", Short: "Remove a token and close the connections that used it", Args: takes("LABEL"), RunE: removeToken,
			Long: `Remove a token that the first start or "token add" made, and close the connections that used it. Tokens of MOBILE_TOKEN,
MOBILE_EXTRA_TOKENS and MOBILE_DELIVER_TOKENS are removed where they are set; SIGHUP makes the server read that again.`,
			Example: `  hermes-mobile token remove kitchen-tablet`}))
}

// mayDo says in words what the kind of a token may do.
var mayDo = map[string]string{"app": "chat", "deliver": "deliver only"}

func listTokens(cmd *cobra.Command, _ []string) error {
	list, err := get[[]server.TokenInfo](cmd.Context(), cmd, "/tokens")
	if err != nil {
		return err
	}
	return show(cmd, list, func(w io.Writer) {
		table(w, "LABEL | MAY | DEVICE | STANDS IN | EXPIRES | LAST USED", func(row func(...any)) {
			for _, t := range list {
				row(t.Label, mayDo[t.Kind], cmp.Or(t.Device, "any"), t.Source, expiryWords(t.Expires), usedWords(t.Used))
			}
		})
	})
}

// expiryWords says when a token ends.
func expiryWords(at *time.Time) string {
	switch {
	case at == nil:
		return "never"
	case !at.After(time.Now()):
		return "expired " + at.Local().Format(time.DateTime)
	}
	return at.Local().Format(time.DateTime)
}

// usedWords says when a token was last used.
func usedWords(at *time.Time) string {
	if at == nil {
		return "never"
	}
	return at.Local().Format(time.DateTime)
}

func addTokenCommand() *cobra.Command {
	var life tokenLife
	cmd := jsonFlag(&cobra.Command{Use: "add LABEL", Short: "Make a token for an app and show it, this once", Args: takes("LABEL"),
		Long: `Make a token for an app, and show it. It counts at once. LABEL is 1 to 64 of A-Z a-z 0-9 . _ -
With --expires it ends by itself: connections that came with it are closed then.`,
		Example: `  hermes-mobile token add kitchen-tablet
  hermes-mobile token add guest --expires 7d`,
		RunE: func(cmd *cobra.Command, args []string) error { return addToken(cmd, args, life) }})
	cmd.Flags().Var(&life, "expires", "`time` after which the token expires, such as 30d or 12h (default: never)")
	return cmd
}

func addToken(cmd *cobra.Command, args []string, life tokenLife) error {
	if !access.ValidLabel(args[0]) {
		return misuse(cmd, "%q is no label: it takes 1 to 64 of A-Z a-z 0-9 . _ -, and no spaces", clean(args[0]))
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
	return show(cmd, map[string]string{"label": args[0], "done": "removed"}, func(w io.Writer) { fmt.Fprintf(w, "removed %s\n", clean(args[0])) })
}
