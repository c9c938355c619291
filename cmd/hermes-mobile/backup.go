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
		Short: "Back up the database while the server is running",
		Long: `Write a consistent copy of the database to a new file, while the server keeps running.

The backup contains devices, queued messages, and open cards. Media files, tokens, and settings are
ordinary files in the data folder: copy them separately.

To restore a backup, stop the server, replace hermes-mobile.db with the backup, delete
hermes-mobile.db-wal and hermes-mobile.db-shm, and start the server again.`,
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
			return show(cmd, map[string]string{"file": path}, func(w io.Writer) { fmt.Fprintf(w, "Wrote the backup to %s\n", clean(path)) })
		},
	})
}
