package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// replay answers each request with the recording of the same operation, and checks that the request
// matches the recorded one.
type replay struct {
	*hermes
	t    *testing.T
	next recorded
}

func (p *replay) expect(r recorded) {
	p.set(func(*hermes) { p.next = r })
}

func (p *replay) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/health" || r.URL.Path == "/v1/capabilities" {
		p.hermes.ServeHTTP(w, r)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	want := p.next
	body, _ := io.ReadAll(r.Body)
	wantPath, _, _ := strings.Cut(want.Path, "?")
	if path, err := url.PathUnescape(wantPath); err != nil || r.Method != want.Method || r.URL.Path != path {
		p.t.Errorf("asked %s %s, recorded is %s %s", r.Method, r.URL.EscapedPath(), want.Method, wantPath)
	}
	if !sameJSON(body, []byte(want.Sent)) {
		p.t.Errorf("%s %s was sent %s, recorded is %s", r.Method, r.URL.Path, body, want.Sent)
	}
	if len(body) > 0 && (r.ContentLength != int64(len(body)) || len(r.TransferEncoding) > 0) {
		p.t.Errorf("%s %s has no length", r.Method, r.URL.Path)
	}
	if r.URL.Query().Get("limit") == "0" {
		p.t.Error("a limit of 0 was sent")
	}
	want.answer(w)
}

