package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"hermes-mobile/internal/hub"
	"hermes-mobile/internal/server"
)

func devicesCommand() *cobra.Command {
	// act is a command that has something done with one device.
	act := func(path, done string, cmd *cobra.Command, names ...string) *cobra.Command {
		cmd.Args = takes(names...)
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			in := server.Command{ID: args[0]}
			if len(args) > 1 {
				in.Name = args[1]
			}
			if _, err := post[any](cmd.Context(), cmd, path, in); err != nil {
				return err
			}
			return show(cmd, map[string]string{"device": args[0], "done": done}, func(w io.Writer) { fmt.Fprintf(w, "%s %s\n", done, clean(args[0])) })
		}
		return jsonFlag(cmd)
	}
	return group(&cobra.Command{Use: "devices", Short: "List, rename, limit, share, unbind and revoke devices, replace their tokens",
		Example: `  hermes-mobile devices list
  hermes-mobile devices revoke tel-1`},
		jsonFlag(&cobra.Command{Use: "list", Short: "List all devices, the last seen first", Args: takes(), RunE: listDevices,
			Example: `  hermes-mobile devices list
  hermes-mobile devices list --json | jq -r '.[] | select(.connected).id'`}),
		act("/devices/rename", "renamed", &cobra.Command{Use: "rename ID NAME", Short: "Give a device another name for display",
			Example: `  hermes-mobile devices rename tel-1 "Anna's phone"`}, "ID", "NAME"),
		rightsCommand(),
		act("/devices/join", "joined", &cobra.Command{Use: "join ID CONVERSATION", Short: "Let a device take part in the conversation of another one of its user",
			Long: `Let a device take part in the conversation of another device of the same user, which CONVERSATION names. From then on both
get all messages, replies and question cards; the first answer to a card counts. Its own conversation rests until "devices leave".
The user's other devices are told, and for a minute the device may not answer question cards.`,
			Example: `  hermes-mobile devices join tab-1 tel-1`}, "ID", "CONVERSATION"),
		act("/devices/leave", "left", &cobra.Command{Use: "leave ID", Short: "Give a device its own conversation again",
			Example: `  hermes-mobile devices leave tab-1`}, "ID"),
		act("/devices/unbind", "unbound", &cobra.Command{Use: "unbind ID", Short: "Let a device come with another token, or come back after it was revoked",
			Long: `Forget the token that a device is bound to, its user, and that it was revoked. A user of whom it was the only device is not
approved any more. The device comes back as the user it had: paired with a code it is approved, and what waits for it comes; with an
app token it asks for approval anew, and what waited is gone. Only a code that names another user gives the id to somebody else.
What the agent itself remembers of the conversation stays: start it anew with /new.`,
			Example: `  hermes-mobile devices unbind tel-1`}, "ID"),
		rotateCommand(),
		act("/devices/revoke", "revoked", &cobra.Command{Use: "revoke ID", Short: "Shut a device out: a phone that was lost, say",
			Long: `Close a device's connection at once, drop what is kept for it and its own token, and refuse it until "devices unbind".
The approval of its user stays, for the user's other devices: hermes-mobile pairing revoke takes that away.`,
			Example: `  hermes-mobile devices revoke tel-1`}, "ID"))
}

func rotateCommand() *cobra.Command {
	var life tokenLife
	cmd := jsonFlag(&cobra.Command{Use: "rotate ID", Short: "Replace a device's own token by another one", Args: takes("ID"),
		Long: `Replace the token that a paired device has of its own. The device gets the new one as soon as it connects, and the present
one ends when the device says that it has stored it; "devices list" shows when that is still to come. With --expires the device's
token ends after that time; without it, when it would have ended anyway.

If a stranger may have the token, revoke the device instead and pair it again: whoever connects first with the present token
gets the new one.`,
		Example: `  hermes-mobile devices rotate tel-1
  hermes-mobile devices rotate tel-1 --expires 90d`,
		RunE: func(cmd *cobra.Command, args []string) error {
			in := server.Command{ID: args[0]}
			if cmd.Flags().Changed("expires") {
				in.Life = new(life.seconds())
			}
			if _, err := post[any](cmd.Context(), cmd, "/devices/rotate", in); err != nil {
				return err
			}
			return show(cmd, map[string]string{"device": args[0], "done": "rotated"}, func(w io.Writer) {
				fmt.Fprintf(w, "%s gets another token when it connects\n", clean(args[0]))
			})
		}})
	cmd.Flags().Var(&life, "expires", "`time` after which the device's token expires, such as 30d or 12h, or never (default: as before)")
	return cmd
}

func listDevices(cmd *cobra.Command, _ []string) error {
	list, err := get[[]hub.DeviceInfo](cmd.Context(), cmd, "/devices")
	if err != nil {
		return err
	}
	return show(cmd, list, func(w io.Writer) {
		if len(list) == 0 {
			fmt.Fprintln(w, "No device has connected yet. Pair one with: hermes-mobile pair")
			return
		}
		table(w, "DEVICE | NAME | USER | TOKEN | STATE | WAITING | LAST SEEN", func(row func(...any)) {
			for _, d := range list {
				seen := d.SeenAt.Local().Format(time.DateTime)
				if d.Connected {
					seen = "now"
				}
				row(d.ID, d.Name, d.User, d.Token, deviceState(d), d.Waiting, seen)
			}
		})
	})
}

func deviceState(d hub.DeviceInfo) string {
	state := "away"
	switch {
	case d.Revoked:
		state = "revoked"
	case d.Connected:
		state = "connected"
	}
	if !d.Approved && !d.Revoked {
		state += ", not approved"
	}
	if d.Home {
		state += ", home"
	}
	if d.Conversation != "" {
		state += ", in the conversation of " + d.Conversation
	}
	if missing := missingRights(d.Rights); missing != "" {
		state += ", " + missing
	}
	switch now := time.Now(); {
	case d.ExpiresAt == nil || d.Revoked:
	case d.ExpiresAt.After(now):
		state += ", token expires " + d.ExpiresAt.Local().Format(time.DateTime)
	default:
		state += ", token expired"
	}
	if d.Rotating {
		state += ", gets another token when it connects"
	}
	if d.AnswersAt != nil {
		state += ", may answer from " + d.AnswersAt.Local().Format(time.TimeOnly)
	}
	return state
}
