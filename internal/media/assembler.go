package media

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"hermes-mobile/frame"
)

// Part is one media frame of a device with its data decoded (doc/protocol.md §5). An empty metadata
// string means that the frame has none.
type Part struct {
	// ID identifies the series. It may be empty only for a file in one frame.
	ID string
	// Kind, Mime, Filename and Caption are as the device sent them.
	Kind, Mime, Filename, Caption string
	// Data belongs to the assembler once it was added: do not change it.
	Data []byte
	// Part counts from 0, Parts from 1.
	Part, Parts int
	// Size is the size of the whole file according to the device, 0 if it doesn't say. It lets the
	// server reject a file early. Only the received bytes count.
	Size int64
}

// Upload is a complete file. Its Filename has passed [CleanName], its Kind and Mime [Correct].
// Caption is as received.
type Upload struct {
	ID, Kind, Mime, Filename, Caption string
	// File is durably stored.
	File File
}

// maxMeta bounds the names and the caption of a series in bytes, which the limits for data don't
// count. It is the limit of a text (doc/protocol.md §3).
const maxMeta = frame.MaxText

var metaTooBig = fmt.Sprintf("The caption and the names of a file must stay below %d MiB.", maxMeta>>20)

// maxDropped is how many dropped series an assembler remembers. If a device continues more than
// that many at once, their late parts count as new series, which have the other limits.
const maxDropped = 64

// Assembler assembles the uploads of one device. It is not safe for concurrent use: it belongs to
// the goroutine that owns the device's session. Without an upload it takes no memory beyond the
// struct itself.
type Assembler struct {
	limits  Limits
	files   *Store
	open    map[string]*series
	dropped []drop
	bytes   int64 // of all open series
	memory  int64 // the part of it that is not in temporary files
}

// drop is a dropped series and the error for its later parts.
type drop struct {
	id  string
	err error
}

// NewAssembler returns an assembler that stores complete files in files. Zero fields of l take
// their defaults.
func NewAssembler(l Limits, files *Store) *Assembler {
	return &Assembler{limits: l.filled(), files: files}
}

// Add adds one part. It returns nil, nil if the series is incomplete or already had the part, and
// the file once it is complete and durably stored.
//
// An error is a [*Refusal] for the peer or a wrapped I/O error. Either way Add drops the series,
// and no other one. Its later parts get the same error until its id comes with part 0 again
// (doc/protocol.md §5). For each metadata field the first value counts.
//
// Add knows neither the device nor finished uploads: the caller must detect a message id that was
// already used.
func (a *Assembler) Add(p Part, now time.Time) (*Upload, error) {
	a.Expire(now)
	if i := a.droppedAt(p.ID); i >= 0 {
		if p.Part != 0 {
			return nil, a.dropped[i].err
		}
		a.dropped = slices.Delete(a.dropped, i, i+1)
	}
	if r := a.shape(p); r != nil {
		return nil, a.refuse(p, r)
	}
	if p.Parts == 1 && a.open[p.ID] == nil {
		return a.single(p)
	}
	s := a.open[p.ID]
	if s != nil {
		if r := s.contradicts(p); r != nil {
			return nil, a.refuse(p, r)
		}
		if got, ok := s.parts[p.Part]; ok {
			same, err := s.same(got, p.Data)
			if err != nil {
				return nil, a.refuse(p, err)
			}
			if !same {
				return nil, a.refuse(p, badFrame("Part "+strconv.Itoa(p.Part)+" was sent twice with different bytes; send the whole file again from part 0."))
			}
			s.fill(p)
			s.last = now
			return nil, nil
		}
	} else if len(a.open) >= a.limits.MaxUploads {
		return nil, a.refuse(p, badFrame("Too many unfinished uploads; finish one of the "+strconv.Itoa(a.limits.MaxUploads)+" before the next."))
	}
	if r := a.room(s, p); r != nil {
		return nil, a.refuse(p, r)
	}
	if s == nil {
		s = &series{count: p.Parts, parts: make(map[int]segment)}
		if a.open == nil {
			a.open = make(map[string]*series)
		}
		a.open[p.ID] = s
	}
	s.fill(p)
	s.last = now
	if len(s.parts)+1 == s.count {
		return a.finish(s, p)
	}
	return nil, a.keep(s, p)
}

