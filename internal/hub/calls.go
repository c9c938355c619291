package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"hermes-mobile/frame"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/notify"
)

// Calls that the server answers itself, besides those about notifications.
const (
	callDevices = "devices.list"   // lists the devices of one's own user
	callRevoke  = "devices.revoke" // revokes a newer device of one's own user
)

// Codes of refused calls, besides those of frames and of package agent.
const (
	unknownMethod = "unknown_method"
	tooMany       = "too_many"
	timedOut      = "timeout"
	agentOffline  = "agent_away"
)

// calls answers the calls of one device.
type calls struct {
	*core
	notes     *notify.Device
	connected func() map[string]bool // ids of connected devices
	revoke    func(b *batch, c *conn, r *callReply)
}

// methods returns the methods that the device may call now: the server's, then the agent's.
func (k *calls) methods() []string {
	list := []string{callDevices}
	if k.dev.Rights.Answer {
		list = append(list, callRevoke)
	}
	if k.Push != nil {
		list = append(list, notify.Calls()...)
	}
	return append(list, k.agentCalls()...)
}

// agentCalls returns the agent's methods that the device may use.
func (k *calls) agentCalls() []string {
	if !k.dev.Rights.Call {
		return nil
	}
	return k.agentMethods()
}

// agentMethods returns the methods that the agent answers now, each once.
func (k *calls) agentMethods() []string {
	caller, ok := k.Agent.(agent.Caller)
	if !ok {
		return nil
	}
	var list []string
	for _, method := range caller.Methods(k.dev.Talks()) {
		own := strings.HasPrefix(method, "devices.") || strings.HasPrefix(method, "push.") // of the server, now or with another setting
		if !own && !slices.Contains(list, method) {
			list = append(list, method)
		}
	}
	return list
}

// call answers a call that came on c. By the time it is answered the session may have another connection.
func (k *calls) call(b *batch, c *conn, f *frame.Call) {
	r := &callReply{c, f}
	if k.notes.Call(noteBatch{b}, f.Method, r) {
		return
	}
	if f.Method == callRevoke {
		k.revoke(b, c, r)
		return
	}
	b.then(func() {
		switch {
		case f.Method == callDevices:
			k.listDevices(r)
		case slices.Contains(k.agentCalls(), f.Method):
			k.askAgent(r)
		case slices.Contains(k.agentMethods(), f.Method):
			r.Refuse(string(frame.Forbidden), noAgentCalls)
		default:
			r.Refuse(unknownMethod, "this server has no such method: see capabilities.call")
		}
	})
}

func (k *calls) listDevices(r *callReply) {
	list, err := k.store.DevicesOf(k.ctx, k.dev.UserID)
	if err != nil {
		k.storeFailed("list devices", err)
		r.Refuse(string(frame.Internal), "the server can't use its store now: try again later")
		return
	}
	type device struct {
		ID        string    `json:"id"`
		Name      string    `json:"name"`
		Connected bool      `json:"connected"`
		SeenAt    time.Time `json:"seen_at"`

		Conversation string `json:"conversation,omitempty"`
	}
	connected := k.connected()
	out := make([]device, 0, len(list))
	for _, d := range list {
		out = append(out, device{ID: d.ID, Name: d.Name, Connected: connected[d.ID], SeenAt: d.SeenAt.UTC().Truncate(time.Second), Conversation: d.Conversation})
	}
	r.Result(map[string]any{"devices": out})
}

// askAgent has the agent answer a call in a goroutine of its own: neither the session nor its other calls wait. The call
// counts until the agent has returned, however late.
func (k *calls) askAgent(r *callReply) {
	limit := &k.services.calls
	call := agent.Call{Device: k.dev.Talks(), From: k.id, User: k.dev.UserID, Method: r.f.Method, Params: slices.Clone(r.f.Params)}
	if len(call.Params) == 0 {
		call.Params = []byte("{}")
	}
	if !limit.begin(k.id) {
		r.Refuse(tooMany, fmt.Sprintf("the agent is busy with other calls, and a device may have %d: try again when one of them is answered", maxCalls))
		return
	}
	go func() {
		defer limit.end(call.From)
		ctx, cancel := context.WithTimeout(limit.ctx, k.CallLife)
		defer cancel()
		type outcome struct {
			result []byte
			err    error
		}
		done := make(chan outcome, 1)
		go func() {
			result, err := k.Agent.(agent.Caller).Call(ctx, call)
			done <- outcome{result, err}
		}()
		select {
		case o := <-done:
			k.services.answerCall(r, call, o.result, o.err)
		case <-ctx.Done():
			k.services.answerCall(r, call, nil, ctx.Err())
			<-done
		}
	}()
}

// answerCall sends the agent's answer to a call.
func (sv *services) answerCall(r *callReply, call agent.Call, result []byte, err error) {
	var refused *agent.CallError
	switch {
	case err == nil && len(result) > agent.MaxResult:
		err = fmt.Errorf("result has %d bytes, the limit is %d", len(result), agent.MaxResult)
		r.Refuse(string(frame.TooBig), "the answer is too large for a device: ask for less")
	case err == nil && len(result) > 0 && !(json.Valid(result) && utf8.Valid(result)):
		err = errors.New("result is not valid JSON")
		r.Refuse(string(frame.Internal), "the agent's answer can't be read: the server's log says why")
	case err == nil:
		r.c.send(&frame.Result{ID: r.f.ID, Result: result})
		return
	case errors.As(err, &refused):
		r.Refuse(refused.Code, refused.Message)
		return
	case errors.Is(err, agent.ErrAway):
		r.Refuse(agentOffline, "the agent is offline: try again when it is back")
		return
	case errors.Is(err, context.DeadlineExceeded):
		r.Refuse(timedOut, fmt.Sprintf("the agent did not answer within %d seconds: try again later", seconds(sv.CallLife)))
	case errors.Is(err, context.Canceled):
		r.Refuse(string(frame.Internal), "the server is stopping: ask again when it is back")
		return
	default:
		r.Refuse(string(frame.Internal), "the agent failed to answer: try again later, the server's log says why")
	}
	sv.log.Warn("call failed", "device", call.From, "method", call.Method, "err", err)
}

// callReply answers one call.
type callReply struct {
	c *conn
	f *frame.Call
}

// Refuse implements notify.Reply.
func (r *callReply) Refuse(code, message string) {
	r.c.send(&frame.Result{ID: r.f.ID, Err: &frame.CallError{Code: code, Message: message}})
}

// Result implements notify.Reply.
func (r *callReply) Result(result any) {
	text, err := json.Marshal(result)
	if err != nil {
		panic(fmt.Sprintf("hub: encode result: %v", err)) // strings and numbers only
	}
	r.c.send(&frame.Result{ID: r.f.ID, Result: text})
}

// Stored implements notify.Reply.
func (r *callReply) Stored(err error) {
	if err != nil {
		r.Refuse(string(frame.Internal), storeDown("").Message)
		return
	}
	r.Result(map[string]bool{"ok": true})
}

// Params implements notify.Reply.
func (r *callReply) Params(to any) bool {
	if len(r.f.Params) == 0 {
		return true
	}
	if err := json.Unmarshal(r.f.Params, to); err != nil {
		r.Refuse(agent.BadParams, "the parameters do not have the form that the protocol describes for "+r.f.Method)
		return false
	}
	return true
}
