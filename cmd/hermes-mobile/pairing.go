package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"hermes-mobile/internal/access"
	"hermes-mobile/internal/server"
)

const platform = "mobile"

func pairingCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "pairing", Short: "List, approve and revoke who may talk to the agent"}
	list := jsonFlag(&cobra.Command{Use: "list [mobile]", Short: "List requests and approved users", Args: platformThen(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return listPairing(cmd) }})
	approve := jsonFlag(&cobra.Command{Use: "approve [mobile] CODE_OR_REQUEST_ID", Short: "Approve the user of a request", Args: platformThen(1),
		RunE: func(cmd *cobra.Command, args []string) error { return approveUser(cmd, args[len(args)-1]) }})
	revoke := jsonFlag(&cobra.Command{Use: "revoke [mobile] USER", Short: "Take a user's approval away and close the connections", Args: platformThen(1),
		RunE: func(cmd *cobra.Command, args []string) error { return revokeUser(cmd, args[len(args)-1]) }})
	cmd.AddCommand(list, approve, revoke)
	return cmd
}

// platformThen takes n arguments, with or without the platform's name before them, as Hermes spells it.
func platformThen(n int) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == n+1 && args[0] == platform || len(args) == n && (n == 0 || args[0] != platform) {
			return nil
		}
		if n == 0 {
			return fmt.Errorf("only the platform %q is known here", platform)
		}
		return fmt.Errorf("one argument is needed, with %q before it or without", platform)
	}
}

// withFiles does f on the pairing files where no server is running: they are all there is to change then.
func withFiles(cmd *cobra.Command, err error, f func(*access.Pairing) error) error {
	if !errors.Is(err, server.ErrNotRunning) {
		return err
	}
	cfg, _, err := settings(cmd)
	if err != nil {
		return err
	}
	p, err := server.OpenPairing(cfg)
	if err != nil {
		return err
	}
	return f(p)
}

func listPairing(cmd *cobra.Command) error {
	l, err := get[server.PairingList](cmd.Context(), cmd, "/pairing")
	if err != nil {
		if err := withFiles(cmd, err, func(p *access.Pairing) (e error) { l, e = server.ListPairing(p); return e }); err != nil {
			return err
		}
	}
	return show(cmd, l, func(w io.Writer) {
		if len(l.Pending) == 0 && len(l.Approved) == 0 {
			fmt.Fprintln(w, "Nobody waits for approval, and nobody is approved.")
		}
		if len(l.Pending) > 0 {
			table(w, "REQUEST | USER | NAME | AGE", func(row func(...any)) {
				for _, p := range l.Pending {
					row(p.RequestID, p.UserID, p.UserName, fmt.Sprintf("%d min", p.AgeMinutes))
				}
			})
			fmt.Fprintln(w, "\nApprove one with: hermes-mobile pairing approve REQUEST")
		}
		if len(l.Approved) > 0 {
			table(w, "APPROVED | NAME", func(row func(...any)) {
				for _, u := range l.Approved {
					row(u.UserID, u.UserName)
				}
			})
		}
	})
}

func approveUser(cmd *cobra.Command, arg string) error {
	a, err := post[server.Approved](cmd.Context(), cmd, "/pairing/approve", server.Command{ID: arg})
	if err != nil {
		if err := withFiles(cmd, err, func(p *access.Pairing) (e error) { a.User, e = p.Approve(arg); return e }); err != nil {
			return err
		}
	}
	return show(cmd, a, func(w io.Writer) { fmt.Fprintf(w, "approved %s\n", clean(a.User.UserID)) })
}

func revokeUser(cmd *cobra.Command, user string) error {
	a, err := post[server.Approved](cmd.Context(), cmd, "/pairing/revoke", server.Command{ID: user})
	if err != nil {
		if err := withFiles(cmd, err, func(p *access.Pairing) error { a.User.UserID = user; return p.Revoke(user) }); err != nil {
			return err
		}
	}
	return show(cmd, a, func(w io.Writer) {
		fmt.Fprintf(w, "revoked %s\n", clean(user))
		if a.Anyway != "" {
			fmt.Fprintln(w, "note:", a.Anyway)
		}
	})
}
