package relay

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/quota"
)

func (r *rig) http(method, url, id, secret, body string, header ...string) (int, string, http.Header) {
	r.t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Authorization", bearer(id, secret, r.clock.now().Add(300*time.Second)))
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	defer http.DefaultClient.CloseIdleConnections()
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), resp.Header
}

func (r *rig) upload(id, secret, body, mimeType, name string) string {
	r.t.Helper()
	status, b, _ := r.http("POST", r.srv.URL+"/relay/media", id, secret, body, "Content-Type", mimeType, "X-Media-Filename", name)
	var res struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal([]byte(b), &res); status != 200 || err != nil || res.ID == "" {
		r.t.Fatalf("upload: %d %s", status, b)
	}
	return res.ID
}

func media1(kind, url string) map[string]any {
	return obj("op", "send_media", "chat_id", "tel", "media_kind", kind, "source_url", url, "content", "a caption", "reply_to", nil)
}

func (h *fakeHost) sent(device string) (files []agent.SendFile) {
	for _, e := range h.all(device) {
		if f, ok := e.(agent.SendFile); ok {
			files = append(files, f)
		}
	}
	return files
}

func TestMediaFromAgent(t *testing.T) {
	r := newRig(t, func(o *Options) {
		o.Gateways = []Gateway{{ID: "gw", Secret: "s3cret"}, {ID: "b", Secret: "sb", Devices: []string{"b-tel"}}}
	})
	p := r.dial()
	id := r.upload("gw", "s3cret", "voice bytes", "audio/ogg; codecs=opus", "../../spee\xe9ch.ogg")
	if strings.ContainsAny(id, "/?#") {
		t.Errorf("id %q", id)
	}
	// The host in the address is the gateway's own idea of us.
	p.ok(media1("voice", "https://elsewhere.example:99/base/relay/media/"+id))
	f := r.h.sent("tel")[0]
	if f.File.Kind != "voice" || f.File.Mime != "audio/ogg" || f.File.Name != "speeéch.ogg" || f.File.Size != 11 || f.Caption != "a caption" || f.N != 0 {
		t.Errorf("%+v", f)
	}
	// In a turn it belongs to it; a name of its own wins; unknown kinds are documents.
	mid := p.turn("tel", 1, "hi")
	act := media1("hologram", "http://x/relay/media/"+id)
	act["filename"] = "a/b.ogg"
	p.ok(act)
	if f := r.h.sent("tel")[1]; f.ReplyTo != "app-1" || f.N != 1 || f.File.Name != "b.ogg" || f.File.Kind != "document" {
		t.Errorf("%+v", f)
	}
	p.end("tel", mid)
	// Scheduled.
	act = media1("image", "http://x/relay/media/"+id)
	act["metadata"] = obj("job_id", "j1")
	p.ok(act)
	if f := r.h.sent("tel")[2]; f.Source != "cron" || f.Job != "j1" {
		t.Errorf("%+v", f)
	}
	// A public address becomes a link, never fetched.
	p.ok(media1("image", "https://example.org/a%20b.png?x=1"))
	same(t, r.texts("tel"), "a caption\nhttps://example.org/a%20b.png?x=1")
	// Another gateway's, guessed, changed, for the other direction, too old.
	other := r.upload("b", "sb", "x", "image/png", "x.png")
	down := strings.TrimPrefix(r.a.links.down("gw", &agent.File{Hash: f.File.Hash, Name: "x"}), "/relay/media/")
	for _, bad := range []string{other, "", "x", id[:len(id)-2] + "AA", down, id + "/x"} {
		if res := p.op(media1("image", "http://x/relay/media/"+bad)); res["success"] == true {
			t.Errorf("%q is taken", bad)
		}
	}
	r.clock.add(fileLinkLife)
	if res := p.op(media1("image", "http://x/relay/media/"+id)); res["success"] == true {
		t.Error("an old one is taken")
	}
	// No bearer of a gateway, no upload; too large, no upload.
	if status, _, _ := r.http("POST", r.srv.URL+"/relay/media", "gw", "wrong", "x"); status != 401 {
		t.Errorf("%d", status)
	}
	if status, _, _ := r.http("POST", r.srv.URL+"/relay/media", "gw", "s3cret", strings.Repeat("x", maxUpload+1)); status != 413 {
		t.Errorf("%d", status)
	}
}

// crowded files have no room.
type crowded struct {
	agent.Files
	err error
}

func (f crowded) Put(io.Reader, int64) (string, int64, error)       { return "", 0, f.err }
func (f crowded) LocalCopy(string, string) (path string, err error) { return "", f.err }

