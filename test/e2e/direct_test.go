package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hermes-mobile/device"
	"hermes-mobile/frame"
	"hermes-mobile/gateway"
	"hermes-mobile/test/hermes"
)

// newDirect starts a Hermes with its API server, and a server whose agent turns to that. What stands between them keeps the server from
// seeing that the gateway is on the same machine.
func newDirect(t *testing.T, v hermes.Version, env ...string) *world {
	t.Helper()
	w := &world{t: t, version: v, model: hermes.Model(t)}
	w.gateway = startAPI(t, v, func(s *hermes.Setup) { s.ModelURL, s.ApprovalSeconds = w.model.URL, 20 })
	api := w.gateway.API()
	w.server = NewServer(t, append([]string{"MOBILE_API_URL=" + onlyAdvertised(t, api, slices.Contains(env, "MOBILE_API_JOBS=on")), "MOBILE_API_KEY=" + api.Key, "MOBILE_RELAY_ID=", "MOBILE_RELAY_SECRET="}, env...)...)
	w.server.Agent = "direct"
	w.server.Start()
	return w
}

// TestDirect: conversations over the HTTP API of the real Hermes.
func TestDirect(t *testing.T) {
	both(t, func(t *testing.T, v hermes.Version) {
		w := newDirect(t, v, "MOBILE_API_SESSIONS=all", "MOBILE_API_JOBS=on")
		w.run(map[string]func(*testing.T, *world){
			"chat": directChat, "approval": directApproval, "stop": directStop, "steer": directSteer, "image": directImage, "large_image": directLargeImage, "sessions": directSessions,
			"model_fails": directModelFails, "at_once": directAtOnce, "jobs": directJobs,
		}, nil)
	})
}

// directChat: text is streamed, a tool is shown, and the session goes on.
func directChat(t *testing.T, w *world) {
	p := w.phone(t, "chat")
	if c := p.Status().Capabilities; !c.Edit || !c.Prompt || !c.Stop || !c.Tool || c.Audio || !c.Media || !slices.Equal(c.MediaKinds, []string{"image"}) {
		t.Errorf("capabilities %+v", c)
	}
	mark := p.Mark()
	id := p.Say("FM:long(900)")
	if m := p.Answered(mark, id); m.Text != modelLines(900) {
		t.Errorf("the answer is %q", m.Text)
	}
	steps := 0
	for _, ev := range p.Since(mark) {
		if m, ok := ev.(device.Message); ok && !m.Final {
			steps++
		}
	}
	if steps == 0 {
		t.Error("the answer was not streamed")
	}
	p.Idle()
	mark = p.Mark()
	p.Say("FM:exec(echo direct-" + string(w.version) + ")")
	p.Final(mark, "what the tool said", func(m device.Message) bool { return strings.Contains(m.Text, "direct-"+string(w.version)) })
	Wait(p, mark, "the tool", func(s device.Tool) bool { return s.Name == "terminal" && s.State == "started" })
	Wait(p, mark, "the tool's end", func(s device.Tool) bool { return s.Name == "terminal" && s.State == "done" })
	p.Idle()
	p.Ask("FM:text(third)", "third")
	all := ""
	for _, r := range w.model.Requests() {
		if r.LastUser() == "FM:text(third)" {
			all = fmt.Sprint(r)
		}
	}
	if !strings.Contains(all, "FM:long(900)") {
		t.Error("the model was not told what was said before")
	}
}