func sameJSON(a, b []byte) bool {
	if len(bytes.TrimSpace(a)) == 0 || len(bytes.TrimSpace(b)) == 0 {
		return len(bytes.TrimSpace(a)) == len(bytes.TrimSpace(b))
	}
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// The client makes each recorded call as it was recorded, and decodes its response.
func TestRecordedCalls(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	yes, title, end, name := true, "Renamed", "user_closed", "fx renamed"
	job := "" // ID of the recorded job, which differs by version
	calls := map[string]func(c *Client) (any, error){
		"session_create_named": func(c *Client) (any, error) {
			return c.Sessions.Create(ctx, SessionParams{ID: "fx-main", Title: "Fixture main", Instructions: "You are a fixture."})
		},
		"session_create_default":     func(c *Client) (any, error) { return c.Sessions.Create(ctx, SessionParams{}) },
		"session_create_duplicate":   func(c *Client) (any, error) { return c.Sessions.Create(ctx, SessionParams{ID: "fx-main"}) },
		"session_create_bad_id_path": func(c *Client) (any, error) { return c.Sessions.Create(ctx, SessionParams{ID: "../evil"}) },
		"session_create_title_conflict": func(c *Client) (any, error) {
			return c.Sessions.Create(ctx, SessionParams{ID: "fx-2", Title: "Fixture main"})
		},
		"session_get":                  func(c *Client) (any, error) { return c.Sessions.Get(ctx, "fx-main") },
		"session_get_percent_encoded":  func(c *Client) (any, error) { return c.Sessions.Get(ctx, "agent:main:x") },
		"session_get_percent_literal":  func(c *Client) (any, error) { return c.Sessions.Get(ctx, "p%41") },
		"session_get_space":            func(c *Client) (any, error) { return c.Sessions.Get(ctx, "with space") },
		"session_get_unknown":          func(c *Client) (any, error) { return c.Sessions.Get(ctx, "nope") },
		"session_get_after_plain":      func(c *Client) (any, error) { return c.Sessions.Get(ctx, "s-plain") },
		"session_get_ended_after_chat": func(c *Client) (any, error) { return c.Sessions.Get(ctx, "fx-main") },
		"session_patch_title":          func(c *Client) (any, error) { return c.Sessions.Rename(ctx, "fx-main", title) },
		"session_patch_end":            func(c *Client) (any, error) { return c.Sessions.Update(ctx, "fx-main", SessionUpdate{EndReason: &end}) },
		"session_patch_pinned":         func(c *Client) (any, error) { return c.Sessions.Update(ctx, "fx-main", SessionUpdate{Pinned: &yes}) },
		"session_delete":               func(c *Client) (any, error) { return nil, c.Sessions.Delete(ctx, "s-tool-fork") },
		"session_delete_again":         func(c *Client) (any, error) { return nil, c.Sessions.Delete(ctx, "s-tool-fork") },
		"session_delete_during_turn":   func(c *Client) (any, error) { return nil, c.Sessions.Delete(ctx, "s-del") },
		"session_fork": func(c *Client) (any, error) {
			return c.Sessions.Fork(ctx, "s-tool", SessionParams{ID: "s-tool-fork", Title: "Forked"})
		},
		"session_fork_duplicate":          func(c *Client) (any, error) { return c.Sessions.Fork(ctx, "s-tool", SessionParams{ID: "s-tool-fork"}) },
		"session_fork_unknown":            func(c *Client) (any, error) { return c.Sessions.Fork(ctx, "nope", SessionParams{}) },
		"session_list_limit2":             func(c *Client) (any, error) { return c.Sessions.List(ctx, SessionQuery{Limit: 2}) },
		"session_list_offset2":            func(c *Client) (any, error) { return c.Sessions.List(ctx, SessionQuery{Limit: 2, Offset: 2}) },
		"session_list_limit_clamped":      func(c *Client) (any, error) { return c.Sessions.List(ctx, SessionQuery{Limit: 9999}) },
		"session_list_after_fork":         func(c *Client) (any, error) { return c.Sessions.List(ctx, SessionQuery{Limit: 200}) },
		"session_messages_empty":          func(c *Client) (any, error) { return c.Sessions.Messages(ctx, "fx-main", MessageQuery{}) },
		"session_messages_unknown":        func(c *Client) (any, error) { return c.Sessions.Messages(ctx, "nope", MessageQuery{}) },
		"session_messages_after_plain":    func(c *Client) (any, error) { return c.Sessions.Messages(ctx, "s-plain", MessageQuery{}) },
		"session_messages_after_tool":     func(c *Client) (any, error) { return c.Sessions.Messages(ctx, "s-tool", MessageQuery{}) },
		"session_messages_after_error400": func(c *Client) (any, error) { return c.Sessions.Messages(ctx, "s-error400", MessageQuery{}) },
		"session_messages_paged": func(c *Client) (any, error) {
			return c.Sessions.Messages(ctx, "s-two_tools_multiline", MessageQuery{Limit: 2, Offset: 1})
		},
		"session_messages_latest": func(c *Client) (any, error) {
			return c.Sessions.Messages(ctx, "s-two_tools_multiline", MessageQuery{Limit: 2, Latest: true})
		},
		"session_model_lock": func(c *Client) (any, error) { return c.Sessions.LockModel(ctx, "s-model", "custom", "locked-model") },
		"models":             func(c *Client) (any, error) { return c.Models.List(ctx) },
		"model_options":      func(c *Client) (any, error) { return c.Models.Options(ctx, ModelOptionsQuery{}) },
		"toolsets":           func(c *Client) (any, error) { return c.Tools.Toolsets(ctx) },
		"skills":             func(c *Client) (any, error) { return c.Tools.Skills(ctx) },
		"jobs_create": func(c *Client) (any, error) {
			return c.Jobs.Create(ctx, JobParams{Name: "fx job", Schedule: "every 2h", Prompt: "Say hello"})
		},
		"jobs_create_bad_schedule": func(c *Client) (any, error) {
			return c.Jobs.Create(ctx, JobParams{Name: "bad", Schedule: "nonsense", Prompt: "x"})
		},
		"jobs_list_empty":            func(c *Client) (any, error) { return c.Jobs.List(ctx) },
		"jobs_list_include_disabled": func(c *Client) (any, error) { return c.Jobs.List(ctx) },
		"jobs_get":                   func(c *Client) (any, error) { return c.Jobs.Get(ctx, job) },
		"jobs_get_unknown":           func(c *Client) (any, error) { return c.Jobs.Get(ctx, "000000000000") },
		"jobs_get_bad_id":            func(c *Client) (any, error) { return c.Jobs.Get(ctx, "zzz") },
		"jobs_patch":                 func(c *Client) (any, error) { return c.Jobs.Update(ctx, job, JobUpdate{Name: &name}) },
		"jobs_pause":                 func(c *Client) (any, error) { return c.Jobs.Pause(ctx, job) },
		"jobs_resume":                func(c *Client) (any, error) { return c.Jobs.Resume(ctx, job) },
		"jobs_delete":                func(c *Client) (any, error) { return nil, c.Jobs.Delete(ctx, job) },
		"jobs_delete_again":          func(c *Client) (any, error) { return nil, c.Jobs.Delete(ctx, job) },
	}
	notOn019 := []string{"session_model_lock", "model_options"}
	for _, version := range versions {
		gw := newHermes(t, version)
		p := &replay{hermes: gw, t: t}
		c := client(t, Profile{Remote: serve(t, p).URL, Jobs: JobsOn})
		for call, do := range calls {
			if version == "0.19.0" && slices.Contains(notOn019, call) {
				if _, err := do(c); !errors.Is(err, ErrUnavailable) {
					t.Errorf("%s %s: %v", version, call, err)
				}
				continue
			}
			r := recordedAnswer(t, version, call)
			_, job, _ = strings.Cut(strings.TrimSuffix(strings.TrimSuffix(r.Path, "/pause"), "/resume"), "/api/jobs/")
			p.expect(r)
			got, err := do(c)
			var refused *Error
			switch {
			case r.Status/100 == 2 && err != nil:
				t.Errorf("%s %s: %v", version, call, err)
			case r.Status/100 != 2 && (!errors.As(err, &refused) || refused.Status != r.Status || refused.Message == "" && r.Text == ""):
				t.Errorf("%s %s: %#v, want status %d", version, call, err, r.Status)
			case r.Status/100 == 2:
				if problem := understood(got, r); problem != "" {
					t.Errorf("%s %s: %s\nin %+v", version, call, problem, got)
				}
			}
		}
	}
}

// understood compares the result of the client with the response.
func understood(got any, r recorded) string {
	var raw struct {
		Session, Job map[string]any
		Data, Jobs   []map[string]any
		Providers    []map[string]any
		SessionID    string `json:"session_id"`
		HasMore      bool   `json:"has_more"`
		Runtime      map[string]any
		Model        string
	}
	if err := json.Unmarshal(r.Body, &raw); err != nil {
		return err.Error()
	}
	same := func(what string, a, b any) string {
		if a == nil {
			a = reflect.Zero(reflect.TypeOf(b)).Interface()
		}
		if fmt.Sprint(a) != fmt.Sprint(b) {
			return fmt.Sprintf("%s is %v, recorded is %v", what, b, a)
		}
		return ""
	}
	first := func(problems ...string) string {
		for _, p := range problems {
			if p != "" {
				return p
			}
		}
		return ""
	}
	moment := func(what string, a any, b time.Time) string {
		at, err := time.Parse(time.RFC3339, fmt.Sprint(a))
		switch n, number := a.(float64); {
		case a == nil && b.IsZero(), number && absolute(n-float64(b.UnixNano())/1e9) < 1e-3, err == nil && at.Equal(b):
			return ""
		}
		return fmt.Sprintf("%s is %v, recorded is %v", what, b, a)
	}
	session := func(a map[string]any, s Session) string {
		return first(same("id", a["id"], s.ID), same("title", a["title"], s.Title), same("source", a["source"], s.Source), same("model", a["model"], s.Model),
			same("messages", a["message_count"], s.Messages), same("input", a["input_tokens"], s.InputTokens), same("parent", a["parent_session_id"], s.Parent),
			same("pinned", a["pinned"], s.Pinned), same("end reason", a["end_reason"], s.EndReason), same("preview", a["preview"], s.Preview),
			moment("started", a["started_at"], s.Started), moment("ended", a["ended_at"], s.Ended), moment("active", a["last_active"], s.LastActive))
	}
	jobOf := func(a map[string]any, j Job) string {
		return first(same("id", a["id"], j.ID), same("name", a["name"], j.Name), same("schedule", a["schedule_display"], j.Schedule), same("state", a["state"], j.State),
			same("enabled", a["enabled"], j.Enabled), same("deliver", a["deliver"], j.Deliver), moment("created", a["created_at"], j.Created), moment("next", a["next_run_at"], j.NextRun), moment("paused", a["paused_at"], j.Paused))
	}
	switch got := got.(type) {
	case Session:
		return session(raw.Session, got)
	case SessionPage:
		if len(got.Sessions) != len(raw.Data) || got.More != raw.HasMore {
			return fmt.Sprintf("%d sessions, more %t; recorded are %d and %t", len(got.Sessions), got.More, len(raw.Data), raw.HasMore)
		}
		for i, s := range got.Sessions {
			if problem := session(raw.Data[i], s); problem != "" {
				return problem
			}
		}
	case MessagePage:
		rows := raw.Data
		if !bytes.Contains(r.Body, []byte(`"pagination"`)) { // 0.19 sent everything: the client cuts the page out
			query, _ := url.ParseQuery(r.Path[strings.Index(r.Path, "?")+1:])
			var limit, offset int
			fmt.Sscan(query.Get("limit"), &limit)
			fmt.Sscan(query.Get("offset"), &offset)
			if limit > 0 && query.Get("order") == "latest" {
				rows = rows[len(rows)-limit:]
			} else if limit > 0 {
				rows = rows[offset : offset+limit]
			}
		}
		if len(got.Messages) != len(rows) || got.SessionID != raw.SessionID || got.Moved {
			return fmt.Sprintf("%d messages of %q, want %d of %q", len(got.Messages), got.SessionID, len(rows), raw.SessionID)
		}
		for i, m := range got.Messages {
			a := rows[i]
			calls, _ := a["tool_calls"].([]any)
			if problem := first(same("id", a["id"], m.ID), same("role", a["role"], m.Role), same("content", a["content"], m.Content), same("calls", len(calls), len(m.ToolCalls)),
				same("tool", a["tool_name"], m.ToolName), same("finish", a["finish_reason"], m.FinishReason), same("display", a["display_kind"], m.Display), moment("at", a["timestamp"], m.Time)); problem != "" {
				return problem
			}
			for _, call := range m.ToolCalls {
				if call.ID == "" || call.Name == "" || !json.Valid([]byte(call.Arguments)) {
					return fmt.Sprintf("tool call %+v", call)
				}
			}
		}
	case Job:
		return jobOf(raw.Job, got)
	case []Job:
		if len(got) != len(raw.Jobs) {
			return fmt.Sprintf("%d jobs", len(got))
		}
		for i, j := range got {
			if problem := jobOf(raw.Jobs[i], j); problem != "" {
				return problem
			}
		}
	case []Model:
		return first(same("models", len(raw.Data), len(got)), same("id", raw.Data[0]["id"], got[0].ID))
	case []Toolset:
		for i, set := range got {
			tools, _ := raw.Data[i]["tools"].([]any)
			if problem := first(same("name", raw.Data[i]["name"], set.Name), same("tools", len(tools), len(set.Tools)), same("enabled", raw.Data[i]["enabled"], set.Enabled)); problem != "" {
				return problem
			}
		}
		return same("toolsets", len(raw.Data), len(got))
	case ModelOptions:
		for i, p := range got.Providers {
			models, _ := raw.Providers[i]["models"].([]any)
			if problem := first(same("slug", raw.Providers[i]["slug"], p.Slug), same("models", len(models), len(p.Models)), same("warning", raw.Providers[i]["warning"], p.Warning)); problem != "" {
				return problem
			}
		}
		return first(same("providers", len(raw.Providers), len(got.Providers)), same("model", raw.Model, got.Model))
	case ModelLock:
		return first(same("session", raw.SessionID, got.SessionID), same("model", raw.Runtime["model"], got.Model), same("state", raw.Runtime["model_lock"], got.State))
	}
	return ""
}

func absolute(f float64) float64 { return max(f, -f) }

func TestCapabilitiesOfBothVersions(t *testing.T) {
	for version, steer := range map[string]bool{"0.19.0": false, "0.22.2": true} {
		caps, err := parseCapabilities(recordedAnswer(t, version, "capabilities").Body)
		if err != nil {
			t.Fatal(err)
		}
		if caps.Platform != "hermes-agent" || caps.Model != "hermes-agent" || caps.Auth != "bearer" {
			t.Errorf("%s: %+v", version, caps)
		}
		for feature, want := range map[string]bool{
			"session_chat_streaming": true, "tool_progress_events": true, "session_key_header": true, "cors": false, "jobs_admin": false,
			"run_steer": steer, "runs_idempotency": steer, "browser_extension_control": false, "nothing": false,
		} {
			if caps.Feature(feature) != want {
				t.Errorf("%s: feature %s is %t", version, feature, !want)
			}
		}
		for operation, want := range map[string]bool{"runs": true, "session_chat_stream": true, "run_steer": steer, "session_model_lock": steer, "jobs": false, "session_search": false} {
			if caps.Offers(operation) != want {
				t.Errorf("%s: operation %s is %t", version, operation, !want)
			}
		}
		if got := caps.withJobs(); !got.Offers("job_run") || caps.Offers("job_run") || got.shape() == caps.shape() {
			t.Errorf("%s: allowed jobs are wrong", version)
		}
	}
}

func TestCapabilitiesOfOddForms(t *testing.T) {
	caps, err := parseCapabilities([]byte(`{"platform":5,"model":["x"],"auth":"none","instance_id":{},
		"features":{"a":1,"b":"","c":"x","d":null,"e":[],"f":{"supported":"yes"},"g":{"supported":true},"h":{"enabled":true},"i":{"supported":false,"enabled":true},"j":0,"k":"false"},
		"endpoints":{"host":{"method":"GET","path":"https://evil.test/x"},"slashes":{"method":"GET","path":"//evil.test/x"},"back":{"method":"GET","path":"/\\evil.test"},
			"up":{"method":"GET","path":"/a/../b"},"query":{"method":"GET","path":"/a?b"},"user":{"method":"GET","path":"@evil.test"},"method":{"method":"CONNECT","path":"/a"},
			"line":{"method":"GET","path":"/a\r\nX: 1"},"type":5,"none":null,"list":[],"good":{"method":"GET","path":"/a/{b}","more":1}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if caps.Platform != "" || caps.Model != "" || caps.Auth != "" || caps.ID != "" {
		t.Errorf("odd types were taken: %+v", caps)
	}
	if got := strings.Join(caps.Features(), " "); got != "c g h i k" {
		t.Errorf("features %q", got)
	}
	if got := strings.Join(caps.Endpoints(), " "); got != "good" {
		t.Errorf("endpoints %q", got)
	}
	for _, odd := range []string{"", "[]", "null", "5", `"x"`, "{", "<html>"} {
		if _, err := parseCapabilities([]byte(odd)); err == nil {
			t.Errorf("%q is taken for capabilities", odd)
		}
	}
	for _, odd := range []string{"{}", `{"features":null,"endpoints":null}`, `{"features":[],"endpoints":5}`} {
		caps, err := parseCapabilities([]byte(odd))
		if err != nil || len(caps.Endpoints()) > 0 || len(caps.Features()) > 0 || !caps.withJobs().Offers("jobs") {
			t.Errorf("%q: %+v, %v", odd, caps, err)
		}
	}
}

// IDs never lead to another operation or host.
func TestIdsStayIds(t *testing.T) {
	t.Parallel()
	gw := newHermes(t, "0.22.2")
	remote := serve(t, gw)
	c := client(t, Profile{Remote: remote.URL})
	on(t, c, Remote)
	remote.forget()
	for _, id := range []string{"", ".", ".."} {
		if err := c.Sessions.Delete(t.Context(), id); err == nil {
			t.Errorf("%q is an id", id)
		}
	}
	if got := remote.bytes(); got != "" {
		t.Errorf("was sent: %s", got)
	}
	for _, id := range []string{"a/b", "../x", "a?b=c", "a#b", "a b", "a%2Fb", "{session_id}", "@evil.test", "\r\nX: 1"} {
		c.Sessions.Get(t.Context(), id)
	}
	for line := range strings.Lines(remote.bytes()) {
		if path, ok := strings.CutPrefix(line, "GET "); ok && strings.Count(strings.Fields(path)[0], "/") != 3 {
			t.Errorf("asked %q", line)
		}
		if strings.HasPrefix(line, "X: 1") {
			t.Error("a line was added")
		}
	}
}

// pages serves a list of sessions as 0.22 does: pinned rows in addition on every page, and "more"
// whenever the page is full.
func pages(total int, pinned []int, endless bool) http.HandlerFunc {
	row := func(i int) map[string]any {
		return map[string]any{"id": fmt.Sprintf("s%d", i), "pinned": slices.Contains(pinned, i), "title": nil, "started_at": 1.5}
	}
	return func(w http.ResponseWriter, r *http.Request) {
		var limit, offset int
		fmt.Sscan(r.URL.Query().Get("limit"), &limit)
		fmt.Sscan(r.URL.Query().Get("offset"), &offset)
		var data []map[string]any
		for i, n := 0, 0; i < total && len(data) < limit; i++ {
			if slices.Contains(pinned, i) {
				continue
			}
			if n >= offset || endless {
				data = append(data, row(i))
			}
			n++
		}
		more := len(data) == limit
		for _, i := range pinned {
			data = append(data, row(i))
		}
		json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": data, "limit": limit, "offset": offset, "has_more": more})
	}
}

func TestEndOfTheList(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		total   int
		pinned  []int
		endless bool
		want    int
	}{
		{"none", 0, nil, false, 0},
		{"less than a page", 5, nil, false, 5},
		{"exactly two pages", 20, nil, false, 20},
		{"pinned in addition", 25, []int{3, 24}, false, 25},
		{"as many pinned as a page", 30, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, false, 30},
		{"pinned only", 3, []int{0, 1, 2}, false, 3},
		{"offset ignored", 30, nil, true, 10},
	} {
		gw := newHermes(t, "0.22.2")
		gw.routes["/api/sessions"] = pages(tc.total, tc.pinned, tc.endless)
		c := client(t, Profile{Remote: serve(t, gw).URL})
		seen := map[string]int{}
		for s, err := range c.Sessions.All(t.Context(), SessionQuery{Limit: 10}) {
			if err != nil {
				t.Fatalf("%s: %v", tc.name, err)
			}
			seen[s.ID]++
			if seen[s.ID] > 1 {
				t.Errorf("%s: %s comes %d times", tc.name, s.ID, seen[s.ID])
			}
		}
		if len(seen) != tc.want {
			t.Errorf("%s: %d sessions, want %d", tc.name, len(seen), tc.want)
		}
		if n := gw.asked("/api/sessions"); n > tc.total/10+2 {
			t.Errorf("%s: %d pages were asked for", tc.name, n)
		}
	}
	// An invalid query is corrected.
	gw := newHermes(t, "0.22.2")
	remote := serve(t, gw)
	c := client(t, Profile{Remote: remote.URL})
	for _, limit := range []int{-1, 0, 100000} {
		if page, err := c.Sessions.List(t.Context(), SessionQuery{Limit: limit, Offset: -5, Source: "a&limit=0"}); err != nil || page.Limit < 1 || page.Limit > 200 || page.Offset != 0 {
			t.Errorf("%d: %+v, %v", limit, page, err)
		}
	}
	if strings.Contains(remote.bytes(), "limit=0") || strings.Contains(remote.bytes(), "limit=-") || strings.Contains(remote.bytes(), "offset=-") {
		t.Errorf("was sent: %s", remote.bytes())
	}
}

func TestMessagesOfAMovedSession(t *testing.T) {
	t.Parallel()
	gw := newHermes(t, "0.22.2")
	var asked []string
	answer := func(w http.ResponseWriter, r *http.Request) {
		var limit, offset int
		fmt.Sscan(r.URL.Query().Get("limit"), &limit)
		fmt.Sscan(r.URL.Query().Get("offset"), &offset)
		gw.set(func(*hermes) { asked = append(asked, r.URL.Path) })
		var data []map[string]any
		for i := offset; i < 1000 && len(data) < limit; i++ {
			data = append(data, map[string]any{"id": i, "session_id": "new", "role": "user", "content": []map[string]string{{"type": "text", "text": "a"}, {"type": "image_url"}, {"type": "text", "text": "b"}}, "timestamp": 1795988684.25})
		}
		json.NewEncoder(w).Encode(map[string]any{"session_id": "new", "data": data, "pagination": map[string]any{"limit": limit, "returned": len(data)}})
	}
	gw.routes["/api/sessions/old/messages"], gw.routes["/api/sessions/new/messages"] = answer, answer
	c := client(t, Profile{Remote: serve(t, gw).URL})
	page, err := c.Sessions.Messages(t.Context(), "old", MessageQuery{Limit: 3})
	if err != nil || !page.Moved || page.SessionID != "new" || len(page.Messages) != 3 || !page.More {
		t.Fatalf("%+v, %v", page, err)
	}
	if m := page.Messages[0]; m.Content != "a\nb" || m.Time.UnixMilli() != 1795988684250 {
		t.Errorf("the message is %+v", m)
	}
	n := 0
	for m, err := range c.Sessions.AllMessages(t.Context(), "old") {
		if err != nil || m.ID != int64(n) {
			t.Fatalf("%d: %+v, %v", n, m, err)
		}
		n++
	}
	if n != 1000 || strings.Join(asked[1:], " ") != "/api/sessions/old/messages /api/sessions/new/messages /api/sessions/new/messages" {
		t.Errorf("%d messages, asked %v", n, asked)
	}
}

func TestSearchIsNotGuessed(t *testing.T) {
	t.Parallel()
	gw := newHermes(t, "0.22.2")
	remote := serve(t, gw)
	unavailable := func() {
		t.Helper()
		var missing *UnavailableError
		if _, err := client(t, Profile{Remote: remote.URL}).Sessions.Search(t.Context(), "x"); !errors.As(err, &missing) || missing.Operation != "session_search" {
			t.Errorf("search gives %v", err)
		}
	}
	unavailable()
	endpoints := gw.caps["endpoints"].(map[string]any)
	endpoints["session_search"] = map[string]string{"method": "GET", "path": "/api/sessions/search"}
	unavailable()
	if strings.Contains(remote.bytes(), "search") {
		t.Error("a search was tried")
	}
	endpoints["session_search"] = map[string]string{"method": "GET", "path": "/api/sessions/search/{query}"}
	gw.routes["/api/sessions/search/a b"] = func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, `{"data":[{"id":"found"}]}`) }
	found, err := client(t, Profile{Remote: remote.URL}).Sessions.Search(t.Context(), "a b")
	if err != nil || len(found) != 1 || found[0].ID != "found" {
		t.Errorf("found %+v, %v", found, err)
	}
}

// TestJobsAreAskedForOnlyWhereAllowed: no measured version advertises jobs, so the client calls
// them only if the owner allows it or a gateway does advertise them.
func TestJobsAreAskedForOnlyWhereAllowed(t *testing.T) {
	t.Parallel()
	for _, version := range append(slices.Clone(versions), "0.30.0") {
		recorded := version
		if version == "0.30.0" {
			recorded = "0.22.2"
		}
		gw := newHermes(t, recorded)
		gw.version = version
		remote := serve(t, gw)
		for _, allowed := range []JobAccess{JobsUnasked, JobsOff} {
			c := client(t, Profile{Remote: remote.URL, Jobs: allowed})
			if _, err := c.Jobs.List(t.Context()); !errors.Is(err, ErrUnavailable) {
				t.Errorf("%s, %q: jobs give %v", version, allowed, err)
			}
			caps, err := c.Capabilities(t.Context())
			if err != nil || caps.Offers("jobs") || caps.AdvertisesJobs() {
				t.Errorf("%s, %q: %v, the capabilities have jobs", version, allowed, err)
			}
		}
		if strings.Contains(remote.bytes(), "/api/jobs") {
			t.Errorf("%s: jobs were tried", version)
		}
		gw.routes["GET /api/jobs"] = func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"jobs":[{"id":"j"}]}`) }
		c := client(t, Profile{Remote: remote.URL, Jobs: JobsOn})
		if list, err := c.Jobs.List(t.Context()); err != nil || len(list) != 1 {
			t.Errorf("%s: allowed jobs give %v, %v", version, list, err)
		}
		if caps, err := c.Capabilities(t.Context()); err != nil || !caps.Offers("job_run") || caps.AdvertisesJobs() {
			t.Errorf("%s: %v, allowed jobs are not told from advertised ones", version, err)
		}
		gw.set(func(g *hermes) {
			g.caps["endpoints"].(map[string]any)["jobs"] = map[string]string{"method": "GET", "path": "/v2/jobs"}
			g.routes["GET /v2/jobs"] = g.routes["GET /api/jobs"]
		})
		for _, allowed := range []JobAccess{JobsUnasked, JobsOn} {
			c := client(t, Profile{Remote: remote.URL, Jobs: allowed})
			before := gw.asked("/v2/jobs")
			if list, err := c.Jobs.List(t.Context()); err != nil || len(list) != 1 || gw.asked("/v2/jobs") != before+1 {
				t.Errorf("%s, %q: advertised jobs give %v, %v", version, allowed, list, err)
			}
			if _, err := c.Jobs.Run(t.Context(), "j"); !errors.Is(err, ErrUnavailable) {
				t.Errorf("%s, %q: what is not among the advertised operations of jobs gives %v", version, allowed, err)
			}
		}
	}
}

