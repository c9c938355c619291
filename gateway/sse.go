package gateway

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"time"
)

// DefaultEventLimit is the most bytes of one event where no other limit is set. A frame of a turn may hold an image in
// its text: 7 MB occur (api-facts §4.1).
const DefaultEventLimit = 16 << 20

var byteOrderMark = []byte("\uFEFF")

// lineExtra is what a line may be longer than the limit: the name of its field.
const lineExtra = 64

// ServerEvent is one event of a stream of server-sent events.
type ServerEvent struct {
	Name string // of the "event" field; empty where there is none, which the standard calls "message"
	ID   string // of the "id" field of this event; empty where there is none
	Data []byte // without the last line end; valid until the next call of Next
}

// EventReader reads a stream of server-sent events (WHATWG HTML §9.2.6): lines end with LF, CR or CRLF, a byte-order mark
// at the beginning is no part of the stream, an event without data is none, and one that is not closed by an empty line
// when the stream ends is dropped. Bytes are never changed, so text that is split anywhere arrives whole.
//
// It takes no more memory than the longest event. It may not be used concurrently.
type EventReader struct {
	// OnComment, where set, is called with each comment: a gateway that is busy sends nothing else for minutes.
	// The text is valid during the call only.
	OnComment func(text []byte)

	source io.Reader
	limit  int
	err    error // of the source, once what it gave before is used up

	buf        []byte
	start, end int // what is not yet used of buf
	begun      bool
	skipLF     bool // the last line ended with CR: a LF that follows belongs to it

	data   []byte
	lines  int
	name   string
	known  string // the name before, which most events share
	id     []byte
	lastID []byte
	retry  time.Duration
}

// NewEventReader reads events of up to limit bytes of data from r; a limit of 0 or less is [DefaultEventLimit].
func NewEventReader(r io.Reader, limit int) *EventReader {
	if limit <= 0 {
		limit = DefaultEventLimit
	}
	return &EventReader{source: r, limit: limit, buf: make([]byte, 4096)}
}

// LastEventID is the last id that the stream gave, for the header Last-Event-ID of a reconnect.
func (r *EventReader) LastEventID() string { return string(r.lastID) }

// Retry is how long the stream asks to wait before a reconnect; 0 where it does not say.
func (r *EventReader) Retry() time.Duration { return r.retry }

// Next returns the next event. At the end of the stream the error is io.EOF, or that of the source; an event or line over
// the limit is [ErrTooBig], and the stream cannot be read on.
func (r *EventReader) Next() (ServerEvent, error) {
	ev, err := r.next()
	if err == nil {
		ev.ID = string(r.id)
	}
	return ev, err
}

// next is Next without the string of the id, which stays in r.id.
func (r *EventReader) next() (ServerEvent, error) {
	r.data, r.lines, r.name, r.id = r.data[:0], 0, "", r.id[:0]
	for {
		line, err := r.line()
		if err != nil {
			return ServerEvent{}, err
		}
		if len(line) > 0 {
			if err := r.field(line); err != nil {
				return ServerEvent{}, err
			}
			continue
		}
		if r.lines > 0 {
			return ServerEvent{Name: r.name, Data: r.data}, nil
		}
		r.name, r.id = "", r.id[:0]
	}
}

// field takes one line that is not empty.
func (r *EventReader) field(line []byte) error {
	name, value, _ := bytes.Cut(line, []byte{':'})
	if len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	switch string(name) {
	case "":
		if r.OnComment != nil {
			r.OnComment(value)
		}
	case "data":
		if r.lines > 0 {
			r.data = append(r.data, '\n')
		}
		if len(r.data)+len(value) > r.limit {
			return r.stop(fmt.Errorf("an event of the stream: %w", ErrTooBig))
		}
		r.data = append(r.data, value...)
		r.lines++
	case "event":
		if string(value) != r.known {
			r.known = string(value)
		}
		r.name = r.known
	case "id":
		if bytes.IndexByte(value, 0) < 0 {
			r.id = append(r.id[:0], value...)
			r.lastID = append(r.lastID[:0], value...)
		}
	case "retry":
		if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
			r.retry = time.Duration(ms) * time.Millisecond
		}
	}
	return nil
}

// stop makes err what every later call gets.
func (r *EventReader) stop(err error) error {
	r.err, r.start, r.end = err, 0, 0
	return err
}

// line returns the next line without its end. It never waits for a byte that it does not need: a CR ends a line at once.
func (r *EventReader) line() ([]byte, error) {
	seen := 0 // bytes after start that hold no line end
	for {
		if r.start < r.end && r.skipLF {
			r.skipLF = false
			if r.buf[r.start] == '\n' {
				r.start++
			}
		}
		if !r.begun && r.end-r.start >= 3 {
			r.begun = true
			if bytes.HasPrefix(r.buf[r.start:r.end], byteOrderMark) {
				r.start += len(byteOrderMark)
			}
		}
		if r.begun || !bytes.HasPrefix(byteOrderMark, r.buf[r.start:r.end]) {
			if at := lineEnd(r.buf[r.start+seen : r.end]); at >= 0 {
				line := r.buf[r.start : r.start+seen+at]
				r.begun, r.skipLF = true, r.buf[r.start+seen+at] == '\r'
				r.start += seen + at + 1
				return line, nil
			}
			seen = r.end - r.start
		}
		if seen > r.limit+lineExtra {
			return nil, r.stop(fmt.Errorf("a line of the stream: %w", ErrTooBig))
		}
		if r.err != nil {
			return nil, r.err
		}
		r.fill()
	}
}

// lineEnd is where the first CR or LF is.
func lineEnd(b []byte) int {
	at := bytes.IndexByte(b, '\n')
	if at >= 0 {
		b = b[:at]
	}
	if cr := bytes.IndexByte(b, '\r'); cr >= 0 {
		return cr
	}
	return at
}

// fill reads once from the source.
func (r *EventReader) fill() {
	if r.start > 0 {
		r.end = copy(r.buf, r.buf[r.start:r.end])
		r.start = 0
	}
	if r.end == len(r.buf) {
		r.buf = append(r.buf, make([]byte, min(len(r.buf), r.limit+2*lineExtra))...)
	}
	for range 100 { // a source that gives nothing for ever is broken
		n, err := r.source.Read(r.buf[r.end:])
		r.end += n
		if err != nil {
			r.err = err
		}
		if n > 0 || err != nil {
			return
		}
	}
	r.err = io.ErrNoProgress
}
