package direct

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	older = "0.19.0"
	now   = "0.22.2"
)

type object = map[string]any

// fakeGateway is an API server with sessions and runs, whose model is the test. What it offers was recorded from the real
// versions, and so are the forms of its answers.
type fakeGateway struct {
	*httptest.Server
	t       testing.TB
	version string
	newer   bool
	caps    []byte

	mu       sync.Mutex
	changed  chan struct{} // closed at each change
	sessions map[string][]object
	titles   map[string]string
	order    []string
	runs     []*fakeRun
	keys     map[string]*fakeRun
	bodies   map[string]string
	refuse   []func(w http.ResponseWriter, r *http.Request) bool // whoever answers is taken out of the list
	away     bool
	asked    []string // METHOD path
	row      int
}

// fakeRun is one run.
type fakeRun struct {
	g         *fakeGateway
	id        string
	session   string
	body      object
	events    []string
	status    string
	output    string
	usage     object
	readers   int
	stopped   bool
	approvals []object
	answers   []object // as they were posted
	lost      bool     // an older gateway whose only reader left
	gaveUp    bool     // it no longer waits for an answer
	trimmed   int      // events that are no longer replayed
}

func newGateway(t testing.TB, version string) *fakeGateway {
	t.Helper()
	caps, err := os.ReadFile(filepath.Join("../../../gateway/testdata/api", version, "capabilities.json"))
	ok(t, err)
	g := &fakeGateway{t: t, version: version, newer: version == now, caps: caps, changed: make(chan struct{}), sessions: map[string][]object{}, titles: map[string]string{},
		keys: map[string]*fakeRun{}, bodies: map[string]string{}}
	g.Server = httptest.NewServer(g)
	t.Cleanup(func() {
		g.CloseClientConnections()
		g.Server.Close()
	})
	return g
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// moved tells everybody who waits; g.mu is held.
func (g *fakeGateway) moved() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// eventually waits for a condition, which is called with g.mu held.
func (g *fakeGateway) eventually(what string, is func() bool) {
	g.t.Helper()
	deadline := time.After(patience)
	for {
		g.mu.Lock()
		done, changed := is(), g.changed
		g.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			g.t.Fatalf("waited in vain for %s; the gateway was asked %q", what, g.asked)
		}
	}
}

// run waits for the n-th run, from 1.
func (g *fakeGateway) run(n int) *fakeRun {
	g.t.Helper()
	g.eventually(fmt.Sprint("run ", n), func() bool { return len(g.runs) >= n })
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.runs[n-1]
}

func (g *fakeGateway) count(request string) (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, a := range g.asked {
		if strings.HasPrefix(a, request) {
			n++
		}
	}
	return n
}

// next has a function look at the requests that come, until it has answered one.
func (g *fakeGateway) next(f func(w http.ResponseWriter, r *http.Request) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refuse = append(g.refuse, f)
}

// refuseNext answers the next n requests of a kind with an error.
func (g *fakeGateway) refuseNext(n int, request string, status int, body string) {
	for range n {
		g.next(func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasPrefix(r.Method+" "+r.URL.Path, request) {
				return false
			}
			respond(w, status, json.RawMessage(body))
			return true
		})
	}
}

// goAway has every request fail below HTTP, and comes back.
func (g *fakeGateway) goAway(away bool) {
	g.mu.Lock()
	g.away = away
	g.moved()
	g.mu.Unlock()
	if away {
		g.CloseClientConnections()
	}
}

