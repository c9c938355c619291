package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"hermes-mobile/internal/access"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/agent/relay"
	"hermes-mobile/internal/asowner"
	"hermes-mobile/internal/atomicfile"
	"hermes-mobile/internal/doctor"
	"hermes-mobile/internal/store"
)

// Keys under which the relay's own things are kept.
const (
	metaInstance = "relay_instance" // names this data folder to gateways
	metaVersions = "relay_versions" // of gateways, as learnt
	metaProfiles = "relay_profiles" // that conversations have chosen
)

// newRelay makes the agent that gateways dial in to. Where no gateway is set it makes an id and a secret, once, for the
// owner to put into Hermes' settings.
func (s *Server) newRelay(ctx context.Context, key [32]byte) (agent.Agent, error) {
	instance, err := s.remembered(ctx, metaInstance, func() []byte { return []byte(access.NewSecret()[:8]) })
	if err != nil {
		return nil, err
	}
	var gateways []relay.Gateway
	for _, g := range s.cfg.Gateways {
		gateways = append(gateways, relay.Gateway{ID: g.ID, Secret: g.Secret.Reveal(), Name: g.Name, Devices: g.Devices, Local: g.Local,
			PublicURL: g.PublicURL, WakeURL: cmp.Or(g.WakeURL.Reveal(), s.cfg.WakeURL.Reveal())})
	}
	if len(gateways) == 0 {
		id, secret, err := ownGateway(s.gatewayPath())
		if err != nil {
			return nil, err
		}
		gateways = []relay.Gateway{{ID: id, Secret: secret, Devices: []string{"*"}, WakeURL: s.cfg.WakeURL.Reveal()}}
	}
	s.letIn = LetIn(s.cfg)
	versions, err := s.store.Meta(ctx, metaVersions)
	if err != nil {
		return nil, err
	}
	known := map[string]relay.Version{}
	if len(versions) > 0 {
		if err := json.Unmarshal(versions, &known); err != nil {
			s.log.Warn("what was known of the gateways' versions cannot be read", "error", err)
		}
	}
	learnt := maps.Clone(known)
	chosen, choose, err := s.chosenProfiles(ctx)
	if err != nil {
		return nil, err
	}
	return relay.New(relay.Options{Gateways: gateways, Files: files{s.files}, Log: s.log, Key: key[:], Instance: string(instance), Keeper: s.keeper,
		From: s.clientAddress, UserOf: s.userOf, Known: known, Remember: s.rememberVersions(learnt), Steers: s.steers,
		Profiles: s.profiles, Chosen: chosen, Choose: choose,
		Count: func(what, _ string) { s.metrics.Gateway.WithLabelValues(what).Inc() }}), nil
}

// steers reports whether a gateway adds messages to running turns.
func (s *Server) steers(ctx context.Context, gateway string) bool {
	if s.cfg.Steer != "auto" {
		return s.cfg.Steer == "on"
	}
	return doctor.ProbeHermes(ctx, s.cfg, nil).Steers(gateway)
}

// rememberVersions returns what stores the version of a gateway, without waiting for it.
func (s *Server) rememberVersions(known map[string]relay.Version) func(string, relay.Version) {
	var mu sync.Mutex
	return func(id string, v relay.Version) {
		mu.Lock()
		defer mu.Unlock()
		known[id] = v
		b, _ := json.Marshal(known)
		s.store.Go(func(tx *store.Tx) error { return tx.SetMeta(metaVersions, b) }, func(err error) {
			if err != nil {
				s.log.Error("the version of a gateway could not be stored", "gateway", id, "error", err)
			}
		})
	}
}

