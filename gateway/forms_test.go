package gateway

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// labelled returns a handler that answers with a body and a content type.
func labelled(kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write([]byte(body))
	}
}

func chunkOf(choice string) string { return `data: {"id":"c1","choices":[` + choice + `]}` + "\n\n" }

// The client loses no text of a reply silently, whatever form the server sends it in.
func TestCompletionForms(t *testing.T) {
	t.Parallel()
	const document = `{"id":"c1","choices":[{"message":{"role":"assistant","content":"Hello world."},"finish_reason":"stop"}]}`
	sse := helloChunk + stopChunk + doneMark
	for name, tc := range map[string]struct {
		answer  http.HandlerFunc
		state   TurnState
		text    string
		partial bool
	}{
		"a list of parts": {stream(chunkOf(`{"index":0,"delta":{"content":[{"type":"text","text":"Hello "}]}}`) +
			chunkOf(`{"index":0,"delta":{"content":"world."},"finish_reason":"stop"}`)), Completed, "Hello world.", false},
		"parts with thinking":        {stream(chunkOf(`{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"Hi"}]},"finish_reason":"stop"}`)), Completed, "Hi", false},
		"parts of parts":             {stream(chunkOf(`{"delta":{"content":[[{"text":"a"}],{"content":"b"}]},"finish_reason":"stop"}`)), Completed, "ab", false},
		"a part that is no text":     {stream(chunkOf(`{"delta":{"content":[{"type":"text","text":"See:"},{"type":"image_url","image_url":{"url":"x"}}]},"finish_reason":"stop"}`)), Completed, "See:", true},
		"a content that is a number": {stream(chunkOf(`{"delta":{"content":12}}`) + helloChunk + stopChunk), Completed, "Hello", true},
		"a chunk that is no JSON":    {stream(helloChunk + "data: not json\n\n" + stopChunk), Completed, "Hello", true},
		"choices that are no list":   {stream(helloChunk + `data: {"id":"c1","choices":{"delta":{"content":"x"}}}` + "\n\n" + stopChunk), Completed, "Hello", true},
		"ids and times of other types": {stream(`data: {"id":7,"created":"now","choices":[{"index":"0","delta":{"content":"Hi"},"finish_reason":null}],"usage":null}` + "\n\n" +
			`data: {"choices":[{"index":null,"delta":{"content":null,"refusal":null},"finish_reason":"stop"}]}` + "\n\n"), Completed, "Hi", false},
		"the whole message at the end":        {stream(helloChunk + chunkOf(`{"index":0,"delta":{},"message":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}`)), Completed, "Hello", false},
		"another message at the end":          {stream(helloChunk + chunkOf(`{"index":0,"message":{"content":"Hello there"},"finish_reason":"stop"}`)), Completed, "Hello there", false},
		"a message beside a delta":            {stream(helloChunk + chunkOf(`{"index":0,"delta":{"content":"!"},"message":{"content":"Other"},"finish_reason":"stop"}`)), Completed, "Hello!", false},
		"a message alone":                     {stream(chunkOf(`{"index":0,"message":{"content":"Hi"},"finish_reason":"stop"}`)), Completed, "Hi", false},
		"a refusal":                           {stream(chunkOf(`{"delta":{"refusal":"I can't "}}`) + chunkOf(`{"delta":{"refusal":"help."},"finish_reason":"stop"}`)), Completed, "I can't help.", false},
		"text of old completions":             {stream(chunkOf(`{"index":0,"text":"Hi","finish_reason":"stop"}`)), Completed, "Hi", false},
		"a document called a stream":          {labelled("text/event-stream", document), Completed, "Hello world.", false},
		"with an end mark glued to it":        {labelled("text/event-stream; charset=utf-8", "\ufeff \n"+document+"\n\ndata: [DONE]\n\n"), Completed, "Hello world.", false},
		"a document without a finish":         {labelled("text/event-stream", `{"choices":[{"message":{"content":"Hi"}}]}`), Completed, "Hi", false},
		"a stream called JSON":                {labelled("application/json", sse), Completed, "Hello", false},
		"a stream called text":                {labelled("text/plain", ": ping\n\n"+sse), Completed, "Hello", false},
		"a stream called bytes":               {labelled("application/octet-stream", "\ufeff"+sse), Completed, "Hello", false},
		"a stream with two labels":            {labelled("text/event-stream, text/event-stream", sse), Completed, "Hello", false},
		"a stream that begins with a comment": {labelled("", ":\n\nid: 1\n"+sse), Completed, "Hello", false},
		"ids that count nothing":              {stream("id: 5\n" + chunkOf(`{"delta":{"content":"a"}}`) + "id: 5\n" + chunkOf(`{"delta":{"content":"b"}}`) + "id: 9\n" + stopChunk), Completed, "ab", false},
		"cut by its length":                   {stream(helloChunk + strings.Replace(stopChunk, "stop", "length", 1)), Completed, "Hello", true},
		"cut by a filter":                     {stream(helloChunk + strings.Replace(stopChunk, "stop", "content_filter", 1)), Completed, "Hello", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := openai(t, "chat_completions")
			g.on("POST /v1/chat/completions", tc.answer)
			events, ended := follow(t, start(t, g, TurnRequest{Text: "hi"}))
			o := ended.Outcome
			if o.State != tc.state || o.Text() != tc.text || o.Partial != tc.partial {
				t.Errorf("%s %q partial %v (%v), want %s %q partial %v", o.State, o.Text(), o.Partial, o.Err, tc.state, tc.text, tc.partial)
			}
			if got := reply(events); got != tc.text {
				t.Errorf("streamed %q, want %q", got, tc.text)
			}
		})
	}
}

