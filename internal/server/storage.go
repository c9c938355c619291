package server

import (
	"context"
	"log/slog"
	"time"

	"hermes-mobile/internal/config"
	"hermes-mobile/internal/media"
	"hermes-mobile/internal/metrics"
	"hermes-mobile/internal/quota"
	"hermes-mobile/internal/store"
)

const (
	// deviceShare and tokenShare are the fractions of the data folder, 1 in so many, that one
	// device, and all devices of one app token together, may fill in a day.
	deviceShare = 10
	tokenShare  = 2
	// pressed is the percentage of the room for files beyond which unreferenced files expire
	// sooner.
	pressed = 75
)

// storage bounds what is stored below the data folder.
type storage struct {
	cfg    *config.Config
	store  *store.Store
	budget *quota.Budget
}

// newStorage measures the data folder and puts it under a budget.
func newStorage(ctx context.Context, cfg *config.Config, s *store.Store, files *media.Store, m *metrics.Set, log *slog.Logger) (*storage, error) {
	counted, err := files.Count(ctx)
	if err != nil {
		return nil, err
	}
	limit := cfg.MaxData
	if limit == 0 {
		limit = quota.Limit(cfg.Data, counted+s.Size())
	}
	st := &storage{cfg: cfg, store: s}
	st.budget = quota.NewBudget(quota.Options{Limit: limit, Database: st.databaseSize,
		Space: func() (free, total uint64, ok bool) { return quota.Space(cfg.Data) }})
	files.Bound(st.budget, counted)
	m.Storage(func() (used, limit int64) { u := st.budget.Use(); return u.Used(), u.Limit })
	if u := st.budget.Use(); u.Used() > u.FilesLimit {
		log.Warn("storage limit reached, new files are rejected", "used", u.Used(), "limit", u.Limit)
	}
	return st, nil
}

// databaseSize returns the size of the database, and how much of it is free inside.
func (s *storage) databaseSize() (size, reusable int64) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	reusable, err := s.store.Reusable(ctx)
	if err != nil {
		reusable = 0 // assume that nothing is free
	}
	return s.store.Size(), reusable
}

// shares returns how many bytes one device, and all devices of one app token together, may store in
// a day.
func (s *storage) shares() (device, token int64) {
	limit := s.budget.Use().Limit
	device = s.cfg.MaxDeviceData
	if device == 0 {
		device = max(limit/deviceShare, quota.Cost(s.cfg.MaxMediaBytes))
	}
	return device, max(limit/tokenShare, device)
}

// crowded reports whether little room for files is left.
func (s *storage) crowded() bool {
	u := s.budget.Use()
	return u.Used() > u.FilesLimit/100*pressed
}