func respond(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func refusal404(w http.ResponseWriter, code string) {
	respond(w, 404, object{"error": object{"message": "not found", "code": code}})
}

func (g *fakeGateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	g.asked = append(g.asked, r.Method+" "+r.URL.Path)
	away, hooks := g.away, slices.Clone(g.refuse)
	g.moved()
	g.mu.Unlock()
	if away {
		panic(http.ErrAbortHandler)
	}
	for i, f := range hooks {
		if f(w, r) {
			g.mu.Lock()
			g.refuse = slices.Delete(g.refuse, i, i+1)
			g.mu.Unlock()
			return
		}
	}
	if r.URL.Path == "/health" {
		respond(w, 200, object{"status": "ok", "platform": "hermes-agent", "version": g.version})
		return
	}
	if r.Header.Get("Authorization") != "Bearer "+testKey {
		respond(w, 401, object{"error": object{"message": "Invalid API key", "code": "invalid_api_key"}})
		return
	}
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case r.URL.Path == "/v1/capabilities":
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(g.caps)
	case r.URL.Path == "/v1/models":
		respond(w, 200, object{"object": "list", "data": []object{{"id": "hermes-agent"}}})
	case r.URL.Path == "/api/model/options":
		respond(w, 200, object{"model": "m1", "provider": "p", "providers": []object{{"slug": "p", "models": []string{"m1", "m2"}}}})
	case len(path) >= 2 && path[0] == "api" && path[1] == "sessions":
		g.serveSession(w, r, path[2:])
	case len(path) >= 2 && path[0] == "v1" && path[1] == "runs":
		g.serveRun(w, r, path[2:])
	default:
		refusal404(w, "")
	}
}

func decode(r *http.Request) (o object) {
	_ = json.NewDecoder(r.Body).Decode(&o)
	return o
}

func (g *fakeGateway) session(id string) object {
	return object{"session": g.sessionRow(id)}
}

func (g *fakeGateway) sessionRow(id string) object {
	return object{"id": id, "source": "api_server", "title": g.titles[id], "started_at": 1795988918.5, "message_count": len(g.sessions[id])}
}

func (g *fakeGateway) newSession(title string) string {
	id := fmt.Sprintf("api_%d", len(g.order)+1)
	g.order = append(g.order, id)
	g.sessions[id], g.titles[id] = []object{}, title
	return id
}

func (g *fakeGateway) serveSession(w http.ResponseWriter, r *http.Request, path []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(path) == 0 {
		if r.Method == "POST" {
			title, _ := decode(r)["title"].(string)
			respond(w, 201, g.session(g.newSession(title)))
			return
		}
		limit, offset := 50, 0
		_, _ = fmt.Sscan(r.URL.Query().Get("limit"), &limit)
		_, _ = fmt.Sscan(r.URL.Query().Get("offset"), &offset)
		data := []object{}
		for i, id := range slices.Backward(g.order) {
			if g.sessions[id] != nil && len(g.order)-1-i >= offset && len(data) < limit {
				data = append(data, g.sessionRow(id))
			}
		}
		respond(w, 200, object{"data": data, "has_more": len(data) == limit})
		return
	}
	id := path[0]
	if g.sessions[id] == nil {
		refusal404(w, "session_not_found")
		return
	}
	switch {
	case len(path) == 1 && r.Method == "GET":
		respond(w, 200, g.session(id))
	case len(path) == 1 && r.Method == "PATCH":
		g.titles[id], _ = decode(r)["title"].(string)
		respond(w, 200, g.session(id))
	case len(path) == 1 && r.Method == "DELETE":
		g.sessions[id] = nil
		respond(w, 200, object{"deleted": true})
	case len(path) == 2 && path[1] == "fork":
		title, _ := decode(r)["title"].(string)
		fork := g.newSession(title)
		g.sessions[fork] = slices.Clone(g.sessions[id])
		respond(w, 201, g.session(fork))
	case len(path) == 2 && path[1] == "messages":
		rows := g.sessions[id]
		answer := object{"session_id": id}
		if limit, offset := len(rows), 0; g.newer {
			_, _ = fmt.Sscan(r.URL.Query().Get("limit"), &limit)
			_, _ = fmt.Sscan(r.URL.Query().Get("offset"), &offset)
			if end := max(len(rows)-offset, 0); r.URL.Query().Get("order") == "latest" {
				rows = rows[max(end-limit, 0):end]
			} else {
				rows = rows[min(offset, len(rows)):min(offset+limit, len(rows))]
			}
			answer["pagination"] = object{"limit": limit}
		}
		answer["data"] = rows
		respond(w, 200, answer)
	default:
		refusal404(w, "")
	}
}

