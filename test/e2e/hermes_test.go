package e2e

import (
	"testing"

	"hermes-mobile/test/hermes"
)

// both runs a test with each version of the real Hermes.
func both(t *testing.T, f func(t *testing.T, w *world)) {
	for _, v := range hermes.Versions {
		t.Run(string(v), func(t *testing.T) { f(t, newWorld(t, v)) })
	}
}

// world is a server, a gateway that dials it, and the scripted model behind the gateway.
type world struct {
	t       *testing.T
	version hermes.Version
	server  *Server
	model   *hermes.FakeModel
	gateway *hermes.Gateway
}

func newWorld(t *testing.T, v hermes.Version, env ...string) *world {
	t.Helper()
	w := &world{t: t, version: v, server: NewServer(t, env...).Start(), model: hermes.Model(t)}
	w.gateway = hermes.Start(t, hermes.Setup{Version: v, RelayURL: w.server.Base(), RelayID: w.server.ID, RelaySecret: w.server.Secret, ModelURL: w.model.URL,
		Streaming: v == hermes.V022, Env: []string{"RELAY_HOME_CHANNEL=nobody"}})
	return w
}

func TestText(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		p := NewPhone(t, w.server, "tel-1")
		p.Online()
		m := p.Ask("FM:text(alpha)", "alpha")
		if m.Text != "alpha" {
			t.Errorf("the reply is %q", m.Text)
		}
	})
}
