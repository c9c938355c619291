package hub

// outboxBytes bounds the bodies that wait for one device.
const outboxBytes = 64 << 20

// heldBytes counts the bytes of a device's outbox. Rows are not asked for their sizes one by one: what a device has
// acknowledged in part stays counted, and only when that reaches the bound the store is asked what is true.
type heldBytes struct {
	bytes   int64 // at least what the outbox holds, with what is being stored
	storing int64 // the part of it that is not stored yet
	known   int64 // Hub.sweeps when bytes was exact; negative: it may be too much
	cut     int64 // entries up to here are being dropped

	// unsent is what unsentFits found, and holds while the others are what they were then: whoever delivers to a device whose
	// outbox is full must not have it counted each time.
	unsent, unsentSeq, unsentAfter, unsentSweeps int64
}

// tooMuch marks a count that may be too high.
const tooMuch = -1

// stored notes that an entry of a size was stored, or was not. freed are the bytes that were to be dropped for it.
func (h *heldBytes) stored(size, freed int64, err error) {
	h.storing = max(h.storing-size, 0)
	if err != nil { // what was to be dropped is there still
		h.bytes, h.known, h.cut = max(h.bytes-size, 0)+freed, tooMuch, 0
	}
}

// forgot notes that entries were dropped, all of them or some.
func (h *heldBytes) forgot(all bool) {
	if all {
		h.bytes = h.storing
		return
	}
	h.known = tooMuch
}

// cutTo notes that entries of unknown sizes are being dropped.
func (h *heldBytes) cutTo(seq int64) { h.cut, h.known = max(h.cut, seq), tooMuch }

// makeRoom counts an entry of a size, and returns up to where older ones must go so that it fits, 0 if it does, and how
// many bytes that frees. The oldest go first, as with the bound by entries.
func (s *session) makeRoom(size int64) (drop, freed int64) {
	h := &s.held
	defer func() {
		h.bytes += size - freed
		h.storing += size
	}()
	if s.heldFits(size) {
		return 0, 0
	}
	upTo, freed, err := s.hub.store.OutboxOldest(s.hub.ctx, s.dev.N, max(s.dev.Floor, h.cut), h.bytes+size-s.hub.OutboxBytes)
	if err != nil { // it is stored all the same, and the next one makes room for both
		s.hub.storeFailed("look which entries are the oldest", err)
		return 0, 0
	}
	h.cut = max(h.cut, upTo)
	return upTo, freed
}

// heldFits reports whether an entry of a size fits into the outbox without dropping others.
func (s *session) heldFits(size int64) bool {
	h, most := &s.held, s.hub.OutboxBytes
	if h.bytes+size <= most {
		return true
	}
	if sweeps := s.hub.sweeps.Load(); h.known != sweeps {
		stored, err := s.hub.store.OutboxBytes(s.hub.ctx, s.dev.N, max(s.dev.Floor, h.cut))
		if err != nil {
			s.hub.storeFailed("count the bytes of an outbox", err)
			return false
		}
		h.bytes, h.known = stored+h.storing, sweeps
	}
	return h.bytes+size <= most
}

// unsentFits reports whether an entry of a size fits beside what no connection was sent yet.
func (s *session) unsentFits(size int64) bool {
	if s.heldFits(size) {
		return true
	}
	h, after, sweeps := &s.held, max(s.dev.Floor, s.dev.Sent), s.hub.sweeps.Load()
	if h.unsentSeq != s.seq || h.unsentAfter != after || h.unsentSweeps != sweeps {
		unsent, err := s.hub.store.OutboxBytes(s.hub.ctx, s.dev.N, after)
		if err != nil {
			s.hub.storeFailed("count the bytes of an outbox", err)
			return false
		}
		h.unsent, h.unsentSeq, h.unsentAfter, h.unsentSweeps = unsent, s.seq, after, sweeps
	}
	return h.unsent+size <= s.hub.OutboxBytes
}

// Swept tells the hub that a sweep of the store begins or has ended: outboxes may hold less than their sessions count.
func (h *Hub) Swept() { h.sweeps.Add(1) }
