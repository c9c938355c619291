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
	cmd := &cobra.Command{Use: "devices", Short: "List, rename, unbind and revoke devices"}
	act := func(use, short, path, done string, args int) *cobra.Command {
		return jsonFlag(&cobra.Command{Use: use, Short: short, Args: cobra.ExactArgs(args), RunE: func(cmd *cobra.Command, a []string) error {
			in := server.Command{ID: a[0]}
			if args > 1 {
				in.Name = a[1]
			}
			if _, err := post[any](cmd.Context(), cmd, path, in); err != nil {
				return err
			}
			return show(cmd, map[string]string{"device": a[0], "done": done}, func(w io.Writer) { fmt.Fprintf(w, "%s %s\n", done, clean(a[0])) })
		}})
	}
	cmd.AddCommand(
		jsonFlag(&cobra.Command{Use: "list", Short: "List all devices", Args: cobra.NoArgs, RunE: listDevices}),
		act("rename ID NAME", "Give a device another name for display", "/devices/rename", "renamed", 2),
		act("unbind ID", "Forget the token a device is bound to, and its revocation", "/devices/unbind", "unbound", 1),
		act("revoke ID", "Close a device's connection, drop what is kept for it, and refuse it from now on", "/devices/revoke", "revoked", 1))
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
				row(d.ID, d.Name, d.User, d.Token, deviceState(d), d.Waiting, d.SeenAt.Local().Format(time.DateTime))
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
	return state
}
