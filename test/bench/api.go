package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// api is a scripted API server of Hermes 0.22. It streams at fixed times, so what is measured is the reader and not a
// model. The model that is asked for is the script; no model is what the direct agent asks for.
type api struct {
	*httptest.Server
	runs atomic.Int64

	mu     sync.Mutex
	posted time.Time // the newest run was asked for
	spoken time.Time // its first piece was written
}

const apiKey = "bench-api-key-bench-api-key"

// Scripts. A piece is what one event adds.
const (
	pacedPieces = 400
	pacedEvery  = 5 * time.Millisecond
	burstPieces = 20000
	shortPieces = 20
	heldEvery   = 100 * time.Millisecond
	thinking    = 50 * time.Millisecond // from the start of a run to its first piece
)

func newAPI() *api {
	a := &api{}
	mux := http.NewServeMux()
	answer := func(pattern, body string) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, body)
		})
	}
	answer("GET /health", `{"status":"ok","platform":"hermes-agent","version":"0.22.2"}`)
	answer("GET /v1/models", `{"object":"list","data":[{"id":"hermes-agent","object":"model"}]}`)
	answer("GET /v1/capabilities", apiCapabilities)
	answer("POST /api/sessions", `{"object":"hermes.session","session":{"id":"s-bench"}}`)
	answer("GET /api/sessions/{id}/messages", `{"object":"list","session_id":"s-bench","data":[]}`)
	mux.HandleFunc("POST /v1/chat/completions", a.completions)
	mux.HandleFunc("POST /v1/runs", a.run)
	mux.HandleFunc("GET /v1/runs/{id}/events", a.events)
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/health" && r.Header.Get("Authorization") != "Bearer "+apiKey {
			http.Error(w, `{"error":{"message":"Invalid API key"}}`, http.StatusUnauthorized)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	return a
}

const apiCapabilities = `{"object":"hermes.api_server.capabilities","platform":"hermes-agent","model":"hermes-agent",
"auth":{"type":"bearer","required":true},
"features":{"chat_completions":true,"chat_completions_streaming":true,"run_submission":true,"run_status":true,"run_events_sse":true,
"run_stop":true,"run_steer":true,"run_approval_response":true,"runs_idempotency":{"supported":true,"durable":true},
"tool_progress_events":true,"approval_events":true,"session_resources":true},
"endpoints":{"health":{"method":"GET","path":"/health"},"models":{"method":"GET","path":"/v1/models"},
"chat_completions":{"method":"POST","path":"/v1/chat/completions"},"runs":{"method":"POST","path":"/v1/runs"},
"run_status":{"method":"GET","path":"/v1/runs/{run_id}"},"run_events":{"method":"GET","path":"/v1/runs/{run_id}/events"},
"run_stop":{"method":"POST","path":"/v1/runs/{run_id}/stop"},"run_approval":{"method":"POST","path":"/v1/runs/{run_id}/approval"},
"session_create":{"method":"POST","path":"/api/sessions"},"session_messages":{"method":"GET","path":"/api/sessions/{session_id}/messages"}}}`

// asked is the model that a request names.
func asked(r *http.Request) string {
	var body struct {
		Model string `json:"model"`
	}
	_ = json.NewDecoder(r.Body).Decode(&body) // without one it is no script
	return body.Model
}

// play writes the pieces of a script; write writes one.
func play(w http.ResponseWriter, r *http.Request, script string, write func(out *bufio.Writer, n int, text string)) bool {
	w.Header().Set("Content-Type", "text/event-stream")
	out := bufio.NewWriterSize(w, 32<<10)
	flush := http.NewResponseController(w)
	send := func(n int, text string) bool {
		write(out, n, text)
		return out.Flush() == nil && flush.Flush() == nil
	}
	stamp := func() string { return strconv.FormatInt(time.Now().UnixNano(), 10) + " " }
	switch script {
	case "burst":
		for n := range burstPieces {
			write(out, n, "some words. ")
		}
		return out.Flush() == nil
	case "held":
		for n := 0; ; n++ {
			if !send(n, stamp()) || r.Context().Err() != nil {
				return false
			}
			time.Sleep(heldEvery)
		}
	case "paced":
		for n := range pacedPieces {
			if !send(n, stamp()) {
				return false
			}
			time.Sleep(pacedEvery)
		}
	default:
		for n := range shortPieces {
			if !send(n, stamp()) {
				return false
			}
			time.Sleep(pacedEvery)
		}
	}
	return true
}

func (a *api) completions(w http.ResponseWriter, r *http.Request) {
	whole := play(w, r, asked(r), func(out *bufio.Writer, _ int, text string) {
		fmt.Fprintf(out, "data: {\"id\": \"chatcmpl-59354726be2f4126ba305a6f4a653\", \"object\": \"chat.completion.chunk\", \"created\": 1795989085, "+
			"\"model\": \"hermes-agent\", \"choices\": [{\"index\": 0, \"delta\": {\"content\": %q}, \"finish_reason\": null}]}\n\n", text)
	})
	if whole {
		_, _ = io.WriteString(w, "data: {\"id\": \"chatcmpl-59354726be2f4126ba305a6f4a653\", \"object\": \"chat.completion.chunk\", \"created\": 1795989085, "+
			"\"model\": \"hermes-agent\", \"choices\": [{\"index\": 0, \"delta\": {}, \"finish_reason\": \"stop\"}]}\n\ndata: [DONE]\n\n")
	}
}

// run starts a run, whose id says what it plays.
func (a *api) run(w http.ResponseWriter, r *http.Request) {
	script := asked(r)
	a.mu.Lock()
	a.posted = time.Now()
	a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	fmt.Fprintf(w, `{"run_id":"run_%s_%d","status":"started"}`, script, a.runs.Add(1))
}

func (a *api) events(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	var script string
	for _, name := range []string{"short", "paced", "burst", "held"} {
		if len(id) > 4+len(name) && id[4:4+len(name)] == name {
			script = name
		}
	}
	if script == "" {
		a.mu.Lock()
		wait := time.Until(a.posted.Add(thinking))
		a.mu.Unlock()
		time.Sleep(wait)
	}
	last := 0
	whole := play(w, r, script, func(out *bufio.Writer, n int, text string) {
		if script == "" && n == 0 {
			a.mu.Lock()
			a.spoken = time.Now()
			a.mu.Unlock()
		}
		fmt.Fprintf(out, "id: %d\ndata: {\"event\": \"message.delta\", \"run_id\": %q, \"timestamp\": 1795988917.037798, \"delta\": %q, \"seq\": %d}\n\n", n, id, text, n)
		last = n
	})
	if whole {
		fmt.Fprintf(w, "id: %d\ndata: {\"event\": \"run.completed\", \"run_id\": %q, \"timestamp\": 1795988918.0, \"output\": \"\", \"seq\": %d}\n\n", last+1, id, last+1)
	}
}

// times are when the newest run was asked for and when it first spoke.
func (a *api) times() (posted, spoken time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.posted, a.spoken
}
