package apiproxy

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"hermes-mobile/internal/store"
)

// made is the id of what an answer says was made.
func made(t *testing.T, text string) string {
	t.Helper()
	var out struct {
		ID      string
		Run     string `json:"run_id"`
		Session struct{ ID string }
		Job     struct{ ID string }
	}
	ok(t, json.Unmarshal([]byte(text), &out))
	for _, id := range []string{out.Session.ID, out.Job.ID, out.Run, out.ID} {
		if id != "" {
			return id
		}
	}
	t.Fatalf("nothing was made: %s", text)
	return ""
}

func (c *client) session() string {
	c.t.Helper()
	return made(c.t, c.want(201, "POST", "/api/sessions", "{}"))
}

// TestSessionsAreOnesOwn: whatever a user does to a session of another, it is not there.
func TestSessionsAreOnesOwn(t *testing.T) {
	r := newRig(t)
	anna, bert := r.login("anna"), r.login("bert")
	id := anna.session()
	r.up.add("telegram-1", "") // of the owner of the machine
	child := made(t, anna.want(201, "POST", "/api/sessions/"+id+"/fork", "{}"))
	for _, foreign := range []string{id, child, "telegram-1", "nothing"} {
		for _, route := range []struct{ method, path, body string }{
			{"GET", "", ""}, {"PATCH", "", `{"title":"x"}`}, {"DELETE", "", ""}, {"GET", "/messages", ""}, {"POST", "/fork", "{}"},
			{"POST", "/chat", `{"message":"x"}`}, {"POST", "/chat/stream", `{"message":"x"}`}, {"POST", "/model", `{"model":"x"}`},
		} {
			text := bert.want(404, route.method, "/api/sessions/"+foreign+route.path, route.body, `"code":"session_not_found"`, "Session not found: "+foreign)
			if strings.Contains(text, "upstream") {
				t.Errorf("it is told apart from what is not there: %s", text)
			}
		}
	}
	anna.want(200, "GET", "/api/sessions/"+id, "", id)
	anna.want(200, "GET", "/api/sessions/"+child+"/messages?limit=3&order=latest", "", `limit=3\u0026order=latest`)

	// What Hermes makes of a session when that is too long, and of that again, is the user's, too.
	r.up.add("next-1", id)
	r.up.add("next-2", "next-1")
	r.up.add("telegram-2", "telegram-1")
	bert.want(404, "GET", "/api/sessions/next-2", "")
	anna.want(200, "GET", "/api/sessions/next-2", "")
	anna.want(404, "GET", "/api/sessions/telegram-2", "")

	// Paths that would lead elsewhere.
	for _, odd := range []string{"..%2Fjobs", "%2e%2e", "a%2Fb", "a%5Cb", "x%00", strings.Repeat("a", 257)} {
		if status, text := anna.do("GET", "/api/sessions/"+odd, ""); status != 404 {
			t.Errorf("%s: %d %s", odd, status, text)
		}
	}

	// Deleted, it is nobody's.
	anna.want(200, "DELETE", "/api/sessions/"+child, "")
	anna.want(404, "GET", "/api/sessions/"+child, "")
	bert.want(404, "GET", "/api/sessions/"+child, "")
	for _, body := range []string{`{"id":"a/b"}`, `{"session_id":"../x"}`, `{"id":7}`, `{"id":" ` + id + `"}`, `{"id":"` + id + `\u00a0"}`, `{"id":"` + strings.Repeat("x", 250) + `"}`} {
		bert.want(400, "POST", "/api/sessions", body, "invalid_session_id")
	}
	anna.want(400, "POST", "/api/sessions", `{"id":"later","title":"refused"}`, "invalid_title")
	anna.want(404, "GET", "/api/sessions/later", "")
	anna.want(201, "POST", "/api/sessions", `{"id":"later"}`)
	for _, body := range []string{"", "[]", "null", "{", `"x"`} {
		bert.want(400, "POST", "/api/sessions", body, "Invalid JSON in request body")
	}
}

