package direct

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"hermes-mobile/gateway"
	"hermes-mobile/internal/agent"
)

func call(t testing.TB, l *life, method, params string) []byte {
	t.Helper()
	return callOf(t, l, phone, method, params)
}

func callOf(t testing.TB, l *life, device, method, params string) []byte {
	t.Helper()
	data, err := l.agent.Call(t.Context(), agent.Call{Device: device, Method: method, Params: []byte(params)})
	if err != nil {
		t.Fatalf("%s %s: %v", method, params, err)
	}
	if len(data) > agent.MaxResult {
		t.Fatalf("%s gives %d bytes", method, len(data))
	}
	return data
}

func refusedCall(t testing.TB, l *life, device, method, params, code string) {
	t.Helper()
	data, err := l.agent.Call(t.Context(), agent.Call{Device: device, Method: method, Params: []byte(params)})
	var e *agent.CallError
	if !errors.As(err, &e) || e.Code != code || e.Message == "" {
		t.Errorf("%s %s: %s, %v; want %s", method, params, data, err, code)
	}
}

type sessionList struct {
	Sessions []struct {
		ID, Title string
		Current   bool
	}
	Cursor string
}

func (l sessionList) ids() (ids []string) {
	for _, s := range l.Sessions {
		ids = append(ids, s.ID)
	}
	return ids
}

func as[T any](t testing.TB, data []byte) (v T) {
	t.Helper()
	ok(t, json.Unmarshal(data, &v))
	return v
}

func all(o *Options, _ *gateway.Profile) { o.AllSessions = true }

func TestSessionCalls(t *testing.T) {
	each(t, func(t *testing.T, v string) {
		g, d := newGateway(t, v), newDisk()
		l := begin(t, g.URL, d)
		g.mu.Lock()
		foreign := g.newSession("of somebody else")
		g.mu.Unlock()
		for n := range 5 {
			call(t, l, "sessions.create", fmt.Sprintf(`{"title":"s%d"}`, n))
		}
		var got []string
		pages := 0
		for cursor := ""; ; pages++ {
			page := as[sessionList](t, call(t, l, "sessions.list", `{"limit":2,"cursor":"`+cursor+`"}`))
			got = append(got, page.ids()...)
			if cursor = page.Cursor; cursor == "" {
				break
			}
		}
		if want := []string{"api_6", "api_5", "api_4", "api_3", "api_2"}; !slices.Equal(got, want) || pages != 2 {
			t.Errorf("the pages have %q after %d more", got, pages)
		}
		if list := as[sessionList](t, callOf(t, l, "another", "sessions.list", `{}`)); len(list.Sessions) != 0 {
			t.Errorf("another conversation sees %+v", list)
		}
		for _, method := range []string{"open", "rename", "fork", "delete", "history"} {
			refusedCall(t, l, phone, "sessions."+method, `{"id":"`+foreign+`","title":"x"}`, agent.NotFound)
			refusedCall(t, l, phone, "sessions."+method, `{"id":7}`, agent.BadParams)
			if method != "history" {
				refusedCall(t, l, phone, "sessions."+method, `{}`, agent.BadParams)
			}
		}
		refusedCall(t, l, phone, "sessions.rename", `{"id":"api_6"}`, agent.BadParams)
		refusedCall(t, l, phone, "sessions.list", `{"cursor":"?"}`, agent.BadParams)
		refusedCall(t, l, phone, "jobs.list", `{}`, unavailable)
		refusedCall(t, l, phone, "no.such", `{}`, unavailable)

		type answer struct{ Session struct{ ID, Title string } }
		if s := as[answer](t, call(t, l, "sessions.rename", `{"id":"api_3","title":"new"}`)).Session; s.Title != "new" {
			t.Errorf("renamed %+v", s)
		}
		fork := as[answer](t, call(t, l, "sessions.fork", `{"id":"api_3"}`)).Session.ID
		call(t, l, "sessions.open", `{"id":"`+fork+`"}`)
		ok(t, receive(t, l.hand(message(1, "hi")), "taken"))
		if s := g.run(1).session; s != fork {
			t.Errorf("the turn is of %s", s)
		}
		refusedCall(t, l, phone, "sessions.delete", `{"id":"`+fork+`"}`, refused)
		g.run(1).complete("one")
		l.done(1)
		for l.agent.turnOf(phone) != nil {
		}
		call(t, l, "sessions.delete", `{"id":"`+fork+`"}`)
		refusedCall(t, l, phone, "sessions.open", `{"id":"`+fork+`"}`, agent.NotFound)
		ok(t, receive(t, l.hand(message(2, "hi")), "taken"))
		if s := g.run(2).session; s == fork || s == foreign {
			t.Errorf("after its session was deleted the conversation goes on in %s", s)
		}
		g.run(2).complete("two")
		l.done(2)
	})
}

