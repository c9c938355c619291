package hub

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

// Calls by which a device says where it is to be notified.
const (
	callPushKey        = "push.key"
	callPushRegister   = "push.register"
	callPushUnregister = "push.unregister"
	callPushTest       = "push.test"
)

// maxTargets bounds the registrations of one device.
const maxTargets = 5

// pushCall answers the calls about notifications. false: it is another one.
func (s *session) pushCall(b *batch, c *conn, f *frame.Call) bool {
	var do func(*batch, *callAnswer, *frame.Call)
	switch f.Method {
	case callPushKey:
		do = s.callKey
	case callPushRegister:
		do = s.callRegister
	case callPushUnregister:
		do = s.callUnregister
	case callPushTest:
		do = s.callTest
	default:
		return false
	}
	s.flush(b)
	do(b, &callAnswer{c, f.ID}, f)
	return true
}

func (s *session) callKey(b *batch, a *callAnswer, _ *frame.Call) {
	b.then(func() { a.give(map[string]string{"key": s.hub.Push.PublicKey()}) })
}

func (s *session) callRegister(b *batch, a *callAnswer, f *frame.Call) {
	var t push.Target
	if !a.params(f, &t) {
		return
	}
	err := s.hub.Push.Check(t)
	if err == nil && t.Quiet != nil {
		err = t.Quiet.Check()
	}
	if err != nil {
		a.refuse(agent.BadParams, err.Error())
		return
	}
	targets := slices.DeleteFunc(slices.Clone(s.push.targets), func(o push.Target) bool { return o.Endpoint == t.Endpoint })
	if len(targets) >= maxTargets {
		a.refuse(tooMany, fmt.Sprintf("a device may register %d endpoints: unregister one first", maxTargets))
		return
	}
	others, err := s.hub.store.DevicesOf(s.hub.ctx, s.dev.UserID)
	if err != nil {
		s.hub.storeFailed("list devices", err)
		a.done(err)
		return
	}
	body, err := json.Marshal(t)
	if err != nil {
		panic(fmt.Sprintf("hub: encode a registration: %v", err)) // strings only
	}
	device, first := s.dev.N, len(s.push.targets) == 0
	b.do(func(tx *store.Tx) error {
		now := time.Now()
		if first { // what waits already is no news
			if err := tx.AddNotices(device, 0, false, now); err != nil {
				return err
			}
		}
		return tx.AddPush(device, t.Endpoint, body, now)
	}, func(err error) {
		if err == nil {
			s.push.targets = append(targets, t)
			for _, o := range others { // a browser that became another device would ring twice
				if o.ID != s.id {
					s.hub.post(o.ID, pushGone{t.Endpoint})
				}
			}
			s.hub.log.Info("a device wants notifications", "device", s.id, "kind", t.Kind, "service", t.Host(), "content", t.Content)
		}
		a.done(err)
	})
}

// endpointParams name an endpoint of the device.
type endpointParams struct {
	Endpoint string `json:"endpoint"`
}

func (s *session) callUnregister(b *batch, a *callAnswer, f *frame.Call) {
	var p endpointParams
	if a.params(f, &p) {
		s.unregister(b, p.Endpoint, a.done)
	}
}

// callTest sends one notification now, once, and answers what became of it.
func (s *session) callTest(b *batch, a *callAnswer, f *frame.Call) {
	var p endpointParams
	if !a.params(f, &p) {
		return
	}
	at := len(s.push.targets) - 1 // the newest
	if p.Endpoint != "" {
		at = slices.IndexFunc(s.push.targets, func(t push.Target) bool { return t.Endpoint == p.Endpoint })
	}
	if at < 0 {
		a.refuse(agent.NotFound, "the device has not registered this endpoint: call push.register first")
		return
	}
	if after, ok := s.hub.tested.Allow(s.id); !ok {
		a.refuse(string(frame.RateLimited), fmt.Sprintf("the device has sent itself 5 tests within a minute: try again in %d seconds", seconds(after)))
		return
	}
	t, device := s.push.targets[at], s.id
	body := noticeBody{Type: "test", IDs: []string{}}
	if t.Content {
		body.Title, body.Body = agentTitle, "Notifications work."
	}
	key := "test\n" + agent.NewID()
	number, ok := s.hub.pushes.begin(key)
	if !ok {
		a.refuse(string(frame.RateLimited), "the server has too many notifications to send: try again later")
		return
	}
	go func() {
		defer s.hub.pushes.end(key, number)
		r := s.hub.Push.Try(s.hub.pushes.ctx, t, push.Note{Body: fit(body), TTL: time.Minute, Urgent: true})
		s.hub.pushed(device, t, r)
		a.give(testAnswer{r.Outcome == push.Sent, r.Status, r.Reason})
	}()
}

// testAnswer is the result of push.test.
type testAnswer struct {
	OK     bool   `json:"ok"`
	Status int    `json:"status,omitempty"` // of HTTP
	Reason string `json:"reason,omitempty"`
}
