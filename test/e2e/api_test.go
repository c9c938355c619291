package e2e

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"hermes-mobile/test/hermes"
	"hermes-mobile/test/port"
)

// startAPI runs a gateway with an API server and without a relay.
func startAPI(t *testing.T, v hermes.Version, change ...func(*hermes.Setup)) *hermes.Gateway {
	t.Helper()
	s := hermes.Setup{Version: v, ModelURL: hermes.Model(t).URL, API: true}
	for _, c := range change {
		c(&s)
	}
	booting <- struct{}{}
	defer func() { <-booting }()
	g := hermes.Start(t, s)
	g.AwaitAPI()
	return g
}

// caller speaks to an API server, or to what stands before it.
type caller struct {
	t    *testing.T
	base string
	key  string // of the API server; empty: none is sent
	jar  http.CookieJar
}

func (a caller) request(method, path, body string) *http.Response {
	a.t.Helper()
	r, err := http.NewRequestWithContext(a.t.Context(), method, a.base+path, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	if a.key != "" {
		r.Header.Set("Authorization", "Bearer "+a.key)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := (&http.Client{Jar: a.jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(r)
	if err != nil {
		a.t.Fatal(err)
	}
	return answer
}

// call makes a request and returns its status and what it was answered with.
func (a caller) call(method, path, body string) (int, map[string]any) {
	a.t.Helper()
	answer := a.request(method, path, body)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	var out map[string]any
	if len(text) > 0 && json.Unmarshal(text, &out) != nil {
		out = map[string]any{"text": string(text)}
	}
	return answer.StatusCode, out
}

// do makes a request that was put together elsewhere, and returns the id of the run that it began.
func (a caller) do(r *http.Request) (status int, run string) {
	a.t.Helper()
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		a.t.Fatal(err)
	}
	defer answer.Body.Close()
	var out struct {
		ID string `json:"run_id"`
	}
	_ = json.NewDecoder(answer.Body).Decode(&out)
	return answer.StatusCode, out.ID
}

// must is call for what has to work.
func (a caller) must(method, path, body string) map[string]any {
	a.t.Helper()
	status, out := a.call(method, path, body)
	if status/100 != 2 {
		a.t.Fatalf("%s %s: %d %v", method, path, status, out)
	}
	return out
}

// session makes a session and returns its id.
func (a caller) session() string {
	a.t.Helper()
	s, _ := a.must("POST", "/api/sessions", "{}")["session"].(map[string]any)
	id, _ := s["id"].(string)
	if id == "" {
		a.t.Fatalf("a session without an id: %v", s)
	}
	return id
}

// turn makes a session and has the agent say a text in it, streamed.
func (a caller) turn(text string) {
	a.t.Helper()
	if health := a.must("GET", "/health", ""); health["status"] != "ok" {
		a.t.Errorf("/health says %v", health)
	}
	if c := a.must("GET", "/v1/capabilities", ""); c["object"] != "hermes.api_server.capabilities" {
		a.t.Errorf("the capabilities are %v", c)
	}
	id := a.session()
	events := a.stream("/api/sessions/"+id+"/chat/stream", `{"message":"FM:text(`+text+`)"}`, nil)
	var said strings.Builder
	for _, e := range events {
		delta, _ := e.data["delta"].(string)
		if e.name == "assistant.delta" {
			said.WriteString(delta)
		}
	}
	last := events[max(0, len(events)-2):]
	if said.String() != text || len(last) != 2 || last[0].name != "run.completed" || last[1].name != "done" {
		a.t.Errorf("%q was said, and at the end came %v", said.String(), last)
	}
	list, _ := a.must("GET", "/api/sessions/"+id+"/messages", "")["data"].([]any)
	if len(list) != 2 {
		a.t.Errorf("the session has the messages %v", list)
	}
}

// event is one of a stream.
type event struct {
	name string
	data map[string]any
}

// stream reads a stream to its end, and tells seen of each event when it comes.
func (a caller) stream(path, body string, seen func(event)) []event {
	a.t.Helper()
	method := "POST"
	if body == "" {
		method = "GET"
	}
	answer := a.request(method, path, body)
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(answer.Body)
		a.t.Fatalf("%s: %d %s", path, answer.StatusCode, text)
	}
	var list []event
	var name string
	for lines := bufio.NewReader(answer.Body); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return list
		}
		if n, ok := strings.CutPrefix(line, "event: "); ok {
			name = strings.TrimSpace(n)
		}
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		e := event{name: name}
		_ = json.Unmarshal([]byte(data), &e.data)
		if said, ok := e.data["event"].(string); ok && e.name == "" {
			e.name = said
		}
		name = ""
		if list = append(list, e); seen != nil {
			seen(e)
		}
	}
}

// TestSetupAPI: the real Hermes starts its API server with what setup --api has written, and goes back to what it was.
func TestSetupAPI(t *testing.T) {
	both(t, func(t *testing.T, v hermes.Version) {
		w, before := newSetup(t, v, nil)
		env := filepath.Join(w.gateway.Home(), ".env")
		number := strconv.Itoa(port.Free(t))
		base := "http://127.0.0.1:" + number
		put(t, env, string(before[env])+"API_SERVER_PORT="+number+"\n") // the owner's own, as 8642 may be taken here
		before[env] = read(t, env)

		var said struct {
			Written bool
			API     struct {
				URL string
				Key string `json:"key_name"`
			}
		}
		w.server.JSON(t, &said, "setup", "--api", "--yes")
		if !said.Written || said.API.URL != base || said.API.Key != "API_SERVER_KEY" {
			t.Fatalf("setup says %+v", said)
		}
		_, rest, _ := strings.Cut(string(read(t, env)), said.API.Key+"=")
		key, _, _ := strings.Cut(rest, "\n")
		w.gateway.Run()
		w.gateway.AwaitAPIAt(base)
		caller{t, base, key, nil}.turn("hello")
		w.gateway.Stop()
		w.undo(t, before)
	})
}