// store adds a message to a session; g.mu is held.
func (g *fakeGateway) store(session, role, text string, more object) {
	g.row++
	m := object{"id": g.row, "session_id": session, "role": role, "content": text, "timestamp": 1795988918.5}
	for name, value := range more {
		m[name] = value
	}
	g.sessions[session] = append(g.sessions[session], m)
}

func (g *fakeGateway) serveRun(w http.ResponseWriter, r *http.Request, path []string) {
	if len(path) == 0 {
		g.createRun(w, r)
		return
	}
	g.mu.Lock()
	at := slices.IndexFunc(g.runs, func(run *fakeRun) bool { return run.id == path[0] })
	if at < 0 {
		g.mu.Unlock()
		refusal404(w, "run_not_found")
		return
	}
	run := g.runs[at]
	if len(path) == 2 && path[1] == "events" {
		g.mu.Unlock()
		run.serve(w, r)
		return
	}
	defer g.mu.Unlock()
	defer g.moved()
	switch {
	case len(path) == 1:
		s := object{"object": "hermes.run", "run_id": run.id, "status": run.status, "session_id": run.session, "output": run.output, "usage": run.usage}
		if run.status == "running" && len(run.approvals) > 0 {
			s["status"] = "waiting_for_approval"
			if g.newer {
				s["approval"] = run.approvals[0]
			}
		}
		respond(w, 200, s)
	case path[1] == "stop":
		run.stopped = true
		respond(w, 200, object{"run_id": run.id, "status": "stopping"})
	case path[1] == "approval":
		body := decode(r)
		n := slices.IndexFunc(run.approvals, func(a object) bool {
			return body["request_id"] == nil || body["request_id"] == a["request_id"]
		})
		if n < 0 {
			respond(w, 409, object{"error": object{"message": "no approval is pending", "code": "approval_not_pending"}})
			return
		}
		resolved := 1
		run.answers = append(run.answers, body)
		if body["all"] == true {
			resolved = len(run.approvals)
			run.approvals = nil
		} else {
			run.approvals = slices.Delete(run.approvals, n, n+1)
		}
		run.add("approval.responded", object{"choice": body["choice"], "resolved": resolved})
		respond(w, 200, object{"run_id": run.id, "resolved": resolved})
	}
}

func (g *fakeGateway) createRun(w http.ResponseWriter, r *http.Request) {
	text, _ := io.ReadAll(r.Body)
	var body object
	_ = json.Unmarshal(text, &body)
	key := r.Header.Get("Idempotency-Key")
	g.mu.Lock()
	defer g.mu.Unlock()
	defer g.moved()
	if run := g.keys[key]; g.newer && run != nil {
		if g.bodies[key] != string(text) {
			respond(w, 409, object{"error": object{"message": "the key was used for another request", "code": "idempotency_key_conflict"}})
			return
		}
		respond(w, 202, object{"run_id": run.id, "status": run.status, "replayed": true})
		return
	}
	run := &fakeRun{g: g, id: fmt.Sprintf("run_%d", len(g.runs)+1), body: body, status: "running"}
	run.session, _ = body["session_id"].(string)
	if run.session == "" {
		run.session = run.id
	}
	input, _ := body["input"].(string)
	g.store(run.session, "user", input, nil)
	g.runs = append(g.runs, run)
	g.keys[key], g.bodies[key] = run, string(text)
	respond(w, 202, object{"run_id": run.id, "status": "started"})
}

