package apiproxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
)

// hermesIDs are ids as Hermes gives or derives them: hermes_state_ids.py of 0.22, and what its API
// answers.
var hermesIDs = []string{"api-0123456789abcdef", "API-0123456789ABCDEF", "api_1760000000_0123abcd", "cron_0123456789ab_20260101_120000", "cron_job-1_20260101_120000",
	"run_0123456789abcdef0123456789abcdef", "bg_120000_abcdef", "bg_abcdef", "room_0123456789abcdef0123456789abcdef", "20260101_120000_abcdef", "20260101_120000_0123abcd",
	"01234567-89ab-4cde-8f01-23456789abcd", "01234567-89AB-4CDE-8F01-23456789ABCD", "0123456789abcdef0123456789abcdef", "chatcmpl-0123456789abcdef0123456789abc",
	"resp_0123456789abcdef0123456789ab", "agent:main:telegram:dm:1", "cron_output:0123456789ab:latest"}

// TestHermesIDs: an id of a form that Hermes gives is nobody's by being named first, wherever a
// client can name one. When the owner of the key, a channel or a job begins that session
// afterwards, no user sees it.
func TestHermesIDs(t *testing.T) {
	r := newRig(t, wide)
	anna := r.login("anna")
	mine := anna.session()
	for _, id := range hermesIDs {
		quoted, _ := json.Marshal(id)
		for _, body := range []string{`{"id":%s}`, `{"session_id":%s}`, `{"id":"chat-1","session_id":"x","id":%s}`} {
			anna.want(400, "POST", "/api/sessions", fmt.Sprintf(body, quoted), "invalid_session_id", "Hermes generates ids of this form")
			anna.want(400, "POST", "/api/sessions/"+mine+"/fork", fmt.Sprintf(body, quoted), "invalid_session_id")
		}
		anna.want(404, "POST", "/v1/runs", fmt.Sprintf(`{"input":"x","session_id":%s}`, quoted), "session_not_found", "Hermes generates ids of this form")
		if status, text := anna.do("POST", "/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}]}`, header(sessionIDHeader, id)); status != 404 || !strings.Contains(text, "Hermes generates ids") {
			t.Errorf("%s: %d %s", id, status, text)
		}
		r.up.add(id, "") // by the owner of the key
		for _, path := range []string{"", "/messages"} {
			anna.want(404, "GET", "/api/sessions/"+id+path, "", "session_not_found")
		}
		anna.want(404, "POST", "/api/sessions/"+id+"/chat/stream", `{"message":"x"}`)
		anna.want(404, "DELETE", "/api/sessions/"+id, "")
	}
	if text := anna.want(200, "GET", "/api/sessions?limit=200", ""); strings.Count(text, `"id"`) != 1 {
		t.Errorf("the list is %s", text)
	}
}

