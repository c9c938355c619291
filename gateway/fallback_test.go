package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// openai returns a server that is not Hermes and offers the given operations.
func openai(t testing.TB, operations ...string) *fakeGateway {
	t.Helper()
	paths := map[string]string{"chat_completions": "/v1/chat/completions", "responses": "/v1/responses"}
	endpoints := map[string]any{}
	for _, name := range operations {
		endpoints[name] = map[string]string{"method": "POST", "path": paths[name]}
	}
	data, err := json.Marshal(map[string]any{"model": "llama", "endpoints": endpoints, "features": map[string]bool{"responses_streaming": true}})
	must(t, err)
	caps, err := parseCapabilities(data)
	must(t, err)
	return newGatewayWith(t, caps)
}

const (
	helloChunk = `data: {"id":"c1","created":1795989085,"choices":[{"index":0,"delta":{"role":"assistant","content":"Hel"},"finish_reason":null}]}` + "\n\n" +
		`data: {"id":"c1","choices":[{"index":0,"delta":{"content":"lo"},"finish_reason":null}]}` + "\n\n"
	stopChunk  = `data: {"id":"c1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	usageChunk = `data: {"id":"c1","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}` + "\n\n"
	doneMark   = "data: [DONE]\n\n"
)

// How completions of different servers end.
func TestCompletionsEnd(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		state  TurnState
		text   string
		total  int
	}{
		"by all marks":                     {stream(helloChunk + stopChunk + usageChunk + doneMark), Completed, "Hello", 5},
		"by no mark but the usage":         {stream(helloChunk + usageChunk), Interrupted, "Hello", 0},
		"with the usage first, cut":        {cutStream(usageChunk + helloChunk), Interrupted, "Hello", 0},
		"by the reason alone":              {cutStream(helloChunk + stopChunk), Completed, "Hello", 0},
		"by [DONE] alone":                  {stream(helloChunk + doneMark), Completed, "Hello", 0},
		"with a second mark":               {stream(helloChunk + stopChunk + doneMark + helloChunk + doneMark), Completed, "Hello", 0},
		"without a mark":                   {stream(helloChunk), Interrupted, "Hello", 0},
		"cut":                              {cutStream(helloChunk), Interrupted, "Hello", 0},
		"with usage in every chunk, cut":   {cutStream(strings.ReplaceAll(helloChunk, `"choices"`, `"usage":{"total_tokens":1},"choices"`)), Interrupted, "Hello", 0},
		"by an error":                      {stream(helloChunk + `data: {"error":{"message":"out of memory"}}` + "\n\n"), Failed, "Hello", 0},
		"by an error of one word":          {stream(`data: {"error":"overloaded"}` + "\n\n"), Failed, "", 0},
		"in one document":                  {answer(200, `{"id":"c1","choices":[{"message":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}],"usage":{"total_tokens":5}}`), Completed, "Hello", 5},
		"by its length":                    {stream(helloChunk + strings.Replace(stopChunk, "stop", "length", 1) + doneMark), Completed, "Hello", 0},
		"with other choices":               {stream(strings.ReplaceAll(helloChunk, `"choices":[`, `"choices":[{"index":1,"delta":{"content":"other"}},`) + doneMark), Completed, "Hello", 0},
		"with a null where a text is":      {stream(strings.Replace(helloChunk, `"content":"lo"`, `"content":"lo","reasoning_content":null`, 1) + doneMark), Completed, "Hello", 0},
		"with reasoning before the answer": {stream(`data: {"id":"c1","choices":[{"index":0,"delta":{"reasoning_content":"hm"}}]}` + "\n\n" + helloChunk + doneMark), Completed, "Hello", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := openai(t, "chat_completions")
			g.on("POST /v1/chat/completions", tc.answer)
			turn := start(t, g, TurnRequest{Text: "hi"})
			events, ended := follow(t, turn)
			o := ended.Outcome
			if turn.Mode() != ModeCompletions || o.State != tc.state || o.Text() != tc.text || o.Usage.Total != tc.total || reply(events) != tc.text {
				t.Errorf("outcome %+v, streamed %q", o, reply(events))
			}
			if turn.Handle().SessionID != "" || o.SessionID != "" {
				t.Error("a session is claimed")
			}
		})
	}
}

