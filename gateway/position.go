package gateway

import (
	"fmt"
	"strconv"
	"strings"
)

// position is a place in the events of a run: the number of the last event, and the state of the
// text there.
type position struct {
	seq     int64 // -1 before the first event
	segment int
	has     bool
	tool    bool
}

// parsePosition parses the result of String, or a bare number.
func parsePosition(s string) (position, error) {
	if s == "" {
		return position{seq: -1}, nil
	}
	var p position
	number, rest, _ := strings.Cut(s, ".")
	if _, err := fmt.Sscanf(number, "%d", &p.seq); err != nil || p.seq < 0 {
		return p, fmt.Errorf("gateway: malformed stream position %q: use Meta.Position of an event", s)
	}
	if rest != "" {
		if _, err := fmt.Sscanf(rest, "%d", &p.segment); err != nil || p.segment < 0 || p.segment > 1<<20 {
			return p, fmt.Errorf("gateway: malformed stream position %q: use Meta.Position of an event", s)
		}
		p.has, p.tool = strings.Contains(rest, "t"), strings.Contains(rest, "c")
	}
	return p, nil
}

// advance moves to the event with this ID. fresh is false if the event was seen before. missed is
// true if events before it are missing. A stream without IDs always advances.
func (p *position) advance(id []byte) (fresh, missed bool) {
	if len(id) == 0 {
		return true, false
	}
	seq, err := strconv.ParseInt(string(id), 10, 64)
	if err != nil {
		return true, false
	}
	if seq <= p.seq {
		return false, false
	}
	missed = seq > p.seq+1
	p.seq = seq
	return true, missed
}

// number returns the number of the last event, empty before the first.
func (p *position) number() string {
	if p.seq < 0 {
		return ""
	}
	return fmt.Sprint(p.seq)
}

// String returns the position with the state of the text, so that a resumed turn continues the
// numbering of segments.
func (p *position) String(d turnDecoder) string {
	run, ok := d.(*runDecoder)
	if !ok || p.seq < 0 {
		return ""
	}
	var room [48]byte
	b := strconv.AppendInt(room[:0], p.seq, 10)
	b = append(b, '.')
	b = strconv.AppendInt(b, int64(run.text.current), 10)
	if run.text.has {
		b = append(b, 't')
	}
	if run.text.tool {
		b = append(b, 'c')
	}
	return string(b)
}
