package direct

import (
	"encoding/json"
	"fmt"
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

// fakeGateway is an API server with sessions and runs, whose model is the test. Its capabilities
// and the forms of its responses were recorded from the real versions.
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
	refuse   []func(w http.ResponseWriter, r *http.Request) bool // a function that answers is removed from the list
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
	steered   []string
	deaf      bool // it accepts nothing more
	approvals []object
	answers   []object // as they were posted
	lost      bool     // the only reader of an older gateway left
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

// moved wakes everyone who waits. The caller holds g.mu.
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

// run waits for the nth run, from 1.
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

// next passes requests to a function until it has answered one.
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

// goAway makes every request fail below HTTP until it is called with false.
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

// store adds a message to a session. The caller holds g.mu.
func (g *fakeGateway) store(session, role, text string, more object) {
	g.row++
	m := object{"id": g.row, "session_id": session, "role": role, "content": text, "timestamp": 1795988918.5}
	for name, value := range more {
		m[name] = value
	}
	g.sessions[session] = append(g.sessions[session], m)
}
