package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func recordedStream(t testing.TB, version, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "api", version, name))
	must(t, err)
	return data
}

// wanted is a request that a scripted gateway got.
type wanted struct {
	Method, Path, Query string
	Header              http.Header
	Body                []byte
}

func (a wanted) json(t testing.TB) (m map[string]any) {
	t.Helper()
	must(t, json.Unmarshal(a.Body, &m))
	return m
}

// fakeGateway is a scripted HTTP server with the capabilities of a real version.
type fakeGateway struct {
	*httptest.Server
	t      testing.TB
	client *Client

	mu    sync.Mutex
	asked []wanted
	route map[string]http.HandlerFunc // by "METHOD path"
	turns map[string]int              // requests by route
}

// newGateway starts a gateway that advertises what version does. Set its responses with on before
// the turn starts.
func newGateway(t testing.TB, version string) *fakeGateway {
	t.Helper()
	caps, err := parseCapabilities(recordedStream(t, version, "capabilities.json"))
	must(t, err)
	return newGatewayWith(t, caps)
}

func newGatewayWith(t testing.TB, caps *Capabilities) *fakeGateway {
	t.Helper()
	g := &fakeGateway{t: t, route: map[string]http.HandlerFunc{}, turns: map[string]int{}}
	g.Server = httptest.NewServer(g)
	t.Cleanup(g.Server.Close)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	base, err := url.Parse(g.URL)
	must(t, err)
	g.client = clientOn(&conn{route: Route{Kind: Remote, Generation: 3}, base: base, http: &http.Client{Transport: transport}, caps: caps,
		authorize: func(r *http.Request) { r.Header.Set("Authorization", "Bearer test-key") }, onResponse: func(*http.Response) {}})
	return g
}

// clientOn returns a client that uses one verified route.
func clientOn(cn *conn) *Client {
	c := &Client{current: cn}
	c.Sessions = &SessionService{c}
	return c
}

// moveTo makes the route to another gateway the one for the next request.
func (g *fakeGateway) moveTo(other *fakeGateway, generation uint64) {
	cn := *other.client.current
	cn.route.Generation = generation
	g.client.current = &cn
}

func (g *fakeGateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	key := r.Method + " " + r.URL.EscapedPath()
	g.mu.Lock()
	g.asked = append(g.asked, wanted{r.Method, r.URL.EscapedPath(), r.URL.RawQuery, r.Header.Clone(), body})
	g.turns[key]++
	handler := g.route[key]
	g.mu.Unlock()
	if r.Header.Get("Authorization") != "Bearer test-key" {
		http.Error(w, `{"error":{"message":"Invalid API key","code":"invalid_api_key"}}`, http.StatusUnauthorized)
		return
	}
	if handler == nil {
		answer(404, fmt.Sprintf(`{"error":{"message":"nothing at %s","code":"run_not_found"}}`, key))(w, r)
		return
	}
	handler(w, r)
}

func (g *fakeGateway) on(route string, handlers ...http.HandlerFunc) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var mu sync.Mutex
	n := 0
	g.route[route] = func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		h := handlers[min(n, len(handlers)-1)] // the last one repeats
		n++
		mu.Unlock()
		h(w, r)
	}
}

// requests returns the requests for a route.
func (g *fakeGateway) requests(route string) (list []wanted) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, a := range g.asked {
		if a.Method+" "+a.Path == route {
			list = append(list, a)
		}
	}
	return list
}

// answer returns a handler for a JSON response.
func answer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// stream returns a handler for an event stream that ends cleanly.
func stream(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, body)
	}
}

// cutStream returns a handler for an event stream that breaks off without its last chunk, as when
// the process is killed.
func cutStream(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		stream(body)(w, r)
		must := http.NewResponseController(w)
		_ = must.Flush()
		panic(http.ErrAbortHandler)
	}
}

// vanish reads the request and closes the connection without a response.
func vanish(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// hold returns a handler that keeps a stream open after body until release is closed or the reader
// is gone.
func hold(body string, release <-chan struct{}, rest string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		stream(body)(w, r)
		_ = http.NewResponseController(w).Flush()
		select {
		case <-release:
			_, _ = io.WriteString(w, rest)
		case <-r.Context().Done():
		}
	}
}

// follow reads a turn to its end.
func follow(t testing.TB, turn *Turn) ([]Event, Ended) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var events []Event
	for event, err := range turn.Events(ctx) {
		if err != nil {
			t.Fatalf("after %d events: %v", len(events), err)
		}
		events = append(events, event)
	}
	if len(events) == 0 {
		t.Fatal("no event came")
	}
	ended, ok := events[len(events)-1].(Ended)
	if !ok {
		t.Fatalf("the last event is %T, not Ended", events[len(events)-1])
	}
	return events, ended
}

func start(t testing.TB, g *fakeGateway, req TurnRequest) *Turn {
	t.Helper()
	if req.OutcomeTimeout == 0 {
		req.OutcomeTimeout = 200 * time.Millisecond
	}
	turn, err := g.client.StartTurn(t.Context(), req)
	must(t, err)
	t.Cleanup(turn.Close)
	return turn
}

// reply returns the text that the events produce.
func reply(events []Event) string {
	var r Reply
	for _, e := range events {
		if _, over := e.(Ended); !over {
			r.Apply(e)
		}
	}
	return r.Text()
}

// rows returns a transcript.
func rows(session string, rows ...string) string {
	return `{"object":"list","session_id":"` + session + `","data":[` + strings.Join(rows, ",") + `]}`
}

func row(id int, role, content, more string) string {
	text, _ := json.Marshal(content)
	return fmt.Sprintf(`{"id":%d,"role":%q,"content":%s,"finish_reason":null%s}`, id, role, text, more)
}

func stopRow(id int, content string) string {
	text, _ := json.Marshal(content)
	return fmt.Sprintf(`{"id":%d,"role":"assistant","content":%s,"finish_reason":"stop"}`, id, text)
}

func runEvents(frames ...string) string {
	var b bytes.Buffer
	b.WriteString(": open\n\n")
	for i, f := range frames {
		fmt.Fprintf(&b, "id: %d\ndata: %s\n\n", i, strings.Replace(f, "{", fmt.Sprintf(`{"run_id":"run_1","seq":%d,`, i), 1))
	}
	return b.String()
}