// directApproval: a dangerous command waits for the person; yes runs it, no does not, and an answer that is too late harms nobody.
func directApproval(t *testing.T, w *world) {
	p := w.phone(t, "approval")
	folder := func(name string) string {
		dir := t.TempDir() + "/" + name
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	yes, no, late := folder("yes"), folder("no"), folder("late")
	gone := func(dir string) bool { _, err := os.Stat(dir); return os.IsNotExist(err) }

	mark := p.Mark()
	id := p.Say("FM:exec(rm -rf " + yes + ")")
	card := p.Card(mark, "exec_approval")
	if !strings.Contains(card.Command, "rm -rf") {
		t.Errorf("the card is %+v", card)
	}
	if done := p.Choose(card, "once", ""); done.OptionID != "once" {
		t.Errorf("the card ended with %+v", done)
	}
	p.Answered(mark, id)
	if !gone(yes) {
		t.Error("the command was allowed and did not run")
	}
	p.Idle()

	mark = p.Mark()
	id = p.Say("FM:exec(rm -rf " + no + ")")
	p.Choose(p.Card(mark, "exec_approval"), "deny", "")
	p.Answered(mark, id)
	if gone(no) {
		t.Error("the command was denied and ran")
	}
	p.Idle()

	mark = p.Mark()
	id = p.Say("FM:exec(rm -rf " + late + ")")
	card = p.Card(mark, "exec_approval")
	p.Answered(mark, id) // Hermes gives up by itself
	Wait(p, mark, "the end of the card", func(d device.CardDone) bool { return d.ID == card.ID && d.Expired })
	if gone(late) {
		t.Error("nobody allowed the command and it ran")
	}
}

// directStop: the stop button ends a turn, and what there was stays.
func directStop(t *testing.T, w *world) {
	p := w.phone(t, "stop")
	mark := p.Mark()
	id := p.Say("FM:slow(60)")
	Wait(p, mark, "some text", func(m device.Message) bool { return strings.Contains(m.Text, "Line 0001") })
	if err := p.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	m := p.Answered(mark, id)
	if !m.Interrupted || !strings.HasPrefix(modelLines(900), m.Text) {
		t.Errorf("the end is %+v", m)
	}
	p.Idle()
	p.Ask("FM:text(after)", "after")
}

// onePixel is a picture.
func onePixel(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// directImage: an image reaches the model.
func directImage(t *testing.T, w *world) {
	p := w.phone(t, "image")
	mark := p.Mark()
	id := p.Upload(device.FileOptions{Kind: "image", Name: "dot.png", Mime: "image/png", Caption: "FM:text(seen)", Data: onePixel(t)})
	if m := p.Answered(mark, id); !strings.Contains(m.Text, "seen") {
		t.Errorf("the answer is %q", m.Text)
	}
}

// directLargeImage: an image that the API does not take is refused in words.
func directLargeImage(t *testing.T, w *world) {
	p := w.phone(t, "large")
	picture := append(onePixel(t), make([]byte, 8<<20-200)...) // as base64 over the 10 MB of a request
	mark := p.Mark()
	id := p.Upload(device.FileOptions{Kind: "image", Name: "big.png", Mime: "image/png", Data: picture})
	if m := p.Answered(mark, id); !strings.Contains(m.Text, "up to 7 MiB") {
		t.Errorf("of a large image the person reads %q", m.Text)
	}
	p.Idle()
}

// directFiles: with server and gateway on one machine files of every kind go both ways, those of a text turn and of one with an image.
func directFiles(t *testing.T, w *world) {
	p := w.phone(t, "files")
	if c := p.Status().Capabilities; !c.Media || c.MediaKinds != nil {
		t.Errorf("capabilities %+v", c)
	}
	for _, c := range []struct {
		name, kind string
		data       []byte
	}{{"view.png", "image", picture(t, 7)}, {"Zürich.pdf", "document", pdf(7000)}, {"film.mp4", "video", mp4()}} {
		path := write(t, c.name, c.data)
		for _, up := range [][]byte{nil, onePixel(t)} {
			mark := p.Mark()
			id := ""
			if up == nil {
				id = p.Say("FM:media(" + path + ")")
			} else {
				id = p.Upload(device.FileOptions{Kind: "image", Name: "dot.png", Mime: "image/png", Caption: "FM:media(" + path + ")", Data: up})
			}
			f := Wait(p, mark, "the file "+c.name, func(device.File) bool { return true })
			m := p.Answered(mark, id)
			if m.Text != "Here is your file." {
				t.Errorf("the text with %s is %q", c.name, m.Text)
			}
			if f.Err != nil || !bytes.Equal(f.Data, c.data) || f.Kind != c.kind || f.ReplyTo != id || f.Filename != c.name && up == nil {
				f.Data = nil
				t.Errorf("instead of %s (%s, %d bytes) came %+v", c.name, c.kind, len(c.data), f)
			}
			p.Idle()
		}
	}
	mark := p.Mark()
	secret := w.gateway.Home() + "/.env"
	p.Say("FM:media(" + secret + ")")
	p.Final(mark, "why it is not sent", func(m device.Message) bool { return strings.Contains(m.Text, "files of this folder are not sent") })
	p.Idle()
	p.documentUp(t, w)
}

// ask asks the agent of a device and decodes the result.
func ask[T any](t *testing.T, p *Phone, method, params string) (out T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	result, err := p.Call(ctx, method, json.RawMessage(params))
	if err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	if err := json.Unmarshal(result, &out); err != nil {
		t.Fatalf("%s: %v in %s", method, err, result)
	}
	return out
}

type directSession struct {
	ID, Title string
	Current   bool
}

// directSessions: sessions are listed, begun, named, copied, gone on with and deleted.
func directSessions(t *testing.T, w *world) {
	p := w.phone(t, "sessions")
	p.Ask("FM:text(one)", "one")
	p.Idle()
	type answer struct{ Session directSession }
	type list struct{ Sessions []directSession }
	current := func() directSession {
		l := ask[list](t, p, "sessions.list", `{"limit":200}`)
		at := slices.IndexFunc(l.Sessions, func(s directSession) bool { return s.Current })
		if at < 0 {
			t.Fatalf("none of %+v is the current one", l)
		}
		return l.Sessions[at]
	}
	first := current()
	title := "first of " + string(w.version)
	if s := ask[answer](t, p, "sessions.rename", `{"id":"`+first.ID+`","title":"`+title+`"}`).Session; s.Title != title {
		t.Errorf("renamed to %+v", s)
	}
	p.Ask("/new second of "+string(w.version), "A new session")
	p.Idle()
	if s := current(); s.ID == first.ID {
		t.Errorf("after /new the session is %+v", s)
	}
	p.Ask("FM:text(two)", "two")
	p.Idle()
	ask[answer](t, p, "sessions.open", `{"id":"`+first.ID+`"}`)
	p.Ask("FM:text(three)", "three")
	p.Idle()
	type history struct {
		Messages []struct{ Role, Text string }
	}
	var said []string
	for _, m := range ask[history](t, p, "sessions.history", `{}`).Messages {
		said = append(said, m.Role+" "+m.Text)
	}
	if want := []string{"user FM:text(one)", "assistant one", "user FM:text(three)", "assistant three"}; !slices.Equal(said, want) {
		t.Errorf("the history is %q", said)
	}
	fork := ask[answer](t, p, "sessions.fork", `{"id":"`+first.ID+`"}`).Session
	if fork.ID == "" || fork.ID == first.ID {
		t.Errorf("the copy is %+v", fork)
	}
	if !ask[struct{ OK bool }](t, p, "sessions.delete", `{"id":"`+fork.ID+`"}`).OK {
		t.Error("the copy was not deleted")
	}
	if _, err := p.Call(t.Context(), "sessions.open", json.RawMessage(`{"id":"`+fork.ID+`"}`)); err == nil || !strings.Contains(err.Error(), "not_found") {
		t.Errorf("a deleted session is opened with %v", err)
	}
	if m := ask[struct{ Models []struct{ ID string } }](t, p, "models.list", "{}").Models; len(m) == 0 {
		t.Error("no models")
	}
	if r := ask[struct{ Kind, Version, Diagnostics string }](t, p, "route.show", "{}"); r.Kind != "remote" || r.Version != string(w.version) && !strings.HasPrefix(r.Version, "0.22.2") ||
		strings.Contains(r.Diagnostics, w.gateway.API().Key) || strings.Contains(r.Diagnostics, "127.0.0.1") {
		t.Errorf("the route is %+v", r)
	}
}

// directModelFails: a model that fails is told as such, and the conversation goes on.
func directModelFails(t *testing.T, w *world) {
	p := w.phone(t, "fails")
	mark := p.Mark()
	id := p.Say("FM:status(400)")
	if m := p.Answered(mark, id); !strings.Contains(m.Text, "400") {
		t.Errorf("the person reads %q", m.Text)
	}
	p.Idle()
	p.Ask("/new", "A new session") // the model would read the word that fails again
	p.Idle()
	p.Ask("FM:text(better)", "better")
}

// directAtOnce: two conversations do not mix.
func directAtOnce(t *testing.T, w *world) {
	a, b := w.phone(t, "once-a"), w.phone(t, "once-b")
	ma, mb := a.Mark(), b.Mark()
	ia, ib := a.Say("FM:slow(3)"), b.Say("FM:text(something else)")
	if m := b.Answered(mb, ib); m.Text != "something else" {
		t.Errorf("b reads %q", m.Text)
	}
	if m := a.Answered(ma, ia); !strings.Contains(m.Text, "Line 0001") || strings.Contains(m.Text, "something else") {
		t.Errorf("a reads %q", m.Text)
	}
}

// directJobs: scheduled jobs are made, paused, resumed and deleted.
func directJobs(t *testing.T, w *world) {
	p := w.phone(t, "jobs")
	type job struct {
		ID, Name string
		Paused   bool
	}
	type answer struct{ Job job }
	j := ask[answer](t, p, "jobs.create", `{"name":"water","schedule":"every 2h","prompt":"FM:text(water the plants)"}`).Job
	if j.ID == "" || j.Name != "water" || j.Paused {
		t.Fatalf("the job is %+v", j)
	}
	if j := ask[answer](t, p, "jobs.pause", `{"id":"`+j.ID+`"}`).Job; !j.Paused {
		t.Errorf("paused: %+v", j)
	}
	if j := ask[answer](t, p, "jobs.resume", `{"id":"`+j.ID+`"}`).Job; j.Paused {
		t.Errorf("resumed: %+v", j)
	}
	ask[struct{ OK bool }](t, p, "jobs.delete", `{"id":"`+j.ID+`"}`)
	for _, other := range ask[struct{ Jobs []job }](t, p, "jobs.list", "{}").Jobs {
		if other.ID == j.ID {
			t.Error("the deleted job is listed")
		}
	}
}

// directNoJobs: what this Hermes does not advertise is not offered.
func directNoJobs(t *testing.T, w *world) {
	p := w.phone(t, "no-jobs")
	if call := p.Status().Capabilities.Call; !slices.Contains(call, "sessions.list") || slices.ContainsFunc(call, func(m string) bool { return strings.HasPrefix(m, "jobs.") }) {
		t.Errorf("the calls are %v", call)
	}
}

// onlyAdvertised stands before an API server, and at the end of the test wants all that was asked of it to be what it advertises, or one
// of the paths that find that out. With jobs, those are allowed, too.
func onlyAdvertised(t *testing.T, api hermes.API, jobs bool) (address string) {
	t.Helper()
	to, err := url.Parse(api.URL)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	asked := map[string]bool{}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) },
		// A gateway that is not there is not a proxy's 502.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:     log.New(io.Discard, "", 0),
	}
	before := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked[r.Method+" "+r.URL.EscapedPath()] = true
		mu.Unlock()
		proxy.ServeHTTP(w, r)
	}))
	answer := caller{t, api.URL, api.Key, nil}.must("GET", "/v1/capabilities", "")
	t.Cleanup(func() {
		before.CloseClientConnections()
		before.Close()
		allowed := []string{"GET /health", "GET /v1/capabilities"}
		for _, e := range answer["endpoints"].(map[string]any) {
			e := e.(map[string]any)
			allowed = append(allowed, e["method"].(string)+" "+e["path"].(string))
		}
		for name, e := range gateway.JobEndpoints() {
			if _, advertised := answer["endpoints"].(map[string]any)[name]; advertised {
				t.Errorf("this Hermes advertises %s: doc/gateway.md says that none does", name)
			}
			if jobs {
				allowed = append(allowed, e.Method+" "+e.Path)
			}
		}
		one := regexp.MustCompile(`\\\{[^/]*\\\}`)
		for i, a := range allowed {
			allowed[i] = one.ReplaceAllString(regexp.QuoteMeta(a), "[^/]+")
		}
		every := regexp.MustCompile("^(" + strings.Join(allowed, "|") + ")$")
		for request := range asked {
			if !every.MatchString(request) {
				t.Errorf("the gateway was asked for %s, which it does not advertise", request)
			}
		}
		if len(asked) < 3 {
			t.Errorf("only %v was asked", asked)
		}
	})
	return before.URL
}

