package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"hermes-mobile/internal/server"
)

func tokenCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "token", Short: "List, add and remove the tokens by which apps are let in"}
	cmd.AddCommand(
		jsonFlag(&cobra.Command{Use: "list", Short: "List the labels of all tokens", Args: cobra.NoArgs, RunE: listTokens}),
		jsonFlag(&cobra.Command{Use: "add LABEL", Short: "Make a token for an app and show it, this once", Args: cobra.ExactArgs(1), RunE: addToken}),
		jsonFlag(&cobra.Command{Use: "remove LABEL", Short: "Remove a token and close the connections that used it", Args: cobra.ExactArgs(1), RunE: removeToken}))
	return cmd
}

func listTokens(cmd *cobra.Command, _ []string) error {
	list, err := get[[]server.TokenInfo](cmd.Context(), cmd, "/tokens")
	if err != nil {
		return err
	}
	return show(cmd, list, func(w io.Writer) {
		table(w, "LABEL | MAY | FROM", func(row func(...any)) {
			for _, t := range list {
				row(t.Label, t.Kind, t.Source)
			}
		})
	})
}

func addToken(cmd *cobra.Command, args []string) error {
	t, err := post[server.NewToken](cmd.Context(), cmd, "/tokens/add", server.Command{Label: args[0]})
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
