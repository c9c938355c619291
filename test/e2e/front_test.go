package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"os/exec"
	"strings"
	"testing"
	"time"

	"hermes-mobile/test/hermes"
)

// TestFront: users log in at the API proxy of the real Hermes' API, talk, see what is streamed as it comes, stop, approve, and
// find nothing of one another.
func TestFront(t *testing.T) {
	both(t, func(t *testing.T, v hermes.Version) {
		g := startAPI(t, v)
		s := NewServer(t, "HERMES_HOME="+g.Home(), "MOBILE_FRONT_API=1", "MOBILE_API_JOBS=on", "MOBILE_API_URL="+g.API().URL, "MOBILE_API_KEY=").Start() // the key is found
		for _, name := range []string{"anna", "bert"} {
			addUser(t, s, name)
		}
		f := &frontDoor{t, s, v, logIn(t, s, "anna"), logIn(t, s, "bert")}
		f.anna.turn("hello")
		id := f.streams()
		f.isolation(id)
		f.stop()
		f.approval()
		f.conversations()
		f.doctor()

		// What is whose is known after a restart, and so is who was logged in.
		s.Stop()
		s.Start()
		f.anna.must("GET", "/api/sessions/"+id, "")
		if status, _ := f.bert.call("GET", "/api/sessions/"+id, ""); status != http.StatusNotFound {
			t.Errorf("after a restart another's session is answered with %d", status)
		}
		g.Kill()
		if status, out := f.anna.call("GET", "/api/sessions", ""); status != http.StatusBadGateway || !strings.Contains(fmt.Sprint(out), "upstream_unavailable") {
			t.Errorf("without Hermes: %d %v", status, out)
		}
		if text := s.LogTail(10_000); strings.Contains(text, g.API().Key) || strings.Contains(text, frontPassword) {
			t.Error("the server's log holds a secret")
		}
	})
}

const frontPassword = "correct horse battery"

// addUser adds a user as its owner does, with the password on standard input.
func addUser(t *testing.T, s *Server, name string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), s.Binary, "users", "add", name)
	cmd.Env, cmd.Stdin = s.Env, strings.NewReader(frontPassword+"\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("users add: %v\n%s", err, out)
	}
}

// logIn is an app with the cookies of a user.
func logIn(t *testing.T, s *Server, name string) caller {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	a := caller{t, s.Base(), "", jar}
	if status, _ := a.call("GET", "/v1/capabilities", ""); status != http.StatusUnauthorized {
		t.Errorf("before the login: %d", status)
	}
	body, _ := json.Marshal(map[string]string{"provider": "basic", "username": name, "password": frontPassword})
	if out := a.must("POST", "/auth/password-login", string(body)); out["ok"] != true {
		t.Errorf("the login says %v", out)
	}
	if me := a.must("GET", "/api/auth/me", ""); me["user_id"] != name {
		t.Errorf("it is %v", me)
	}
	return a
}

type frontDoor struct {
	t          *testing.T
	server     *Server
	version    hermes.Version
	anna, bert caller
}

// streams: the pieces of an answer come one after another, and not all at its end.
func (f *frontDoor) streams() (id string) {
	f.t.Helper()
	id = f.anna.session()
	var first, last time.Time
	deltas := 0
	f.anna.stream("/api/sessions/"+id+"/chat/stream", `{"message":"FM:slow(3)"}`, func(e event) {
		if e.name != "assistant.delta" {
			return
		}
		if deltas++; first.IsZero() {
			first = time.Now()
		}
		last = time.Now()
	})
	// The model takes three seconds, so that even on a busy machine the first is long there when the last comes.
	if deltas < 3 || !last.After(first.Add(100*time.Millisecond)) {
		f.t.Errorf("%d pieces came within %v", deltas, last.Sub(first))
	}
	return id
}

// isolation: nothing of one user is there for the other.
func (f *frontDoor) isolation(id string) {
	f.t.Helper()
	for _, c := range []struct{ method, path, body string }{
		{"GET", "", ""}, {"PATCH", "", `{"title":"mine"}`}, {"GET", "/messages", ""}, {"POST", "/fork", "{}"}, {"POST", "/chat", `{"message":"FM:text(x)"}`},
		{"POST", "/chat/stream", `{"message":"FM:text(x)"}`}, {"DELETE", "", ""},
	} {
		if status, out := f.bert.call(c.method, "/api/sessions/"+id+c.path, c.body); status != http.StatusNotFound || !strings.Contains(fmt.Sprint(out), "session_not_found") {
			f.t.Errorf("%s %s of another: %d %v", c.method, c.path, status, out)
		}
	}
	list := func(a caller) []any {
		rows, _ := a.must("GET", "/api/sessions?limit=100", "")["data"].([]any)
		return rows
	}
	if mine, others := list(f.anna), list(f.bert); len(mine) != 2 || len(others) != 0 {
		f.t.Errorf("the lists have %d and %d sessions", len(mine), len(others))
	}
	fork, _ := f.anna.must("POST", "/api/sessions/"+id+"/fork", "{}")["session"].(map[string]any)
	child, _ := fork["id"].(string)
	f.anna.must("GET", "/api/sessions/"+child+"/messages", "")
	if status, _ := f.bert.call("GET", "/api/sessions/"+child, ""); status != http.StatusNotFound {
		f.t.Errorf("the fork of another: %d", status)
	}
	if status, out := f.bert.call("POST", "/v1/runs", `{"input":"FM:text(x)","session_id":"`+id+`"}`); status != http.StatusNotFound {
		f.t.Errorf("a run in another's session: %d %v", status, out)
	}
	job, _ := f.anna.must("POST", "/api/jobs", `{"name":"n","schedule":"every 24h","prompt":"FM:text(x)"}`)["job"].(map[string]any)
	if jobs, _ := f.bert.must("GET", "/api/jobs", "")["jobs"].([]any); len(jobs) != 0 {
		f.t.Errorf("another's jobs are listed: %v", jobs)
	}
	if status, _ := f.bert.call("DELETE", fmt.Sprint("/api/jobs/", job["id"]), ""); status != http.StatusNotFound {
		f.t.Errorf("another's job: %d", status)
	}
	f.anna.must("DELETE", fmt.Sprint("/api/jobs/", job["id"]), "")
}

