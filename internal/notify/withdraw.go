package notify

import (
	"slices"
	"time"

	"hermes-mobile/internal/store"
)

// Done notes that messages, files or cards need no attention any more.
func (d *Device) Done(ids ...string) {
	if d.state == nil {
		return
	}
	for _, n := range d.shown {
		if slices.Contains(ids, n.ID) && !slices.Contains(d.over, n.ID) {
			d.over = append(d.over, n.ID)
		}
	}
	d.UpdateShown()
}

// UpdateShown arms the withdrawal of notifications that need no attention any more. What else is
// over by then is withdrawn with them.
func (d *Device) UpdateShown() {
	if d.state == nil || len(d.shown) == 0 || !d.wanted() {
		return
	}
	if floor := d.host.State().Floor; slices.ContainsFunc(d.shown, func(n store.Notice) bool { return d.isOver(n, floor) }) {
		d.start(&d.withdrawal, d.service.Wait/3, d.withdrawDue)
	}
}

// isOver reports whether a notification needs no attention any more.
func (d *Device) isOver(n store.Notice, floor int64) bool {
	return n.Seq <= floor || slices.Contains(d.over, n.ID)
}

func (d *Device) withdrawDue(b Batch) {
	d.withdrawal = nil
	b.Flush()
	if !d.wanted() {
		return
	}
	st := d.host.State()
	var over []store.Notice
	for _, n := range d.shown {
		if d.isOver(n, st.Floor) {
			over = append(over, n)
		}
	}
	if len(over) == 0 {
		return
	}
	own := d.state
	b.Do(func(tx *store.Tx) error {
		for _, n := range over {
			if err := tx.Notices().Withdraw(st.N, n.Seq); err != nil {
				return err
			}
		}
		return tx.Notices().Drop(st.N)
	}, func(err error) {
		if err != nil {
			d.UpdateShown()
			return
		}
		ids := make([]string, 0, len(over))
		for _, n := range over {
			ids = append(ids, n.ID)
		}
		own.shown = slices.DeleteFunc(own.shown, func(n store.Notice) bool { return slices.Contains(over, n) })
		own.over = slices.DeleteFunc(own.over, func(id string) bool { return slices.Contains(ids, id) })
		for _, t := range d.loud(time.Now()) {
			if t.Encrypted() { // an endpoint that cannot be told what to withdraw would only ring again
				d.service.send(d.host.State().ID, t, d.composeWithdrawal(ids, len(own.shown) == 0))
			}
		}
	})
}
