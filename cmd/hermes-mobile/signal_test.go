package main

import (
	"context"
	"errors"
	"testing"
	"time"
)

// A command that looks at no context ends soon after the first signal, and one that ends by itself is waited for.
func TestCommandsEndOnASignal(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	release := make(chan struct{})
	began := time.Now()
	cancel()
	if err := within(ctx, 10*time.Millisecond, func() error { <-release; return nil }); !errors.Is(err, errStopped) || time.Since(began) > 20*time.Second {
		t.Errorf("it ends with %v after %v", err, time.Since(began))
	}
	close(release)
	failed := errors.New("failed")
	if err := within(ctx, time.Minute, func() error { <-ctx.Done(); return failed }); !errors.Is(err, failed) {
		t.Errorf("the command's own error is %v", err)
	}
	if err := within(t.Context(), 0, func() error { return nil }); err != nil {
		t.Error(err)
	}
}
