package direct

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

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
	case path[1] == "steer" && g.newer:
		if run.status != "running" || len(run.approvals) > 0 || run.deaf {
			respond(w, 409, object{"error": object{"message": "not now", "code": "run_not_accepting_steer"}})
			return
		}
		run.steered = append(run.steered, decode(r)["input"].(string))
		respond(w, 200, object{"object": "hermes.run.steer", "run_id": run.id, "accepted": true})
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

// add is emit for a caller that holds g.mu.
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

// emit adds an event of the run.
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

// tool starts a tool, after a text.
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

// ask requests an approval.
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

// complete ends the run successfully.
func (run *fakeRun) complete(output string) {
	run.g.mu.Lock()
	defer run.g.mu.Unlock()
	run.output, run.usage = output, object{"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}
	run.g.store(run.session, "assistant", output, object{"finish_reason": "stop"})
	run.add("run.completed", object{"output": output, "usage": run.usage, "completed": true})
	run.status = "completed"
}

// end ends the run in another state.
func (run *fakeRun) end(status string, data object) {
	run.g.mu.Lock()
	defer run.g.mu.Unlock()
	run.add("run."+status, data)
	run.status = status
}

// nextStream answers the next turn with an image with events "name payload", and returns its
// request.
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
