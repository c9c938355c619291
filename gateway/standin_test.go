package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"

	"hermes-mobile/gateway"
)

// standIn answers as a gateway of 0.22 does, so that the examples run.
func standIn() *httptest.Server {
	mux := http.NewServeMux()
	answer := func(pattern, body string) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, body) })
	}
	answer("GET /health", `{"status":"ok","platform":"hermes-agent","version":"0.22.2"}`)
	answer("GET /v1/models", `{"object":"list","data":[{"id":"llama"}]}`)
	answer("GET /v1/capabilities", `{"platform":"hermes-agent","model":"hermes-agent","auth":{"type":"bearer"},
		"features":{"run_submission":true,"run_events_sse":true,"runs_idempotency":true,"run_approval_response":true,"approval_events":true},
		"endpoints":{"models":{"method":"GET","path":"/v1/models"},"sessions":{"method":"GET","path":"/api/sessions"},"session_create":{"method":"POST","path":"/api/sessions"},"session_messages":{"method":"GET","path":"/api/sessions/{session_id}/messages"},
		"runs":{"method":"POST","path":"/v1/runs"},"run_status":{"method":"GET","path":"/v1/runs/{run_id}"},
		"run_events":{"method":"GET","path":"/v1/runs/{run_id}/events"},"run_approval":{"method":"POST","path":"/v1/runs/{run_id}/approval"}}}`)
	answer("GET /api/sessions/{id}/messages", `{"object":"list","session_id":"a","data":[]}`)
	answer("POST /api/sessions", `{"session":{"id":"d","title":"Holidays"}}`)
	answer("GET /api/jobs", `{"jobs":[{"id":"j1","name":"News","schedule_display":"every 120m","enabled":true,"state":"scheduled"}]}`)
	answer("POST /api/jobs/{id}/pause", `{"job":{"id":"j1","name":"News","enabled":false,"state":"paused"}}`)
	answer("POST /v1/runs", `{"run_id":"run_1","status":"started"}`)
	mux.HandleFunc("GET /api/sessions", sessionPage)
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, `data: {"id":"c","choices":[{"index":0,"delta":{"content":"Bonjour."},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
	})
	run := &standInRun{answered: make(chan struct{})}
	mux.HandleFunc("GET /v1/runs/{id}/events", run.events)
	mux.HandleFunc("POST /v1/runs/{id}/approval", run.approve)
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/health" && r.Header.Get("Authorization") != "Bearer api-server-key" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		mux.ServeHTTP(w, r)
	}))
}

func writeJSON(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, body)
}

func sessionPage(w http.ResponseWriter, r *http.Request) {
	all := []string{`{"id":"a","title":"Shopping"}`, `{"id":"b","title":"Garden"}`, `{"id":"c","title":"Taxes"}`}
	offset, _ := strconv.Atoi(r.URL.Query().Get("offset")) // 0 if there is none
	limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
	if err != nil {
		limit = 50
	}
	offset = min(offset, len(all))
	end := min(offset+limit, len(all))
	writeJSON(w, fmt.Sprintf(`{"object":"list","data":[%s],"has_more":%t}`, strings.Join(all[offset:end], ","), end < len(all)))
}

// standInRun is a run that asks for one approval.
type standInRun struct {
	answered chan struct{}
	once     sync.Once
}

func (s *standInRun) approve(w http.ResponseWriter, _ *http.Request) {
	s.once.Do(func() { close(s.answered) })
	writeJSON(w, `{"object":"hermes.run.approval_response","run_id":"run_1","choice":"once","resolved":1}`)
}

func (s *standInRun) events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	after, err := strconv.Atoi(r.Header.Get("Last-Event-ID"))
	if err != nil {
		after = -1
	}
	for seq, event := range []string{
		`"event":"message.delta","delta":"Let me look. "`,
		`"event":"approval.request","request_id":"q","command":"rm -r cache","choices":["once","session","always","deny"]`,
		`"event":"approval.responded","choice":"once","resolved":1`,
		`"event":"message.delta","delta":"All is tidy."`,
		`"event":"run.completed","output":"Let me look. All is tidy."`,
	} {
		if seq == 2 {
			select {
			case <-s.answered:
			case <-r.Context().Done():
				return
			}
		}
		if seq > after {
			fmt.Fprintf(w, "id: %d\ndata: {\"run_id\":\"run_1\",\"seq\":%d,%s}\n\n", seq, seq, event)
			_ = http.NewResponseController(w).Flush() // detect a reader that left by its context
		}
	}
}

// connect returns a client of a stand-in.
func connect(server *httptest.Server) *gateway.Client {
	client, err := gateway.New(gateway.Profile{Remote: server.URL, Auth: gateway.AuthBearer},
		gateway.Credentials{Token: gateway.NewSecret("api-server-key")}, gateway.Options{})
	if err != nil {
		panic(err)
	}
	return client
}

func connected() (*httptest.Server, *gateway.Client) {
	server := standIn()
	return server, connect(server)
}
