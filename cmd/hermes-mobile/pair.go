package main

import (
	"fmt"
	"io"
	"time"

	"github.com/mdp/qrterminal/v3"
	"github.com/spf13/cobra"

	"hermes-mobile/internal/server"
)

func pairCommand() *cobra.Command {
	return jsonFlag(&cobra.Command{
		Use:   "pair",
		Short: "Show a QR code and a link with a one-time code that pairs a phone",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			inv, err := post[server.Invitation](cmd.Context(), cmd, "/pair", server.Command{})
			if err != nil {
				return err
			}
			return show(cmd, inv, func(w io.Writer) {
				qrterminal.GenerateWithConfig(inv.Link, qrterminal.Config{Level: qrterminal.L, Writer: w, HalfBlocks: true, QuietZone: 1,
					BlackChar: qrterminal.BLACK_BLACK, WhiteChar: qrterminal.WHITE_WHITE, BlackWhiteChar: qrterminal.BLACK_WHITE, WhiteBlackChar: qrterminal.WHITE_BLACK})
				fmt.Fprintf(w, "\nScan it with the phone, or open the link:\n\n  %s\n\n", inv.Link)
				fmt.Fprintf(w, "Address  %s\nCode     %s  (once, until %s)\n", inv.Address, inv.Code, inv.Expires.Local().Format(time.TimeOnly))
				if inv.Local {
					fmt.Fprintln(w, "\nThis address is of this machine only. For a phone set MOBILE_PUBLIC_URL to the address of your reverse proxy,")
					fmt.Fprintln(w, "or MOBILE_HOST=0.0.0.0 to be reached in your own network, and start the server again.")
				}
			})
		},
	})
}