// Size returns the bytes of a series with p, or its size according to the device, whichever is
// larger.
func (a *Assembler) Size(p Part) int64 {
	size := int64(len(p.Data))
	if s := a.open[p.ID]; s != nil {
		size += s.size
	}
	return max(size, p.Size)
}

// Refuse drops the series of p with an error, as Add does for its own reasons: its later parts get
// the same error.
func (a *Assembler) Refuse(p Part, err error) error { return a.refuse(p, err) }

// Drop is Refuse for a part of which only the id is known.
func (a *Assembler) Drop(id string, err error) {
	a.remove(id)
	a.remember(id, err)
}

// Has reports whether a series is unfinished.
func (a *Assembler) Has(id string) bool { return a.open[id] != nil }

// Expire drops every series that got no part for Limits.Idle. Late parts of one are rejected, so
// the device learns that it must start over.
func (a *Assembler) Expire(now time.Time) {
	for id, s := range a.open {
		if now.Before(s.last.Add(a.limits.Idle)) {
			continue
		}
		a.remove(id)
		a.remember(id, badFrame("The upload was dropped because no part of it arrived for "+a.limits.Idle.String()+"; send it again from part 0."))
	}
}

// Next returns when the next series expires, zero if none is unfinished.
func (a *Assembler) Next() time.Time {
	var next time.Time
	for _, s := range a.open {
		if t := s.last.Add(a.limits.Idle); next.IsZero() || t.Before(next) {
			next = t
		}
	}
	return next
}

// Free drops all unfinished series and forgets the dropped ones, as for a disconnect
// (doc/protocol.md §5). The assembler can be used again.
func (a *Assembler) Free() {
	for id := range a.open {
		a.remove(id)
	}
	a.open, a.dropped = nil, nil
}

// shape checks the part alone.
func (a *Assembler) shape(p Part) *Refusal {
	switch {
	case p.Parts < 1 || p.Parts > a.limits.MaxParts:
		return badFrame("parts must be from 1 to " + strconv.Itoa(a.limits.MaxParts) + ".")
	case p.Part < 0 || p.Part >= p.Parts:
		return badFrame("part must be from 0 to parts-1.")
	case p.ID == "" && p.Parts > 1:
		return badFrame("A file in several parts needs an id, the same in all its frames.")
	case p.Part < p.Parts-1 && len(p.Data) < a.limits.MinPart:
		return badFrame("Every part but the last must have at least " + strconv.Itoa(a.limits.MinPart) + " bytes.")
	case int64(len(p.Data)) > a.limits.MaxFile || p.Size > a.limits.MaxFile:
		return a.fileTooBig()
	case len(p.Kind)+len(p.Mime)+len(p.Filename)+len(p.Caption) > maxMeta:
		return tooBig(metaTooBig)
	}
	return nil
}

// room checks the sizes that result from p. s is nil for a new series.
func (a *Assembler) room(s *series, p Part) *Refusal {
	size, n := int64(0), int64(len(p.Data))
	if s != nil {
		size = s.size
	}
	if size+n > a.limits.MaxFile {
		return a.fileTooBig()
	}
	// The part that completes a series leaves nothing unfinished.
	if last := s != nil && len(s.parts)+1 == s.count; !last && a.bytes+n > a.limits.MaxFile {
		return tooBig("All unfinished uploads together may have " + strconv.FormatInt(a.limits.MaxFile, 10) + " bytes; finish another one first.")
	}
	return nil
}

func (a *Assembler) fileTooBig() *Refusal {
	return tooBig("A file may have at most " + strconv.FormatInt(a.limits.MaxFile, 10) + " bytes.")
}

