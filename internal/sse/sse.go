// Package sse reads streams of server-sent events, as WHATWG HTML §9.2.6 defines them.
//
// It imports the standard library only.
package sse

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"time"
)

// ErrTooLarge means that an event or a line of the stream exceeds the limit of the [Reader].
var ErrTooLarge = errors.New("event exceeds the size limit")

var byteOrderMark = []byte("\uFEFF")

// lineExtra is how many bytes a line may exceed the limit by: the name of its field.
const lineExtra = 64

// Event is one event of a stream. Its ID and Data are valid until the next call of [Reader.Next].
type Event struct {
	Name string // value of the "event" field; empty without that field, which the standard calls "message"
	ID   []byte // value of the "id" field of this event; empty without that field
	Data []byte // without the last line break
}

// Reader reads the events of a stream. Lines end with LF, CR or CRLF. A byte-order mark at the
// beginning is skipped. An event without data is skipped, and so is an event that no empty line
// closes before the stream ends. The reader never changes a byte, so text that arrives in pieces
// stays whole.
//
// A Reader holds about as much memory as the largest event. It must not be used concurrently.
type Reader struct {
	// OnComment, if set, is called with each comment. A gateway that is busy sends nothing else for
	// minutes. The text is valid during the call only.
	OnComment func(text []byte)

	source io.Reader
	limit  int
	err    error // of the source, returned once the bytes before it are used up

	buf        []byte
	start, end int // the unread part of buf
	begun      bool
	skipLF     bool // the last line ended with CR: a LF that follows belongs to it

	data   []byte
	lines  int
	name   string
	known  string // the previous name, which most events share
	id     []byte
	lastID []byte
	retry  time.Duration
}

// NewReader returns a reader of the events in r, each with at most limit bytes of data.
func NewReader(r io.Reader, limit int) *Reader {
	return &Reader{source: r, limit: limit, buf: make([]byte, 4096)}
}

// LastEventID returns the last id that the stream sent, for the header Last-Event-ID of a
// reconnect.
func (r *Reader) LastEventID() string { return string(r.lastID) }

// Retry returns how long the stream asks clients to wait before a reconnect; 0 if it does not say.
func (r *Reader) Retry() time.Duration { return r.retry }

// Next returns the next event. At the end of the stream the error is io.EOF, or that of the source.
// An event or a line over the limit is [ErrTooLarge], and the stream cannot be read any further.
func (r *Reader) Next() (Event, error) {
	r.data, r.lines, r.name, r.id = r.data[:0], 0, "", r.id[:0]
	for {
		line, err := r.line()
		if err != nil {
			return Event{}, err
		}
		if len(line) > 0 {
			if err := r.field(line); err != nil {
				return Event{}, err
			}
			continue
		}
		if r.lines > 0 {
			return Event{Name: r.name, ID: r.id, Data: r.data}, nil
		}
		r.name, r.id = "", r.id[:0]
	}
}

// field processes one line that is not empty.
func (r *Reader) field(line []byte) error {
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
			return r.stop(ErrTooLarge)
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

// stop ends the stream: every later call returns err.
func (r *Reader) stop(err error) error {
	r.err, r.start, r.end = err, 0, 0
	return err
}

// line returns the next line without its line break. It never waits for a byte that it does not
// need: a CR ends a line at once.
func (r *Reader) line() ([]byte, error) {
	seen := 0 // bytes after start that contain no line break
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
			return nil, r.stop(ErrTooLarge)
		}
		if r.err != nil {
			return nil, r.err
		}
		r.fill()
	}
}

// lineEnd returns the index of the first CR or LF, or -1.
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

// fill reads from the source once.
func (r *Reader) fill() {
	if r.start > 0 {
		r.end = copy(r.buf, r.buf[r.start:r.end])
		r.start = 0
	}
	if r.end == len(r.buf) {
		r.buf = append(r.buf, make([]byte, min(len(r.buf), r.limit+2*lineExtra))...)
	}
	for range 100 { // a source that returns nothing forever is broken
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
