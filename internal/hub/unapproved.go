package hub

import (
	"context"
	"errors"
	"time"

	"hermes-mobile/internal/audit"
	"hermes-mobile/internal/store"
)

// DropUnapproved removes devices that were added before a time and whose user has not been approved since, so that the holder of an app
// token cannot fill the store. Devices that are connected, busy or have received deliveries stay. Revoked devices stay too: otherwise
// their ids could connect again.
func (h *Hub) DropUnapproved(ctx context.Context, before time.Time) error {
	list, err := h.store.Unapproved(ctx, before)
	if err != nil {
		return err
	}
	var errs []error
	for _, d := range list {
		if d.Revoked {
			continue
		}
		err := h.ask(ctx, d.ID, func(s *session, b *batch, done func(error)) { s.dropUnapproved(b, before, done) })
		if !errors.Is(err, ErrUnknownDevice) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (s *session) dropUnapproved(b *batch, before time.Time, done func(error)) {
	h, d := s.hub, s.dev
	if h.approved(d.Owner()) {
		now := time.Now()
		b.do(func(tx *store.Tx) error { return tx.ApproveDevice(d.N, now) }, func(err error) {
			if err == nil {
				d.ApprovedAt = now
			}
			done(err)
		})
		return
	}
	if d.Revoked || !d.ApprovedAt.IsZero() || !d.CreatedAt.Before(before) || !s.idle() || s.shares() || h.isHome(s.id) {
		done(nil)
		return
	}
	delivered, err := h.store.HasDeliveries(h.ctx, d.N)
	if err != nil || delivered {
		done(err)
		return
	}
	b.do(func(tx *store.Tx) error {
		if err := tx.DropDevice(d.N); err != nil {
			return err
		}
		return tx.AddAudit(entryOf(audit.By{Actor: audit.ActorServer}, "device.dropped", s.id, "user "+d.Owner()))
	}, func(err error) {
		if err == nil {
			s.unload()
			h.log.Info("unapproved device removed", "device", s.id)
		}
		done(err)
	})
}

// unload resets an idle session to the state before it was loaded from the store.
func (s *session) unload() {
	s.loaded, s.dev, s.seq, s.count, s.held, s.trail = false, nil, 0, 0, heldBytes{}, store.Trail{}
	s.notes.Reset()
	s.cursor, s.written, s.part, s.behind = 0, 0, 0, false
	s.members, s.lead, s.loadedTo, s.taken, s.resumed, s.leadCards = nil, 0, 0, 0, 0, nil
}
