package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"hermes-mobile/internal/server"
)

func backupCommand() *cobra.Command {
	return jsonFlag(&cobra.Command{
		Use:   "backup FILE",
		Short: "Write a consistent copy of the database while the server runs",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := absolute(args[0])
			if err != nil {
				return err
			}
			if _, err := post[any](cmd.Context(), cmd, "/backup", server.Command{Path: path}); err != nil {
				return err
			}
			return show(cmd, map[string]string{"file": path}, func(w io.Writer) { fmt.Fprintf(w, "written to %s\n", path) })
		},
	})
}
