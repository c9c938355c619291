package device

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/backoff"
)

// Call requests something of the control plane (doc/protocol.md §9) and returns the JSON of the
// result. Params must marshal to a JSON object; nil is an empty one. Call waits for a connection
// until ctx ends, and never repeats a request.
//
// The error wraps the [*frame.CallError] or [*frame.Error] of the server, or is [ErrUnsupported]
// for a method that the server does not offer, [ErrLinkLost], or that of [Device.WaitOnline].
func (d *Device) Call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	f := &frame.Call{ID: rand.Text(), Method: method}
	if params != nil {
		var err error
		if f.Params, err = json.Marshal(params); err != nil {
			return nil, fmt.Errorf("device: call %s: %w", method, err)
		}
	}
	if err := d.WaitOnline(ctx); err != nil {
		return nil, err
	}
	if !d.board.offers(func(c *frame.Capabilities) bool { return slices.Contains(c.Call, method) }) {
		return nil, fmt.Errorf("%w: %s", ErrUnsupported, method)
	}
	answer, err := d.calls.ask(ctx, f.ID, frame.EncodeUp(f))
	if err != nil {
		return nil, err
	}
	switch a := answer.(type) {
	case *frame.Result:
		if a.Err != nil {
			return nil, fmt.Errorf("device: call %s: %w", method, a.Err)
		}
		return a.Result, nil
	case *frame.Error:
		return nil, fmt.Errorf("device: call %s: %w", method, a)
	}
	return nil, fmt.Errorf("device: call %s: the server answered with a %T", method, answer)
}

// RevokeDevice revokes another device of the user that came after this one, such as one that a
// [Notice] reports (doc/protocol.md §8). That device loses its connection, its token, and
// everything that waits for it. The error is that of [Device.Call].
func (d *Device) RevokeDevice(ctx context.Context, id string) error {
	_, err := d.Call(ctx, "devices.revoke", map[string]string{"id": id})
	return err
}

// Profile is one of several agents behind a gateway, with its own settings, memory and sessions.
type Profile struct {
	Name    string `json:"name"`
	Current bool   `json:"current"` // the conversation uses it
}

// Profiles returns the profiles that the conversation can use (doc/protocol.md §9). The error is
// that of [Device.Call]: [ErrUnsupported] when the agent has only one.
func (d *Device) Profiles(ctx context.Context) ([]Profile, error) {
	result, err := d.Call(ctx, "profiles.list", nil)
	if err != nil {
		return nil, err
	}
	var list struct {
		Profiles []Profile `json:"profiles"`
	}
	if err := json.Unmarshal(result, &list); err != nil {
		return nil, fmt.Errorf("device: read the list of profiles: %w", err)
	}
	return list.Profiles, nil
}

// ChooseProfile makes the conversation use a profile from its next turn on, for all devices that
// share it. The error is that of [Device.Call]: a [*frame.CallError] with the code not_found for an
// unknown profile.
func (d *Device) ChooseProfile(ctx context.Context, name string) error {
	_, err := d.Call(ctx, "profiles.choose", map[string]string{"name": name})
	return err
}

// Ping measures the round trip to the server's program. The error is that of [Device.Call].
func (d *Device) Ping(ctx context.Context) (time.Duration, error) {
	if err := d.WaitOnline(ctx); err != nil {
		return 0, err
	}
	id := rand.Text()
	began := time.Now()
	answer, err := d.calls.ask(ctx, id, frame.EncodeUp(&frame.Ping{ID: id}))
	if err != nil {
		return 0, err
	}
	if e, ok := answer.(*frame.Error); ok {
		return 0, fmt.Errorf("device: ping: %w", e)
	}
	return time.Since(began), nil
}

// Stop interrupts the running turn. It waits for a connection until ctx ends, and returns once the
// frame is written. It repeats the frame when the connection breaks before that.
func (d *Device) Stop(ctx context.Context) error {
	id := rand.Text() // the same in each attempt, so that a repeated stop does not hit the next turn
	for {
		if err := d.WaitOnline(ctx); err != nil {
			return err
		}
		u, err := d.calls.submit(frame.EncodeUp(&frame.Stop{ID: id}))
		if err == nil {
			select {
			case err = <-u.done:
			case <-ctx.Done():
				return fmt.Errorf("device: stop: %w", ctx.Err())
			}
		}
		if err == nil || d.ctx.Err() != nil {
			return err
		}
		// The connection is gone, but the status may not tell for a moment.
		if err := pause(ctx, "stop", 20*time.Millisecond); err != nil {
			return err
		}
	}
}

// Deliver sends a text, a file or both to another device or to home (doc/protocol.md §8), and waits
// until the server has it. It needs a delivery token. Without f.ID it chooses one. It repeats the
// delivery under that id across reconnects until ctx ends, but does not store it. The error wraps a
// [*frame.Error] (device_offline, forbidden, too_big, bad_frame), or is that of
// [Device.WaitOnline].
func (d *Device) Deliver(ctx context.Context, f frame.Deliver) (frame.Delivered, error) {
	if f.ID == "" {
		f.ID = rand.Text()
	}
	data := frame.EncodeUp(&f)
	for {
		if err := d.WaitOnline(ctx); err != nil {
			return frame.Delivered{}, err
		}
		answer, err := d.calls.ask(ctx, f.ID, data)
		wait := 100 * time.Millisecond
		switch a := answer.(type) {
		case *frame.Delivered:
			return *a, nil
		case *frame.Error:
			err = fmt.Errorf("device: deliver: %w", a)
			if a.Code != frame.RateLimited && a.Code != frame.Internal {
				return frame.Delivered{}, err
			}
			wait = max(seconds(a.RetryAfter), time.Second)
		}
		if ctx.Err() != nil || d.ctx.Err() != nil {
			return frame.Delivered{}, err
		}
		if perr := pause(ctx, "deliver", wait); perr != nil {
			return frame.Delivered{}, errors.Join(perr, err)
		}
	}
}

// pause waits, or returns the error of ctx.
func pause(ctx context.Context, op string, wait time.Duration) error {
	if err := backoff.Sleep(ctx, wait); err != nil {
		return fmt.Errorf("device: %s: %w", op, err)
	}
	return nil
}
