package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// The best mode that is offered and that fits the request.
func TestModeIsChosen(t *testing.T) {
	t.Parallel()
	whole, err := parseCapabilities(recordedStream(t, "0.22.2", "capabilities.json"))
	must(t, err)
	without := func(names ...string) *Capabilities {
		c := &Capabilities{Model: whole.Model, features: whole.features, endpoints: map[string]Endpoint{}}
		for name, e := range whole.endpoints {
			if !slices.Contains(names, name) {
				c.endpoints[name] = e
			}
		}
		return c
	}
	image := []Image{{MIMEType: "image/png", Data: []byte("x")}}
	for name, tc := range map[string]struct {
		caps *Capabilities
		req  TurnRequest
		want TurnMode
		err  error
	}{
		"a run":                            {whole, TurnRequest{SessionID: "s", Text: "x"}, ModeRun, nil},
		"a run without a session":          {whole, TurnRequest{Text: "x"}, ModeRun, nil},
		"images":                           {whole, TurnRequest{SessionID: "s", Images: image}, ModeSession, nil},
		"images without a session":         {whole, TurnRequest{Images: image}, ModeResponses, nil},
		"no runs":                          {without("runs"), TurnRequest{SessionID: "s", Text: "x"}, ModeSession, nil},
		"no events of runs":                {without("run_events"), TurnRequest{SessionID: "s", Text: "x"}, ModeSession, nil},
		"no session can be kept":           {without("runs", "session_chat_stream"), TurnRequest{SessionID: "s", Text: "x"}, "", ErrUnavailable},
		"no runs, no session":              {without("runs"), TurnRequest{Text: "x"}, ModeResponses, nil},
		"completions":                      {without("runs", "responses"), TurnRequest{Text: "x"}, ModeCompletions, nil},
		"a chain":                          {whole, TurnRequest{Text: "x", PreviousResponseID: "resp_1"}, ModeResponses, nil},
		"a chain without responses":        {without("responses"), TurnRequest{Text: "x", PreviousResponseID: "resp_1"}, "", ErrUnavailable},
		"nothing":                          {without("runs", "responses", "chat_completions"), TurnRequest{Text: "x"}, "", ErrUnavailable},
		"what is asked for":                {whole, TurnRequest{SessionID: "s", Text: "x", Mode: ModeSession}, ModeSession, nil},
		"what is asked for and not there":  {without("runs"), TurnRequest{Text: "x", Mode: ModeRun}, "", ErrUnavailable},
		"images in a run":                  {whole, TurnRequest{SessionID: "s", Images: image, Mode: ModeRun}, "", errors.New("cannot carry this request")},
		"a session's stream without one":   {whole, TurnRequest{Text: "x", Mode: ModeSession}, "", errors.New("cannot carry this request")},
		"a completion that claims session": {whole, TurnRequest{SessionID: "s", Text: "x", Mode: ModeCompletions}, "", errors.New("cannot carry this request")},
		"no way at all":                    {whole, TurnRequest{Text: "x", Mode: "fax"}, "", errors.New("unknown turn mode")},
	} {
		got, err := chooseMode(tc.caps, tc.req)
		if got != tc.want || (err == nil) != (tc.err == nil) || tc.err != nil && !errors.Is(err, tc.err) && !strings.Contains(err.Error(), tc.err.Error()) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// The client does not send what a gateway would refuse or silently cut.
func TestRequestIsChecked(t *testing.T) {
	t.Parallel()
	g := newGateway(t, "0.22.2")
	g.on("GET /api/sessions/s/messages", answer(200, rows("s")))
	for name, tc := range map[string]struct {
		req TurnRequest
		big bool
	}{
		"nothing":           {TurnRequest{SessionID: "s", Text: " \n"}, false},
		"a text too long":   {TurnRequest{SessionID: "s", Text: strings.Repeat("é", MaxMessageChars+1)}, true},
		"not an image":      {TurnRequest{SessionID: "s", Images: []Image{{MIMEType: "application/pdf", Data: []byte("x")}}}, false},
		"an odd type":       {TurnRequest{SessionID: "s", Images: []Image{{MIMEType: "image/png;base64,x", Data: []byte("x")}}}, false},
		"an empty image":    {TurnRequest{SessionID: "s", Images: []Image{{MIMEType: "image/png"}}}, false},
		"an image too big":  {TurnRequest{SessionID: "s", Images: []Image{{MIMEType: "image/png", Data: make([]byte, 8<<20)}}}, true},
		"no way with these": {TurnRequest{SessionID: "s", Text: "x", PreviousResponseID: "resp"}, false},
	} {
		_, err := g.client.StartTurn(t.Context(), tc.req)
		if err == nil || errors.Is(err, ErrTooLarge) != tc.big {
			t.Errorf("%s: %v", name, err)
		}
	}
	g.on("POST /v1/runs", answer(202, created))
	start(t, g, TurnRequest{SessionID: "s", Text: strings.Repeat("é", MaxMessageChars)})
	if n := len(g.asked) - len(g.requests("GET /api/sessions/s/messages")); n != 1 {
		t.Errorf("%d requests were made", n)
	}
}

// A refusal reaches the caller whole, and nothing is repeated.
func TestStartIsRefused(t *testing.T) {
	t.Parallel()
	for _, status := range []int{400, 401, 409, 413, 429, 500, 503} {
		for _, version := range []string{"0.19.0", "0.22.2"} {
			g := newGateway(t, version)
			g.on("GET /api/sessions/s/messages", answer(200, rows("s")))
			refuse := func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Retry-After", "2")
				answer(status, `{"error":{"message":"no","code":"why"}}`)(w, r)
			}
			g.on("POST /v1/runs", refuse)
			g.on("POST /api/sessions/s/chat/stream", refuse)
			for _, way := range []TurnMode{ModeRun, ModeSession} {
				_, err := g.client.StartTurn(t.Context(), TurnRequest{SessionID: "s", Text: "x", Mode: way})
				var refused *Error
				if !errors.As(err, &refused) || refused.Status != status || refused.Code != "why" || refused.RetryAfter == 0 || errors.Is(err, ErrSignIn) != (status == 401) {
					t.Errorf("%s of %s with %d: %v", way, version, status, err)
				}
			}
			if n := len(g.requests("POST /v1/runs")) + len(g.requests("POST /api/sessions/s/chat/stream")); n != 2 {
				t.Errorf("%d calls", n)
			}
			if len(g.client.turns.sessions) != 0 {
				t.Error("a refused turn keeps its place in the line")
			}
		}
	}
	// A missing session is reported before anything is sent.
	g := newGateway(t, "0.22.2")
	if _, err := g.client.StartTurn(t.Context(), TurnRequest{SessionID: "s", Text: "x", Mode: ModeSession}); err == nil || len(g.requests("POST /api/sessions/s/chat/stream")) != 0 {
		t.Errorf("an unknown session: %v", err)
	}
}

// A handle survives the program, names no host in its text, and is identical after a round trip.
func TestTurnHandle(t *testing.T) {
	t.Parallel()
	g := newGateway(t, "0.22.2")
	g.on("GET /api/sessions/a%2Fb/messages", answer(200, rows("a/b", row(3, "user", "x", ""))))
	g.on("POST /api/sessions/a%2Fb/chat/stream", stream(""))
	handle := start(t, g, TurnRequest{SessionID: "a/b", Text: "secret words", Mode: ModeSession}).Handle()
	data, err := json.Marshal(handle)
	must(t, err)
	var again TurnHandle
	must(t, json.Unmarshal(data, &again))
	if again != handle || handle.Endpoint != "/api/sessions/a%2Fb/chat/stream" || handle.Method != "POST" || handle.URL != g.URL {
		t.Errorf("%s became %#v", data, again)
	}
	for _, text := range []string{handle.String(), fmt.Sprintf("%v %+v %#v %s", handle, handle, handle, handle)} {
		if strings.Contains(text, "127.0.0.1") || strings.Contains(text, "test-key") {
			t.Errorf("it says %s", text)
		}
	}
	if strings.Contains(string(data), "test-key") || strings.Contains(string(data), "secret words") {
		t.Errorf("it keeps %s", data)
	}
	for _, bad := range []TurnHandle{{}, {Mode: "fax", IdleTimeout: 1, OutcomeTimeout: 1}, {Mode: ModeRun}} {
		if _, err := g.client.ResumeTurn(t.Context(), bad, ""); err == nil {
			t.Errorf("%+v is resumed", bad)
		}
	}
	for _, bad := range []string{"x", "-1", "1.x", "1.-2", "1.99999999999"} {
		if _, err := g.client.ResumeTurn(t.Context(), handle, bad); err == nil {
			t.Errorf("position %q is taken", bad)
		}
	}
}

// The history that 0.19 needs: text only, the newest messages that fit, starting with one of the
// user.
func TestHistory(t *testing.T) {
	t.Parallel()
	var stored transcript
	must(t, json.Unmarshal([]byte(rows("s", row(1, "user", "one", ""), stopRow(2, "two"), row(3, "user", "three", ""), row(4, "assistant", "", `,"tool_calls":[{}]`),
		row(5, "tool", "{}", ""), stopRow(6, "four"), row(7, "assistant", "not processed", `,"display_kind":"failed_turn"`), row(8, "user", "hidden", `,"display_kind":"hidden"`))), &stored))
	texts := func(limit int) string {
		var all []string
		for _, said := range stored.history(limit) {
			all = append(all, said.Role[:1]+":"+said.Text)
		}
		return strings.Join(all, " ")
	}
	size := func(n int) int { // bytes of the newest n messages
		all := stored.history(1 << 20)
		sum := 0
		for _, said := range all[len(all)-n:] {
			data, err := json.Marshal(said)
			must(t, err)
			sum += len(data) + 1
		}
		return sum
	}
	for limit, want := range map[int]string{1 << 20: "u:one a:two u:three a:four", size(4) - 1: "u:three a:four", size(2): "u:three a:four", size(2) - 1: "", 0: ""} {
		if got := texts(limit); got != want {
			t.Errorf("in %d bytes: %q, want %q", limit, got, want)
		}
	}
	var parts transcript
	must(t, json.Unmarshal([]byte(`{"data":[{"id":1,"role":"user","content":[{"type":"text","text":"look"},{"type":"image_url","image_url":{}}]}]}`), &parts))
	if said := parts.history(1000); len(said) != 1 || said[0].Text != "look" {
		t.Errorf("parts become %v", said)
	}
}