// TestDirectRestarts: one Hermes of each version, with all that is started anew around it.
func TestDirectRestarts(t *testing.T) {
	both(t, func(t *testing.T, v hermes.Version) {
		w := newDirect(t, v)
		directNoJobs(t, w)
		directWrongKey(t, w)
		directKilled(t, w)
		directGatewayRestarts(t, w)
	})
}

// directKilled: the server dies in the middle of a turn, and the answer is there whole and once when it is back.
func directKilled(t *testing.T, w *world) {
	p := w.phone(t, "killed")
	mark := p.Mark()
	id := p.Say("FM:slow(8)")
	Wait(p, mark, "some text", func(m device.Message) bool { return strings.Contains(m.Text, "Line 0001") })
	w.server.Kill()
	w.server.Start()
	m := p.Final(mark, "the answer", func(m device.Message) bool { return m.ReplyTo == id && !m.Interrupted })
	p.Idle()
	p.Ask("FM:text(next)", "next")
	want := w.model.Requests()
	turns := 0
	for _, r := range want {
		if r.LastUser() == "FM:slow(8)" {
			turns++
		}
	}
	if turns != 1 {
		t.Errorf("the model was asked %d times", turns)
	}
	whole := 0
	for _, f := range p.Finals(mark) {
		if f.ReplyTo == id && !f.Interrupted {
			whole++
		}
	}
	if whole != 1 || strings.TrimSpace(m.Text) != strings.TrimSpace(modelLines(900)) {
		t.Errorf("%d whole answers, the first is %q", whole, m.Text)
	}
}

