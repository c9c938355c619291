package hub_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/access"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/hub"
	"hermes-mobile/internal/media"
)

// linkWorld is a world whose files are all too large for frames, and a server that links lead to.
type linkWorld struct {
	*world
	links *media.Signer
}

func newLinkWorld(t *testing.T) *linkWorld {
	t.Helper()
	w := &linkWorld{}
	w.world = newWorld(t, func(o *hub.Options) {
		strict(o)
		o.MaxMedia, w.links = 4, o.Links
	})
	return w
}

// file has the agent send a device a file, and returns the path of the link to it.
func (w *linkWorld) file(c *client) string {
	w.t.Helper()
	put := value[media.File](w.t)(w.files.Put([]byte("the content of the file")))
	w.post(c.id, agent.SendFile{ID: agent.NewID(), File: agent.File{Kind: "document", Mime: "text/plain", Name: "a.txt", Hash: put.Hash, Size: put.Size}})
	m := find[*frame.Media](c, nil)
	_, path, found := strings.Cut(m.URL, "/media/")
	if !found {
		w.t.Fatalf("no link in %s", show(m))
	}
	return "/media/" + path
}

// get is the status of a link now.
func (w *linkWorld) get(path string) int {
	w.t.Helper()
	server := httptest.NewServer(media.Handler(w.files, w.links, time.Now, w.hub.MayRead))
	defer server.Close()
	resp, err := http.Get(server.URL + path)
	ok(w.t, err)
	defer resp.Body.Close()
	body := value[[]byte](w.t)(io.ReadAll(resp.Body))
	if resp.StatusCode == http.StatusOK && string(body) != "the content of the file" {
		w.t.Errorf("the link leads to %q", body)
	}
	return resp.StatusCode
}

// A link ends with the access of its device, whatever ends that. Links of other devices go on, also of the same user.
func TestLinkEndsWithItsDevice(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(w *linkWorld){
		"the device is revoked": func(w *linkWorld) { ok(w.t, w.hub.Owner().Revoke(ctx, "tel")) },
		"the device is revoked and unbound": func(w *linkWorld) {
			ok(w.t, w.hub.Owner().Revoke(ctx, "tel"))
			ok(w.t, w.hub.Owner().Unbind(ctx, "tel"))
		},
		"another one has its id": func(w *linkWorld) {
			ok(w.t, w.hub.Owner().Revoke(ctx, "tel"))
			ok(w.t, w.hub.Owner().Unbind(ctx, "tel"))
			w.pair("tel", access.PairingCode{User: "bert"})
		},
		"the device is unbound": func(w *linkWorld) { ok(w.t, w.hub.Owner().Unbind(ctx, "tel")) },
		"the user is revoked":   func(w *linkWorld) { ok(w.t, w.hub.Owner().RevokeUser(ctx, "anna")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newLinkWorld(t)
			tel := w.pair("tel", access.PairingCode{}, withUser("anna"))
			other := w.pair("other", access.PairingCode{}, withUser("carla"))
			link, others := w.file(tel), w.file(other)
			if a, b := w.get(link), w.get(others); a != 200 || b != 200 {
				t.Fatalf("before: %d and %d", a, b)
			}
			end(w)
			if status := w.get(link); status != http.StatusForbidden {
				t.Errorf("after that the link gives %d", status)
			}
			if status := w.get(others); status != 200 {
				t.Errorf("the link of another device gives %d", status)
			}
		})
	}
}

// A link of a device that was let in by an app token ends with that token, also where another one has its label.
func TestLinkEndsWithItsToken(t *testing.T) {
	t.Parallel()
	w := newLinkWorld(t)
	for _, user := range []string{"anna", "bert"} {
		value[access.User](t)(w.pairing.ApproveUser(user, ""))
	}
	main, extra := w.connect("main", withUser("anna")), w.connect("extra", withToken(extraToken), withUser("bert"))
	link, others := w.file(main), w.file(extra)
	w.tokens.Replace([]access.Token{{Label: "main", Secret: "another secret of this label"}, {Label: "extra", Secret: extraToken}})
	if status := w.get(link); status != http.StatusForbidden {
		t.Errorf("the link gives %d after its token was replaced", status)
	}
	if status := w.get(others); status != 200 {
		t.Errorf("the link of another token gives %d", status)
	}
}

// What names no device of ours is no link, whoever signed it: a gateway's token, say, or an older form.
func TestLinkOfNoDevice(t *testing.T) {
	t.Parallel()
	w := newLinkWorld(t)
	w.pair("tel", access.PairingCode{}, withUser("anna"))
	put := value[media.File](t)(w.files.Put([]byte("the content of the file")))
	for _, owner := range []string{"", "tel", "down:23:gw-home", "device\n", "device\nx\n0\ntel", "device\n\n0\nnobody", "device\n\nno number\ntel"} {
		if status := w.get(w.links.Sign(owner, put.Hash, "a.txt", "text/plain", time.Now().Add(time.Hour))); status != http.StatusForbidden {
			t.Errorf("a link of %q gives %d", owner, status)
		}
	}
}
