package server

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hermes-mobile/internal/config"
	"hermes-mobile/internal/store"
)

// The profiles of a gateway are those of the settings, else those that the Hermes of this machine
// says it serves. What is in its file may be anything.
func TestProfilesOfAGateway(t *testing.T) {
	home := t.TempDir()
	state := filepath.Join(home, "gateway_state.json")
	for text, want := range map[string][]string{
		`{"pid":1,"served_profiles":["default","work"]}`: {"default", "work"},
		`{"pid":1}`:                     nil,
		`{"served_profiles":"default"}`: nil,
		`{"served_profiles":[1,2]}`:     nil,
		`{"served_profiles":["default"`: nil,
		``:                              nil,
		`[]`:                            nil,
		`{"served_profiles":["a"` + strings.Repeat(`,"a"`, maxProfiles) + `]}`:            nil,
		`{"served_profiles":["default","work"],"x":"` + strings.Repeat("x", 1<<20) + `"}`: nil,
	} {
		if err := os.WriteFile(state, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s := &agents{cfg: &config.Config{HermesHome: home, HermesHomeExists: true}}
		if got := s.profiles("gw"); !slices.Equal(got, want) {
			t.Errorf("%.80s: %q", text, got)
		}
	}
	if err := os.WriteFile(state, []byte(`{"served_profiles":["default","work"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	two := []config.Gateway{{ID: "home", Profiles: []string{"default", "family"}}, {ID: "vps"}}
	s := &agents{cfg: &config.Config{HermesHome: home, HermesHomeExists: true, Gateways: two}}
	if got := s.profiles("home"); !slices.Equal(got, []string{"default", "family"}) {
		t.Errorf("by the settings: %q", got)
	}
	if got := s.profiles("vps"); got != nil {
		t.Errorf("whose Hermes is not known: %q", got)
	}
	s.cfg.Gateways = nil
	if err := os.Remove(state); err != nil {
		t.Fatal(err)
	}
	if got := s.profiles("gw"); got != nil {
		t.Errorf("without a file: %q", got)
	}
}

// A choice is there after a restart, one that could not be stored is not, and what cannot be read
// is left out.
func TestChosenProfilesAreKept(t *testing.T) {
	dir := t.TempDir()
	open := func() (*store.Store, *agents) {
		t.Helper()
		db, err := store.Open(context.Background(), dir)
		if err != nil {
			t.Fatal(err)
		}
		return db, &agents{store: db, log: slog.New(slog.DiscardHandler)}
	}
	db, s := open()
	_, choose, err := s.chosenProfiles(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for device, profile := range map[string]string{"tel-1": "work", "tab-1": "default"} {
		if err := choose(context.Background(), device, profile); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := choose(context.Background(), "tel-2", "work"); err == nil {
		t.Error("a choice without a store is taken")
	}
	db, s = open()
	chosen, _, err := s.chosenProfiles(context.Background())
	if err != nil || len(chosen) != 2 || chosen["tel-1"] != "work" || chosen["tab-1"] != "default" {
		t.Errorf("%v %v", chosen, err)
	}
	if err := db.Do(func(tx *store.Tx) error { return tx.SetMeta(metaProfiles, []byte("no JSON")) }); err != nil {
		t.Fatal(err)
	}
	if chosen, _, err := s.chosenProfiles(context.Background()); err != nil || len(chosen) != 0 {
		t.Errorf("%v %v", chosen, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
