package apiproxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
)

// upstream is a fake API server that answers as doc/hermes/api.md §1 to §9 describe, and records the
// requests that it gets.
type upstream struct {
	*httptest.Server
	mu       sync.Mutex
	sessions []map[string]any // the newest first
	runs     map[string]string
	jobs     []string

	endpoints string // that are advertised besides
	n         int
	seen      []*http.Request
	bodies    []string
	next      chan string // frames of a stream; closed: its end
	gone      chan struct{}
	any       bool // whatever is asked is answered with an empty object
	loud      bool // each answer has headers of its own connection, trailers, and one before it
}

func newUpstream(t *testing.T) *upstream {
	u := &upstream{runs: map[string]string{}, next: make(chan string), gone: make(chan struct{}, 16)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		say(w, 200, map[string]any{"status": "ok", "platform": "hermes-agent"})
	})
	mux.HandleFunc("GET /v1/capabilities", func(w http.ResponseWriter, _ *http.Request) {
		u.mu.Lock()
		more := u.endpoints
		u.mu.Unlock()
		_, _ = io.WriteString(w, `{"object":"hermes.api_server.capabilities","auth":{"type":"bearer","required":true},"features":{"run_stop":true,"runs_idempotency":{"supported":true},"browser_extension_control":{"enabled":false}},
			"endpoints":{"runs":{"method":"POST","path":"/v1/runs"},"health_detailed":{"method":"GET","path":"/health/detailed"},"artifact_upload":{"method":"POST","path":"/v1/artifacts/upload"},"session":{"method":"GET","path":"/api/sessions/{session_id}"}`+more+`}}`)
	})
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		say(w, 200, map[string]any{"object": "list"})
	})
	mux.HandleFunc("GET /api/model/options", func(w http.ResponseWriter, _ *http.Request) { say(w, 200, map[string]any{}) })
	mux.HandleFunc("GET /api/sessions", u.list)
	mux.HandleFunc("POST /api/sessions", func(w http.ResponseWriter, r *http.Request) {
		var in struct{ ID, Title string }
		_ = json.NewDecoder(r.Body).Decode(&in)
		if in.Title == "refused" {
			say(w, 400, map[string]any{"error": map[string]any{"code": "invalid_title"}})
			return
		}
		if in.ID != "" && u.session(in.ID) != nil {
			say(w, 409, map[string]any{"error": map[string]any{"code": "session_exists", "message": "Session already exists: " + in.ID}})
			return
		}
		say(w, 201, map[string]any{"object": "hermes.session", "session": u.add(in.ID, "")})
	})
	mux.HandleFunc("/api/sessions/{id}", func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("id") == "broken" {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		s := u.session(r.PathValue("id"))
		if s == nil {
			say(w, 404, map[string]any{"error": map[string]any{"code": "session_not_found", "message": "upstream"}})
			return
		}
		if r.Method == http.MethodDelete {
			u.remove(r.PathValue("id"))
		}
		say(w, 200, map[string]any{"object": "hermes.session", "session": s})
	})
	mux.HandleFunc("POST /api/sessions/{id}/fork", func(w http.ResponseWriter, r *http.Request) {
		var in struct{ ID string }
		_ = json.NewDecoder(r.Body).Decode(&in)
		if in.ID != "" && u.session(in.ID) != nil {
			say(w, 409, map[string]any{"error": map[string]any{"code": "session_exists", "message": "Session already exists: " + in.ID}})
			return
		}
		say(w, 201, map[string]any{"object": "hermes.session", "session": u.add(in.ID, r.PathValue("id"))})
	})
	mux.HandleFunc("GET /api/sessions/{id}/messages", func(w http.ResponseWriter, r *http.Request) {
		say(w, 200, map[string]any{"session_id": r.PathValue("id"), "query": r.URL.RawQuery})
	})
	mux.HandleFunc("POST /api/sessions/{id}/chat/stream", u.stream)
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get(sessionIDHeader)
		switch {
		case id == "":
			id = "api-hash"
		case u.session(id) == nil:
			u.add(id, "")
		}
		w.Header().Set(sessionIDHeader, id)
		if key := r.Header.Get(sessionKeyHeader); key != "" {
			w.Header().Set(sessionKeyHeader, key)
		}
		say(w, 200, map[string]any{"id": "chatcmpl-" + u.number(), "object": "chat.completion"})
	})
	mux.HandleFunc("POST /v1/responses", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(sessionIDHeader, "resp-session-"+u.number())
		_, _ = fmt.Fprintf(w, "event: response.created\ndata: {\"type\": \"response.created\", \"response\": {\"id\": \"resp_%s\"}}\n\n", u.number())
	})
	mux.HandleFunc("/v1/responses/{id}", func(w http.ResponseWriter, r *http.Request) { say(w, 200, map[string]any{"id": r.PathValue("id")}) })
	mux.HandleFunc("POST /v1/runs", func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Session string `json:"session_id"`
		}
		_ = json.NewDecoder(r.Body).Decode(&in)
		id := "run_" + u.number()
		if in.Session != "" && u.session(in.Session) == nil {
			u.add(in.Session, "")
		}
		u.run(id, in.Session)
		say(w, 202, map[string]any{"run_id": id, "status": "started"})
	})
	mux.HandleFunc("GET /v1/runs/{id}", func(w http.ResponseWriter, r *http.Request) {
		u.mu.Lock()
		defer u.mu.Unlock()
		session, known := u.runs[r.PathValue("id")]
		if !known {
			say(w, 404, map[string]any{"error": map[string]any{"code": "run_not_found"}})
			return
		}
		say(w, 200, map[string]any{"object": "hermes.run", "session_id": session})
	})
	mux.HandleFunc("/v1/runs/{id}/{what}", func(w http.ResponseWriter, r *http.Request) { say(w, 200, map[string]any{"did": r.PathValue("what")}) })
	mux.HandleFunc("GET /api/jobs", func(w http.ResponseWriter, _ *http.Request) {
		u.mu.Lock()
		defer u.mu.Unlock()
		list := []any{}
		for _, id := range u.jobs {
			list = append(list, map[string]any{"id": id, "name": "n"})
		}
		say(w, 200, map[string]any{"jobs": list})
	})
	mux.HandleFunc("POST /api/jobs", func(w http.ResponseWriter, _ *http.Request) {
		id := "job" + u.number()
		u.mu.Lock()
		u.jobs = append(u.jobs, id)
		u.mu.Unlock()
		say(w, 200, map[string]any{"job": map[string]any{"id": id}})
	})
	mux.HandleFunc("/api/jobs/{id}/{what...}", func(w http.ResponseWriter, r *http.Request) { say(w, 200, map[string]any{"ok": true}) })
	mux.HandleFunc("/api/jobs/{id}", func(w http.ResponseWriter, r *http.Request) { say(w, 200, map[string]any{"ok": true}) })
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		u.mu.Lock()
		u.seen, u.bodies = append(u.seen, r), append(u.bodies, string(body))
		u.mu.Unlock()
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(body))
		switch {
		case r.URL.Path == "/health":
		case r.Header.Get("Authorization") != "Bearer "+upstreamKey:
			say(w, 401, map[string]any{"error": "the key"})
			return
		case r.Header.Get("Origin") != "" || len(r.TransferEncoding) > 0:
			w.WriteHeader(http.StatusForbidden)
			return
		}
		if u.loud {
			defer u.shout(w)()
		}
		if u.any && r.URL.Path != "/v1/capabilities" {
			say(w, 200, map[string]any{})
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(u.Close)
	return u
}

