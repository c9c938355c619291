package hub

// heldBytes counts the bytes of a device's outbox. The store is not asked for the size of each row:
// an entry that the device has acknowledged stays counted, and only when the count reaches the
// limit the store is asked for the true one.
type heldBytes struct {
	bytes   int64 // at least what the outbox holds, with entries that are being stored
	storing int64 // the part of it that is not stored yet
	known   int64 // services.sweeps when bytes was exact; negative: it may be too high
	cut     int64 // entries up to here are being dropped

	unsent *unsentBytes // nil: not counted yet
}

// unsentBytes is the result of unsentFits. bytes holds while the others are the same: a sender that
// delivers to a device whose outbox is full must not have it counted each time.
type unsentBytes struct{ bytes, seq, after, sweeps int64 }

// tooHigh marks a count that may be too high.
const tooHigh = -1

// stored notes that an entry of a size was stored, or was not. freed are the bytes that were
// dropped for it.
func (h *heldBytes) stored(size, freed int64, err error) {
	h.storing = max(h.storing-size, 0)
	if err != nil { // the transaction failed, so the entries to drop are still there
		h.bytes, h.known, h.cut = max(h.bytes-size, 0)+freed, tooHigh, 0
	}
}

// forgot notes that entries were dropped, all of them or some.
func (h *heldBytes) forgot(all bool) {
	if all {
		h.bytes = h.storing
		return
	}
	h.known = tooHigh
}

// cutTo notes that entries of unknown sizes are being dropped.
func (h *heldBytes) cutTo(seq int64) { h.cut, h.known = max(h.cut, seq), tooHigh }

// makeRoom counts an entry of a size. It returns the seq up to which older entries must go so that
// it fits, 0 if it fits, and how many bytes that frees. The oldest go first, as with the limit by
// entries.
func (o *outbox) makeRoom(size int64) (drop, freed int64) {
	h := &o.held
	defer func() {
		h.bytes += size - freed
		h.storing += size
	}()
	if o.fits(size) {
		return 0, 0
	}
	upTo, freed, err := o.store.OutboxOldest(o.ctx, o.dev.N, max(o.dev.Floor, h.cut), h.bytes+size-o.OutboxBytes)
	if err != nil { // it is stored all the same, and the next entry makes room for both
		o.storeFailed("find the oldest entries of an outbox", err)
		return 0, 0
	}
	h.cut = max(h.cut, upTo)
	return upTo, freed
}

// fits reports whether an entry of a size fits into the outbox without dropping others.
func (o *outbox) fits(size int64) bool {
	h, most := &o.held, o.OutboxBytes
	if h.bytes+size <= most {
		return true
	}
	if sweeps := o.sweeps.Load(); h.known != sweeps {
		stored, err := o.store.OutboxBytes(o.ctx, o.dev.N, max(o.dev.Floor, h.cut))
		if err != nil {
			o.storeFailed("count the bytes of an outbox", err)
			return false
		}
		h.bytes, h.known = stored+h.storing, sweeps
	}
	return h.bytes+size <= most
}

// unsentFits reports whether an entry of a size fits beside the entries that no connection was
// sent.
func (o *outbox) unsentFits(size int64) bool {
	if o.fits(size) {
		return true
	}
	after, sweeps := max(o.dev.Floor, o.dev.Sent), o.sweeps.Load()
	h := o.held.unsent
	if h == nil || h.seq != o.seq || h.after != after || h.sweeps != sweeps {
		bytes, err := o.store.OutboxBytes(o.ctx, o.dev.N, after)
		if err != nil {
			o.storeFailed("count the bytes of an outbox", err)
			return false
		}
		h = &unsentBytes{bytes, o.seq, after, sweeps}
		o.held.unsent = h
	}
	return h.bytes+size <= o.OutboxBytes
}