// The history comes from the caller, with images.
func TestCompletionsRequest(t *testing.T) {
	t.Parallel()
	g := openai(t, "chat_completions")
	g.on("POST /v1/chat/completions", stream(helloChunk+doneMark))
	follow(t, start(t, g, TurnRequest{Text: "and?", Instructions: "be kind", History: []ChatMessage{{"user", "one"}, {"assistant", "two"}},
		Images: []Image{{MIMEType: "image/png", Data: []byte("png")}}}))
	post := g.requests("POST /v1/chat/completions")[0]
	want := `{"messages":[{"role":"system","content":"be kind"},{"role":"user","content":"one"},{"role":"assistant","content":"two"},` +
		`{"content":[{"text":"and?","type":"text"},{"image_url":{"url":"data:image/png;base64,cG5n"},"type":"image_url"}],"role":"user"}],"model":"llama","stream":true}`
	if string(post.Body) != want || post.Header.Get("Content-Length") != fmt.Sprint(len(want)) {
		t.Errorf("asked with %s", post.Body)
	}
}

// Responses are preferred to completions, and form a chain.
func TestResponsesChain(t *testing.T) {
	t.Parallel()
	g := openai(t, "chat_completions", "responses")
	data := recordedStream(t, "0.22.2", "responses_stream.sse")
	g.on("POST /v1/responses", stream(string(data)))
	turn := start(t, g, TurnRequest{Text: "hi", History: []ChatMessage{{"user", "one"}}})
	_, ended := follow(t, turn)
	if turn.Mode() != ModeResponses || ended.Outcome.State != Completed || !strings.HasPrefix(ended.Outcome.ResponseID, "resp_") {
		t.Errorf("way %s, outcome %+v", turn.Mode(), ended.Outcome)
	}
	follow(t, start(t, g, TurnRequest{Text: "and?", PreviousResponseID: ended.Outcome.ResponseID}))
	posts := g.requests("POST /v1/responses")
	if body := string(posts[0].Body); body != `{"input":[{"role":"user","content":"one"},{"content":[{"text":"hi","type":"input_text"}],"role":"user"}],"model":"llama","stream":true}` {
		t.Errorf("asked with %s", body)
	}
	if body := string(posts[1].Body); body != `{"input":"and?","model":"llama","previous_response_id":"`+ended.Outcome.ResponseID+`","stream":true}` {
		t.Errorf("then with %s", body)
	}
}

// If the server stores nothing, a turn whose call failed is not repeated, and its handle finds
// nothing.
func TestFallbackIsNotRepeated(t *testing.T) {
	t.Parallel()
	g := openai(t, "chat_completions")
	g.on("POST /v1/chat/completions", vanish)
	if _, err := g.client.StartTurn(t.Context(), TurnRequest{Text: "hi"}); err == nil || len(g.requests("POST /v1/chat/completions")) != 1 {
		t.Errorf("%v after %d calls", err, len(g.requests("POST /v1/chat/completions")))
	}
	turn, err := g.client.ResumeTurn(t.Context(), TurnHandle{Mode: ModeCompletions, IdleTimeout: 1, OutcomeTimeout: 1}, "")
	must(t, err)
	defer turn.Close()
	if _, ended := follow(t, turn); ended.Outcome.State != Unknown || !errors.Is(ended.Outcome.Err, ErrStreamBroken) {
		t.Errorf("outcome %+v", ended.Outcome)
	}
}

// Stop ends the stream in a mode without another way to stop.
func TestStopOfACompletion(t *testing.T) {
	t.Parallel()
	g := openai(t, "chat_completions")
	release := make(chan struct{})
	defer close(release)
	g.on("POST /v1/chat/completions", hold(helloChunk, release, ""))
	turn := start(t, g, TurnRequest{Text: "hi"})
	var ended Ended
	for event, err := range turn.Events(t.Context()) {
		must(t, err)
		switch e := event.(type) {
		case Delta:
			must(t, turn.Stop(t.Context()))
		case Ended:
			ended = e
		}
	}
	if ended.Outcome.State != Cancelled || !strings.HasPrefix("Hello", ended.Outcome.Text()) || ended.Outcome.Err != nil {
		t.Errorf("outcome %+v", ended.Outcome)
	}
}
