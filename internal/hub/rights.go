package hub

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/audit"
	"hermes-mobile/internal/store"
)

// Rights are what the owner lets a device do, in whatever conversation it takes part.
type Rights = store.Rights

// RightNames are the names of the rights, in the order in which they are shown.
var RightNames = []string{"write", "answer", "call"}

// Right returns the right of a name, nil if there is none.
func Right(r *Rights, name string) *bool {
	switch name {
	case "write":
		return &r.Write
	case "answer":
		return &r.Answer
	case "call":
		return &r.Call
	}
	return nil
}

// SetRights changes the given rights of a device, also for a live connection, and returns all of its rights.
func (o *Owner) SetRights(ctx context.Context, id string, change map[string]bool) (Rights, error) {
	for name := range change {
		if Right(&Rights{}, name) == nil {
			return Rights{}, fmt.Errorf("there is no right %q: the rights are %s", name, strings.Join(RightNames, ", "))
		}
	}
	var now Rights
	by := audit.From(ctx)
	err := o.ask(ctx, id, func(d *device, b *batch, done func(error)) {
		at := time.Now()
		next := d.dev.Rights
		for name, on := range change {
			*Right(&next, name) = on
		}
		now = next
		if next == d.dev.Rights {
			done(nil)
			return
		}
		b.do(func(tx *store.Tx) error {
			if err := tx.SetRights(d.dev.N, next); err != nil {
				return err
			}
			if err := tx.AddAudit(entryOf(by, "device.rights", d.id, rightsChanged(d.dev.Rights, next))); err != nil {
				return err
			}
			given := rightsGiven(d.dev.Rights, next)
			if len(given) == 0 || !d.dev.Bound() {
				return nil
			}
			if slices.Contains(given, "answer") {
				if err := o.hub.restrain(tx, d.dev.N, at); err != nil {
					return err
				}
			}
			n := noticeOf(d.dev, frame.RightsChanged, at)
			n.Rights = given
			return o.hub.announce(tx, n, d.dev.N)
		}, func(err error) {
			if err == nil {
				d.probation.reload()
				d.entitle(next)
				o.hub.tell(d.dev.UserID, d.id)
			}
			done(err)
		})
	})
	if err != nil {
		return Rights{}, err
	}
	return now, nil
}

// rightsGiven returns the names of the rights that are new.
func rightsGiven(from, to Rights) (list []string) {
	for _, name := range RightNames {
		if *Right(&to, name) && !*Right(&from, name) {
			list = append(list, name)
		}
	}
	return list
}

// rightsChanged returns how rights changed, in the form that the command devices rights takes.
func rightsChanged(from, to Rights) string {
	var words []string
	for _, name := range RightNames {
		switch before, after := *Right(&from, name), *Right(&to, name); {
		case after && !before:
			words = append(words, "+"+name)
		case before && !after:
			words = append(words, "-"+name)
		}
	}
	return strings.Join(words, " ")
}
