package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"hermes-mobile/internal/passkey"
	"hermes-mobile/internal/server"
)

func passkeysCommand() *cobra.Command {
	return group(&cobra.Command{Use: "passkeys", Short: "List, rename and remove the passkeys that open the admin UI",
		Long: `List, rename and remove the passkeys that open the admin UI. They are registered in the admin UI itself, under Tokens: open it
with "hermes-mobile admin", which works whatever passkeys there are.`,
		Example: `  hermes-mobile admin passkeys list
  hermes-mobile admin passkeys remove "Old laptop"`},
		jsonFlag(&cobra.Command{Use: "list", Short: "List all passkeys", Args: takes(), RunE: listPasskeys,
			Example: `  hermes-mobile admin passkeys list`}),
		jsonFlag(&cobra.Command{Use: "rename ID NAME", Short: "Give a passkey another name", Args: takes("ID", "NAME"), RunE: renamePasskey,
			Example: `  hermes-mobile admin passkeys rename 9f3kQ "Work laptop"`}),
		jsonFlag(&cobra.Command{Use: "remove ID", Short: "Remove a passkey and end all logins to the admin UI", Args: takes("ID"), RunE: removePasskey,
			Long: `Remove a passkey and end all logins to the admin UI, since one of them may be by it. ID is its id, or its name where only one
passkey has that.`,
			Example: `  hermes-mobile admin passkeys remove "Old laptop"`}))
}

func listPasskeys(cmd *cobra.Command, _ []string) error {
	list, err := get[[]passkey.Passkey](cmd.Context(), cmd, "/passkeys")
	if err != nil {
		return err
	}
	return show(cmd, list, func(w io.Writer) {
		if len(list) == 0 {
			fmt.Fprintf(w, "There are no passkeys. Register one in the admin UI: %s admin\n", program(cmd))
			return
		}
		table(w, "NAME | ADDRESS | SINCE | LAST LOGIN | ID", func(row func(...any)) {
			for _, p := range list {
				used := "never"
				if p.UsedAt != nil {
					used = p.UsedAt.Local().Format(time.DateTime)
				}
				row(p.Name, p.Site, p.CreatedAt.Local().Format(time.DateOnly), used, p.ID)
			}
		})
	})
}

func renamePasskey(cmd *cobra.Command, args []string) error {
	if _, err := post[any](cmd.Context(), cmd, "/passkeys/rename", server.Command{ID: args[0], Name: args[1]}); err != nil {
		return err
	}
	return show(cmd, map[string]string{"passkey": args[0], "done": "renamed"}, func(w io.Writer) { fmt.Fprintln(w, "renamed", clean(args[0])) })
}

func removePasskey(cmd *cobra.Command, args []string) error {
	p, err := post[passkey.Passkey](cmd.Context(), cmd, "/passkeys/remove", server.Command{ID: args[0]})
	if err != nil {
		return err
	}
	return show(cmd, map[string]string{"passkey": p.ID, "name": p.Name, "done": "removed"}, func(w io.Writer) { fmt.Fprintln(w, "removed", clean(p.Name)) })
}