// directGatewayRestarts: Hermes is restarted in the middle of a turn; the person is told how it ended, and messages that are
// sent meanwhile wait for it.
func directGatewayRestarts(t *testing.T, w *world) {
	p := w.phone(t, "restart")
	mark := p.Mark()
	id := p.Say("FM:slow(120)")
	Wait(p, mark, "some text", func(m device.Message) bool { return strings.Contains(m.Text, "Line 0001") })
	w.gateway.Kill()
	waiting := p.Mark()
	p.Submit("/new") // the model would read the first message again
	second := p.Submit("FM:text(waited)")
	p.Agent(frame.Away)
	w.gateway.Run()
	w.gateway.AwaitAPIInUse()
	p.Answered(mark, id)
	p.Receipt(second)
	p.Final(waiting, "the answer to what waited", func(m device.Message) bool { return m.Text == "waited" })
	p.Idle()

	// Asked to end, the newer one finishes what it does, and the older one cuts the stream and stores the answer all the same
	// (doc/hermes/api.md §4.6).
	mark = p.Mark()
	id = p.Say("FM:slow(4)")
	Wait(p, mark, "some text", func(m device.Message) bool { return strings.Contains(m.Text, "Line 0001") })
	w.gateway.Restart(false)
	w.gateway.AwaitAPIInUse()
	if m := p.Answered(mark, id); w.newer() && (m.Interrupted || m.Text != modelLines(900)) {
		t.Errorf("the answer is %+v", m)
	}
	p.Idle()
	p.Ask("/new", "A new session")
	p.Idle()
	p.Ask("FM:text(after)", "after")
	answers := 0
	for _, m := range p.Finals(mark) {
		if m.ReplyTo == id && strings.HasPrefix(m.Text, "Line 0001") {
			answers++
		}
	}
	if answers > 1 {
		t.Errorf("the answer came %d times", answers)
	}
}

