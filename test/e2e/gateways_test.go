package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hermes-mobile/device"
	"hermes-mobile/frame"
	"hermes-mobile/test/hermes"
)

// TestGateways has a server with a gateway of each version, each for its own devices, and both on other machines as far
// as the server is told.
func TestGateways(t *testing.T) {
	t.Parallel()
	s := NewServer(t, "MOBILE_RELAY_ID=", "MOBILE_RELAY_SECRET=")
	secrets := map[hermes.Version]string{}
	text := "gateways:\n"
	devices := map[hermes.Version]string{hermes.V019: "old,old-raw,user:otto", hermes.V022: "*"}
	for _, v := range hermes.Versions {
		secrets[v] = secret()
		text += fmt.Sprintf("  - id: \"gw:%s\"\n    secret: %s\n    name: Hermes %s\n    devices: \"%s\"\n    local: false\n", v, secrets[v], v, devices[v])
	}
	if err := os.MkdirAll(s.Data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.Data, "hermes-mobile.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Start()
	worlds := map[hermes.Version]*world{}
	for v, first := range map[hermes.Version]string{hermes.V019: "old", hermes.V022: "new"} {
		w := &world{t: t, version: v, server: s, model: hermes.Model(t), elsewhere: true}
		w.boot("gw:"+string(v), secrets[v])
		w.warm(first)
		worlds[v] = w
	}

	older, newer := NewPhone(t, s, "old"), NewPhone(t, s, "new")
	otto := NewPhone(t, s, "ottos-phone", func(c *device.Config) { c.User = frame.User{ID: "otto"} })
	for p, v := range map[*Phone]hermes.Version{older: hermes.V019, otto: hermes.V019, newer: hermes.V022} {
		p.Online()
		word := "from " + p.ID
		p.Ask("FM:text("+word+")", word)
		p.Idle()
		for _, other := range hermes.Versions {
			asked := false
			for _, r := range worlds[other].model.Requests() {
				asked = asked || strings.Contains(r.LastUser(), word)
			}
			if asked != (v == other) {
				t.Errorf("%s, which belongs to %s, was heard by %s: %v", p.ID, v, other, asked)
			}
		}
	}

	t.Run("files of the newer", func(t *testing.T) {
		newer.t = t
		newer.pictureUp(t, 3)
		newer.documentUp(t, worlds[hermes.V022])
		newer.voiceUp(t)
		newer.fileDown(t, "view.png", "image", "image/png", picture(t, 4))
	})
	t.Run("files of the older", func(t *testing.T) {
		if c := older.Status().Capabilities; c.Media || c.Audio || c.MediaURL || !c.Text {
			t.Errorf("the capabilities are %+v", c)
		}
		if c := newer.Status().Capabilities; !c.Media || !c.Audio || !c.MediaURL || !c.Prompt {
			t.Errorf("the capabilities of the newer are %+v", c)
		}
		refusedUpload(t, s)
	})
}

// refusedUpload sends a file although the agent takes none, as an app does that does not look at the capabilities.
func refusedUpload(t *testing.T, s *Server) {
	ready := make(chan struct{})
	p := NewPhone(t, s, "old-raw", func(c *device.Config) {
		c.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			<-ready
			var d net.Dialer
			return d.DialContext(ctx, network, addr)
		}
	})
	file, err := p.SendFile(t.Context(), device.FileOptions{Name: "a.png", Mime: "image/png", Data: picture(t, 5)})
	if err != nil {
		t.Fatal(err)
	}
	voice, err := p.SendVoice(t.Context(), "wav", wave(), "")
	if err != nil {
		t.Fatal(err)
	}
	close(ready)
	for _, out := range []*device.Outgoing{file, voice} {
		_, err := out.Wait(t.Context())
		var e *frame.Error
		if !errors.As(err, &e) || e.Code != frame.Forbidden || !strings.Contains(e.Message, "file") {
			t.Errorf("an upload was answered %v", err)
		}
		t.Logf("an upload was answered %v", err)
	}
	p.Ask("FM:text(words go)", "words go")
}

// TestFilesAsCopies: a newer gateway whose owner says that it is on this machine gets files as copies with their names, and reads them.
func TestFilesAsCopies(t *testing.T) {
	t.Parallel()
	s, key := NewServer(t, "MOBILE_RELAY_ID=", "MOBILE_RELAY_SECRET="), secret()
	if err := os.MkdirAll(s.Data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.Data, "hermes-mobile.yaml"), fmt.Appendf(nil, "gateways:\n  - {id: here, secret: %s, local: true}\n", key), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Start()
	w := &world{t: t, version: hermes.V022, server: s, model: hermes.Model(t)}
	w.boot("here", key)
	w.warm("copies")
	p := w.phone(t, "copies")
	p.pictureUp(t, 20)
	p.documentUp(t, w)
	out, err := s.CLI(t.Context(), "doctor")
	if !strings.Contains(out, "files as local copies") {
		t.Errorf("the doctor says (%v)\n%s", err, out)
	}
}
