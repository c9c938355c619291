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
		Short: "Show a QR code and a link with a pairing code for a phone",
		Long: `Show a QR code and a link with a pairing code. Who opens it within ten minutes is approved, and gets a token of its own
that works for this one device. A code works once. Run it again for the next phone.

The code makes a new user. To add a device to a user who exists, name the user with --user. The user's other devices are
told of a new device at once and can revoke it, and for its first minute it may not answer question cards. --trusted leaves
that minute out.`,
		Example: `  hermes-mobile pair
  hermes-mobile pair --user anna
  hermes-mobile pair --expires 30d
  hermes-mobile pair --json | jq -r .link`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if in.User != "" && !frame.ValidID(in.User) {
				return misuse(cmd, "%q is no user id: it takes 1 to 128 of A-Z a-z 0-9 . _ - : @", clean(in.User))
			}
			in.Seconds = life.seconds()
			inv, err := post[server.Invitation](cmd.Context(), cmd, "/pair", in)
			if err != nil {
				return err
			}
			return show(cmd, inv, func(w io.Writer) { showInvitation(w, inv) })
		},
	})
	cmd.Flags().StringVar(&in.User, "user", "", "`id` of the user whom the device belongs to (default: a new user)")
	cmd.Flags().BoolVar(&in.Trusted, "trusted", false, "let the device answer question cards at once")
	cmd.Flags().Var(&life, "expires", "`time` after which the device's token expires, such as 30d or 12h (default: never)")
	return cmd
}

func showInvitation(w io.Writer, inv server.Invitation) {
	if inv.Local { // before the code, so that nobody scans it in vain
		fmt.Fprintln(w, "This address is of this machine only. For a phone set MOBILE_PUBLIC_URL to the address of your reverse proxy,")
		fmt.Fprintln(w, "or MOBILE_HOST=0.0.0.0 and MOBILE_TLS=self to be reached in your own network, and start the server again.")
		fmt.Fprintln(w)
	}
	drawQR(w, inv.Link, terminal(w))
	fmt.Fprintf(w, "\nScan this with the phone, or open the link there:\n  %s\n\n", inv.Link)
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
		fmt.Fprintf(w, "Pin      %s  (the certificate's authority; the link has it)\n", inv.Fingerprint)
	}
}

// drawQR draws a QR code in half blocks: with the text below it 24 lines, and some more with a fingerprint. In colour it is dark on light whatever the
// terminal's own colours are, since not every camera reads it the other way around.
func drawQR(w io.Writer, text string, colour bool) {
	var b strings.Builder
	qrterminal.GenerateWithConfig(text, qrterminal.Config{Level: qrterminal.L, Writer: &b, HalfBlocks: true, QuietZone: 2,
		BlackChar: qrterminal.BLACK_BLACK, WhiteChar: qrterminal.WHITE_WHITE, BlackWhiteChar: qrterminal.BLACK_WHITE, WhiteBlackChar: qrterminal.WHITE_BLACK})
	for line := range strings.Lines(b.String()) {
		if colour {
			line = "\x1b[97;40m" + strings.TrimSuffix(line, "\n") + "\x1b[0m\n" // blocks are the light modules
		}
		_, _ = io.WriteString(w, line)
	}
}