// directWrongKey: a key that Hermes does not take is told to the owner, and messages wait.
func directWrongKey(t *testing.T, w *world) {
	g := w.gateway
	s := NewServer(t, "MOBILE_API_URL="+g.API().URL, "MOBILE_API_KEY=not-the-key-of-this-one", "MOBILE_RELAY_ID=", "MOBILE_RELAY_SECRET=")
	s.Agent = "direct"
	s.Start()
	p := NewPhone(t, s, "phone")
	p.Agent(frame.Away)
	out := p.Submit("hello")
	if r := p.Receipt(out); !r.Queued {
		t.Errorf("receipt %+v", r)
	}
	for end := time.Now().Add(patience); !strings.Contains(s.LogTail(200), "the gateway cannot be used"); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the log does not say that the gateway cannot be used")
		}
	}
	if strings.Contains(s.LogTail(1000), "not-the-key-of-this-one") {
		t.Error("the key is in the log")
	}
	mustFind(t, (&world{t: t, server: s}).doctor(t), "api_key_refused", "rejects the server's key")
	s.Stop()
	s.Env = append(slices.DeleteFunc(s.Env, func(line string) bool { return strings.HasPrefix(line, "MOBILE_API_KEY=") }), "MOBILE_API_KEY="+g.API().Key)
	s.Start()
	p.Final(0, "the answer to what waited", func(m device.Message) bool { return m.ReplyTo == out.ID && strings.Contains(m.Text, "fake model") })
}