// refuse drops the series of p, if there is one, and returns err. A file in one frame has no later
// parts, so refuse remembers nothing for it.
func (a *Assembler) refuse(p Part, err error) error {
	_, open := a.open[p.ID]
	a.remove(p.ID)
	if p.ID != "" && (open || p.Parts != 1) {
		a.remember(p.ID, err)
	}
	return err
}

// remove removes an open series and frees its memory and temporary file.
func (a *Assembler) remove(id string) {
	s := a.open[id]
	if s == nil {
		return
	}
	a.bytes -= s.size
	a.release(s.memory)
	s.free(a.files)
	delete(a.open, id)
	if len(a.open) == 0 {
		a.open = nil
	}
}

// remember makes later parts of id fail with err. It forgets the oldest error when there are too
// many.
func (a *Assembler) remember(id string, err error) {
	if i := a.droppedAt(id); i >= 0 {
		a.dropped = slices.Delete(a.dropped, i, i+1)
	}
	if len(a.dropped) >= maxDropped {
		a.dropped = slices.Delete(a.dropped, 0, 1)
	}
	a.dropped = append(a.dropped, drop{id, err})
}

func (a *Assembler) droppedAt(id string) int {
	return slices.IndexFunc(a.dropped, func(d drop) bool { return d.id == id })
}

// single stores a file of one frame.
func (a *Assembler) single(p Part) (*Upload, error) {
	f, err := a.files.Put(p.Data)
	if err != nil {
		return nil, err
	}
	return complete(p, f, p.Data), nil
}

// keep stores a part of an incomplete series: in memory while the device has less than SpoolAbove
// there and all devices together less than SpoolAllAbove.
func (a *Assembler) keep(s *series, p Part) error {
	n := int64(len(p.Data))
	if s.spool == "" && a.hold(n) {
		s.parts[p.Part] = segment{data: p.Data, size: len(p.Data)}
		s.memory += n
	} else {
		held := s.memory
		err := s.toDisk(a.files, p)
		a.release(held - s.memory)
		if err != nil {
			return a.refuse(p, err)
		}
	}
	s.size += n
	a.bytes += n
	return nil
}

// hold reports whether n more bytes fit in memory, and counts them if so.
func (a *Assembler) hold(n int64) bool {
	if a.memory+n > a.limits.SpoolAbove {
		return false
	}
	if a.files.unfinished.Add(n) > a.limits.SpoolAllAbove {
		a.files.unfinished.Add(-n)
		return false
	}
	a.memory += n
	return true
}

// release counts n bytes less in memory.
func (a *Assembler) release(n int64) {
	a.memory -= n
	a.files.unfinished.Add(-n)
}

// finish stores the series that p completes.
func (a *Assembler) finish(s *series, p Part) (*Upload, error) {
	var head []byte
	f, err := func() (File, error) {
		r, closer, err := s.reader(p)
		if err != nil {
			return File{}, err
		}
		defer closer.Close()
		head = make([]byte, min(signatureBytes, s.size+int64(len(p.Data))))
		if _, err := io.ReadFull(r, head); err != nil {
			return File{}, fmt.Errorf("media: read spooled parts: %w", err)
		}
		return a.files.PutReader(io.MultiReader(bytes.NewReader(head), r), a.limits.MaxFile)
	}()
	if err != nil {
		return nil, a.refuse(p, err)
	}
	u := complete(Part{ID: p.ID, Kind: s.kind, Mime: s.mime, Filename: s.filename, Caption: s.caption}, f, head)
	a.remove(p.ID)
	return u, nil
}

// complete returns the upload from the first values seen and the content.
func complete(p Part, f File, head []byte) *Upload {
	u := &Upload{ID: p.ID, Filename: CleanName(p.Filename), Caption: p.Caption, File: f}
	u.Kind, u.Mime = Correct(p.Kind, p.Mime, head)
	return u
}
