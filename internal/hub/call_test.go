package hub_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/hub"
)

// caller is the scripted agent with calls that the test answers.
type caller struct {
	*scripted
	asked chan asked

	mu      sync.Mutex
	methods map[string][]string // by conversation
}

type asked struct {
	agent.Call
	ctx    context.Context
	answer chan answer
}

type answer struct {
	result string
	err    error
}

func (c *caller) Methods(device string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.methods[device]
}

func (c *caller) Call(ctx context.Context, call agent.Call) ([]byte, error) {
	a := asked{call, ctx, make(chan answer)}
	c.asked <- a
	got := <-a.answer // also when ctx ends: a bad agent
	return []byte(got.result), got.err
}

// callWorld is a world whose agent answers calls.
func callWorld(t *testing.T, methods map[string][]string, change func(*hub.Options)) (*world, *caller) {
	t.Helper()
	c := &caller{asked: make(chan asked, 100), methods: methods}
	w := newWorld(t, func(o *hub.Options) {
		c.scripted = o.Agent.(*scripted)
		o.Agent = c
		if change != nil {
			change(o)
		}
	})
	return w, c
}

func (c *caller) next(t tb) asked {
	t.Helper()
	return receive(t, c.asked, "the agent to be asked")
}

func (c *client) ask(id, method string) {
	c.send(&frame.Call{ID: id, Method: method, Params: []byte("{}")})
}

func (c *client) result(id string) *frame.Result {
	c.w.t.Helper()
	return find(c, func(r *frame.Result) bool { return r.ID == id })
}

func TestAgentAnswersCalls(t *testing.T) {
	t.Parallel()
	w, caller := callWorld(t, map[string][]string{"d": {"models.list", "devices.list", "models.list", "push.key", "jobs.run"}}, nil)
	c, other := w.connect("d", withUser("anna")), w.connect("e", withUser("anna"))
	if got := c.Ready.Capabilities.Call; !slices.Equal(got, []string{"devices.list", "devices.revoke", "models.list", "jobs.run"}) {
		t.Errorf("offered %q: the server's names are its own, and each stands once", got)
	}
	if got := other.Ready.Capabilities.Call; !slices.Equal(got, []string{"devices.list", "devices.revoke"}) {
		t.Errorf("the other device is offered %q", got)
	}
	c.send(&frame.Call{ID: "c1", Method: "models.list", Params: []byte(`{"all":true}`)})
	a := caller.next(t)
	if a.Device != "d" || a.From != "d" || a.User != "anna" || a.Method != "models.list" || string(a.Params) != `{"all":true}` {
		t.Errorf("asked %+v", a.Call)
	}
	// Neither the session nor other calls wait.
	c.text("m1", "one")
	c.ask("c2", "jobs.run")
	caller.next(t).answer <- answer{"", nil}
	if r := c.result("c2"); r.Err != nil || string(r.Result) != "{}" {
		t.Errorf("nothing counts as {}: %s", show(r))
	}
	a.answer <- answer{`{"models":["a"]}`, nil}
	if r := c.result("c1"); r.Err != nil || string(r.Result) != `{"models":["a"]}` {
		t.Errorf("result %s", show(r))
	}
	for _, method := range []string{"jobs.list", "push.key"} {
		if r := c.call(method, "{}"); r.Err == nil || r.Err.Code != "unknown_method" {
			t.Errorf("%s: %s", method, show(r))
		}
	}
	if r := other.call("models.list", "{}"); r.Err == nil || r.Err.Code != "unknown_method" {
		t.Errorf("of the other device: %s", show(r))
	}
	if r := c.call("devices.list", "{}"); r.Err != nil || !strings.Contains(string(r.Result), `"id":"e"`) {
		t.Errorf("devices.list: %s", show(r))
	}
	if len(caller.asked) != 0 {
		t.Error("the agent was asked for what it does not offer")
	}
}

func TestOfferedCallsChange(t *testing.T) {
	t.Parallel()
	w, caller := callWorld(t, map[string][]string{}, nil)
	c, other := w.connect("d"), w.connect("e")
	caller.mu.Lock()
	caller.methods["d"] = []string{"jobs.list"}
	caller.mu.Unlock()
	caller.host.Changed()
	if f := expect[*frame.CapabilitiesChanged](c); !slices.Equal(f.Capabilities.Call, []string{"devices.list", "devices.revoke", "jobs.list"}) || !f.Capabilities.Text {
		t.Errorf("told %s", show(f))
	}
	caller.host.Changed()
	c.quiet()
	other.quiet()
}

