// Command hermes-mobile connects phones, browsers, terminals, and apps to a self-hosted Hermes Agent.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Grace periods: how long a command may take to return after a signal before the process exits anyway.
const (
	stopWithin     = 2 * time.Second
	stopLongWithin = 20 * time.Second // for commands that close connections and store unfinished work
)

func main() { os.Exit(run(os.Args[1:])) }

// run executes the command line and returns the exit status.
func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C kills the process at once
	cmd := root()
	cmd.SetArgs(args)
	out := &results{File: os.Stdout}
	cmd.SetOut(out)
	grace := stopWithin
	if sub, _, err := cmd.Find(args); err == nil && longRunning[sub.Name()] {
		grace = stopLongWithin
	}
	err := within(ctx, grace, func() error {
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

// longRunning lists the commands that close connections when they stop.
var longRunning = map[string]bool{"serve": true, "app": true, "chat": true}

var errStopped = errors.New("stopped")

// within runs a command. When ctx ends, within waits for at most grace and then returns errStopped:
// code that ignores its context must not keep a user from leaving.
func within(ctx context.Context, grace time.Duration, command func() error) error {
	done := make(chan error, 1)
	go func() { done <- command() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		return errStopped
	}
}
