package relay

import (
	"context"
	"log/slog"
	"time"
	"unicode/utf8"
)

// logEvery is how often the log takes one kind of message that a gateway can cause at will.
const logEvery = time.Second

// rateLog logs messages that a gateway can cause at will, which must not fill the disk. Each kind is
// logged once a second at most, with the number of those left out. The lock of the gateway must be
// held.
type rateLog struct {
	log  *slog.Logger
	now  func() time.Time
	kind map[string]*logged // by message
}

type logged struct {
	at      time.Time
	leftOut int
}

func newRateLog(log *slog.Logger, now func() time.Time) *rateLog {
	return &rateLog{log: log, now: now, kind: map[string]*logged{}}
}

// write logs a message. The text names its kind, so it must be a constant.
func (r *rateLog) write(level slog.Level, text string, args ...any) {
	k := r.kind[text]
	if k == nil {
		k = &logged{}
		r.kind[text] = k
	}
	now := r.now()
	if since := now.Sub(k.at); since >= 0 && since < logEvery {
		k.leftOut++
		return
	}
	if k.leftOut > 0 {
		args = append(args, "left_out", k.leftOut)
	}
	k.at, k.leftOut = now, 0
	r.log.Log(context.Background(), level, text, args...)
}

// maxLoggedName bounds a name that a gateway chose, in the log.
const maxLoggedName = 128

func clip(name string) string {
	if len(name) <= maxLoggedName {
		return name
	}
	n := maxLoggedName
	for n > 0 && !utf8.RuneStart(name[n]) {
		n--
	}
	return name[:n] + "…"
}