// shout sets what is not for clients.
func (u *upstream) shout(w http.ResponseWriter) (end func()) {
	w.Header().Set("Link", "</theirs>; rel=preload")
	w.WriteHeader(http.StatusEarlyHints)
	for _, h := range [][2]string{{"Set-Cookie", "theirs=1"}, {"Server", "theirs"}, {"Connection", "X-Theirs"}, {"X-Theirs", "1"}, {"Keep-Alive", "timeout=1"}, {"Proxy-Authenticate", "Basic"},
		{"Www-Authenticate", "Bearer"}, {"Access-Control-Allow-Origin", "*"}, {"Strict-Transport-Security", "max-age=1"}, {"Cache-Control", "public, max-age=1000"}, {"Etag", "x"},
		{"Content-Security-Policy", "default-src *"}, {"X-Content-Type-Options", "other"}, {"Cross-Origin-Resource-Policy", "cross-origin"}, {"Refresh", "0; url=//theirs"},
		{"Location", "http://theirs"}, {"Clear-Site-Data", "*"}, {"Alt-Svc", "theirs"}, {"Trailer", "X-Theirs-Trailer"}, {"X-Hermes-Error", "kept"}} {
		w.Header().Set(h[0], h[1])
	}
	return func() { w.Header().Set("X-Theirs-Trailer", "1") }
}

