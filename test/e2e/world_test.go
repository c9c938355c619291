package e2e

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"hermes-mobile/test/hermes"
)

// world is a server, a gateway that dials it, and the scripted model behind the gateway.
type world struct {
	t       *testing.T
	version hermes.Version
	server  *Server
	model   *hermes.FakeModel
	gateway *hermes.Gateway
	talking sync.WaitGroup // scenarios that give the gateway much to do

	elsewhere bool // the server takes the gateway for one on another machine
}

// both runs a test with each version of the real Hermes, at the same time.
func both(t *testing.T, f func(t *testing.T, v hermes.Version)) {
	t.Parallel()
	for _, v := range hermes.Versions {
		t.Run(string(v), func(t *testing.T) {
			t.Parallel()
			f(t, v)
		})
	}
}

// booting bounds how many gateways start at once: that takes seconds of a processor, and the timing of all others suffers.
var booting = make(chan struct{}, 2)

// newWorld starts a server and a gateway, and returns when the gateway has answered a first message.
func newWorld(t *testing.T, v hermes.Version, change ...func(*hermes.Setup)) *world {
	t.Helper()
	w := &world{t: t, version: v, server: NewServer(t).Start(), model: hermes.Model(t)}
	w.boot(w.server.ID, w.server.Secret, change...)
	w.warm("first")
	return w
}

// boot starts the gateway of a world.
func (w *world) boot(id, secret string, change ...func(*hermes.Setup)) {
	w.t.Helper()
	setup := hermes.Setup{Version: w.version, RelayURL: tap(w.t, w.server.Base(), string(w.version)), RelayID: id, RelaySecret: secret, ModelURL: w.model.URL,
		Streaming: w.newer(), Env: []string{"RELAY_HOME_CHANNEL=nobody"}}
	for _, c := range change {
		c(&setup)
	}
	w.gateway = hermes.Start(w.t, setup)
	g := w.gateway
	w.t.Cleanup(func() {
		if hosts := g.Outside(); len(hosts) > 0 {
			w.t.Errorf("Hermes %s tried to leave this machine: %q", w.version, hosts)
		}
	})
}

// warm has a device say a first thing, after which the server knows the gateway's version.
func (w *world) warm(device string) {
	w.t.Helper()
	booting <- struct{}{}
	defer func() { <-booting }()
	p := NewPhone(w.t, w.server, device)
	p.Online()
	p.Ask("FM:text(warm)", "warm")
	p.Idle()
	p.Leave()
}

// newer reports whether it is the version that streams, asks by cards and carries files.
func (w *world) newer() bool { return w.version != hermes.V019 }

// phone connects a device for a test.
func (w *world) phone(t *testing.T, id string) *Phone {
	t.Helper()
	p := NewPhone(t, w.server, id)
	p.Online()
	return p
}

// run runs the scenarios as parallel subtests, each with devices of its own. Those that measure times begin when the rest
// has ended.
func (w *world) run(talk, measure map[string]func(*testing.T, *world)) {
	for _, group := range []map[string]func(*testing.T, *world){talk, measure} {
		for _, name := range slices.Sorted(maps.Keys(group)) {
			w.t.Run(name, func(t *testing.T) {
				if talk[name] != nil {
					w.talking.Add(1)
					t.Cleanup(w.talking.Done)
				}
				t.Parallel()
				if measure[name] != nil {
					w.talking.Wait()
				}
				group[name](t, w)
			})
		}
	}
}

// write puts a file into a folder of the test and returns its path.
func write(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