// With AllSessions each conversation sees every session, and cannot delete one under a running
// turn.
func TestAllSessions(t *testing.T) {
	each(t, func(t *testing.T, v string) {
		g, d := newGateway(t, v), newDisk()
		l := begin(t, g.URL, d, all)
		call(t, l, "sessions.create", `{}`)
		if list := as[sessionList](t, callOf(t, l, "another", "sessions.list", `{}`)); len(list.Sessions) != 1 || list.Sessions[0].Current {
			t.Errorf("another conversation sees %+v", list)
		}
		ok(t, receive(t, l.hand(message(1, "hi")), "taken"))
		run := g.run(1)
		refusedCall(t, l, "another", "sessions.delete", `{"id":"api_1"}`, refused)
		run.complete("one")
		l.done(1)
		if !slices.Contains(l.agent.Methods(phone), "jobs.list") {
			t.Error("no jobs")
		}
		if r := as[struct{ Jobs string }](t, callOf(t, l, phone, "route.show", `{}`)); r.Jobs != "allowed" {
			t.Errorf("jobs are %q", r.Jobs)
		}
		l.kill()
		off := begin(t, g.URL, newDisk(), all, func(_ *Options, p *gateway.Profile) { p.Jobs = gateway.JobsUnasked })
		call(t, off, "sessions.list", `{}`)
		refusedCall(t, off, phone, "jobs.list", `{}`, unavailable)
		if r := as[struct{ Jobs string }](t, callOf(t, off, phone, "route.show", `{}`)); r.Jobs != "off" || slices.ContainsFunc(off.agent.Methods(phone), func(m string) bool { return strings.HasPrefix(m, "jobs.") }) {
			t.Errorf("jobs are %q: %v", r.Jobs, off.agent.Methods(phone))
		}
	})
}

// A history of any size comes in pages that fit, each message once.
func TestHugeHistory(t *testing.T) {
	each(t, func(t *testing.T, v string) {
		g, d := newGateway(t, v), newDisk()
		l := begin(t, g.URL, d)
		call(t, l, "sessions.create", `{}`)
		g.mu.Lock()
		for n := range 9 {
			g.store("api_1", "user", fmt.Sprintf("m%d %s", n, strings.Repeat("\x01", 90_000)), nil) // six bytes each in JSON
		}
		g.store("api_1", "tool", strings.Repeat("é", 1_000_000), object{"tool_name": "terminal"})
		g.store("api_1", "assistant", strings.Repeat("x", 1_000_000), nil)
		g.store("api_1", "assistant", "hidden", object{"display_kind": "hidden"})
		g.mu.Unlock()
		type page struct {
			Messages []struct {
				ID         int64
				Role, Text string
			}
			Cursor string
		}
		var ids []int64
		pages := 0
		for cursor := ""; ; {
			p := as[page](t, call(t, l, "sessions.history", `{"cursor":"`+cursor+`"}`))
			var of []int64
			for _, m := range p.Messages {
				of = append(of, m.ID)
			}
			ids = append(of, ids...)
			if pages++; p.Cursor == "" {
				break
			}
			if cursor = p.Cursor; pages > 100 {
				t.Fatal("there is no end")
			}
		}
		if len(ids) != 11 || !slices.IsSorted(ids) || pages < 3 {
			t.Errorf("%d pages with the messages %v", pages, ids)
		}
	})
}