// heard is what was asked so far.
func (u *upstream) heard() []*http.Request {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.seen)
}

// newest is the newest request, with its body.
func (u *upstream) newest() (*http.Request, string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.seen[len(u.seen)-1], u.bodies[len(u.bodies)-1]
}

// lastOf is the newest request of a method to an escaped path, with its body.
func (u *upstream) lastOf(method, path string) (*http.Request, string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for i, r := range slices.Backward(u.seen) {
		if r.Method == method && r.URL.EscapedPath() == path {
			return r, u.bodies[i]
		}
	}
	return nil, ""
}

func say(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func (u *upstream) number() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.n++
	return fmt.Sprintf("%012d", u.n)
}

// last is the newest request to a path, with its body.
func (u *upstream) last(path string) (*http.Request, string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for i, r := range slices.Backward(u.seen) {
		if r.URL.Path == path {
			return r, u.bodies[i]
		}
	}
	return nil, ""
}

func (u *upstream) add(id, parent string) map[string]any {
	if id == "" {
		id = "api_" + u.number()
	}
	s := map[string]any{"id": id, "parent_session_id": nil, "source": "api_server"}
	if parent != "" {
		s["parent_session_id"] = parent
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.sessions = append([]map[string]any{s}, u.sessions...)
	return s
}

func (u *upstream) session(id string) map[string]any {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, s := range u.sessions {
		if s["id"] == id {
			return s
		}
	}
	return nil
}

func (u *upstream) remove(id string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.sessions = slices.DeleteFunc(u.sessions, func(s map[string]any) bool { return s["id"] == id })
}

func (u *upstream) run(id, session string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if session == "" {
		session = id
	}
	u.runs[id] = session
}

func (u *upstream) list(w http.ResponseWriter, r *http.Request) {
	u.mu.Lock()
	defer u.mu.Unlock()
	var limit, offset int
	_, _ = fmt.Sscan(r.URL.Query().Get("limit"), &limit)
	_, _ = fmt.Sscan(r.URL.Query().Get("offset"), &offset)
	if r.URL.Query().Get("source") == "refused" {
		say(w, 400, map[string]any{"error": "no"})
		return
	}
	page := u.sessions[min(offset, len(u.sessions)):min(offset+limit, len(u.sessions))]
	say(w, 200, map[string]any{"object": "list", "data": page, "has_more": len(page) == limit})
}

// stream sends the frames of next as they come.
func (u *upstream) stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(200)
	_ = http.NewResponseController(w).Flush()
	for {
		select {
		case frame, more := <-u.next:
			if !more {
				return
			}
			_, _ = io.WriteString(w, frame)
			_ = http.NewResponseController(w).Flush()
		case <-r.Context().Done():
			u.gone <- struct{}{}
			return
		}
	}
}
