package direct

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hermes-mobile/gateway"
	"hermes-mobile/internal/agent"
)

// openAPI is a server with OpenAI's API whose turns the test answers.
type openAPI struct {
	*httptest.Server
	mu     sync.Mutex
	asked  []object
	answer func(w http.ResponseWriter, n int) // the n-th turn, from 1
}

func newOpenAPI(t testing.TB, models []string, answer func(w http.ResponseWriter, n int)) *openAPI {
	t.Helper()
	api := &openAPI{answer: answer}
	api.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/models" {
			list := []object{}
			for _, id := range models {
				list = append(list, object{"id": id})
			}
			respond(w, 200, object{"object": "list", "data": list})
			return
		}
		var body object
		_ = json.NewDecoder(r.Body).Decode(&body)
		api.mu.Lock()
		api.asked = append(api.asked, body)
		n, answer := len(api.asked), api.answer
		api.mu.Unlock()
		answer(w, n)
	}))
	t.Cleanup(api.Close)
	return api
}

func (api *openAPI) turns() []object {
	api.mu.Lock()
	defer api.mu.Unlock()
	return slices.Clone(api.asked)
}

func (api *openAPI) begin(t testing.TB, d *disk, change ...func(*Options)) *life {
	t.Helper()
	return begin(t, api.URL, d, func(o *Options, p *gateway.Profile) {
		p.Kind = gateway.OpenAI
		for _, c := range change {
			c(o)
		}
	})
}

