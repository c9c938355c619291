package main

import (
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"hermes-mobile/frame"
)

func versionCommand() *cobra.Command {
	return jsonFlag(&cobra.Command{
		Use:   "version",
		Short: "Show the version",
		Example: `  hermes-mobile version
  hermes-mobile version --json`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := map[string]any{"version": version, "protocol": frame.Protocol, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH}
			return show(cmd, v, func(w io.Writer) {
				fmt.Fprintf(w, "hermes-mobile %s (protocol %d, %s, %s/%s)\n", version, frame.Protocol, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			})
		},
	})
}
