package push

import (
	"errors"
	"fmt"
	"time"
	_ "time/tzdata" // small machines lack the time zone database
)

// Quiet is a time of day in which nothing is sent. It may span midnight.
type Quiet struct {
	From string `json:"from"` // 22:00
	To   string `json:"to"`
	TZ   string `json:"tz"` // Europe/Berlin
}

const clock = "15:04"

// Check returns an error for malformed quiet hours.
func (q *Quiet) Check() error {
	switch {
	case !isClock(q.From):
		return errors.New(`"quiet.from" must be a time such as 22:00`)
	case !isClock(q.To):
		return errors.New(`"quiet.to" must be a time such as 07:00`)
	case q.From == q.To:
		return errors.New(`"quiet.from" and "quiet.to" are the same time: omit "quiet", or unregister`)
	}
	if _, err := zone(q.TZ); err != nil {
		return fmt.Errorf(`"quiet.tz" must be the name of a time zone such as Europe/Berlin: %q is unknown`, q.TZ)
	}
	return nil
}

func isClock(s string) bool {
	at, err := time.Parse(clock, s)
	return err == nil && at.Format(clock) == s // with both digits of the hour: times are compared as strings
}

// zone looks up a time zone. It refuses Local, which would be the server's.
func zone(name string) (*time.Location, error) {
	if name == "" || name == "Local" {
		return nil, errors.New("push: time zone missing or Local")
	}
	return time.LoadLocation(name)
}

// At reports whether nothing may be sent at a time. A nil Quiet is never quiet.
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