func TestSecondsOfAllForms(t *testing.T) {
	for in, want := range map[string]string{
		"1795988684.477713": "2026-11-29T21:44:44.477713Z", "1795988684": "2026-11-29T21:44:44Z", "0": "1970-01-01T00:00:00Z", "1.795988684e9": "2026-11-29T21:44:44Z",
		`"2026-11-29T23:51:38.309134+00:00"`: "2026-11-29T23:51:38.309134Z", `"2026-02-03T14:00:00"`: "2026-02-03T14:00:00Z",
		"null": "", `"soon"`: "", "{}": "", "1e300": "", "[]": "",
	} {
		var s jsonTime
		if err := json.Unmarshal([]byte(in), &s); err != nil {
			t.Errorf("%s: %v", in, err)
		}
		got := ""
		if !s.IsZero() {
			got = s.UTC().Round(time.Microsecond).Format(time.RFC3339Nano)
		}
		if got != want {
			t.Errorf("%s is %s, want %s", in, got, want)
		}
	}
}

func TestCancelledRequestKeepsTheRoute(t *testing.T) {
	t.Parallel()
	gw := newHermes(t, "0.22.2")
	started := make(chan struct{})
	gw.routes["/v1/toolsets"] = func(w http.ResponseWriter, r *http.Request) { close(started); <-r.Context().Done() }
	c := client(t, Profile{Remote: serve(t, gw).URL})
	before := on(t, c, Remote)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-started; cancel() }()
	if _, err := c.Tools.Toolsets(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled request gives %v", err)
	}
	if after, ok := c.Route(); !ok || after != before {
		t.Error("the route was given up")
	}
}
