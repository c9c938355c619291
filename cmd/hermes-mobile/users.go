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
	return group(&cobra.Command{Use: "users", Short: "List, add and remove who may log in to Hermes' API",
		Long: `List, add and remove who may log in to Hermes' API at this server, which serves it with MOBILE_FRONT_API=1. Each user sees
sessions, runs and jobs of the own. Devices need no user: they are paired. This works without a running server, too.`,
		Example: `  hermes-mobile users add anna
  hermes-mobile users list`},
		jsonFlag(&cobra.Command{Use: "list", Short: "List all users", Args: takes(), RunE: listUsers,
			Example: `  hermes-mobile users list`}),
		jsonFlag(&cobra.Command{Use: "add NAME", Short: "Add a user and ask for the password", Args: takes("NAME"), RunE: addUser,
			Long: `Add a user. The password is asked at the terminal, or read from standard input: one line of 8 characters or more.
NAME is 1 to 64 of a-z 0-9 . _ @ + - and means the same in capitals.`,
			Example: `  hermes-mobile users add anna
  pass show hermes/anna | hermes-mobile users add anna`}),
		jsonFlag(&cobra.Command{Use: "remove NAME", Short: "Remove a user and end all logins and keys", Args: takes("NAME"), RunE: removeUser,
			Long: `Remove a user and end all logins and keys. The sessions stay in Hermes, and no user sees them any more, also none who gets the same
name later.`,
			Example: `  hermes-mobile users remove anna`}),
		usersKeyCommand(),
		jsonFlag(&cobra.Command{Use: "passwd NAME", Short: "Change the password of a user and end all logins", Args: takes("NAME"), RunE: changePassword,
			Long: `Change the password of a user and end all logins. It is asked at the terminal, or read from standard input. Keys stay valid:
hermes-mobile users key remove ends them.`,
			Example: `  hermes-mobile users passwd anna`}))
}

// withUsers does f on the store where no server is running, which has it otherwise.
func withUsers(cmd *cobra.Command, err error, f func(context.Context, *apiproxy.Users) error) error {
	if !errors.Is(err, server.ErrNotRunning) {
		return err
	}
	cfg, _, e := settings(cmd)
	if e != nil {
		return e
	}
	if _, e := os.Stat(cfg.Data); e != nil {
		return err // a mistyped folder is not to be made
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
			fmt.Fprintf(w, "There are no users. Add one with: %s users add NAME\n", program(cmd))
			return
		}
		table(w, "NAME | SINCE | LAST LOGIN", func(row func(...any)) {
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

// change makes a change of a user, and says that it is done.
func change(cmd *cobra.Command, path, done string, c server.Command, alone func(context.Context, *apiproxy.Users) error) error {
	if _, err := post[any](cmd.Context(), cmd, path, c); err != nil {
		if err := withUsers(cmd, err, alone); err != nil {
			return err
		}
	}
	name := strings.ToLower(c.Name)
	return show(cmd, map[string]string{"name": name, "done": done}, func(w io.Writer) { fmt.Fprintf(w, "%s %s\n", done, clean(name)) })
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

// askPassword asks for the password of a user.
func askPassword(cmd *cobra.Command) (string, error) {
	return askSecret(cmd, "Password: ", apiproxy.CheckPassword)
}

// askSecret asks twice at a terminal, without showing what is typed, or else reads a line. check says why a secret cannot be taken.
func askSecret(cmd *cobra.Command, question string, check func(string) error) (string, error) {
	in, ok := cmd.InOrStdin().(*os.File)
	if !ok || !term.IsTerminal(in.Fd()) {
		line, err := bufio.NewReader(io.LimitReader(plaintext.Reader(cmd.InOrStdin()), 64<<10)).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", fmt.Errorf("standard input cannot be read: %w", err)
		}
		secret := strings.TrimRight(line, "\r\n")
		return secret, hint(check(secret), "give it on standard input, one line, or at a terminal")
	}
	first, err := askHidden(cmd, in, question)
	if err != nil {
		return "", err
	}
	if err := check(first); err != nil {
		return "", err
	}
	again, err := askHidden(cmd, in, "The same once more: ")
	if err == nil && again != first {
		err = errors.New("the two are not the same: nothing was changed")
	}
	return first, err
}

// askHidden reads a line without an echo. Ctrl-C ends the wait, and the echo comes back.
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
			return "", errors.New("there was no answer: nothing was changed")
		}
		return string(a.text), nil
	case <-cmd.Context().Done():
		_ = term.Restore(in.Fd(), before)
		return "", errors.New("stopped: nothing was changed")
	}
}