func TestAgentFailsAtCalls(t *testing.T) {
	t.Parallel()
	w, caller := callWorld(t, map[string][]string{"d": {"x.do"}}, nil)
	c := w.connect("d")
	for i, try := range []struct {
		answer
		code, says string
	}{
		{answer{"", &agent.CallError{Code: "not_found", Message: "there is no such session: list them"}}, "not_found", "there is no such session: list them"},
		{answer{"", fmt.Errorf("ask: %w", &agent.CallError{Code: "bad_params", Message: "title is missing"})}, "bad_params", "title is missing"},
		{answer{"", fmt.Errorf("dial: %w", agent.ErrAway)}, "agent_away", "offline"},
		{answer{"", errors.New("secret reason")}, "internal", "the agent failed"},
		{answer{`{"half":`, nil}, "internal", "can't be read"},
		{answer{"{\"a\":\"\xff\"}", nil}, "internal", "can't be read"},
		{answer{`"` + strings.Repeat("a", agent.MaxResult) + `"`, nil}, "too_big", "ask for less"},
	} {
		id := fmt.Sprint("c", i)
		c.ask(id, "x.do")
		caller.next(t).answer <- try.answer
		r := c.result(id)
		if r.Err == nil || r.Err.Code != try.code || !strings.Contains(r.Err.Message, try.says) || strings.Contains(r.Err.Message, "secret") {
			t.Errorf("%v: %s", try.err, show(r))
		}
	}
	c.ask("large", "x.do")
	large := `"` + strings.Repeat("a", agent.MaxResult-2) + `"`
	caller.next(t).answer <- answer{large, nil}
	if r := c.result("large"); !bytes.Equal(r.Result, []byte(large)) {
		t.Errorf("the largest result has %d bytes", len(r.Result))
	}
}

// An agent that does not answer costs the device its patience and no more, and its own place until it gives up.
func TestAgentDoesNotAnswer(t *testing.T) {
	t.Parallel()
	w, caller := callWorld(t, map[string][]string{"d": {"x.do"}, "e": {"x.do"}}, func(o *hub.Options) { o.CallLife = 50 * time.Millisecond })
	c, other := w.connect("d"), w.connect("e")
	var stuck []asked
	for i := range 8 {
		id := fmt.Sprint("c", i)
		c.ask(id, "x.do")
		a := caller.next(t)
		if r := c.result(id); r.Err == nil || r.Err.Code != "timeout" || !strings.Contains(r.Err.Message, "1 second") {
			t.Fatalf("result %s", show(r))
		}
		if a.ctx.Err() == nil {
			t.Error("the agent was not told")
		}
		stuck = append(stuck, a)
	}
	c.ask("c8", "x.do")
	if r := c.result("c8"); r.Err == nil || r.Err.Code != "too_many" {
		t.Errorf("a ninth: %s", show(r))
	}
	other.ask("c1", "x.do")
	caller.next(t).answer <- answer{"{}", nil}
	other.result("c1")
	for _, a := range stuck {
		a.answer <- answer{`{"late":true}`, nil}
	}
	go func() {
		for a := range caller.asked {
			a.answer <- answer{`{"late":false}`, nil}
		}
	}()
	t.Cleanup(func() { close(caller.asked) })
	var r *frame.Result
	until(t, "a place to be free", func() bool {
		c.ask("n", "x.do")
		r = find[*frame.Result](c, nil)
		return r.Err == nil
	})
	if string(r.Result) != `{"late":false}` {
		t.Errorf("a late answer was given: %s", show(r))
	}
}

func TestCallsEndWithTheServer(t *testing.T) {
	t.Parallel()
	w, caller := callWorld(t, map[string][]string{"d": {"x.do"}}, nil)
	c := w.connect("d")
	c.ask("c1", "x.do")
	a := caller.next(t)
	go func() { <-a.ctx.Done(); a.answer <- answer{"", a.ctx.Err()} }()
	w.close()
	if r := c.result("c1"); r.Err == nil || r.Err.Code != "internal" || !strings.Contains(r.Err.Message, "stopping") {
		t.Errorf("result %s", show(r))
	}
	if code := c.closed(); code != int(frame.CloseGoingAway) {
		t.Errorf("closed with %d", code)
	}
}

// A call outlives its connection, and its answer is for nobody then.
func TestCallerIsGone(t *testing.T) {
	t.Parallel()
	w, caller := callWorld(t, map[string][]string{"d": {"x.do"}}, nil)
	c := w.connect("d")
	c.ask("c1", "x.do")
	a := caller.next(t)
	c.drop()
	again := w.connect("d")
	a.answer <- answer{`{"for":"the first"}`, nil}
	again.ask("c2", "x.do")
	caller.next(t).answer <- answer{`{"for":"the second"}`, nil}
	if r := find[*frame.Result](again, nil); r.ID != "c2" {
		t.Errorf("result %s", show(r))
	}
}

// A device that has joined a conversation asks in its name.
func TestCallsOfASharedConversation(t *testing.T) {
	t.Parallel()
	w, caller := callWorld(t, map[string][]string{"d": {"x.do"}}, nil)
	w.connect("d", withUser("anna"))
	member := w.connect("e", withUser("anna"))
	ok(t, w.hub.Owner().Join(ctx, "e", "d"))
	member.closed()
	member = w.connect("e", withUser("anna"))
	if got := member.Ready.Capabilities.Call; !slices.Contains(got, "x.do") {
		t.Errorf("offered %q", got)
	}
	member.ask("c1", "x.do")
	a := caller.next(t)
	if a.Device != "d" || a.From != "e" || a.User != "anna" {
		t.Errorf("asked %+v", a.Call)
	}
	a.answer <- answer{"{}", nil}
	member.result("c1")
}