// TestList: a list has the user's own, page by page, whatever lies between.
func TestList(t *testing.T) {
	r := newRig(t)
	anna, bert := r.login("anna"), r.login("bert")
	var want []string
	for i := range 450 {
		r.up.add(fmt.Sprint("telegram-", i), "")
		if i%10 == 0 {
			want = append([]string{anna.session()}, want...)
		}
		if i%90 == 0 {
			bert.session()
		}
	}
	r.up.add("next", want[3])
	want = append([]string{"next"}, want...)
	type list struct {
		Object        string
		Data          []struct{ ID string }
		Limit, Offset int
		More          bool `json:"has_more"`
	}
	get := func(c *client, query string) list {
		t.Helper()
		var l list
		ok(t, json.Unmarshal([]byte(c.want(200, "GET", "/api/sessions"+query, "")), &l))
		return l
	}
	for _, limit := range []int{7, 46, 200} {
		var got []string
		for {
			l := get(anna, fmt.Sprintf("?limit=%d&offset=%d&source=api_server", limit, len(got)))
			if l.Object != "list" || l.Limit != limit || l.Offset != len(got) || l.More && len(l.Data) != limit {
				t.Fatalf("%+v", l)
			}
			for _, s := range l.Data {
				got = append(got, s.ID)
			}
			if !l.More {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("by %d: %v, want %v", limit, got, want)
		}
	}
	if last, _ := r.up.last("/api/sessions"); last.URL.Query().Get("source") != "api_server" {
		t.Errorf("the API server was asked %s", last.URL.RawQuery)
	}
	if l := get(bert, ""); len(l.Data) != 5 || l.More || l.Limit != 50 {
		t.Errorf("%+v", l)
	}
	for _, query := range []string{"?limit=0", "?limit=-1&offset=-5", "?limit=x"} {
		if l := get(bert, query); len(l.Data) != 5 || l.Limit != 50 || l.Offset != 0 {
			t.Errorf("%s: %+v", query, l)
		}
	}
	if l := get(bert, "?offset=9"); len(l.Data) != 0 || l.More {
		t.Errorf("%+v", l)
	}
	ok(t, r.users.Add(t.Context(), "carl", password))
	if l := get(r.login("carl"), ""); len(l.Data) != 0 || l.More {
		t.Errorf("%+v", l)
	}
	// What the API server refuses is never answered with all that there is.
	if text := anna.want(400, "GET", "/api/sessions?source=refused", ""); strings.Contains(text, "telegram") {
		t.Errorf("the list is %s", text)
	}
}

func TestRuns(t *testing.T) {
	r := newRig(t)
	anna, bert := r.login("anna"), r.login("bert")
	id := anna.session()
	run := made(t, anna.want(202, "POST", "/v1/runs", `{"input":"x","session_id":"`+id+`","hosted_room_dispatch":{"a":1}}`))
	if _, body := r.up.last("/v1/runs"); strings.Contains(body, "hosted_room_dispatch") || !strings.Contains(body, `"session_id":"`+id+`"`) {
		t.Errorf("the API server got %s", body)
	}
	alone := made(t, anna.want(202, "POST", "/v1/runs", `{"input":"x"}`))
	r.up.add(alone, "")
	anna.want(200, "GET", "/api/sessions/"+alone, "")
	r.up.run("run_of_a_stream", id) // as 0.22 has it for a turn of the session
	r.up.run("run_of_telegram", "telegram-1")
	r.up.add("telegram-1", "")
	for _, mine := range []string{run, alone, "run_of_a_stream"} {
		for _, route := range []struct{ method, what, body string }{{"GET", "", ""}, {"GET", "/events", ""}, {"POST", "/approval", `{"choice":"once"}`}, {"POST", "/stop", ""}, {"POST", "/steer", `{"text":"x"}`}} {
			bert.want(404, route.method, "/v1/runs/"+mine+route.what, route.body, `"code":"run_not_found"`, "Run not found: "+mine)
			anna.want(200, route.method, "/v1/runs/"+mine+route.what, route.body)
		}
	}
	anna.want(404, "POST", "/v1/runs/run_of_telegram/stop", "")
	anna.want(404, "POST", "/v1/runs/nothing/stop", "")

	// Sessions of others, and those of nobody here.
	r.up.add("20260101_120000_abcdef", "")
	for _, foreign := range []string{id, "20260101_120000_abcdef"} {
		bert.want(404, "POST", "/v1/runs", `{"input":"x","session_id":"`+foreign+`"}`, "session_not_found")
		bert.want(404, "POST", "/v1/runs", `{"session_id":"mine","input":"x","session\u005fid":"`+foreign+`"}`, "session_not_found")
	}
	bert.want(400, "POST", "/v1/runs", `{"input":"x","session_id":5}`, "invalid_session_id")
	bert.want(400, "POST", "/v1/runs", `{"input":"x","session_id":"`+id+` "}`, "invalid_session_id")
	bert.want(400, "POST", "/v1/runs", "", "Invalid JSON")
}

func TestCompletions(t *testing.T) {
	r := newRig(t)
	anna, bert := r.login("anna"), r.login("bert")
	say := func(c *client, body string, headers ...func(*http.Request)) (status int, sent string) {
		t.Helper()
		status, _ = c.do("POST", "/v1/chat/completions", body, headers...)
		_, sent = r.up.last("/v1/chat/completions")
		return status, sent
	}
	// The first words are the user's own, so that Hermes makes another session of them for each.
	const hello = `{"messages":[{"role":"system","content":"be kind"},{"role":"user","content":"Hello"}],"stream":false}`
	_, a := say(anna, hello)
	_, b := say(bert, hello)
	if a == b || !strings.Contains(a, `"role":"system"},{"role":"system","content":"be kind"},{"role":"user","content":"Hello"}]`) {
		t.Errorf("the API server got\n%s\n%s", a, b)
	}
	if _, again := say(anna, hello); again != a {
		t.Error("the same words of the same user begin another session")
	}
	owner, err := r.store.FrontOwner(t.Context(), store.FrontSession, "api-hash")
	if err != nil || owner == "" {
		t.Errorf("the session of the answer is nobody's (%v)", err)
	}

	// With a session it goes as it is, if it is an own one.
	id := anna.session()
	r.up.add("telegram-1", "")
	if status, sent := say(anna, hello, header(sessionIDHeader, id)); status != 200 || sent != `{"messages":[{"role":"system","content":"be kind"},{"role":"user","content":"Hello"}],"stream":false}` {
		t.Errorf("%d %s", status, sent)
	}
	for _, foreign := range []string{id, "api-0123456789abcdef"} {
		if status, _ := say(bert, hello, header(sessionIDHeader, foreign)); status != 404 {
			t.Errorf("%s: %d", foreign, status)
		}
	}
	if status, _ := say(bert, hello, header(sessionIDHeader, "a/b")); status != 400 {
		t.Errorf("%d", status)
	}

	// Names that clients choose are each user's own, and the answer has them as they were chosen.
	keys := map[string]bool{}
	for _, c := range []*client{anna, bert} {
		resp := c.send(t.Context(), "POST", "/v1/chat/completions", hello, header(sessionKeyHeader, "channel-1"), header("Idempotency-Key", "k"))
		_ = resp.Body.Close()
		last, _ := r.up.last("/v1/chat/completions")
		if resp.Header.Get(sessionKeyHeader) != "channel-1" || last.Header.Get(sessionKeyHeader) == "channel-1" || last.Header.Get("Idempotency-Key") == "k" {
			t.Errorf("%q became %q", resp.Header.Get(sessionKeyHeader), last.Header.Get(sessionKeyHeader))
		}
		keys[last.Header.Get(sessionKeyHeader)], keys[last.Header.Get("Idempotency-Key")] = true, true
	}
	if len(keys) != 4 {
		t.Errorf("two users share %v", keys)
	}

	// The answer's own name is that of a run that can be stopped.
	completion := made(t, anna.want(200, "POST", "/v1/chat/completions", hello))
	anna.want(200, "POST", "/v1/runs/"+completion+"/approval", `{"choice":"once"}`)
	bert.want(404, "POST", "/v1/runs/"+completion+"/approval", `{"choice":"once"}`)
}

func TestResponses(t *testing.T) {
	r := newRig(t)
	anna, bert := r.login("anna"), r.login("bert")
	text := anna.want(200, "POST", "/v1/responses", `{"input":"x","conversation":"weekly","stream":true}`, "response.created")
	m := answerName.FindStringSubmatch(text)
	if m == nil {
		t.Fatal(text)
	}
	id := m[1]
	_, a := r.up.last("/v1/responses")
	bert.want(200, "POST", "/v1/responses", `{"input":"x","conversation":"weekly"}`)
	if _, b := r.up.last("/v1/responses"); a == b || strings.Contains(a+b, "weekly") {
		t.Errorf("two users share a conversation: %s %s", a, b)
	}
	anna.want(200, "POST", "/v1/responses", `{"input":"x","previous_response_id":"`+id+`"}`)
	bert.want(404, "POST", "/v1/responses", `{"input":"x","previous_response_id":"`+id+`"}`, "Previous response not found: "+id)
	bert.want(404, "POST", "/v1/runs", `{"input":"x","previous_response_id":"`+id+`"}`, "Previous response not found: "+id)
	bert.want(400, "POST", "/v1/responses", `{"input":"x","previous_response_id":["`+id+`"]}`)
	bert.want(400, "POST", "/v1/responses", `{"input":"x","conversation":{"id":"y"}}`)
	bert.want(404, "GET", "/v1/responses/"+id, "", "Response not found: "+id)
	bert.want(404, "DELETE", "/v1/responses/"+id, "")
	anna.want(200, "GET", "/v1/responses/"+id, "")
	anna.want(200, "DELETE", "/v1/responses/"+id, "")
	anna.want(404, "GET", "/v1/responses/"+id, "")
}

func TestJobs(t *testing.T) {
	r := newRig(t)
	anna, bert := r.login("anna"), r.login("bert")
	id := made(t, anna.want(200, "POST", "/api/jobs", `{"name":"n","schedule":"every 2h"}`))
	if text := bert.want(200, "GET", "/api/jobs", ""); text != `{"jobs":[]}` {
		t.Errorf("another's jobs are %s", text)
	}
	anna.want(200, "GET", "/api/jobs?include_disabled=true", "", `"id":"`+id+`"`)
	for _, route := range []struct{ method, what string }{{"GET", ""}, {"PATCH", ""}, {"POST", "/pause"}, {"POST", "/resume"}, {"POST", "/run"}, {"DELETE", ""}} {
		bert.want(404, route.method, "/api/jobs/"+id+route.what, "{}", `{"error":"Job not found"}`)
		anna.want(200, route.method, "/api/jobs/"+id+route.what, "{}")
	}
	anna.want(404, "GET", "/api/jobs/"+id, "")
}

// TestJobsThatAreNotAdvertised: without the owner's word the routes of jobs are there only while
// the API server advertises them, each by itself, and it is asked once a minute.
func TestJobsThatAreNotAdvertised(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Jobs = false })
	c := r.login("anna")
	for _, rt := range routes {
		if rt.job {
			c.want(404, rt.method, strings.Replace(rt.path, "{id}", "0123456789ab", 1), `{"name":"n","schedule":"every 2h"}`, "MOBILE_API_JOBS")
		}
	}
	if caps := c.want(200, "GET", "/v1/capabilities", ""); strings.Contains(caps, "jobs") {
		t.Errorf("the capabilities are %s", caps)
	}
	for _, q := range r.up.heard() {
		if strings.HasPrefix(q.URL.Path, jobPrefix) {
			t.Errorf("the API server heard %s %s", q.Method, q.URL)
		}
	}
	r.up.mu.Lock()
	r.up.endpoints = `,"jobs":{"method":"GET","path":"/api/jobs"}`
	r.up.mu.Unlock()
	r.clock.pass(offeredFor + time.Second)
	if text := c.want(200, "GET", "/api/jobs", ""); text != `{"jobs":[]}` {
		t.Errorf("advertised jobs are %s", text)
	}
	c.want(404, "POST", "/api/jobs", `{"name":"n","schedule":"every 2h"}`, "MOBILE_API_JOBS")
	if caps := c.want(200, "GET", "/v1/capabilities", ""); !strings.Contains(caps, `"jobs":{`) || strings.Contains(caps, "job_create") {
		t.Errorf("the capabilities are %s", caps)
	}
}

// TestSameNameAgain: who gets the name of a user who was removed gets nothing else of that.
func TestSameNameAgain(t *testing.T) {
	r := newRig(t)
	anna := r.login("anna")
	id := anna.session()
	_, err := r.users.Remove(t.Context(), "anna")
	ok(t, err)
	ok(t, r.users.Add(t.Context(), "anna", password))
	again := r.login("anna")
	again.want(404, "GET", "/api/sessions/"+id, "")
}

// TestTextIsNoName: what a user makes the agent say is not taken for what an answer is called by.
func TestTextIsNoName(t *testing.T) {
	text, err := json.Marshal(map[string]string{"content": `{"id": "resp_of_somebody_else", "id":"chatcmpl-of-somebody-else"}`})
	ok(t, err)
	if m := answerName.Find(text); m != nil {
		t.Errorf("it is taken for %s", m)
	}
}
