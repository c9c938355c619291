package device_test

import (
	"context"
	"errors"
	"testing"

	"hermes-mobile/device"
	"hermes-mobile/device/devicetest"
)

// A loop says why it ended, and a second one gets an error instead of events.
func TestEventsEnd(t *testing.T) {
	srv := devicetest.New(t)
	a := quiet(t, config(srv.URL))
	srv.Accept(nil)
	ctx, cancel := context.WithCancel(t.Context())
	last := func(ctx context.Context) (err error) {
		for _, err = range a.Events(ctx) {
		}
		return err
	}
	started, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		var once bool
		var why error
		for ev, err := range a.Events(ctx) {
			if !once {
				once = true
				close(started)
			}
			if why = err; err != nil && ev != nil {
				t.Errorf("an event beside the error: %v", ev)
			}
		}
		ended <- why
	}()
	<-started
	if err := last(t.Context()); !errors.Is(err, device.ErrEventsInUse) {
		t.Errorf("the second loop ended with %v", err)
	}
	if _, _, err := a.NextEvent(t.Context()); !errors.Is(err, device.ErrEventsInUse) {
		t.Errorf("NextEvent beside a loop: %v", err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the canceled loop ended with %v", err)
	}
	go a.Close(context.WithoutCancel(ctx))
	if err := last(t.Context()); !errors.Is(err, device.ErrClosed) {
		t.Errorf("the loop of a closed device ended with %v", err)
	}
}
