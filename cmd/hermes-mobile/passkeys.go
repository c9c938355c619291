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
	return group(&cobra.Command{Use: "passkeys", Short: "Manage the passkeys of the admin UI: list, rename, remove",
		Long: `List, rename, and remove the passkeys of the admin UI. To register a passkey, open the admin UI with
"hermes-mobile admin" and go to Tokens. That command works with or without a passkey.`,
		Example: `  hermes-mobile admin passkeys list
  hermes-mobile admin passkeys remove "Old laptop"`},
		jsonFlag(&cobra.Command{Use: "list", Short: "List all passkeys", Args: takes(), RunE: listPasskeys,
			Example: `  hermes-mobile admin passkeys list`}),
		jsonFlag(&cobra.Command{Use: "rename ID NAME", Short: "Rename a passkey", Args: takes("ID", "NAME"), RunE: renamePasskey,
			Example: `  hermes-mobile admin passkeys rename 9f3kQ "Work laptop"`}),
		jsonFlag(&cobra.Command{Use: "remove ID", Short: "Remove a passkey and end all admin UI logins", Args: takes("ID"), RunE: removePasskey,
			Long: `Remove a passkey and end all admin UI logins, because one of them may come from that passkey. ID is the
passkey's id, or its name if no other passkey has that name.`,
			Example: `  hermes-mobile admin passkeys remove "Old laptop"`}))
}

func listPasskeys(cmd *cobra.Command, _ []string) error {
	list, err := get[[]passkey.Passkey](cmd.Context(), cmd, "/passkeys")
	if err != nil {
		return err
	}
	return show(cmd, list, func(w io.Writer) {
		if len(list) == 0 {
			fmt.Fprintf(w, "No passkeys. Register one in the admin UI: %s admin\n", program(cmd))
			return
		}
		table(w, "NAME | ADDRESS | CREATED | LAST LOGIN | ID", func(row func(...any)) {
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
	return show(cmd, map[string]string{"passkey": args[0], "done": "renamed"}, func(w io.Writer) { fmt.Fprintln(w, "Renamed", clean(args[0])) })
}

func removePasskey(cmd *cobra.Command, args []string) error {
	p, err := post[passkey.Passkey](cmd.Context(), cmd, "/passkeys/remove", server.Command{ID: args[0]})
	if err != nil {
		return err
	}
	return show(cmd, map[string]string{"passkey": p.ID, "name": p.Name, "done": "removed"}, func(w io.Writer) { fmt.Fprintln(w, "Removed", clean(p.Name)) })
}
