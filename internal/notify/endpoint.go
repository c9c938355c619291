package notify

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/push"
	"hermes-mobile/internal/store"
)

// Calls by which a device says where it wants to be notified.
const (
	callKey        = "push.key"
	callRegister   = "push.register"
	callUnregister = "push.unregister"
	callTest       = "push.test"
)

// Calls returns the names of the calls that [Device.Call] answers.
func Calls() []string { return []string{callKey, callRegister, callUnregister, callTest} }

// maxTargets bounds the endpoints of one device.
const maxTargets = 5

// tooMany is the code of a call that exceeds a bound.
const tooMany = "too_many"

// Reply answers one call. Its methods may be called from any goroutine.
type Reply interface {
	Refuse(code, message string)
	Result(v any)
	// Stored answers a call that stores something with ok, or with the error.
	Stored(err error)
	// Params decodes the parameters. It reports false if they are malformed, and has answered the call then.
	Params(v any) bool
}

// Call answers a call about notifications. It reports false for any other method.
func (d *Device) Call(b Batch, method string, r Reply) bool {
	if !d.service.Enabled() {
		return false
	}
	switch method {
	case callKey:
		b.Then(func() { r.Result(map[string]string{"key": d.service.Sender.PublicKey()}) })
	case callRegister:
		b.Flush()
		d.register(b, r)
	case callUnregister:
		b.Flush()
		var p endpointParams
		if r.Params(&p) {
			d.Unregister(b, p.Endpoint, r.Stored)
		}
	case callTest:
		b.Flush()
		d.test(r)
	default:
		return false
	}
	return true
}

// endpointParams name an endpoint of the device.
type endpointParams struct {
	Endpoint string `json:"endpoint"`
}

func (d *Device) register(b Batch, r Reply) {
	var t push.Target
	if !r.Params(&t) {
		return
	}
	err := d.service.Sender.Check(t)
	if err == nil && t.Quiet != nil {
		err = t.Quiet.Check()
	}
	if err != nil {
		r.Refuse(agent.BadParams, err.Error())
		return
	}
	targets := slices.DeleteFunc(slices.Clone(d.targets), func(o push.Target) bool { return o.Endpoint == t.Endpoint })
	if len(targets) >= maxTargets {
		r.Refuse(tooMany, fmt.Sprintf("a device may register %d endpoints: unregister one first", maxTargets))
		return
	}
	st := d.host.State()
	others, err := d.service.Store.DevicesOf(st.Context, st.User)
	if err != nil {
		d.host.StoreFailed("list devices", err)
		r.Stored(err)
		return
	}
	text, err := json.Marshal(t)
	if err != nil {
		panic(fmt.Sprintf("notify: encode endpoint: %v", err)) // strings only
	}
	first := len(d.targets) == 0
	b.Do(func(tx *store.Tx) error {
		now := time.Now()
		if first { // what waits already is not new
			if err := tx.AddNotices(st.N, 0, false, now); err != nil {
				return err
			}
		}
		return tx.AddPush(st.N, t.Endpoint, text, now)
	}, func(err error) {
		if err == nil {
			d.targets = append(targets, t)
			for _, o := range others { // a browser that became another device would ring twice
				if o.ID != d.id {
					d.service.Unregister(o.ID, t.Endpoint)
				}
			}
			d.service.Log.Info("push endpoint registered", "device", d.id, "kind", t.Kind, "service", t.Host(), "content", t.Content)
		}
		r.Stored(err)
	})
}

// Unregister forgets an endpoint, or all of them if endpoint is empty. done, which may be nil, is called with the outcome.
func (d *Device) Unregister(b Batch, endpoint string, done func(error)) {
	n := d.host.State().N
	var rest []push.Target
	for _, t := range d.targets {
		if endpoint != "" && t.Endpoint != endpoint {
			rest = append(rest, t)
		}
	}
	if len(rest) == len(d.targets) {
		if done != nil {
			b.Then(func() { done(nil) })
		}
		return
	}
	b.Do(func(tx *store.Tx) error {
		if len(rest) == 0 {
			return tx.ForgetPush(n)
		}
		return tx.RemovePush(n, endpoint)
	}, func(err error) {
		if err == nil {
			if d.targets = rest; len(rest) == 0 {
				d.shown, d.over, d.unsure = nil, nil, 0
			}
		}
		if done != nil {
			done(err)
		}
	})
}

// test sends one notification now, and answers with its outcome.
func (d *Device) test(r Reply) {
	var p endpointParams
	if !r.Params(&p) {
		return
	}
	at := len(d.targets) - 1 // the newest
	if p.Endpoint != "" {
		at = slices.IndexFunc(d.targets, func(t push.Target) bool { return t.Endpoint == p.Endpoint })
	}
	if at < 0 {
		r.Refuse(agent.NotFound, "the device has not registered this endpoint: call push.register first")
		return
	}
	if wait, ok := d.service.tests.Allow(d.id); !ok {
		seconds := max(1, int((wait+time.Second-1)/time.Second))
		r.Refuse(string(frame.RateLimited), fmt.Sprintf("the device sent itself 5 tests within a minute: try again in %d seconds", seconds))
		return
	}
	t, device, s := d.targets[at], d.id, d.service
	out := body{Type: "test", IDs: []string{}}
	if t.Content {
		out.Title, out.Body = agentTitle, "Notifications work."
	}
	key := "test\n" + agent.NewID()
	number, ok := s.begin(key)
	if !ok {
		r.Refuse(string(frame.RateLimited), "the server is sending too many notifications: try again later")
		return
	}
	go func() {
		defer s.end(key, number)
		result := s.Sender.Try(s.ctx, t, push.Note{Body: fit(out), TTL: time.Minute, Urgent: true})
		s.sent(device, t, result)
		r.Result(testResult{result.Outcome == push.Sent, result.Status, result.Reason})
	}()
}

// testResult is the result of push.test.
type testResult struct {
	OK     bool   `json:"ok"`
	Status int    `json:"status,omitempty"` // of HTTP
	Reason string `json:"reason,omitempty"`
}
