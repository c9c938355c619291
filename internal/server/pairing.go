package server

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"hermes-mobile/internal/access"
	"hermes-mobile/internal/config"
	"hermes-mobile/internal/hub"
)

// OpenPairing opens the pairing files: Hermes' own if there is a Hermes home, else files of the
// same format in the data folder.
func OpenPairing(cfg *config.Config) (*access.Pairing, error) {
	return access.OpenPairing(pairingDir(cfg), "mobile")
}

func pairingDir(cfg *config.Config) string {
	if cfg.HermesHomeExists {
		return access.PairingDir(cfg.HermesHome)
	}
	return filepath.Join(cfg.Data, "pairing")
}

// CheckPairing returns why the pairing files can't be read. It creates nothing, and missing files
// are no error.
func CheckPairing(cfg *config.Config) error {
	if _, err := os.Stat(pairingDir(cfg)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	p, err := OpenPairing(cfg)
	if err != nil {
		return err
	}
	return p.Check()
}

// ListPairing returns the pending requests and the approvals.
func ListPairing(p *access.Pairing) (PairingList, error) {
	pending, approved, err := p.List()
	if pending == nil {
		pending = []access.Pending{}
	}
	if approved == nil {
		approved = []access.User{}
	}
	return PairingList{pending, approved}, err
}

// pairingChanged returns a function that applies approvals and revocations to live connections,
// whoever made them.
func pairingChanged(ctx context.Context, h *hub.Hub, log *slog.Logger) func(access.Change) {
	return func(c access.Change) {
		if c.Err != nil {
			log.Error("cannot read the pairing files, no user counts as approved until it works", "err", c.Err)
			return
		}
		for _, user := range c.Approved {
			if err := h.Owner().SawApproval(ctx, user); err != nil {
				log.Error("approval not applied", "user", user, "err", err)
			}
		}
		for _, user := range c.Revoked {
			if err := h.Owner().SawRevocation(ctx, user); err != nil {
				log.Error("revocation not applied", "user", user, "err", err)
			}
		}
	}
}

// named returns the devices, and users as user:ID, that have a gateway of their own.
func named(cfg *config.Config) access.List {
	list := access.List{}
	for _, g := range cfg.Gateways {
		for _, d := range g.Devices {
			list[d] = struct{}{}
		}
	}
	return list
}

func set(ids []string) access.List { return access.ParseList(strings.Join(ids, ",")) }