// serve sends the events of a run as its version does.
func (run *fakeRun) serve(w http.ResponseWriter, r *http.Request) {
	g := run.g
	at := 0
	g.mu.Lock()
	if !g.newer && (run.lost || run.readers > 0) {
		g.mu.Unlock()
		refusal404(w, "run_not_found")
		return
	}
	run.readers++
	trimmed := run.trimmed
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		run.readers--
		run.lost = true
		g.moved()
		g.mu.Unlock()
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	if last := r.Header.Get("Last-Event-ID"); g.newer && last != "" {
		_, _ = fmt.Sscan(last, &at)
		at++
	}
	_, _ = io.WriteString(w, ": open\n\n")
	if at < trimmed {
		at = trimmed
		_, _ = fmt.Fprintf(w, "data: {\"event\":\"replay.truncated\",\"run_id\":%q,\"oldest_retained_seq\":%d}\n\n", run.id, at)
	}
	flush := http.NewResponseController(w)
	for {
		g.mu.Lock()
		events, over, changed := run.events, run.status != "running", g.changed
		g.mu.Unlock()
		for ; at < len(events); at++ {
			if g.newer {
				_, _ = fmt.Fprintf(w, "id: %d\n", at)
			}
			_, _ = io.WriteString(w, "data: "+events[at]+"\n\n")
		}
		_ = flush.Flush()
		if over {
			return
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

// add is emit; g.mu is held.
func (run *fakeRun) add(name string, data object) {
	e := object{"event": name, "run_id": run.id, "timestamp": 1795988918.5}
	if run.g.newer {
		e["seq"] = len(run.events)
	}
	for k, v := range data {
		e[k] = v
	}
	text, _ := json.Marshal(e)
	run.events = append(run.events, string(text))
	run.g.moved()
}

// emit has the run tell something.
func (run *fakeRun) emit(name string, data object) {
	run.g.mu.Lock()
	defer run.g.mu.Unlock()
	run.add(name, data)
}

// text streams a text in pieces.
func (run *fakeRun) text(pieces ...string) {
	for _, p := range pieces {
		run.emit("message.delta", object{"delta": p})
	}
}

// tool begins a tool, before which a text was said.
func (run *fakeRun) tool(said, name string) {
	run.g.mu.Lock()
	defer run.g.mu.Unlock()
	run.g.store(run.session, "assistant", said, object{"tool_calls": []object{{"id": "c", "function": object{"name": name, "arguments": "{}"}}}, "finish_reason": "tool_calls"})
	run.add("tool.started", object{"tool": name, "preview": "a line"})
}

func (run *fakeRun) toolDone(name string, failed bool) {
	run.g.mu.Lock()
	defer run.g.mu.Unlock()
	run.g.store(run.session, "tool", "{}", object{"tool_name": name})
	run.add("tool.completed", object{"tool": name, "duration": 0.1, "error": failed})
}

// ask raises an approval.
func (run *fakeRun) ask(id, command string) {
	run.g.mu.Lock()
	defer run.g.mu.Unlock()
	a := object{"command": command, "description": "why", "choices": []string{"once", "session", "always", "deny"}, "timestamp": 1795988918.5 + float64(len(run.events))}
	if run.g.newer {
		a["request_id"] = id
	}
	run.approvals = append(run.approvals, a)
	run.add("approval.request", a)
}

// complete ends the run well.
func (run *fakeRun) complete(output string) {
	run.g.mu.Lock()
	defer run.g.mu.Unlock()
	run.output, run.usage = output, object{"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}
	run.g.store(run.session, "assistant", output, object{"finish_reason": "stop"})
	run.add("run.completed", object{"output": output, "usage": run.usage, "completed": true})
	run.status = "completed"
}

// end ends the run otherwise.
func (run *fakeRun) end(status string, data object) {
	run.g.mu.Lock()
	defer run.g.mu.Unlock()
	run.add("run."+status, data)
	run.status = status
}

// nextStream answers the next turn with an image by events "name payload", and tells what it was asked.
func (g *fakeGateway) nextStream(events ...string) <-chan string {
	sent := make(chan string, 1)
	g.next(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/api/sessions/api_1/chat/stream" {
			return false
		}
		body, _ := io.ReadAll(r.Body)
		sent <- string(body)
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range events {
			name, data, _ := strings.Cut(e, " ")
			data = strings.Replace(data, "{", `{"session_id":"api_1","run_id":"run_s"`+strings.Repeat(",", min(1, len(data)-2)), 1)
			_, _ = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, data)
		}
		return true
	})
	return sent
}
