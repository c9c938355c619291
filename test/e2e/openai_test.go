package e2e

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"hermes-mobile/test/hermes"
)

// openAI runs the openai package of Python with a base URL and a key, and nothing else that tells it of this server.
type openAI struct {
	t         *testing.T
	python    string
	base, key string
}

// stepSaid is what a step of testdata/openai_client.py prints: what came of it, or the package's own error.
type stepSaid struct {
	OK             json.RawMessage
	Began          bool
	Error, Message string
	Code           *string
	Status         int
}

func (o openAI) start(step string, arguments ...string) (lines *bufio.Scanner, wait func()) {
	o.t.Helper()
	cmd := exec.CommandContext(o.t.Context(), o.python, append([]string{filepath.Join("testdata", "openai_client.py"), step}, arguments...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + o.t.TempDir(), "BASE_URL=" + o.base, "KEY=" + o.key}
	var errors strings.Builder
	cmd.Stderr = &errors
	out, err := cmd.StdoutPipe()
	if err != nil {
		o.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		o.t.Fatal(err)
	}
	return bufio.NewScanner(out), func() {
		_, _ = io.Copy(io.Discard, out)
		if err := cmd.Wait(); err != nil {
			o.t.Errorf("%s: %v\n%s", step, err, errors.String())
		}
	}
}

func (o openAI) next(lines *bufio.Scanner) (s stepSaid) {
	o.t.Helper()
	if !lines.Scan() {
		o.t.Fatalf("the client printed nothing: %v", lines.Err())
	}
	if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
		o.t.Fatalf("%v: %s", err, lines.Text())
	}
	return s
}

func (o openAI) do(step string, arguments ...string) stepSaid {
	o.t.Helper()
	lines, wait := o.start(step, arguments...)
	s := o.next(lines)
	for s.Began {
		s = o.next(lines)
	}
	wait()
	return s
}

// got does a step that has to work, and reads what came of it.
func got[T any](o openAI, step string, arguments ...string) (v T) {
	o.t.Helper()
	s := o.do(step, arguments...)
	if s.Error != "" {
		o.t.Errorf("%s %v: %s: %s", step, arguments, s.Error, s.Message)
		return v
	}
	if err := json.Unmarshal(s.OK, &v); err != nil {
		o.t.Fatal(err)
	}
	return v
}

// TestOpenAIClient: with the base URL and the key that "users key add" prints, the openai package talks to the real Hermes through
// the API proxy. Keys keep users apart, and a wrong or removed one lets nobody in.
func TestOpenAIClient(t *testing.T) {
	both(t, func(t *testing.T, v hermes.Version) {
		python, err := hermes.Python(v)
		if err != nil {
			t.Fatal(err)
		}
		g := startAPI(t, v)
		s := NewServer(t, "HERMES_HOME="+g.Home(), "MOBILE_FRONT_API=1", "MOBILE_API_URL="+g.API().URL, "MOBILE_API_KEY=").Start()
		type key struct {
			ID, Key string
			Base    string `json:"base_url"`
		}
		user := func(name string) (openAI, key) {
			addUser(t, s, name)
			var k key
			s.JSON(t, &k, "users", "key", "add", name, "--label", "test")
			if !strings.HasSuffix(k.Base, "/v1") {
				t.Fatalf("the base URL is %q", k.Base)
			}
			return openAI{t, python, s.Base() + "/v1", k.Key}, k
		}
		anna, annasKey := user("anna")
		bert, _ := user("bert")

		if ids := got[[]string](anna, "models"); len(ids) == 0 || ids[0] != "hermes-agent" {
			t.Errorf("the models are %v", ids)
		}
		type answer struct {
			ID, Text, End, Finish string
			Tokens, Parts         int
			Seconds               float64
		}
		if a := got[answer](anna, "chat", "FM:text(hello)"); a.Text != "hello" || a.Finish != "stop" || a.Tokens == 0 {
			t.Errorf("a chat: %+v", a)
		}
		if a := got[answer](anna, "in_async", "FM:text(async)"); a.Text != "async" {
			t.Errorf("a chat of the async client: %+v", a)
		}
		// The model takes three seconds, so pieces that come within a moment were held back.
		if a := got[answer](anna, "stream", "FM:slow(3)"); a.Parts < 3 || a.Seconds < 0.1 || a.Finish != "stop" || !strings.Contains(a.Text, "Line 0001") {
			t.Errorf("a stream: %+v", a)
		}
		first := got[answer](anna, "respond", "FM:text(kept)")
		if first.Text != "kept" || got[answer](anna, "retrieve", first.ID).Text != "kept" {
			t.Errorf("a response: %+v", first)
		}
		if a := got[answer](anna, "respond", "FM:text(second)", first.ID); a.Text != "second" {
			t.Errorf("the response after it: %+v", a)
		}
		if a := got[answer](anna, "respond_stream", "FM:text(streamed)"); a.Text != "streamed" || a.End != "streamed" {
			t.Errorf("a streamed response: %+v", a)
		}

		// Nothing of one user is there for the other, even where both begin with the same words.
		if r := bert.do("retrieve", first.ID); r.Error != "NotFoundError" {
			t.Errorf("another's response: %+v", r)
		}
		if r := bert.do("respond", "FM:text(x)", first.ID); r.Status != 404 && r.Status != 400 {
			t.Errorf("going on from another's response: %+v", r)
		}
		if a := got[answer](bert, "chat", "FM:text(hello)"); a.Text != "hello" {
			t.Errorf("a chat with the other's words: %+v", a)
		}
		logIn := func(name string) int {
			list, _ := logIn(t, s, name).must("GET", "/api/sessions?limit=100", "")["data"].([]any)
			return len(list)
		}
		if a, b := logIn("anna"), logIn("bert"); a == 0 || b != 1 {
			t.Errorf("anna sees %d sessions and bert %d", a, b)
		}

		for _, wrong := range []string{"hmk_wrong", "sk-0000000000000000", g.API().Key, annasKey.ID, annasKey.Key + "x", frontPassword} {
			o := anna
			o.key = wrong
			if r := o.do("models"); r.Error != "AuthenticationError" || r.Status != 401 || strings.Contains(r.Message, wrong) {
				t.Errorf("a wrong key: %+v", r)
			}
		}

		// Removing a key ends what is streamed with it.
		lines, wait := anna.start("stream", "FM:slow(60)")
		if r := anna.next(lines); !r.Began {
			t.Errorf("the stream says %+v", r)
		}
		if out, err := s.CLI(t.Context(), "users", "key", "remove", annasKey.ID); err != nil {
			t.Fatal(out, err)
		}
		if r := anna.next(lines); r.Error == "" {
			t.Errorf("the stream of a removed key went on to its end: %+v", r)
		}
		wait()
		if r := anna.do("chat", "FM:text(x)"); r.Error != "AuthenticationError" {
			t.Errorf("a removed key: %+v", r)
		}
		if a := got[answer](bert, "chat", "FM:text(still)"); a.Text != "still" {
			t.Errorf("the other user: %+v", a)
		}
		if text := s.LogTail(10_000); strings.Contains(text, annasKey.Key) || strings.Contains(text, "hmk_") {
			t.Error("the server's log holds a key")
		}
	})
}
