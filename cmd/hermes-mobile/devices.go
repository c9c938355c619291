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
	// act completes a command that makes the server do one thing to one device.
	act := func(path, done, says string, cmd *cobra.Command, names ...string) *cobra.Command {
		cmd.Args = takes(names...)
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			in := server.Command{ID: args[0]}
			if len(args) > 1 {
				in.Name = args[1]
			}
			if _, err := post[any](cmd.Context(), cmd, path, in); err != nil {
				return err
			}
			return show(cmd, map[string]string{"device": args[0], "done": done}, func(w io.Writer) { fmt.Fprintf(w, says+"\n", clean(args[0])) })
		}
		return jsonFlag(cmd)
	}
	return group(&cobra.Command{Use: "devices", Short: "Manage devices: list, rename, restrict, join, unbind, rotate tokens, revoke",
		Example: `  hermes-mobile devices list
  hermes-mobile devices revoke tel-1`},
		jsonFlag(&cobra.Command{Use: "list", Short: "List all devices, most recently seen first", Args: takes(), RunE: listDevices,
			Example: `  hermes-mobile devices list
  hermes-mobile devices list --json | jq -r '.[] | select(.connected).id'`}),
		act("/devices/rename", "renamed", "Renamed %s", &cobra.Command{Use: "rename ID NAME", Short: "Change the display name of a device",
			Example: `  hermes-mobile devices rename tel-1 "Anna's phone"`}, "ID", "NAME"),
		rightsCommand(),
		act("/devices/join", "joined", "%s joined the conversation", &cobra.Command{Use: "join ID CONVERSATION", Short: "Let a device join the conversation of another device of its user",
			Long: `Let a device join the conversation of another device of the same user. CONVERSATION is the id of the
other device. Both then receive all messages, replies, and question cards. The first answer to a card
counts. The device's own conversation pauses until "devices leave".

The server notifies the user's other devices, and the device can't answer cards for one minute.`,
			Example: `  hermes-mobile devices join tab-1 tel-1`}, "ID", "CONVERSATION"),
		act("/devices/leave", "left", "%s left the conversation and has its own again", &cobra.Command{Use: "leave ID", Short: "Return a device to its own conversation",
			Example: `  hermes-mobile devices leave tab-1`}, "ID"),
		act("/devices/unbind", "unbound", "Unbound %s", &cobra.Command{Use: "unbind ID", Short: "Let a device connect with a new token, or after it was revoked",
			Long: `Clear the token, the user, and the revocation of a device, so that it can connect again. If it was the
user's only device, the user loses the approval.

A device that pairs with a pairing code is approved as the same user and gets its queued messages. A
device that connects with an app token needs a new approval and loses its queued messages. Only a
pairing code for another user gives the device id to that user.

The agent keeps its memory of the conversation. Send /new to start a new one.`,
			Example: `  hermes-mobile devices unbind tel-1`}, "ID"),
		rotateCommand(),
		act("/devices/revoke", "revoked", "Revoked %s", &cobra.Command{Use: "revoke ID", Short: "Revoke a device, such as a lost phone",
			Long: `Close the device's connection, delete its queued messages and its own token, and reject it until
"devices unbind". The user stays approved on other devices. To revoke the user, run
"hermes-mobile pairing revoke".`,
			Example: `  hermes-mobile devices revoke tel-1`}, "ID"))
}

func rotateCommand() *cobra.Command {
	var life tokenLife
	cmd := jsonFlag(&cobra.Command{Use: "rotate ID", Short: "Replace the token of a paired device", Args: takes("ID"),
		Long: `Replace the token of a paired device. The device gets the new token when it next connects. The old
token stays valid until the device confirms that it stored the new one; "devices list" shows devices
that have not yet. With --expires, the new token expires after that time. Without it, the expiry stays
the same.

If somebody else may have the token, revoke the device and pair it again: whoever connects first with
the old token gets the new one.`,
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
				fmt.Fprintf(w, "%s gets a new token when it connects\n", clean(args[0]))
			})
		}})
	cmd.Flags().Var(&life, "expires", "expire the token after this `duration`, such as 30d or 12h, or never (default: keep the expiry)")
	return cmd
}

func listDevices(cmd *cobra.Command, _ []string) error {
	list, err := get[[]hub.DeviceInfo](cmd.Context(), cmd, "/devices")
	if err != nil {
		return err
	}
	return show(cmd, list, func(w io.Writer) {
		if len(list) == 0 {
			fmt.Fprintln(w, "No devices yet. Pair one with: hermes-mobile pair")
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
	state := "offline"
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
		state += ", gets a new token when it connects"
	}
	if d.AnswersAt != nil {
		state += ", may answer cards from " + d.AnswersAt.Local().Format(time.TimeOnly)
	}
	return state
}
