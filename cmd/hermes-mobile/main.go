// Command hermes-mobile is the way to reach one's own Hermes Agent from a phone, a browser, a terminal or an app.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
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
	err := cmd.ExecuteContext(ctx)
	if err == nil {
		err = out.failure
	}
	if err != nil {
		return fail(cmd.ErrOrStderr(), err)
	}
	return 0
}
