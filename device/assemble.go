package device

import (
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"hermes-mobile/frame"
)

// reply is a message under way: whole texts with additions, or chunks of one text (doc/protocol.md
// §4).
type reply struct {
	whole  string
	units  int // length of whole, in UTF-16 code units
	chunks []string
}

// take adds a frame. It reports false for an addition that does not fit the text so far, which it
// leaves unchanged. A frame with the whole text fixes that.
func (r *reply) take(m *frame.Message) bool {
	switch {
	case m.Append != nil:
		at := m.At
		if at == 0 { // absent: at the end
			at = r.units
		}
		kept, ok := cut(r.whole, r.units, at)
		if !ok {
			return false
		}
		r.whole, r.units = kept+*m.Append, at+units(*m.Append)
	case m.Edit || m.Chunk.Total <= 1:
		r.whole, r.units, r.chunks = m.Text, units(m.Text), nil
	default:
		for len(r.chunks) <= m.Chunk.Index && m.Chunk.Index < m.Chunk.Total && len(r.chunks) < 1<<20 {
			r.chunks = append(r.chunks, "")
		}
		if i := m.Chunk.Index; i >= 0 && i < len(r.chunks) {
			r.chunks[i] = m.Text
		}
	}
	return true
}

func (r *reply) text() string {
	if r.chunks != nil {
		return strings.Join(r.chunks, "")
	}
	return r.whole
}

// cut returns the first at UTF-16 code units of a text with n units. It reports false when the text
// is shorter, or at is inside a character.
func cut(s string, n, at int) (string, bool) {
	if at == n {
		return s, true
	}
	n = 0
	for i, r := range s {
		if n >= at {
			return s[:i], n == at
		}
		n += units(string(r))
	}
	return "", false
}

// units returns the length of a text in UTF-16 code units.
func units(s string) int {
	n := 0
	for _, r := range s {
		if r == utf8.RuneError {
			n++
			continue
		}
		n += utf16.RuneLen(r)
	}
	return n
}

// incoming is a file under way, part by part in order (doc/protocol.md §5).
type incoming struct {
	limit int64
	file  File
	next  int
}

// take adds a part. It reports true when the file is complete, or when its Err says why it never
// will be.
func (in *incoming) take(m *frame.Media) bool {
	f := &in.file
	if m.Part == 0 {
		*f = File{ID: m.ID, Kind: m.Kind, Mime: m.Mime, Filename: m.Filename, Caption: m.Caption, Size: m.Size,
			ReplyTo: m.ReplyTo, Source: m.Source, URL: m.URL}
	}
	if f.Caption == "" {
		f.Caption = m.Caption
	}
	last := m.Final || m.Part >= m.Parts-1
	switch {
	case f.Err != nil:
	case m.Part != in.next:
		f.Err = fmt.Errorf("device: file %q: got part %d instead of part %d", f.Filename, m.Part, in.next)
	case int64(len(f.Data)+len(m.Data)) > in.limit:
		f.Err = fmt.Errorf("device: file %q exceeds the limit of %d bytes (Config.MaxFileBytes)", f.Filename, in.limit)
	default:
		f.Data = append(f.Data, m.Data...)
		in.next++
	}
	if f.Err != nil {
		f.Data = nil
	}
	if !last {
		return false
	}
	if f.Err == nil && f.URL == "" && f.Size > 0 && int64(len(f.Data)) != f.Size {
		f.Err = fmt.Errorf("device: file %q has %d bytes instead of %d", f.Filename, len(f.Data), f.Size)
		f.Data = nil
	}
	if f.Err == nil && f.URL == "" {
		f.Size = int64(len(f.Data))
	}
	return true
}