// No room for a file of the agent: the upload is refused with a status and a sentence that say so, and the gateway tells its user by
// itself (doc/hermes/relay.md §5). No room for the copy that an older gateway needs: the person is told, and the message is not silently lost.
func TestNoRoomForFiles(t *testing.T) {
	for _, err := range []error{fmt.Errorf("media: store file: %w", &quota.Full{Reason: quota.Total}), fmt.Errorf("media: %w", &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC})} {
		r := newRig(t, func(o *Options) { o.Files = crowded{o.Files, err} })
		status, text, _ := r.http("POST", r.srv.URL+"/relay/media", "gw", "s3cret", "x", "Content-Type", "image/png")
		if status != http.StatusInsufficientStorage || !strings.Contains(text, "no room for files") {
			t.Errorf("%v: %d %s", err, status, text)
		}
		r = newRig(t, func(o *Options) {
			o.Files = crowded{o.Files, err}
			o.Known = map[string]Version{"gw": Older}
		})
		r.dial()
		rc := &receipt{}
		r.a.Hand(agent.Input{N: 1, Device: "tel", ID: "m1", Kind: agent.Media, File: &agent.File{Kind: "image", Mime: "image/png", Name: "a.png", Hash: strings.Repeat("a", 64), Size: 1}}, rc.taken)
		r.until("the person to be told", func() bool { return rc.is(errNoSpace) })
	}
	r := newRig(t, func(o *Options) { o.Files = crowded{o.Files, errors.New("the disk is broken")} })
	if status, text, _ := r.http("POST", r.srv.URL+"/relay/media", "gw", "s3cret", "x"); status != 500 || strings.Contains(text, "broken") {
		t.Errorf("another error: %d %s", status, text)
	}
}

func TestMediaIDsOutliveRestart(t *testing.T) {
	key := func(k string) func(*Options) { return func(o *Options) { o.Key = []byte(k) } }
	a, b, c := newRig(t, key("one")), newRig(t, key("one")), newRig(t, key("two"))
	id := a.upload("gw", "s3cret", "x", "image/png", "x.png")
	p := b.dial()
	p.ok(media1("image", "http://x/relay/media/"+id))
	p = c.dial()
	if res := p.op(media1("image", "http://x/relay/media/"+id)); res["success"] == true {
		t.Error("another key's id is taken")
	}
}

// seesAll is a gateway that sees our files, or none of them.
type seesAll bool

func (s seesAll) Sees(string) bool { return bool(s) }

