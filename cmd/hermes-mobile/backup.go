package main

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"hermes-mobile/internal/server"
)

func backupCommand() *cobra.Command {
	return jsonFlag(&cobra.Command{
		Use:   "backup FILE",
		Short: "Write a consistent copy of the database while the server runs",
		Long: `Write a consistent copy of the database to a file that does not exist yet, while the server goes on.

The copy holds devices, messages that wait, and open cards. The files that messages refer to, the tokens and the settings
are ordinary files in the data folder beside it. To go back to a copy stop the server, put the copy in the place of
hermes-mobile.db, delete hermes-mobile.db-wal and hermes-mobile.db-shm, and start the server again.`,
		Example: `  hermes-mobile backup hermes-mobile-monday.db`,
		Args:    takes("FILE"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			if _, err := post[any](cmd.Context(), cmd, "/backup", server.Command{Path: path}); err != nil {
				return err
			}
			return show(cmd, map[string]string{"file": path}, func(w io.Writer) { fmt.Fprintf(w, "written to %s\n", clean(path)) })
		},
	})
}