func TestModelCalls(t *testing.T) {
	g, d := newGateway(t, now), newDisk()
	l := begin(t, g.URL, d)
	if list := string(call(t, l, "models.list", "{}")); !strings.Contains(list, `{"id":"m1","name":"m1","provider":"p","current":true}`) {
		t.Errorf("models %s", list)
	}
	refusedCall(t, l, phone, "models.choose", `{"id":"m9"}`, agent.NotFound)
	refusedCall(t, l, phone, "models.choose", `{"id":[]}`, agent.BadParams)
	call(t, l, "models.choose", `{"id":"m2"}`)
	ok(t, receive(t, l.hand(message(1, "hi")), "taken"))
	if b := g.run(1).body; b["model"] != "m2" || b["provider"] != "p" {
		t.Errorf("the turn is asked for with %v", b)
	}
	g.run(1).complete("one")
	l.done(1)
	call(t, l, "models.choose", `{"id":""}`)
	ok(t, receive(t, l.hand(message(2, "/model m2")), "taken"))
	l.done(2)
	wantFinals(t, d, 2, "Model for the next turns: m2")
	ok(t, receive(t, l.hand(message(3, "/model m7")), "taken"))
	l.done(3)
	if got := d.finals(3); len(got) != 1 || !strings.Contains(got[0], "no model m7") {
		t.Errorf("it said %q", got)
	}
}

func TestCommands(t *testing.T) {
	each(t, func(t *testing.T, v string) {
		g, d := newGateway(t, v), newDisk()
		l := begin(t, g.URL, d)
		n := int64(0)
		say := func(text string) string {
			t.Helper()
			n++
			ok(t, receive(t, l.hand(message(n, text)), "taken"))
			l.done(n)
			return strings.Join(d.finals(n), "|")
		}
		if got := say("/new a title"); got != "A new session: a title" || g.titles["api_1"] != "a title" {
			t.Errorf("/new: %q", got)
		}
		if got := say("/status"); !strings.Contains(got, "version "+v) || !strings.Contains(got, "api_1") {
			t.Errorf("/status: %q", got)
		}
		if got := say("/stop"); got != "No turn is running." {
			t.Errorf("/stop: %q", got)
		}
		help := say("/help")
		for _, c := range as[agent.Commands](t, call(t, l, agent.CommandsList, "{}")).Commands {
			if !strings.Contains(help, c.Name) {
				t.Errorf("/help says nothing of %s", c.Name)
			}
		}
		if got := say("/unknown thing"); !strings.Contains(got, "Unknown command /unknown") || !strings.Contains(got, "/help") {
			t.Errorf("/unknown: %q", got)
		}
		if got := say("/SetHome"); !strings.Contains(got, "home channel") {
			t.Errorf("/sethome: %q", got)
		}
		l.eventually("the home channel to move", func(events []agent.Event) bool { return seen(events, func(agent.Home) bool { return true }) })
		n++
		ok(t, receive(t, l.hand(message(n, "/usr/bin/env is a path")), "taken"))
		if run := g.run(1); run.body["input"] != "/usr/bin/env is a path" {
			t.Errorf("the model reads %v", run.body)
		}
		if in := message(99, "/status"); !l.agent.Admits(in) || l.agent.Admits(message(98, "text")) || l.agent.Admits(message(97, "/new")) {
			t.Error("what may be said in a turn")
		}
		aside := message(n+1, "/status")
		ok(t, receive(t, l.hand(aside), "taken"))
		l.done(aside.N)
		if got := d.finals(aside.N); len(got) != 1 || !strings.Contains(got[0], "working") {
			t.Errorf("in a turn /status says %q", got)
		}
		g.run(1).complete("x")
		l.done(n)
		g.refuseNext(1, "POST /api/sessions", 400, `{"error":{"message":"Title is taken","code":"invalid_title"}}`)
		n++
		if got := say("/new taken"); got != "No new session: Title is taken" {
			t.Errorf("/new: %q", got)
		}
	})
}