// stop: a run that takes long is stopped by its user, and by nobody else.
func (f *frontDoor) stop() {
	f.t.Helper()
	run := fmt.Sprint(f.anna.must("POST", "/v1/runs", `{"input":"FM:slow(60)"}`)["run_id"])
	stopped := false
	events := f.anna.stream("/v1/runs/"+run+"/events", "", func(e event) {
		if e.name != "message.delta" || stopped {
			return
		}
		stopped = true
		if status, _ := f.bert.call("POST", "/v1/runs/"+run+"/stop", ""); status != http.StatusNotFound {
			f.t.Errorf("another's run: %d", status)
		}
		f.anna.must("POST", "/v1/runs/"+run+"/stop", "")
	})
	if end := events[len(events)-1]; end.name != "run.cancelled" {
		f.t.Errorf("the run ended with %v", end)
	}
	// The session of the run is the user's, as one that the user made.
	f.anna.must("GET", "/api/sessions/"+run+"/messages", "")
}

// approval: a command runs when its user has said so.
func (f *frontDoor) approval() {
	f.t.Helper()
	run := fmt.Sprint(f.anna.must("POST", "/v1/runs", `{"input":"FM:exec FM:text(after)"}`)["run_id"])
	events := f.anna.stream("/v1/runs/"+run+"/events", "", func(e event) {
		if e.name != "approval.request" {
			return
		}
		if status, _ := f.bert.call("POST", "/v1/runs/"+run+"/approval", `{"choice":"once"}`); status != http.StatusNotFound {
			f.t.Errorf("an approval by another: %d", status)
		}
		if out := f.anna.must("POST", "/v1/runs/"+run+"/approval", `{"choice":"once"}`); out["resolved"] != float64(1) {
			f.t.Errorf("the approval says %v", out)
		}
	})
	if end := events[len(events)-1]; end.name != "run.completed" || !strings.Contains(fmt.Sprint(end.data["output"]), "after") {
		f.t.Errorf("the run ended with %v", end)
	}
	if f.version != hermes.V022 {
		return
	}
	// With the newer version a turn of a session asks as well, and is answered by the id of its run.
	id := f.anna.session()
	asked := false
	f.anna.stream("/api/sessions/"+id+"/chat/stream", `{"message":"FM:exec FM:text(after)"}`, func(e event) {
		if e.name == "approval.request" {
			asked = true
			f.anna.must("POST", fmt.Sprint("/v1/runs/", e.data["run_id"], "/approval"), `{"choice":"deny"}`)
		}
	})
	if !asked {
		f.t.Error("the turn did not ask")
	}
}

// conversations: two users who begin with the same words do not share a session, and a chained response goes on.
func (f *frontDoor) conversations() {
	f.t.Helper()
	sessions := map[string]string{}
	for name, a := range map[string]caller{"anna": f.anna, "bert": f.bert} {
		answer := a.request("POST", "/v1/chat/completions", `{"messages":[{"role":"user","content":"FM:text(same)"}]}`)
		_ = answer.Body.Close()
		sessions[name] = answer.Header.Get("X-Hermes-Session-Id")
		a.must("GET", "/api/sessions/"+sessions[name]+"/messages", "")
	}
	if sessions["anna"] == sessions["bert"] || sessions["anna"] == "" {
		f.t.Errorf("the sessions are %v", sessions)
	}
	if status, _ := f.bert.call("GET", "/api/sessions/"+sessions["anna"]+"/messages", ""); status != http.StatusNotFound {
		f.t.Errorf("what another said: %d", status)
	}
	response := fmt.Sprint(f.anna.must("POST", "/v1/responses", `{"input":"FM:text(one)"}`)["id"])
	f.anna.must("POST", "/v1/responses", `{"input":"FM:text(two)","previous_response_id":"`+response+`"}`)
	if status, _ := f.bert.call("POST", "/v1/responses", `{"input":"FM:text(two)","previous_response_id":"`+response+`"}`); status != http.StatusNotFound {
		f.t.Errorf("a response of another: %d", status)
	}
	f.anna.must("GET", "/v1/responses/"+response, "")
	c := f.anna.must("GET", "/v1/capabilities", "")
	if text := fmt.Sprint(c); strings.Contains(text, "browser") || strings.Contains(text, "artifact") || !strings.Contains(text, "/v1/runs") {
		f.t.Errorf("the capabilities are %v", c)
	}
}

// doctor: the server knows that its API proxy reaches Hermes.
func (f *frontDoor) doctor() {
	f.t.Helper()
	out, _ := f.server.CLI(f.t.Context(), "doctor") // it finds other things here, such as that no gateway dials in
	if strings.Contains(out, "front_") || !strings.Contains(out, "2 users") {
		f.t.Errorf("the doctor says\n%s", out)
	}
}
