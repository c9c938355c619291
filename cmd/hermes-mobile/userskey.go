package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hermes-mobile/internal/apiproxy"
	"hermes-mobile/internal/server"
)

func usersKeyCommand() *cobra.Command {
	var life tokenLife
	var label string
	add := jsonFlag(&cobra.Command{Use: "add NAME", Short: "Make an API key for a user and show it, this once", Args: takes("NAME"),
		Long: `Make an API key for a user, and show it. The server keeps only its hash. A program sends the key as a bearer token, and is
that user: it sees the same sessions and has the same limits. The key is valid at once.`,
		Example: `  hermes-mobile users key add anna --label laptop --expires 90d`,
		RunE:    func(cmd *cobra.Command, args []string) error { return addKey(cmd, args[0], label, life) }})
	add.Flags().StringVar(&label, "label", "", "a name that tells this key from others, such as the program that uses it")
	add.Flags().Var(&life, "expires", "how long the key is valid, such as 12h or 90d (default never)")
	return group(&cobra.Command{Use: "key", Short: "List, add and remove the API keys of users",
		Long: `List, add and remove the API keys of users. With a base URL and a key every OpenAI client can use Hermes' API at this
server, which serves it with MOBILE_FRONT_API=1. This works without a running server, too.`,
		Example: `  hermes-mobile users key add anna --label laptop
  hermes-mobile users key list`},
		jsonFlag(&cobra.Command{Use: "list [NAME]", Short: "List the keys of a user or all, never the keys themselves", Args: cobra.MaximumNArgs(1), RunE: listKeys,
			Example: `  hermes-mobile users key list
  hermes-mobile users key list anna`}),
		add,
		jsonFlag(&cobra.Command{Use: "remove ID", Short: "Remove an API key and end what uses it", Args: takes("ID"), RunE: removeKey,
			Long:    `Remove an API key by its ID, which "users key list" shows. Answers that are streamed to programs with this key end at once.`,
			Example: `  hermes-mobile users key remove k4mq7xbd2`}))
}

func listKeys(cmd *cobra.Command, args []string) error {
	list, err := get[[]apiproxy.Key](cmd.Context(), cmd, "/users/key")
	if err != nil {
		if err := withUsers(cmd, err, func(ctx context.Context, u *apiproxy.Users) (e error) { list, e = u.Keys(ctx, ""); return e }); err != nil {
			return err
		}
	}
	if len(args) > 0 {
		own := []apiproxy.Key{}
		for _, k := range list {
			if k.User == strings.ToLower(args[0]) {
				own = append(own, k)
			}
		}
		list = own
	}
	return show(cmd, list, func(w io.Writer) {
		if len(list) == 0 {
			fmt.Fprintf(w, "There are no keys. Add one with: %s users key add NAME\n", program(cmd))
			return
		}
		table(w, "ID | USER | LABEL | SINCE | EXPIRES | LAST USED", func(row func(...any)) {
			for _, k := range list {
				row(k.ID, k.User, clean(k.Label), k.CreatedAt.Local().Format(time.DateOnly), expiry(k.ExpiresAt), lastUse(k.UsedAt))
			}
		})
	})
}

// expiry says when a key ends.
func expiry(at *time.Time) string {
	switch {
	case at == nil:
		return "never"
	case !time.Now().Before(*at):
		return "expired"
	}
	return at.Local().Format(time.DateOnly)
}

func lastUse(at *time.Time) string {
	if at == nil {
		return "never"
	}
	return at.Local().Format(time.DateTime)
}

func addKey(cmd *cobra.Command, name, label string, life tokenLife) error {
	if err := apiproxy.CheckLabel(label); err != nil {
		return misuse(cmd, "%v", err)
	}
	k, err := post[apiproxy.NewKey](cmd.Context(), cmd, "/users/key/add", server.Command{Name: name, Label: label, Seconds: life.seconds()})
	if err != nil {
		if err := withUsers(cmd, err, func(ctx context.Context, u *apiproxy.Users) (e error) {
			k, e = u.AddKey(ctx, name, label, life.of)
			return e
		}); err != nil {
			return err
		}
	}
	return show(cmd, k, func(w io.Writer) {
		fmt.Fprintf(w, "API key  %s\n", k.Secret.Reveal())
		if k.BaseURL != "" {
			fmt.Fprintf(w, "Base URL %s\n", k.BaseURL)
		}
		fmt.Fprintf(w, "ID       %s\n", k.ID)
		if k.ExpiresAt != nil {
			fmt.Fprintf(w, "Expires  %s\n", k.ExpiresAt.Local().Format(time.DateTime))
		}
		fmt.Fprintln(w, "Save the key now: it isn't shown again.")
	})
}

func removeKey(cmd *cobra.Command, args []string) error {
	if _, err := post[any](cmd.Context(), cmd, "/users/key/remove", server.Command{ID: args[0]}); err != nil {
		if err := withUsers(cmd, err, func(ctx context.Context, u *apiproxy.Users) error { return u.RemoveKey(ctx, args[0]) }); err != nil {
			return err
		}
	}
	return show(cmd, map[string]string{"id": args[0], "done": "removed"}, func(w io.Writer) { fmt.Fprintf(w, "removed %s\n", clean(args[0])) })
}
