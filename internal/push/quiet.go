package push

import (
	"errors"
	"fmt"
	"time"
	_ "time/tzdata" // small machines have no table of time zones
)

// Quiet is a part of each day in which nothing is sent. It may go over midnight.
type Quiet struct {
	From string `json:"from"` // 22:00
	To   string `json:"to"`
	TZ   string `json:"tz"` // Europe/Berlin
}

const clock = "15:04"

// Check says what is wrong with quiet hours.
func (q *Quiet) Check() error {
	switch {
	case !isClock(q.From):
		return errors.New(`"quiet.from" must be a time such as 22:00`)
	case !isClock(q.To):
		return errors.New(`"quiet.to" must be a time such as 07:00`)
	case q.From == q.To:
		return errors.New(`"quiet.from" and "quiet.to" are the same time: leave "quiet" away, or unregister`)
	}
	if _, err := zone(q.TZ); err != nil {
		return fmt.Errorf(`"quiet.tz" must be the name of a time zone such as Europe/Berlin, and there is none called %q`, q.TZ)
	}
	return nil
}

func isClock(s string) bool {
	at, err := time.Parse(clock, s)
	return err == nil && at.Format(clock) == s // with both digits of the hour: times are compared as they are written
}

// zone looks a time zone up. Local is refused: it would be the server's.
func zone(name string) (*time.Location, error) {
	if name == "" || name == "Local" {
		return nil, errors.New("no time zone")
	}
	return time.LoadLocation(name)
}

// At reports whether nothing may be sent at a time. Nil is never quiet.
func (q *Quiet) At(now time.Time) bool {
	if q == nil {
		return false
	}
	in, err := zone(q.TZ)
	if err != nil {
		return false
	}
	at := now.In(in).Format(clock)
	if q.From <= q.To {
		return q.From <= at && at < q.To
	}
	return at >= q.From || at < q.To
}
