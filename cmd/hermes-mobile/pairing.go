package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"hermes-mobile/internal/access"
	"hermes-mobile/internal/server"
)

const platform = "mobile"

func pairingCommand() *cobra.Command {
	list := jsonFlag(&cobra.Command{Use: "list [mobile]", Short: "List pairing requests and approved users", Args: platformThen(),
		Example: `  hermes-mobile pairing list
  hermes-mobile pairing list --json | jq -r '.pending[].request_id'`,
		RunE: func(cmd *cobra.Command, _ []string) error { return listPairing(cmd) }})
	approve := jsonFlag(&cobra.Command{Use: "approve [mobile] CODE_OR_REQUEST", Short: "Approve a pairing request", Args: platformThen("CODE_OR_REQUEST"),
		Long: `Approve the user of a pairing request. Pass the approval code that the device shows, or the request id
from "pairing list".`,
		Example: `  hermes-mobile pairing approve 7KQ4M2XD
  hermes-mobile pairing approve mobile 84b9042da9357a03`,
		RunE: func(cmd *cobra.Command, args []string) error { return approveUser(cmd, args[len(args)-1]) }})
	revoke := jsonFlag(&cobra.Command{Use: "revoke [mobile] USER", Short: "Revoke a user's approval and close the user's connections", Args: platformThen("USER"),
		Example: `  hermes-mobile pairing revoke anna`,
		RunE:    func(cmd *cobra.Command, args []string) error { return revokeUser(cmd, args[len(args)-1]) }})
	return group(&cobra.Command{Use: "pairing", Short: "Approve or revoke users who may talk to the agent",
		Long: `Approve or revoke users who may talk to the agent. If Hermes runs on this machine, "hermes pairing"
shows the same requests and approvals. These commands also work while the server is not running. To
pair a phone with a QR code, use "hermes-mobile pair".`,
		Example: `  hermes-mobile pairing list
  hermes-mobile pairing approve 7KQ4M2XD`}, list, approve, revoke)
}

// platformThen accepts the platform's name before the arguments, as "hermes pairing" does.
func platformThen(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		n := len(names)
		if len(args) == n+1 && args[0] != platform {
			return misuse(cmd, "unknown platform %q: use %s", args[0], platform)
		}
		if len(args) > n || len(args) > 0 && len(args) == n && args[0] == platform {
			args = args[1:]
		}
		return takes(names...)(cmd, args)
	}
}

// withFiles runs f on the pairing files if no server is running.
func withFiles(cmd *cobra.Command, err error, f func(*access.Pairing) error) error {
	if !errors.Is(err, server.ErrNotRunning) {
		return err
	}
	cfg, _, e := settings(cmd)
	if e != nil {
		return e
	}
	if _, e := os.Stat(cfg.Data); e != nil && !cfg.HermesHomeExists {
		return err // nothing to change, and a mistyped folder must not be created
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
			fmt.Fprintln(w, "No pairing requests, and no approved users.")
		}
		if len(l.Pending) > 0 {
			table(w, "REQUEST | USER | NAME | AGE", func(row func(...any)) {
				for _, p := range l.Pending {
					row(p.RequestID, p.UserID, p.UserName, fmt.Sprintf("%d min", p.AgeMinutes))
				}
			})
			fmt.Fprintln(w, "\nApprove a request with: hermes-mobile pairing approve REQUEST")
		}
		if len(l.Pending) > 0 && len(l.Approved) > 0 {
			fmt.Fprintln(w)
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
			return hint(err, "list the requests with: hermes-mobile pairing list; a request id works in place of the code")
		}
	}
	return show(cmd, a, func(w io.Writer) { fmt.Fprintf(w, "Approved %s\n", clean(a.User.UserID)) })
}

func revokeUser(cmd *cobra.Command, user string) error {
	a, err := post[server.Approved](cmd.Context(), cmd, "/pairing/revoke", server.Command{ID: user})
	if err != nil {
		if err := withFiles(cmd, err, func(p *access.Pairing) error { a.User.UserID = user; return p.Revoke(user) }); err != nil {
			return hint(err, "list the approved users with: hermes-mobile pairing list")
		}
	}
	return show(cmd, a, func(w io.Writer) {
		fmt.Fprintf(w, "Revoked %s\n", clean(user))
		if a.Anyway != "" {
			fmt.Fprintln(w, "note:", a.Anyway)
		}
	})
}