// chosenProfiles returns the profiles that conversations have chosen, and what stores another choice.
func (s *Server) chosenProfiles(ctx context.Context) (map[string]string, func(context.Context, string, string) error, error) {
	stored, err := s.store.Meta(ctx, metaProfiles)
	if err != nil {
		return nil, nil, err
	}
	chosen := map[string]string{}
	if len(stored) > 0 {
		if err := json.Unmarshal(stored, &chosen); err != nil {
			s.log.Warn("which profiles conversations have chosen cannot be read", "error", err)
			chosen = map[string]string{}
		}
	}
	var mu sync.Mutex
	all := maps.Clone(chosen)
	return chosen, func(_ context.Context, device, profile string) error {
		mu.Lock()
		defer mu.Unlock()
		next := maps.Clone(all)
		next[device] = profile
		b, err := json.Marshal(next)
		if err != nil {
			return err
		}
		if err := s.store.Do(func(tx *store.Tx) error { return tx.SetMeta(metaProfiles, b) }); err != nil {
			return err
		}
		all = next
		return nil
	}, nil
}

// profiles are those that a gateway serves: as the settings say, or, of the one gateway of Hermes on this machine, as it wrote down itself.
func (s *Server) profiles(gateway string) []string {
	for _, g := range s.cfg.Gateways {
		if g.ID == gateway && len(g.Profiles) > 0 {
			return g.Profiles
		}
	}
	if !s.cfg.HermesHomeExists || len(s.cfg.Gateways) > 1 {
		return nil
	}
	text, _, err := asowner.ReadFile(filepath.Join(s.cfg.HermesHome, "gateway_state.json"), 1<<20)
	if err != nil {
		return nil // no gateway was ever started there, or it is of another account
	}
	var state struct {
		Served []string `json:"served_profiles"`
	}
	if json.Unmarshal(text, &state) != nil || len(state.Served) > maxProfiles {
		return nil
	}
	return state.Served
}

// maxProfiles is more than a person chooses from.
const maxProfiles = 100

// gatewayFile holds the id and secret that were made for a gateway, in the form that goes into Hermes' .env.
const gatewayFile = "relay.env"

func (s *Server) gatewayPath() string { return filepath.Join(s.cfg.Data, gatewayFile) }

// OwnGateway returns the id and secret of a data folder for which none are set, and makes them the first time, as a server that
// starts on it does.
func OwnGateway(data string) (id, secret string, err error) {
	if err := asowner.Do(data, func() error { return os.MkdirAll(data, 0o700) }); err != nil {
		return "", "", err
	}
	return ownGateway(filepath.Join(data, gatewayFile))
}

// HasOwnGateway reports whether OwnGateway has made them already.
func HasOwnGateway(data string) bool {
	_, err := os.Stat(filepath.Join(data, gatewayFile))
	return err == nil
}

// ownGateway reads the id and secret that were made where none was set, and makes them the first time.
func ownGateway(path string) (id, secret string, err error) {
	text, _, err := asowner.ReadFile(path, 64<<10)
	if errors.Is(err, fs.ErrNotExist) {
		text = fmt.Appendf(nil, "GATEWAY_RELAY_ID=hermes-%s\nGATEWAY_RELAY_SECRET=%s\n", access.NewSecret()[:8], access.NewSecret())
		err = asowner.Do(path, func() error { return atomicfile.Replace(path, text, atomicfile.Options{}) })
	}
	if err != nil {
		return "", "", fmt.Errorf("the gateway's id and secret: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch name {
		case "GATEWAY_RELAY_ID":
			id = value
		case "GATEWAY_RELAY_SECRET":
			secret = value
		}
	}
	if id == "" || secret == "" {
		return "", "", fmt.Errorf("%s has no id or no secret: delete it to have new ones made", path)
	}
	return id, secret, nil
}

// remembered returns a value of the store, and makes it where there is none.
func (s *Server) remembered(ctx context.Context, key string, make func() []byte) ([]byte, error) {
	v, err := s.store.Meta(ctx, key)
	if err != nil || len(v) > 0 {
		return v, err
	}
	v = make()
	return v, s.store.Do(func(tx *store.Tx) error { return tx.SetMeta(key, v) })
}

// userOf is whose a device is.
func (s *Server) userOf(device string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	d, err := s.store.Device(ctx, device)
	if err != nil || d == nil {
		return ""
	}
	return d.Owner()
}
