package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"hermes-mobile/internal/agent/relay"
	"hermes-mobile/internal/cert"
	"hermes-mobile/internal/quota"
	"hermes-mobile/internal/server"
)

// gatewayLine describes one of several gateways.
func gatewayLine(g relay.GatewayState) string {
	line := g.Name
	if line == "" {
		line = g.ID
	}
	switch {
	case g.Wedged:
		line += ", stalled: accepts no events"
	case g.Online:
		line += ", online"
	case g.Idle:
		line += ", stopping or restarting"
	default:
		line += ", offline"
	}
	if g.SameIDSeen {
		line += "; two gateways may be using this id"
	}
	return line
}

func statusCommand() *cobra.Command {
	var metrics bool
	cmd := jsonFlag(&cobra.Command{
		Use:   "status",
		Short: "Show the state of the running server and its agent",
		Long: `Show the state of the running server: addresses, agent, devices, storage, and open issues. The command
"doctor" checks more.`,
		Example: `  hermes-mobile status
  hermes-mobile status --json | jq .agent_online
  hermes-mobile status --metrics`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if metrics {
				return showMetrics(cmd)
			}
			st, err := get[server.Status](cmd.Context(), cmd, "/status")
			if err != nil {
				return err
			}
			return show(cmd, st, func(w io.Writer) {
				agent := st.Agent + ", offline"
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
				if st.TLS.Mode != cert.Off {
					fmt.Fprintf(w, "tls       %s\n", clean(st.TLS.String()))
				}
				fmt.Fprintf(w, "agent     %s\n", clean(agent))
				if st.Relay != nil && len(st.Relay.Gateways) > 1 { // the line above shows the default gateway
					for _, g := range st.Relay.Gateways {
						fmt.Fprintf(w, "gateway   %s\n", clean(gatewayLine(g)))
					}
				}
				fmt.Fprintf(w, "devices   %d known, %d connected, %d waiting for approval\n", st.Devices, st.Connected, st.Pending)
				fmt.Fprintf(w, "data      %s\n", st.Data)
				fmt.Fprintf(w, "storage   %s of %s: files %s, database %s\n", quota.Size(st.Storage.Used()), quota.Size(st.Storage.Limit), quota.Size(st.Storage.Files), quota.Size(st.Storage.Database))
				printIssues(cmd, w, st.Health.Issues)
			})
		},
	})
	cmd.Flags().BoolVar(&metrics, "metrics", false, "print the metrics that /metrics serves")
	cmd.MarkFlagsMutuallyExclusive("metrics", "json")
	return cmd
}

// showMetrics prints the metrics in the Prometheus text format.
func showMetrics(cmd *cobra.Command) error {
	c, err := running(cmd)
	if err != nil {
		return err
	}
	text, err := c.Text(cmd.Context(), "/metrics")
	if err != nil {
		return notRunning(cmd, err)
	}
	_, err = io.WriteString(cmd.OutOrStdout(), text)
	return err
}
