package relay

import (
	"context"
	"log/slog"
	"time"
	"unicode/utf8"
)

// notedEvery is how often a line that a gateway can bring about as often as it likes gets into the log.
const notedEvery = time.Second

// noted is one kind of such lines.
type noted struct {
	at   time.Time // when it was last written
	left int       // out since
}

// note logs what a gateway can bring about as often as it likes, which must not fill the disk: each line once a second at
// most, with how many were left out. The text names the line, so it must be a constant. Locked.
func (g *gateway) note(level slog.Level, text string, args ...any) {
	n := g.noted[text]
	if n == nil {
		n = &noted{}
		g.noted[text] = n
	}
	now := g.a.now()
	if since := now.Sub(n.at); since >= 0 && since < notedEvery {
		n.left++
		return
	}
	if n.left > 0 {
		args = append(args, "left_out", n.left)
	}
	n.at, n.left = now, 0
	g.log.Log(context.Background(), level, text, args...)
}

// maxNamed is how much of a name that a gateway gave stands in the log.
const maxNamed = 128

func clip(name string) string {
	if len(name) <= maxNamed {
		return name
	}
	n := maxNamed
	for n > 0 && !utf8.RuneStart(name[n]) {
		n--
	}
	return name[:n] + "…"
}
