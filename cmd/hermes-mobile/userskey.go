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
	add := jsonFlag(&cobra.Command{Use: "add NAME", Short: "Create an API key for a user and show it once", Args: takes("NAME"),
		Long: `Create an API key for a user, and show it once. The server stores only its hash. A program that sends the
key as a bearer token acts as that user: it sees the same sessions and has the same limits. The key is
valid immediately.`,
		Example: `  hermes-mobile users key add anna --label laptop --expires 90d`,
		RunE:    func(cmd *cobra.Command, args []string) error { return addKey(cmd, args[0], label, life) }})
	add.Flags().StringVar(&label, "label", "", "`name` of the key, such as the program that uses it")
	add.Flags().Var(&life, "expires", "expire the key after this `duration`, such as 12h or 90d (default: never)")
	return group(&cobra.Command{Use: "key", Short: "Manage API keys of users: list, add, remove",
		Long: `List, add, and remove API keys of users. With the base URL and a key, any OpenAI client can use Hermes'
API through the API proxy (MOBILE_FRONT_API=1). These commands also work while the server is not
running.`,
		Example: `  hermes-mobile users key add anna --label laptop
  hermes-mobile users key list`},
		jsonFlag(&cobra.Command{Use: "list [NAME]", Short: "List API keys of one user or all users, without the secrets", Args: cobra.MaximumNArgs(1), RunE: listKeys,
			Example: `  hermes-mobile users key list
  hermes-mobile users key list anna`}),
		add,
		jsonFlag(&cobra.Command{Use: "remove ID", Short: "Remove an API key and end its requests", Args: takes("ID"), RunE: removeKey,
			Long:    `Remove an API key. "users key list" shows its ID. Responses streaming to programs with this key end at once.`,
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
			fmt.Fprintf(w, "No API keys. Add one with: %s users key add NAME\n", program(cmd))
			return
		}
		table(w, "ID | USER | LABEL | CREATED | EXPIRES | LAST USED", func(row func(...any)) {
			for _, k := range list {
				row(k.ID, k.User, clean(k.Label), k.CreatedAt.Local().Format(time.DateOnly), expiry(k.ExpiresAt), lastUse(k.UsedAt))
			}
		})
	})
}

// expiry formats the expiry of a key.
func expiry(at *time.Time) string {
	switch {
	case at == nil:
		return "never"
	case !time.Now().Before(*at):
		return "expired"
	}
	return at.Local().Format(time.DateOnly)
}

// lastUse formats the last use of a key.
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
	return show(cmd, map[string]string{"id": args[0], "done": "removed"}, func(w io.Writer) { fmt.Fprintf(w, "Removed %s\n", clean(args[0])) })
}