// says answers with a stream of one chunk.
func says(choice string) func(http.ResponseWriter, int) {
	return func(w http.ResponseWriter, _ int) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"id":"c","choices":[`+choice+"]}\n\ndata: [DONE]\n\n")
	}
}

// refuses answers with a status.
func refuses(status int, body string, header ...string) func(http.ResponseWriter, int) {
	return func(w http.ResponseWriter, _ int) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func say(t testing.TB, l *life, n int64, text string) {
	t.Helper()
	ok(t, receive(t, l.hand(message(n, text)), "taken"))
	l.done(n)
}

// A reply that is not whole, or not there, says why.
func TestReasonOfShortReply(t *testing.T) {
	for choice, want := range map[string][]string{
		`{"delta":{"content":"Hi"},"finish_reason":"stop"}`:                {"Hi"},
		`{"delta":{"content":"Hi"},"finish_reason":"length"}`:              {"Hi", "The reply was cut off: the model reached the limit of its output."},
		`{"delta":{"content":"Hi"},"finish_reason":"content_filter"}`:      {"Hi", "The reply was cut off by the provider's content filter."},
		`{"delta":{},"finish_reason":"content_filter"}`:                    {"The provider's content filter withheld the reply."},
		`{"delta":{},"finish_reason":"length"}`:                            {"The model reached the limit of its output before it gave an answer."},
		`{"delta":{},"finish_reason":"tool_calls"}`:                        {"The model asked to run a tool, which it can only do behind a Hermes gateway."},
		`{"delta":{},"finish_reason":"stop"}`:                              {"The model gave no answer."},
		`{"delta":{"refusal":"I won't."},"finish_reason":"stop"}`:          {"I won't."},
		`{"delta":{"content":["Hi",{"type":"x"}]},"finish_reason":"stop"}`: {"Hi", "A part of the reply could not be read, and is missing."},
	} {
		api, d := newOpenAPI(t, []string{"small"}, says(choice)), newDisk()
		say(t, api.begin(t, d), 1, "hi")
		wantFinals(t, d, 1, want...)
	}
}

// A server whose list of models is open and whose turns are not says so at once, and its owner is told.
func TestKeyRefusedForTurns(t *testing.T) {
	for _, status := range []int{401, 403} {
		api, d := newOpenAPI(t, []string{"small"}, refuses(status, `{"error":{"message":"Incorrect API key provided."}}`)), newDisk()
		l := api.begin(t, d)
		say(t, l, 1, "hi")
		wantFinals(t, d, 1, "The gateway did not take this: Incorrect API key provided.")
		if n := len(api.turns()); n != 1 {
			t.Errorf("%d: asked %d times", status, n)
		}
		if s := l.agent.State(); !s.Online || s.Err == nil {
			t.Errorf("%d: state %+v, want online with the refusal", status, s)
		}
		api.mu.Lock()
		api.answer = says(`{"delta":{"content":"Hi"},"finish_reason":"stop"}`)
		api.mu.Unlock()
		say(t, l, 2, "again")
		if s := l.agent.State(); s.Err != nil {
			t.Errorf("%d: after a turn that was taken: %v", status, s.Err)
		}
	}
}

// What waiting does not mend ends the turn with the server's sentence.
func TestRefusalsThatStay(t *testing.T) {
	for body, status := range map[string]int{
		`{"error":{"message":"You exceeded your current quota.","code":"insufficient_quota"}}`: 429,
		`{"error":{"message":"Billing hard limit has been reached"}}`:                          429,
		`{"error":{"message":"Proxy authentication required"}}`:                                407,
		`{"detail":[{"loc":["body","messages"],"msg":"field required"}]}`:                      422,
	} {
		api, d := newOpenAPI(t, []string{"small"}, refuses(status, body)), newDisk()
		say(t, api.begin(t, d), 1, "hi")
		if got := d.finals(1); len(got) != 1 || !strings.HasPrefix(got[0], "The gateway did not take this: ") || len(api.turns()) != 1 {
			t.Errorf("%s: %q after %d requests", body, got, len(api.turns()))
		}
	}
	api, d := newOpenAPI(t, []string{"small"}, refuses(429, `{"error":{"message":"Too many requests"}}`, "Retry-After", "7200")), newDisk()
	say(t, api.begin(t, d), 1, "hi")
	if got := d.finals(1); len(got) != 1 || !strings.Contains(got[0], "Too many requests.") || !strings.Contains(got[0], "2 hours") || len(api.turns()) != 1 {
		t.Errorf("a wait of hours: %q after %d requests", got, len(api.turns()))
	}
}

// While a server is busy the user is told, requests become rarer, and the turn ends after a time.
func TestBusyServer(t *testing.T) {
	oldTell, oldLimit, oldMost := busyNotice, busyLimit, busyMax
	t.Cleanup(func() { busyNotice, busyLimit, busyMax = oldTell, oldLimit, oldMost })
	busyNotice, busyLimit, busyMax = 60*time.Millisecond, 2*time.Second, 10*time.Second
	for _, status := range []int{429, 503, 529, 425} {
		api, d := newOpenAPI(t, []string{"small"}, refuses(status, `{"error":{"message":"Overloaded"}}`)), newDisk()
		l := api.begin(t, d)
		said := l.hand(message(1, "hi"))
		l.eventually("a word to the user", func(events []agent.Event) bool {
			return seen(events, func(s agent.Say) bool { return s.N == 0 && strings.HasSuffix(s.Text, "your message waits: Overloaded") })
		})
		if detail := l.agent.Status(phone).Detail; !strings.Contains(detail, "busy: Overloaded") {
			t.Errorf("%d: status %q", status, detail)
		}
		ok(t, receive(t, said, "taken"))
		l.done(1)
		if got := d.finals(1); len(got) != 1 || !strings.Contains(got[0], "Overloaded. It has no room") {
			t.Errorf("%d: %q", status, got)
		}
		if n := len(api.turns()); n < 3 || n > 9 { // pauses of 20, 40, 80 … ms
			t.Errorf("%d: asked %d times", status, n)
		}
		if detail := l.agent.Status(phone).Detail; strings.Contains(detail, "busy") {
			t.Errorf("%d: still %q", status, detail)
		}
		if got := l.log.String(); strings.Count(got, "gateway is busy") != 1 {
			t.Errorf("%d: log %q", status, got)
		}
	}
}

// Servers that take no request without a model get one, and what is said of it is true.
func TestModelByDefault(t *testing.T) {
	for _, c := range []struct {
		models []string
		set    string
		want   string
	}{
		{[]string{"qwen3:8b"}, "", "qwen3:8b"},
		{[]string{"nomic-embed-text", "bge-m3", "Whisper-1", "llama3:8b", "qwen3:8b"}, "", "llama3:8b"},
		{[]string{"nomic-embed-text"}, "", "nomic-embed-text"},
		{[]string{"a", "b"}, "b", "b"},
	} {
		api, d := newOpenAPI(t, c.models, says(`{"delta":{"content":"Hi"},"finish_reason":"stop"}`)), newDisk()
		l := api.begin(t, d, func(o *Options) { o.Model = c.set })
		say(t, l, 1, "hi")
		if got := api.turns()[0]["model"]; got != c.want {
			t.Errorf("%v: asked with the model %v, want %s", c.models, got, c.want)
		}
		say(t, l, 2, "/model")
		for line := range strings.Lines(strings.Join(d.finals(2), "\n")) {
			if strings.Contains(line, "in use") != strings.Contains(line, "`"+c.want+"`") {
				t.Errorf("%v: /model says %q", c.models, line)
			}
		}
		if len(c.models) > 1 {
			say(t, l, 3, "/model "+c.models[0])
			say(t, l, 4, "hi")
			if got := api.turns()[1]["model"]; got != c.models[0] {
				t.Errorf("after /model %s: %v", c.models[0], got)
			}
		}
	}
	api, d := newOpenAPI(t, nil, refuses(400, `{"error":{"message":"model is required"}}`)), newDisk()
	say(t, api.begin(t, d), 1, "hi")
	wantFinals(t, d, 1, "The gateway did not take this: model is required. Choose a model with /model.")
}