func TestFileToAgent(t *testing.T) {
	remote, here := false, true
	for _, c := range []struct {
		name    string
		version Version
		local   *bool
		near    Sees
		public  string
		path    bool
	}{
		{"newer", Newer, nil, nil, "", false},
		{"newer, address given", Newer, nil, nil, "https://phone.example/x/", false},
		{"newer that sees our files", Newer, nil, seesAll(true), "", true},
		{"newer in a container on this machine", Newer, nil, seesAll(false), "", false},
		{"newer on this machine by the settings", Newer, &here, nil, "", true},
		{"newer elsewhere by the settings", Newer, &remote, seesAll(true), "", false},
		{"unknown on this machine", Unknown, nil, nil, "", false},
		{"unknown elsewhere", Unknown, &remote, nil, "", false},
		{"older on this machine", Older, nil, nil, "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, func(o *Options) {
				o.Known = map[string]Version{"gw": c.version}
				o.Near = func(_, _ netip.AddrPort) (Sees, bool) { return c.near, c.near != nil }
				o.Gateways = []Gateway{{ID: "gw", Secret: "s3cret", Local: c.local, PublicURL: c.public}, {ID: "b", Secret: "sb", Devices: []string{"b-tel"}}}
			})
			p := r.dial()
			f := &agent.File{Kind: "audio", Mime: "audio/wav", Name: `no"te ü.wav`, Hash: r.files.put(t, "the sound"), Size: 9}
			rc := &receipt{}
			r.a.Hand(agent.Input{N: 1, Device: "tel", Kind: agent.Voice, Text: "the words", File: f}, rc.taken)
			ev := p.event()
			r.until("taken", func() bool { return rc.is(nil) })
			url := ev["media_urls"].([]any)[0].(string)
			m := ev["media"].([]any)[0].(map[string]any)
			if ev["message_type"] != "voice" || ev["text"] != "the words" || m["url"] != url || m["mime"] != "audio/wav" || m["filename"] != f.Name {
				t.Errorf("%v", ev)
			}
			if strings.Contains(url, "file:") {
				t.Errorf("newer gateways read no %s", url)
			}
			want := ByAddress
			switch {
			case c.version != Older && c.local == nil:
				want = ByEither
			case c.path:
				want = ByCopy
			}
			if s := r.a.State().Gateways[0]; s.Files != want || !c.path && !strings.HasPrefix(url, s.MediaBase+"/relay/media/") {
				t.Errorf("the owner is told %q, %s", s.Files, s.MediaBase)
			}
			if c.path {
				if b, err := os.ReadFile(url); err != nil || string(b) != "the sound" || !strings.HasPrefix(url, "/") {
					t.Errorf("%s: %v", url, err)
				}
				return
			}
			base := r.srv.URL
			if c.public != "" {
				base = strings.TrimSuffix(c.public, "/")
			}
			path, ok := strings.CutPrefix(url, base)
			if !ok || !strings.HasPrefix(path, "/relay/media/") {
				t.Fatalf("address %s", url)
			}
			status, body, h := r.http("GET", r.srv.URL+path, "gw", "s3cret", "")
			if status != 200 || body != "the sound" || h.Get("Content-Type") != "audio/wav" || h.Get("Content-Disposition") != `attachment; filename="no_te _.wav"` {
				t.Errorf("%d %q %v", status, body, h)
			}
			for _, who := range [][2]string{{"b", "sb"}, {"gw", "wrong"}} {
				if status, _, _ := r.http("GET", r.srv.URL+path, who[0], who[1], ""); status == 200 {
					t.Errorf("%v may read it", who)
				}
			}
			// The signed address is enough where no bearer comes at all, and only then; one that was changed is not.
			bare := func(address string) int {
				t.Helper()
				resp, err := http.Get(address)
				if err != nil {
					t.Fatal(err)
				}
				defer http.DefaultClient.CloseIdleConnections()
				_ = resp.Body.Close()
				return resp.StatusCode
			}
			if status := bare(r.srv.URL + path); status != 200 {
				t.Errorf("without a bearer: %d", status)
			}
			for _, wrong := range []string{path[:len(path)-3] + "AAA", path + "A", "/relay/media/x", "/relay/media/" + r.upload("gw", "s3cret", "x", "image/png", "x.png")} {
				if status := bare(r.srv.URL + wrong); status != 401 {
					t.Errorf("%s without a bearer: %d", wrong, status)
				}
			}
			os.Remove(r.files.dir + "/" + f.Hash)
			if status, _, _ := r.http("GET", r.srv.URL+path, "gw", "s3cret", ""); status != 404 {
				t.Errorf("gone: %d", status)
			}
		})
	}
	r := newRig(t, func(o *Options) { o.Known = map[string]Version{"gw": Older} })
	r.dial()
	rc := &receipt{}
	r.a.Hand(agent.Input{N: 1, Device: "tel", Kind: agent.Media, File: &agent.File{Kind: "image", Hash: strings.Repeat("0", 64), Name: "x.png"}}, rc.taken)
	r.until("refused", func() bool { return rc.calls() == 1 })
	if rc.is(nil) || rc.is(agent.ErrAway) {
		t.Errorf("%v", rc.got)
	}
}

// Behind a proxy that puts its own name for us into Host, a gateway gets addresses of files that begin with the one it
// dialled.
func TestFileAddressBehindProxy(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Known = map[string]Version{"gw": Newer} })
	p, _, err := r.dialAs("gw", "s3cret", "X-Forwarded-Proto", "https", "X-Forwarded-Host", "agent.example.com:8443", "X-Forwarded-For", "203.0.113.5")
	if err != nil {
		t.Fatal(err)
	}
	p.hello()
	rc := &receipt{}
	r.a.Hand(agent.Input{N: 1, Device: "tel", Kind: agent.Media, File: &agent.File{Kind: "image", Mime: "image/png", Name: "x.png", Hash: r.files.put(t, "picture"), Size: 7}}, rc.taken)
	if url := p.event()["media_urls"].([]any)[0].(string); !strings.HasPrefix(url, "https://agent.example.com:8443/relay/media/") {
		t.Errorf("address %s", url)
	}
	r.until("taken", func() bool { return rc.is(nil) })
}

// A newer gateway whose copy cannot be made fetches the file.
func TestFileWithoutACopyIsFetched(t *testing.T) {
	r := newRig(t, func(o *Options) {
		o.Known = map[string]Version{"gw": Newer}
		o.Near = func(_, _ netip.AddrPort) (Sees, bool) { return seesAll(true), true }
		o.Files = noCopies{o.Files}
	})
	p := r.dial()
	rc := &receipt{}
	r.a.Hand(agent.Input{N: 1, Device: "tel", Kind: agent.Media, File: &agent.File{Kind: "document", Mime: "text/plain", Name: "x.txt", Hash: r.files.put(t, "words"), Size: 5}}, rc.taken)
	if url := p.event()["media_urls"].([]any)[0].(string); !strings.HasPrefix(url, r.srv.URL+"/relay/media/") {
		t.Errorf("address %s", url)
	}
	r.until("taken", func() bool { return rc.is(nil) })
}

type noCopies struct{ agent.Files }

func (noCopies) LocalCopy(string, string) (string, error) {
	return "", errors.New("others can change the folder")
}
