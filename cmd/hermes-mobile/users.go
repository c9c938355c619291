package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"hermes-mobile/internal/apiproxy"
	"hermes-mobile/internal/audit"
	"hermes-mobile/internal/plaintext"
	"hermes-mobile/internal/server"
	"hermes-mobile/internal/store"
)

func usersCommand() *cobra.Command {
	return group(&cobra.Command{Use: "users", Short: "Manage users of the API proxy: list, add, remove",
		Long: `List, add, and remove users of the API proxy. With MOBILE_FRONT_API=1, the server offers Hermes' API to
users who log in. Users see only their own sessions, runs, and jobs. Paired devices need no user here.
These commands also work while the server is not running.`,
		Example: `  hermes-mobile users add anna
  hermes-mobile users list`},
		jsonFlag(&cobra.Command{Use: "list", Short: "List all users", Args: takes(), RunE: listUsers,
			Example: `  hermes-mobile users list`}),
		jsonFlag(&cobra.Command{Use: "add NAME", Short: "Add a user", Args: takes("NAME"), RunE: addUser,
			Long: `Add a user. The command asks for the password at the terminal, or reads one line from standard input. A
password has at least 8 characters. NAME is 1 to 64 of a-z 0-9 . _ @ + - and is not case-sensitive.`,
			Example: `  hermes-mobile users add anna
  pass show hermes/anna | hermes-mobile users add anna`}),
		jsonFlag(&cobra.Command{Use: "remove NAME", Short: "Remove a user with all logins and API keys", Args: takes("NAME"), RunE: removeUser,
			Long: `Remove a user with all logins and API keys. The user's sessions stay in Hermes, but no user can see
them, even if you add a user with the same name later.`,
			Example: `  hermes-mobile users remove anna`}),
		usersKeyCommand(),
		jsonFlag(&cobra.Command{Use: "passwd NAME", Short: "Change a user's password and end all logins", Args: takes("NAME"), RunE: changePassword,
			Long: `Change a user's password and end all logins. The command asks for the password at the terminal, or reads
one line from standard input. API keys stay valid: remove them with "users key remove".`,
			Example: `  hermes-mobile users passwd anna`}))
}

// withUsers runs f on the store if no server is running. A running server holds the store itself.
func withUsers(cmd *cobra.Command, err error, f func(context.Context, *apiproxy.Users) error) error {
	if !errors.Is(err, server.ErrNotRunning) {
		return err
	}
	cfg, _, e := settings(cmd)
	if e != nil {
		return e
	}
	if _, e := os.Stat(cfg.Data); e != nil {
		return err // a mistyped folder must not be created
	}
	s, e := store.Open(cmd.Context(), cfg.Data)
	if e != nil {
		return e
	}
	ctx := audit.With(cmd.Context(), audit.By{Actor: audit.ActorSocket, Origin: fmt.Sprintf("uid %d, no server was running", os.Getuid())})
	return errors.Join(f(ctx, apiproxy.NewUsers(s, apiproxy.Cost{}, time.Now)), s.Close())
}

func listUsers(cmd *cobra.Command, _ []string) error {
	list, err := get[[]apiproxy.User](cmd.Context(), cmd, "/users")
	if err != nil {
		if err := withUsers(cmd, err, func(ctx context.Context, u *apiproxy.Users) (e error) { list, e = u.List(ctx); return e }); err != nil {
			return err
		}
	}
	return show(cmd, list, func(w io.Writer) {
		if len(list) == 0 {
			fmt.Fprintf(w, "No users. Add one with: %s users add NAME\n", program(cmd))
			return
		}
		table(w, "NAME | CREATED | LAST LOGIN", func(row func(...any)) {
			for _, u := range list {
				seen := "never"
				if u.SeenAt != nil {
					seen = u.SeenAt.Local().Format(time.DateTime)
				}
				row(u.Name, u.CreatedAt.Local().Format(time.DateOnly), seen)
			}
		})
	})
}

// change changes a user through the running server, or with offline if no server is running.
func change(cmd *cobra.Command, path, done string, c server.Command, offline func(context.Context, *apiproxy.Users) error) error {
	if _, err := post[any](cmd.Context(), cmd, path, c); err != nil {
		if err := withUsers(cmd, err, offline); err != nil {
			return err
		}
	}
	name := strings.ToLower(c.Name)
	return show(cmd, map[string]string{"name": name, "done": done}, func(w io.Writer) { fmt.Fprintf(w, "%s%s %s\n", strings.ToUpper(done[:1]), done[1:], clean(name)) })
}

func addUser(cmd *cobra.Command, args []string) error {
	password, err := askPassword(cmd)
	if err != nil {
		return err
	}
	return change(cmd, "/users/add", "added", server.Command{Name: args[0], Password: server.Password(password)},
		func(ctx context.Context, u *apiproxy.Users) error { return u.Add(ctx, args[0], password) })
}

func removeUser(cmd *cobra.Command, args []string) error {
	return change(cmd, "/users/remove", "removed", server.Command{Name: args[0]},
		func(ctx context.Context, u *apiproxy.Users) error { _, err := u.Remove(ctx, args[0]); return err })
}

func changePassword(cmd *cobra.Command, args []string) error {
	password, err := askPassword(cmd)
	if err != nil {
		return err
	}
	return change(cmd, "/users/passwd", "changed", server.Command{Name: args[0], Password: server.Password(password)},
		func(ctx context.Context, u *apiproxy.Users) error {
			_, err := u.SetPassword(ctx, args[0], password)
			return err
		})
}

// askPassword asks for a user's password.
func askPassword(cmd *cobra.Command) (string, error) {
	return askSecret(cmd, "Password: ", apiproxy.CheckPassword)
}

// askSecret asks twice at a terminal without echo, or reads one line from another standard input. check
// returns why a secret is not acceptable.
func askSecret(cmd *cobra.Command, question string, check func(string) error) (string, error) {
	in, ok := cmd.InOrStdin().(*os.File)
	if !ok || !term.IsTerminal(in.Fd()) {
		line, err := bufio.NewReader(io.LimitReader(plaintext.Reader(cmd.InOrStdin()), 64<<10)).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", fmt.Errorf("read standard input: %w", err)
		}
		secret := strings.TrimRight(line, "\r\n")
		return secret, hint(check(secret), "pass it as one line on standard input, or run this in a terminal")
	}
	first, err := askHidden(cmd, in, question)
	if err != nil {
		return "", err
	}
	if err := check(first); err != nil {
		return "", err
	}
	again, err := askHidden(cmd, in, "Repeat it: ")
	if err == nil && again != first {
		err = errors.New("the entries don't match: nothing was changed")
	}
	return first, err
}

// askHidden reads a line without echo. Ctrl-C ends the wait and restores the echo.
func askHidden(cmd *cobra.Command, in *os.File, question string) (string, error) {
	before, err := term.GetState(in.Fd())
	if err != nil {
		return "", err
	}
	fmt.Fprint(cmd.ErrOrStderr(), question)
	defer fmt.Fprintln(cmd.ErrOrStderr())
	type answer struct {
		text []byte
		err  error
	}
	read := make(chan answer, 1)
	go func() {
		text, err := term.ReadPassword(in.Fd())
		read <- answer{text, err}
	}()
	select {
	case a := <-read:
		if a.err != nil {
			return "", errors.New("no input: nothing was changed")
		}
		return string(a.text), nil
	case <-cmd.Context().Done():
		_ = term.Restore(in.Fd(), before)
		return "", errors.New("stopped: nothing was changed")
	}
}
