package server

import (
	"context"
	"time"

	"hermes-mobile/internal/quota"
)

const (
	// deviceShare and tokenShare are the parts of the data folder, 1 in so many, that one device, and all devices of one app token
	// together, may fill in a day.
	deviceShare = 10
	tokenShare  = 2
	// pressed is the part of the room for files, in percent, from which on files that nothing refers to go sooner.
	pressed = 75
)

// bound puts a budget over everything that is stored below the data folder.
func (s *Server) bound(ctx context.Context) error {
	counted, err := s.files.Count(ctx)
	if err != nil {
		return err
	}
	limit := s.cfg.MaxData
	if limit == 0 {
		limit = quota.Limit(s.cfg.Data, counted+s.store.Size())
	}
	s.budget = quota.NewBudget(quota.Options{Limit: limit, Database: s.databaseSize,
		Space: func() (free, total uint64, ok bool) { return quota.Space(s.cfg.Data) }})
	s.files.Bound(s.budget, counted)
	s.metrics.Storage(func() (used, limit int64) { u := s.budget.Use(); return u.Used(), u.Limit })
	if u := s.budget.Use(); u.Used() > u.FilesLimit {
		s.log.Warn("new files are refused, the storage limit is reached", "used", u.Used(), "limit", u.Limit)
	}
	return nil
}

// databaseSize is how large the database is, and how much of that is free within.
func (s *Server) databaseSize() (size, reusable int64) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	reusable, err := s.store.Reusable(ctx)
	if err != nil {
		reusable = 0 // nothing is promised then
	}
	return s.store.Size(), reusable
}

// shares are the bytes that one device, and the devices of one app token together, may store in a day.
func (s *Server) shares() (device, token int64) {
	limit := s.budget.Use().Limit
	device = s.cfg.MaxDeviceData
	if device == 0 {
		device = max(limit/deviceShare, quota.Cost(s.cfg.MaxMediaBytes))
	}
	return device, max(limit/tokenShare, device)
}

// crowded reports whether little of the room for files is left.
func (s *Server) crowded() bool {
	u := s.budget.Use()
	return u.Used() > u.FilesLimit/100*pressed
}
