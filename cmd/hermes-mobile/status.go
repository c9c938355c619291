package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"hermes-mobile/internal/server"
)

func statusCommand() *cobra.Command {
	return jsonFlag(&cobra.Command{
		Use:   "status",
		Short: "Show how the running server and its agent are",
		Example: `  hermes-mobile status
  hermes-mobile status --json | jq .agent_online`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			st, err := get[server.Status](cmd.Context(), cmd, "/status")
			if err != nil {
				return err
			}
			return show(cmd, st, func(w io.Writer) {
				agent := st.Agent + ", away"
				if st.AgentOnline {
					agent = st.Agent + ", online"
				}
				if st.AgentDetail != "" {
					agent += ": " + st.AgentDetail
				}
				fmt.Fprintf(w, "hermes-mobile %s, since %s\n", st.Version, st.Started.Local().Format(time.DateTime))
				fmt.Fprintf(w, "address   %s\n", st.Address)
				if st.PublicURL != "" {
					fmt.Fprintf(w, "public    %s\n", st.PublicURL)
				}
				fmt.Fprintf(w, "agent     %s\n", clean(agent))
				fmt.Fprintf(w, "devices   %d known, %d connected, %d waiting for approval\n", st.Devices, st.Connected, st.Pending)
				fmt.Fprintf(w, "data      %s\n", st.Data)
				printFindings(w, st.Health.Findings)
			})
		},
	})
}
