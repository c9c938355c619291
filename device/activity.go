package device

import "time"

// activityLocked sets the indicator and the avatar; both go off by themselves when no sign of work follows.
func (d *Device) activityLocked(a Activity) {
	if a != d.activity {
		d.activity = a
		d.in.push(queued{ev: a, key: "activity"})
	}
	d.leaseLocked()
}

// sign notes a sign of work: a piece of a reply, a tool, a card.
func (d *Device) sign() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.leaseLocked()
}

func (d *Device) leaseLocked() {
	if d.lease != nil {
		d.lease.Stop()
		d.lease = nil
	}
	if !d.activity.Typing && (d.activity.Avatar == "idle" || d.activity.Avatar == "") {
		return
	}
	var t *time.Timer
	t = time.AfterFunc(d.cfg.TypingLease, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.lease == t { // a sign that came at the same moment has made another
			d.activityLocked(Activity{Avatar: "idle"})
		}
	})
	d.lease = t
}

// Activity returns what the indicator shows now.
func (d *Device) Activity() Activity {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.activity
}
