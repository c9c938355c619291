package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"hermes-mobile/frame"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/notify"
)

// callDevices lists the devices of one's own user.
const callDevices = "devices.list"

// Codes of calls that are refused, besides those of frames and those of package chat.
const (
	unknownMethod = "unknown_method"
	tooMany       = "too_many"
	timedOut      = "timeout"
	agentAway     = "agent_away"
)

// callLife bounds how long a device waits for the agent's answer to a call.
const callLife = 30 * time.Second

// maxCalls bounds the calls of one device that the agent is answering, maxAllCalls those of all devices.
const (
	maxCalls    = 8
	maxAllCalls = 256
)

// calls are the methods that the device may call now: the server's, then the agent's.
func (s *session) calls() []string {
	list := []string{callDevices}
	if s.dev.Rights.Answer {
		list = append(list, callRevoke)
	}
	if s.hub.Push != nil {
		list = append(list, notify.Calls()...)
	}
	return append(list, s.agentCalls()...)
}

// agentCalls are the methods of agentMethods that the device may use.
func (s *session) agentCalls() []string {
	if !s.dev.Rights.Call {
		return nil
	}
	return s.agentMethods()
}

// agentMethods are the methods that the agent answers now, each once.
func (s *session) agentMethods() []string {
	caller, ok := s.hub.Agent.(agent.Caller)
	if !ok {
		return nil
	}
	var list []string
	for _, method := range caller.Methods(s.dev.Talks()) {
		own := strings.HasPrefix(method, "devices.") || strings.HasPrefix(method, "push.") // of the server, now or in another setting
		if !own && !slices.Contains(list, method) {
			list = append(list, method)
		}
	}
	return list
}

// call answers a call of the control plane, which came on c: the session may have none or another when it is answered.
func (s *session) call(b *batch, c *conn, f *frame.Call) {
	if s.notes.Call(noteBatch{b}, f.Method, &callAnswer{c, f}) {
		return
	}
	if f.Method == callRevoke {
		s.revokeDevice(b, c, f)
		return
	}
	b.then(func() {
		a := &callAnswer{c, f}
		switch {
		case f.Method == callDevices:
			s.listDevices(a)
		case slices.Contains(s.agentCalls(), f.Method):
			s.askAgent(a, f)
		case slices.Contains(s.agentMethods(), f.Method):
			a.Refuse(string(frame.Forbidden), noAgentCalls)
		default:
			a.Refuse(unknownMethod, "this server has no such method: see capabilities.call")
		}
	})
}

func (s *session) listDevices(a *callAnswer) {
	list, err := s.hub.store.DevicesOf(s.hub.ctx, s.dev.UserID)
	if err != nil {
		s.hub.storeFailed("list devices", err)
		a.Refuse(string(frame.Internal), "the server cannot use its store now: try again later")
		return
	}
	type device struct {
		ID        string    `json:"id"`
		Name      string    `json:"name"`
		Connected bool      `json:"connected"`
		SeenAt    time.Time `json:"seen_at"`

		Conversation string `json:"conversation,omitempty"`
	}
	live := s.hub.live()
	out := make([]device, 0, len(list))
	for _, d := range list {
		out = append(out, device{ID: d.ID, Name: d.Name, Connected: live[d.ID], SeenAt: d.SeenAt.UTC().Truncate(time.Second), Conversation: d.Conversation})
	}
	a.Result(map[string]any{"devices": out})
}

// askAgent has the agent answer a call, in a goroutine of the call's own: neither the session nor its other calls wait. A
// place is free again only when the agent has returned, however late.
func (s *session) askAgent(a *callAnswer, f *frame.Call) {
	h := s.hub
	call := agent.Call{Device: s.dev.Talks(), From: s.id, User: s.dev.UserID, Method: f.Method, Params: slices.Clone(f.Params)}
	if len(call.Params) == 0 {
		call.Params = []byte("{}")
	}
	if !h.asking.begin(s.id) {
		a.Refuse(tooMany, fmt.Sprintf("the agent is busy with other calls, %d of a device are the most: try again when one of them is answered", maxCalls))
		return
	}
	go func() {
		defer h.asking.end(call.From)
		ctx, cancel := context.WithTimeout(h.asking.ctx, h.CallLife)
		defer cancel()
		type outcome struct {
			result []byte
			err    error
		}
		done := make(chan outcome, 1)
		go func() {
			result, err := h.Agent.(agent.Caller).Call(ctx, call)
			done <- outcome{result, err}
		}()
		select {
		case o := <-done:
			h.answered(a, call, o.result, o.err)
		case <-ctx.Done():
			h.answered(a, call, nil, ctx.Err())
			<-done
		}
	}()
}

