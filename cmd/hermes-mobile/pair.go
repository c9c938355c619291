package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/mdp/qrterminal/v3"
	"github.com/spf13/cobra"

	"hermes-mobile/frame"
	"hermes-mobile/internal/access"
	"hermes-mobile/internal/server"
)

func pairCommand() *cobra.Command {
	var in server.Command
	var life tokenLife
	cmd := jsonFlag(&cobra.Command{
		Use:   "pair",
		Short: "Pair a phone: show a QR code and a link with a pairing code",
		Long: `Show a QR code and a link with a pairing code. The device that opens it within ten minutes is approved
and gets its own token. A pairing code works once, so run the command again for the next phone.

A pairing code creates a new user. To add a device to an existing user, pass --user. The server
notifies the user's other devices, which can revoke the new one. For its first minute, the new device
can't answer question cards, unless you pass --trusted.`,
		Example: `  hermes-mobile pair
  hermes-mobile pair --user anna
  hermes-mobile pair --expires 30d
  hermes-mobile pair --json | jq -r .link`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if in.User != "" && !frame.ValidID(in.User) {
				return misuse(cmd, "invalid user id %q: use 1 to 128 of A-Z a-z 0-9 . _ - : @", clean(in.User))
			}
			in.Seconds = life.seconds()
			inv, err := post[server.Invitation](cmd.Context(), cmd, "/pair", in)
			if err != nil {
				return err
			}
			return show(cmd, inv, func(w io.Writer) { showInvitation(w, inv) })
		},
	})
	cmd.Flags().StringVar(&in.User, "user", "", "add the device to the user with this `id` (default: a new user)")
	cmd.Flags().BoolVar(&in.Trusted, "trusted", false, "let the device answer question cards immediately")
	cmd.Flags().Var(&life, "expires", "expire the device's token after this `duration`, such as 30d or 12h (default: never)")
	return cmd
}

func showInvitation(w io.Writer, inv server.Invitation) {
	if inv.Local { // above the QR code, so that nobody scans it in vain
		fmt.Fprintln(w, "This address works only on this machine. To let a phone connect, set MOBILE_PUBLIC_URL to the address of")
		fmt.Fprintln(w, "your reverse proxy, or set MOBILE_HOST=0.0.0.0 and MOBILE_TLS=self for your local network. Then restart the server.")
		fmt.Fprintln(w)
	}
	drawQR(w, inv.Link, terminal(w))
	fmt.Fprintf(w, "\nScan the QR code with your phone, or open the link there:\n  %s\n\n", inv.Link)
	fmt.Fprintf(w, "Address  %s\nCode     %s  (works once, until %s)\n", inv.Address, inv.Code, inv.Expires.Local().Format("15:04"))
	user := "a new user"
	if inv.User != "" {
		user = clean(inv.User)
	}
	fmt.Fprintf(w, "User     %s\n", user)
	if inv.Seconds > 0 {
		fmt.Fprintf(w, "Token    expires %s after pairing\n", access.FormatLife(time.Duration(inv.Seconds)*time.Second))
	}
	if inv.Fingerprint != "" {
		fmt.Fprintf(w, "Pin      %s  (fingerprint of the server's CA, included in the link)\n", inv.Fingerprint)
	}
}

// drawQR draws a QR code in half blocks. With the text below it takes 24 lines, or a few more with a
// fingerprint. In color it is dark on light, whatever the terminal's colors: not every camera reads an
// inverted code.
func drawQR(w io.Writer, text string, color bool) {
	var b strings.Builder
	qrterminal.GenerateWithConfig(text, qrterminal.Config{Level: qrterminal.L, Writer: &b, HalfBlocks: true, QuietZone: 2,
		BlackChar: qrterminal.BLACK_BLACK, WhiteChar: qrterminal.WHITE_WHITE, BlackWhiteChar: qrterminal.BLACK_WHITE, WhiteBlackChar: qrterminal.WHITE_BLACK})
	for line := range strings.Lines(b.String()) {
		if color {
			line = "\x1b[97;40m" + strings.TrimSuffix(line, "\n") + "\x1b[0m\n" // blocks are the light modules
		}
		_, _ = io.WriteString(w, line)
	}
}