// A malformed response is an error, not an empty reply.
func TestUnreadableAnswers(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"a page":             labelled("text/html", "<html><body>login</body></html>"),
		"nothing":            labelled("application/json", ""),
		"half of a document": labelled("application/json", `{"id":"c1","choices":[{"message":{"content":"Hel`),
		"an empty object":    labelled("application/json", `{}`),
	} {
		g := openai(t, "chat_completions")
		g.on("POST /v1/chat/completions", answer)
		turn, err := g.client.StartTurn(t.Context(), TurnRequest{Text: "hi"})
		if err == nil {
			t.Errorf("%s: started %+v", name, turn.Handle())
			turn.Close()
		}
	}
}

// The reason of a failure reaches the caller, in whatever form the server sends it.
func TestReasonOfFailedStream(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`data: {"error":{"message":"out of memory"}}`:                                                   "out of memory",
		`data: {"error":"overloaded"}`:                                                                  "overloaded",
		`data: {"error_type":"context_length_exceeded","error_message":"Too long for this model."}`:     "Too long for this model.",
		`data: {"object":"error","message":"Only one tool is supported","code":400}`:                    "Only one tool is supported",
		"event: error\ndata: {\"message\":\"Overloaded\"}":                                              "Overloaded",
		"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"x\",\"message\":\"No credit\"}}": "No credit",
		`data: {"detail":"Model not loaded"}`:                                                           "Model not loaded",
		`data: {"choices":[{"index":0,"error":{"message":"Provider is down","code":502}}]}`:             "Provider is down",
		`data: {"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}`:                "the model gave no reply",
		`data: {"choices":[],"error":{"message":"bad","metadata":{"raw":"x"}}}`:                         "bad",
	} {
		g := openai(t, "chat_completions")
		g.on("POST /v1/chat/completions", stream(body+"\n\n"+doneMark))
		_, ended := follow(t, start(t, g, TurnRequest{Text: "hi"}))
		var refused *Error
		if ended.Outcome.State != Failed || !errors.As(ended.Outcome.Err, &refused) || refused.Message != want {
			t.Errorf("%s: %s %v, want %q", body, ended.Outcome.State, ended.Outcome.Err, want)
		}
	}
}

func TestRefusalForms(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]Error{
		`{"error":{"message":"Invalid API key","code":"invalid_api_key"}}`:                                    {Message: "Invalid API key", Code: "invalid_api_key"},
		`{"error":"session_not_found"}`:                                                                       {Message: "session_not_found"},
		`{"error":"rate_limited","detail":"Too many logins."}`:                                                {Message: "Too many logins.", Code: "rate_limited"},
		`{"detail":[{"loc":["body","model"],"msg":"field required","type":"missing"},{"msg":"no messages"}]}`: {Message: "body.model: field required; no messages"},
		`{"detail":"Not Found"}`:                                                                              {Message: "Not Found"},
		`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`:                         {Message: "Overloaded", Code: "overloaded_error"},
		`{"title":"Bad Gateway","status":502}`:                                                                {Message: "Bad Gateway"},
		`{"error":{"code":429,"message":"slow down","status":"RESOURCE_EXHAUSTED"}}`:                          {Message: "slow down"},
		`[{"error":{"message":"inside a list"}}]`:                                                             {Message: "inside a list"},
		`{"error":{"error":{"error":{"error":{"error":{"error":{"error":"deep"}}}}}}}`:                        {},
		`null`: {}, `12`: {}, `{"error":null}`: {}, ``: {},
	} {
		g := openai(t, "chat_completions")
		g.on("POST /v1/chat/completions", answer(422, body))
		_, err := g.client.StartTurn(t.Context(), TurnRequest{Text: "hi"})
		var got *Error
		if !errors.As(err, &got) || got.Status != 422 || got.Message != want.Message || got.Code != want.Code {
			t.Errorf("%s: %#v, want message %q code %q", body, err, want.Message, want.Code)
		}
	}
	long := answer(500, `{"message":"`+strings.Repeat("é", 5000)+`"}`)
	g := openai(t, "chat_completions")
	g.on("POST /v1/chat/completions", long)
	_, err := g.client.StartTurn(t.Context(), TurnRequest{Text: "hi"})
	if e := (*Error)(nil); !errors.As(err, &e) || len(e.Message) > maxReason+4 || !json.Valid([]byte(`"`+e.Message+`"`)) {
		t.Errorf("a message of %d bytes", len(err.Error()))
	}
}

func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		for value, want := range map[string]time.Duration{
			"": 0, "3": 3 * time.Second, "3600": time.Hour, "-1": 0, "soon": 0, "99999999999": 0, "1.5": 0,
			now.Add(90 * time.Second).UTC().Format(http.TimeFormat): 90 * time.Second,
			now.Add(-time.Hour).UTC().Format(http.TimeFormat):       0,
		} {
			if got := retryAfter(value, now); got != want {
				t.Errorf("Retry-After %q is %v, want %v", value, got, want)
			}
		}
	})
}