// answered tells the device what the agent made of a call.
func (h *Hub) answered(a *callAnswer, call agent.Call, result []byte, err error) {
	var refused *agent.CallError
	switch {
	case err == nil && len(result) > agent.MaxResult:
		err = fmt.Errorf("the result has %d bytes, %d are the most", len(result), agent.MaxResult)
		a.Refuse(string(frame.TooBig), "the answer is too large for a device: ask for less")
	case err == nil && len(result) > 0 && !(json.Valid(result) && utf8.Valid(result)):
		err = errors.New("the result is no JSON")
		a.Refuse(string(frame.Internal), "the agent's answer cannot be read: the owner finds the reason in the log of the server")
	case err == nil:
		a.c.send(&frame.Result{ID: a.f.ID, Result: result})
		return
	case errors.As(err, &refused):
		a.Refuse(refused.Code, refused.Message)
		return
	case errors.Is(err, agent.ErrAway):
		a.Refuse(agentAway, "the agent is away: try again when it is back")
		return
	case errors.Is(err, context.DeadlineExceeded):
		a.Refuse(timedOut, fmt.Sprintf("the agent did not answer within %d seconds: try again later", seconds(h.CallLife)))
	case errors.Is(err, context.Canceled):
		a.Refuse(string(frame.Internal), "the server stops: ask again when it is back")
		return
	default:
		a.Refuse(string(frame.Internal), "the agent failed at this: try again later, the owner finds the reason in the log of the server")
	}
	h.log.Warn("the agent did not answer a call", "device", call.From, "method", call.Method, "error", err)
}

// asking counts the calls that the agent is answering.
type asking struct {
	ctx    context.Context
	cancel context.CancelFunc
	work   tally

	mu     sync.Mutex
	count  int
	of     map[string]int // by device
	closed bool
}

func (k *asking) init() {
	k.ctx, k.cancel = context.WithCancel(context.Background())
	k.of = map[string]int{}
}

// begin takes a call in. false: there are too many, or the server stops.
func (k *asking) begin(device string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed || k.count >= maxAllCalls || k.of[device] >= maxCalls {
		return false
	}
	k.count++
	k.of[device]++
	k.work.Add(1)
	return true
}

func (k *asking) end(device string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.count--
	if k.of[device]--; k.of[device] == 0 {
		delete(k.of, device)
	}
	k.work.Done()
}

// close tells the agent to give up what it is answering, and waits for it until ctx ends.
func (k *asking) close(ctx context.Context) {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	k.cancel()
	wait(ctx, k.work.Wait)
}

// callAnswer answers one call.
type callAnswer struct {
	c *conn
	f *frame.Call
}

// Refuse implements notify.Reply.
func (a *callAnswer) Refuse(code, message string) {
	a.c.send(&frame.Result{ID: a.f.ID, Err: &frame.CallError{Code: code, Message: message}})
}

// Result implements notify.Reply.
func (a *callAnswer) Result(result any) {
	text, err := json.Marshal(result)
	if err != nil {
		panic(fmt.Sprintf("hub: encode a result: %v", err)) // strings and numbers only
	}
	a.c.send(&frame.Result{ID: a.f.ID, Result: text})
}

// Stored implements notify.Reply.
func (a *callAnswer) Stored(err error) {
	if err != nil {
		a.Refuse(string(frame.Internal), storeDown("").Message)
		return
	}
	a.Result(map[string]bool{"ok": true})
}

// Params implements notify.Reply.
func (a *callAnswer) Params(to any) bool {
	if len(a.f.Params) == 0 {
		return true
	}
	if err := json.Unmarshal(a.f.Params, to); err != nil {
		a.Refuse(agent.BadParams, "the parameters do not have the form that the protocol describes for "+a.f.Method)
		return false
	}
	return true
}