// TestNames: a name that a client chooses is the user's own. The API server never hears it alone,
// so it is neither another user's session nor one of the owner of the key, also when all of them
// begin it at once; the user knows it by the name.
func TestNames(t *testing.T) {
	r := newRig(t, wide)
	r.up.add("weekly", "") // of the owner of the key
	r.up.add("default", "")
	anna, bert := r.login("anna"), r.login("bert")
	begin := map[string]func(c *client, name string) int{
		"create": func(c *client, name string) int { s, _ := c.do("POST", "/api/sessions", `{"id":"`+name+`"}`); return s },
		"run": func(c *client, name string) int {
			s, _ := c.do("POST", "/v1/runs", `{"input":"x","session_id":"`+name+`"}`)
			return s
		},
		"completion": func(c *client, name string) int {
			resp := c.send(t.Context(), "POST", "/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}]}`, header(sessionIDHeader, " "+name))
			defer resp.Body.Close()
			if got := resp.Header.Get(sessionIDHeader); got != name {
				t.Errorf("it is called %q in the answer", got)
			}
			return resp.StatusCode
		},
	}
	names := []string{"weekly", "default", "my chat", "a.b", "front", "u", "Überblick", "room", "api", "9"}
	var wg sync.WaitGroup
	for way, f := range begin {
		for _, name := range names {
			for _, c := range []*client{anna, bert} {
				wg.Go(func() {
					if way == "completion" && !isASCII(name) {
						return // no header has it
					}
					if status := f(c, name+way); status/100 != 2 {
						t.Errorf("%s of %s: %d", way, name, status)
					}
				})
			}
		}
	}
	wg.Wait()
	for way := range begin {
		for _, name := range names {
			if way == "completion" && !isASCII(name) {
				continue
			}
			for _, c := range []*client{anna, bert} {
				text := c.want(200, "GET", "/api/sessions/"+strings.ReplaceAll(name+way, " ", "%20"), "", `"id":"`+name+way+`"`)
				if strings.Contains(text, "weekly\"") {
					t.Errorf("it is the session of the key: %s", text)
				}
			}
		}
	}
	r.up.mu.Lock()
	for _, s := range r.up.sessions {
		if id := s["id"].(string); id != "weekly" && id != "default" && !strings.HasPrefix(id, "u") {
			t.Errorf("the API server heard %q", id)
		}
	}
	if want := 2 + 2*(3*len(names)-1); len(r.up.sessions) != want {
		t.Errorf("there are %d sessions, want %d", len(r.up.sessions), want)
	}
	r.up.mu.Unlock()

	// The one that the key has is not reached by its name, and a name of one's own is found
	// wherever it is used.
	anna.want(404, "GET", "/api/sessions/weekly", "")
	anna.want(201, "POST", "/api/sessions", `{"id":"weekly"}`, `"id":"weekly"`)
	anna.want(409, "POST", "/api/sessions", `{"id":"weekly"}`, `Session already exists: weekly"`)
	anna.want(200, "GET", "/api/sessions/weekly/messages", "", `"session_id":"weekly"`)
	anna.want(201, "POST", "/api/sessions/weekly/fork", `{"id":"fork-of-it"}`, `"id":"fork-of-it"`, `"parent_session_id":"weekly"`)
	anna.want(200, "GET", "/api/sessions?limit=200", "", `"id":"weekly"`, `"parent_session_id":"weekly"`)
	run := made(t, anna.want(202, "POST", "/v1/runs", `{"input":"x","session_id":"weekly"}`))
	anna.want(200, "GET", "/v1/runs/"+run, "", `"session_id":"weekly"`)
	bert.want(404, "GET", "/api/sessions/weekly", "")
	bert.want(404, "GET", "/api/sessions/fork-of-it", "")
	anna.want(200, "DELETE", "/api/sessions/weekly", "")
	anna.want(404, "GET", "/api/sessions/weekly", "")
	if r.up.session("weekly") == nil {
		t.Error("the session of the key is gone")
	}

	// What Hermes makes of a session that has a name is the user's, as that is.
	r.up.add("20260101_120000_abcdef", made(t, r.inner("fork-of-it")))
	anna.want(200, "GET", "/api/sessions/20260101_120000_abcdef", "", `"parent_session_id":"fork-of-it"`)
	bert.want(404, "GET", "/api/sessions/20260101_120000_abcdef", "")

	// Somebody else's whole id is one's own name only.
	whole := made(t, r.inner("fork-of-it"))
	bert.want(404, "GET", "/api/sessions/"+whole, "")
	bert.want(201, "POST", "/api/sessions", `{"id":"`+whole+`"}`, `"id":"`+whole+`"`)
	anna.want(200, "GET", "/api/sessions/"+whole, "", `"id":"fork-of-it"`)
}

// inner is the session of a name as the API server has it.
func (r *rig) inner(name string) string {
	r.up.mu.Lock()
	defer r.up.mu.Unlock()
	for _, s := range r.up.sessions {
		if strings.HasSuffix(s["id"].(string), "_"+name) {
			return fmt.Sprintf(`{"id":%q}`, s["id"])
		}
	}
	r.t.Fatalf("there is no %s", name)
	return ""
}

func isASCII(s string) bool { return !strings.ContainsFunc(s, func(c rune) bool { return c > 0x7f }) }

// TestNamesInStreams: events name the session as the client does, whatever the pieces they come in.
func TestNamesInStreams(t *testing.T) {
	r := newRig(t)
	c := r.login("anna")
	c.want(201, "POST", "/api/sessions", `{"id":"weekly"}`)
	inner := made(t, r.inner("weekly"))
	resp := c.send(t.Context(), "POST", "/api/sessions/weekly/chat/stream", `{"message":"x"}`)
	defer resp.Body.Close()
	go func() {
		for i := range len(inner) {
			r.up.next <- `data: {"session_id": "` + inner[:i]
			r.up.next <- inner[i:] + "\"}\n\n"
		}
		close(r.up.next)
	}()
	text, err := io.ReadAll(resp.Body)
	ok(t, err)
	if want := strings.Repeat("data: {\"session_id\": \"weekly\"}\n\n", len(inner)); string(text) != want {
		t.Errorf("the stream is %s", text)
	}
}

// TestUnspace: what is cut out does not depend on the pieces that an answer comes in, and breaks no
// JSON.
func TestUnspace(t *testing.T) {
	c := caller{id: "uabcdef2345abcdef"}
	space := c.space()
	for in, want := range map[string]string{
		"":                          "",
		"data: {}\n\n":              "data: {}\n\n",
		`{"id":"` + space + `x"}`:   `{"id":"x"}`,
		`{"id": "` + space + `"}`:   `{"id": ""}`,
		`not found: ` + space + `x`: `not found: x`,
		`"` + space + space + `x"`:  `"` + space + `x"`,
		`"` + space[:9] + `x"`:      `"` + space[:9] + `x"`,
		`"` + space[:9]:             `"` + space[:9],
		space + "x":                 space + "x",
		`"a` + space + `x"`:         `"a` + space + `x"`,
		`"\` + space + `\"}"`:       `"\` + space + `\"}"`, // the character U+ABCD, and a text that only looks like it
		`"` + strings.Repeat(`"`+space, 1000) + `"`: `"` + strings.Repeat(`"`, 1000) + `"`,
	} {
		if got := c.shown([]byte(in)); string(got) != want {
			t.Errorf("%.80q becomes %.80q", in, got)
		}
		for name, pieces := range map[string]io.Reader{"whole": strings.NewReader(in), "bytes": iotest.OneByteReader(strings.NewReader(in)), "halves": iotest.HalfReader(strings.NewReader(in)),
			"with the end": iotest.DataErrReader(strings.NewReader(in))} {
			ended := 0
			got, err := io.ReadAll(iotest.OneByteReader(&shownBody{ReadCloser: io.NopCloser(pieces), space: []byte(space), end: func() { ended++ }}))
			if err != nil || string(got) != want || ended != 1 {
				t.Errorf("%.80q by %s becomes %.80q (%v), and ended %d times", in, name, got, err, ended)
			}
		}
	}
}

// FuzzShown: whatever an answer is and however it comes, the client gets the same, and nothing but
// the user's own space is cut.
func FuzzShown(f *testing.F) {
	c := caller{id: "uabcdef2345abcdef"}
	f.Add([]byte(`{"id":"uabcdef2345abcdef_x","text":"\uabcdef2345abcdef_"}`), 7)
	f.Add([]byte(`"uabcdef2345abcdef_uabcdef2345abcdef_`), 1)
	f.Add([]byte("data: {}\n\n"), 100)
	f.Fuzz(func(t *testing.T, in []byte, size int) {
		whole := c.shown(bytes.Clone(in))
		got, err := io.ReadAll(&shownBody{ReadCloser: io.NopCloser(&cut{in, max(1, size%64)}), space: []byte(c.space())})
		if err != nil || !bytes.Equal(got, whole) {
			t.Fatalf("%q becomes %q, in pieces %q (%v)", in, whole, got, err)
		}
		if left := len(in) - len(whole); left < 0 || left%len(c.space()) != 0 {
			t.Fatalf("%q becomes %q", in, whole)
		}
		if json.Valid(in) && !json.Valid(whole) {
			t.Fatalf("%q is JSON, %q is not", in, whole)
		}
	})
}

// cut reads in pieces of a size.
type cut struct {
	rest []byte
	size int
}

func (c *cut) Read(p []byte) (int, error) {
	n := copy(p, c.rest[:min(c.size, len(c.rest))])
	c.rest = c.rest[n:]
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// TestUnknownNameIsFree: nobody is told whether an id that is not the user's is there.
func TestUnknownNameIsFree(t *testing.T) {
	r := newRig(t)
	anna := r.login("anna")
	r.up.add("taken", "")
	say := func(name string) (int, string) {
		return anna.do("GET", "/api/sessions/"+name, "", func(*http.Request) {})
	}
	for _, pair := range [][2]string{{"taken", "lacking"}, {"20260101_120000_abcdef", "20260101_120000_abcdee"}} {
		r.up.add(pair[0], "")
		a, there := say(pair[0])
		b, not := say(pair[1])
		if a != b || strings.ReplaceAll(there, pair[0], "") != strings.ReplaceAll(not, pair[1], "") {
			t.Errorf("%d %s, and %d %s", a, there, b, not)
		}
	}
}
