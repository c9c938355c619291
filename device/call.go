package device

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"hermes-mobile/frame"
)

// CallError is the server's reason for not doing a call.
type CallError struct{ frame.CallError }

// Error returns the code and the sentence.
func (e *CallError) Error() string { return e.Code + ": " + e.Message }

// Call asks the control plane for something (§9) and returns the result's JSON. Params is marshalled and must become a
// JSON object; nil is an empty one. It waits for the connection as long as ctx allows, and is never repeated by itself.
// Errors: *CallError and *frame.Error from the server, ErrUnsupported where the method is not offered, ErrLinkLost,
// those of WaitOnline, or of ctx.
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
	if !d.offers(func(c *frame.Capabilities) bool { return slices.Contains(c.Call, method) }) {
		return nil, fmt.Errorf("%w: %s", ErrUnsupported, method)
	}
	answer, err := d.ask(ctx, f.ID, frame.EncodeUp(f))
	if err != nil {
		return nil, err
	}
	switch a := answer.(type) {
	case *frame.Result:
		if a.Err != nil {
			return nil, &CallError{*a.Err}
		}
		return a.Result, nil
	case *frame.Error:
		return nil, a
	}
	return nil, fmt.Errorf("device: call %s was answered by a %T", method, answer)
}

// RevokeDevice shuts out another device of the user that came after this one, such as one that a [Notice] tells of (§8). It loses its
// connection, its token, and what waits for it. Errors as for Call.
func (d *Device) RevokeDevice(ctx context.Context, id string) error {
	_, err := d.Call(ctx, "devices.revoke", map[string]string{"id": id})
	return err
}

// Profile is one of several agents behind one gateway, with settings, memory and sessions of its own.
type Profile struct {
	Name    string `json:"name"`
	Current bool   `json:"current"` // the conversation uses it
}

// Profiles lists the profiles that the conversation can choose from (§9). Errors as for Call; ErrUnsupported where the agent has one only.
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

// ChooseProfile has the conversation use a profile from its next turn on, on all devices that share it. Errors as for Call: a *CallError
// with the code not_found where there is no such profile.
func (d *Device) ChooseProfile(ctx context.Context, name string) error {
	_, err := d.Call(ctx, "profiles.choose", map[string]string{"name": name})
	return err
}

// Ping measures the way to the server's program and back. Errors as for Call.
func (d *Device) Ping(ctx context.Context) (time.Duration, error) {
	if err := d.WaitOnline(ctx); err != nil {
		return 0, err
	}
	id := rand.Text()
	began := time.Now()
	answer, err := d.ask(ctx, id, frame.EncodeUp(&frame.Ping{ID: id}))
	if err != nil {
		return 0, err
	}
	if e, ok := answer.(*frame.Error); ok {
		return 0, e
	}
	return time.Since(began), nil
}

// Stop interrupts the running turn. It waits for a connection as long as ctx allows and returns once the frame is written.
func (d *Device) Stop(ctx context.Context) error {
	id := rand.Text() // the same on each attempt: a stop must not hit the turn after
	for {
		if err := d.WaitOnline(ctx); err != nil {
			return err
		}
		u, err := d.urge(frame.EncodeUp(&frame.Stop{ID: id}))
		if err == nil {
			select {
			case err = <-u.done:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if err == nil || d.ctx.Err() != nil {
			return err
		}
		// The link is gone but the status may not say so for a moment.
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Deliver sends a text, a file or both to another device or to home (§8), and waits until the server has it; it needs a
// delivery token. Without f.ID one is made. It is repeated under that id across reconnects until ctx ends; it is not kept
// in the store. Errors: *frame.Error (device_offline, forbidden, too_big, bad_frame), ErrClosed, those that end the
// attempts to connect, or of ctx.
func (d *Device) Deliver(ctx context.Context, f frame.Deliver) (frame.Delivered, error) {
	if f.ID == "" {
		f.ID = rand.Text()
	}
	data := frame.EncodeUp(&f)
	for {
		if err := d.WaitOnline(ctx); err != nil {
			return frame.Delivered{}, err
		}
		answer, err := d.ask(ctx, f.ID, data)
		switch a := answer.(type) {
		case *frame.Delivered:
			return *a, nil
		case *frame.Error:
			if a.Code != frame.RateLimited && a.Code != frame.Internal {
				return frame.Delivered{}, a
			}
			err = a
		}
		if ctx.Err() != nil || d.ctx.Err() != nil {
			return frame.Delivered{}, err
		}
		wait := 100 * time.Millisecond
		if a, ok := err.(*frame.Error); ok {
			wait = max(seconds(a.RetryAfter), time.Second)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return frame.Delivered{}, ctx.Err()
		}
	}
}

// urge queues a frame for the live link.
func (d *Device) urge(data []byte) (*urgent, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.link == nil {
		return nil, ErrLinkLost
	}
	u := &urgent{data: data, done: make(chan error, 1)}
	d.urgent = append(d.urgent, u)
	signal(d.wake)
	return u, nil
}

// ask sends a frame on the live link and waits for what answers its id.
func (d *Device) ask(ctx context.Context, id string, data []byte) (frame.Down, error) {
	c := make(chan frame.Down, 1)
	d.mu.Lock()
	d.calls[id] = c
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		delete(d.calls, id)
		d.mu.Unlock()
	}()
	if _, err := d.urge(data); err != nil {
		return nil, err
	}
	select {
	case answer, ok := <-c:
		if !ok {
			if d.ctx.Err() != nil {
				return nil, ErrClosed
			}
			return nil, ErrLinkLost
		}
		return answer, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (d *Device) answerCall(id string, f frame.Down) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.calls[id]; c != nil {
		delete(d.calls, id)
		c <- f
	}
}
