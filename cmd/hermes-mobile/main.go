// Command hermes-mobile is the way to reach one's own Hermes Agent from a phone, a browser, a terminal or an app.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Times that a command has to end after a signal, before the process ends without it.
const (
	stopWithin     = 2 * time.Second
	stopLongWithin = 20 * time.Second // of those that end connections and write down what is unfinished
)

func main() { os.Exit(run(os.Args[1:])) }

// run is the whole program; it returns the exit status.
func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // who presses Ctrl-C again does not want to wait
	cmd := root()
	cmd.SetArgs(args)
	out := &results{File: os.Stdout}
	cmd.SetOut(out)
	patience := stopWithin
	if sub, _, err := cmd.Find(args); err == nil && longRunning[sub.Name()] {
		patience = stopLongWithin
	}
	err := within(ctx, patience, func() error {
		err := cmd.ExecuteContext(ctx)
		if err == nil {
			err = out.failure
		}
		return err
	})
	if err != nil {
		return fail(cmd.ErrOrStderr(), err)
	}
	return 0
}

// longRunning are the commands that have connections to end.
var longRunning = map[string]bool{"serve": true, "app": true, "chat": true}

var errStopped = errors.New("stopped")

// within runs a command. After a signal it waits for it for a while, and not for ever: work that looks at no context must not
// keep a person from leaving.
func within(ctx context.Context, patience time.Duration, command func() error) error {
	done := make(chan error, 1)
	go func() { done <- command() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		return errStopped
	}
}
