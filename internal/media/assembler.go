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

// Part is one media frame of a device with its data decoded (protocol §5). An
// empty metadata string means that the frame left it out.
type Part struct {
	// ID names the series; it may be empty only for a file in one frame.
	ID string
	// Kind, Mime, Filename and Caption are as the device wrote them.
	Kind, Mime, Filename, Caption string
	// Data belongs to the assembler once it was added; do not change it.
	Data []byte
	// Part counts from 0, Parts from 1.
	Part, Parts int
	// Size is how many bytes the device says the whole file has, 0 when it does
	// not say. It is a hint to refuse early; what counts is what comes.
	Size int64
}

// Upload is a complete file. Its Filename went through [CleanName], its Kind
// and Mime through [Correct]; Caption is as it was sent.
type Upload struct {
	ID, Kind, Mime, Filename, Caption string
	// File is stored durably.
	File File
}

// maxMeta bounds in bytes the names and the caption of a series, which the
// limits for data do not count. It is the limit of a text (protocol §3).
const maxMeta = frame.MaxText

var metaTooBig = fmt.Sprintf("The caption and the names of a file must stay below %d MiB.", maxMeta>>20)

// maxDropped is how many dropped series an assembler remembers. A device that
// goes on with more than that many at once gets its late parts taken as new
// series, which then fall under the other limits.
const maxDropped = 64

// Assembler puts the uploads of one device together. It is not safe for
// concurrent use: it belongs to the goroutine that owns the device's session.
// One that holds no upload has no memory beyond the struct itself.
type Assembler struct {
	limits  Limits
	files   *Store
	open    map[string]*series
	dropped []drop
	bytes   int64 // of all open series
	memory  int64 // the share of it that is not in temporary files
}

// drop is a dropped series and what its later parts are answered with.
type drop struct {
	id  string
	err error
}

// NewAssembler returns an assembler without uploads that stores complete files
// in files. Zero fields of l take their defaults.
func NewAssembler(l Limits, files *Store) *Assembler {
	return &Assembler{limits: l.filled(), files: files}
}

// Add takes one part. It returns nil, nil when the part was taken and its
// series lacks others (or the part was there already), and the file once it is
// complete and stored durably.
//
// An error is a [*Refusal] for the peer or a wrapped I/O error. Either way the
// series is dropped, no other one is, and its later parts get the same error
// until its id comes with part 0 again (protocol §5). For every metadata field
// the first value seen holds.
//
// Add takes no device id and knows no finished uploads: that a message id was
// used before is for the caller to find out.
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
				return nil, a.refuse(p, badFrame("Part "+strconv.Itoa(p.Part)+" came a second time with other bytes; send the whole file again from part 0."))
			}
			s.fill(p)
			s.last = now
			return nil, nil
		}
	} else if len(a.open) >= a.limits.MaxUploads {
		return nil, a.refuse(p, badFrame("Too many uploads are unfinished; finish one of the "+strconv.Itoa(a.limits.MaxUploads)+" before the next."))
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

// Size returns how many bytes of a series would be there with p, or how many the
// device says it will have, where that is more.
func (a *Assembler) Size(p Part) int64 {
	size := int64(len(p.Data))
	if s := a.open[p.ID]; s != nil {
		size += s.size
	}
	return max(size, p.Size)
}

// Refuse drops the series of p with an error, as Add does for reasons of its
// own: its later parts get the same error.
func (a *Assembler) Refuse(p Part, err error) error { return a.refuse(p, err) }

// Drop is Refuse for a part of which no more than the id is known.
func (a *Assembler) Drop(id string, err error) {
	a.remove(id)
	a.remember(id, err)
}

// Has reports whether a series is unfinished.
func (a *Assembler) Has(id string) bool { return a.open[id] != nil }

// Expire drops every series that had no part for Limits.Idle. A late part of
// one is refused, so that the device learns that it has to begin again.
func (a *Assembler) Expire(now time.Time) {
	for id, s := range a.open {
		if now.Before(s.last.Add(a.limits.Idle)) {
			continue
		}
		a.remove(id)
		a.remember(id, badFrame("The upload was dropped because no part of it came for "+a.limits.Idle.String()+"; send it again from part 0."))
	}
}

// Next returns when the next series expires, and the zero time when none is
// unfinished.
func (a *Assembler) Next() time.Time {
	var next time.Time
	for _, s := range a.open {
		if t := s.last.Add(a.limits.Idle); next.IsZero() || t.Before(next) {
			next = t
		}
	}
	return next
}

// Free drops all unfinished series and forgets the dropped ones, as a
// disconnect does (protocol §5). The assembler can be used again.
func (a *Assembler) Free() {
	for id := range a.open {
		a.remove(id)
	}
	a.open, a.dropped = nil, nil
}

// shape checks what can be told from the part alone.
func (a *Assembler) shape(p Part) *Refusal {
	switch {
	case p.Parts < 1 || p.Parts > a.limits.MaxParts:
		return badFrame("parts must be from 1 to " + strconv.Itoa(a.limits.MaxParts) + ".")
	case p.Part < 0 || p.Part >= p.Parts:
		return badFrame("part must be from 0 to parts-1.")
	case p.ID == "" && p.Parts > 1:
		return badFrame("A file in several parts needs an id that all its frames share.")
	case p.Part < p.Parts-1 && len(p.Data) < a.limits.MinPart:
		return badFrame("Every part but the last must have at least " + strconv.Itoa(a.limits.MinPart) + " bytes.")
	case int64(len(p.Data)) > a.limits.MaxFile || p.Size > a.limits.MaxFile:
		return a.fileTooBig()
	case len(p.Kind)+len(p.Mime)+len(p.Filename)+len(p.Caption) > maxMeta:
		return tooBig(metaTooBig)
	}
	return nil
}

// room checks the sizes p would lead to; s is nil for a new series.
func (a *Assembler) room(s *series, p Part) *Refusal {
	size, n := int64(0), int64(len(p.Data))
	if s != nil {
		size = s.size
	}
	if size+n > a.limits.MaxFile {
		return a.fileTooBig()
	}
	// The part that completes a series leaves nothing unfinished behind.
	if last := s != nil && len(s.parts)+1 == s.count; !last && a.bytes+n > a.limits.MaxFile {
		return tooBig("All unfinished uploads together may have " + strconv.FormatInt(a.limits.MaxFile, 10) + " bytes; finish another one first.")
	}
	return nil
}

func (a *Assembler) fileTooBig() *Refusal {
	return tooBig("A file may have at most " + strconv.FormatInt(a.limits.MaxFile, 10) + " bytes.")
}

// refuse drops the series of p, if there is one, and returns err. A file in one
// frame has no later parts, so nothing is remembered for it.
func (a *Assembler) refuse(p Part, err error) error {
	_, open := a.open[p.ID]
	a.remove(p.ID)
	if p.ID != "" && (open || p.Parts != 1) {
		a.remember(p.ID, err)
	}
	return err
}

// remove forgets an open series and gives its memory and temporary file back.
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

// remember makes later parts of id fail with err; the longest remembered makes
// room.
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

// single stores a file that came in one frame.
func (a *Assembler) single(p Part) (*Upload, error) {
	f, err := a.files.Put(p.Data)
	if err != nil {
		return nil, err
	}
	return complete(p, f, p.Data), nil
}

// keep holds a part of an incomplete series, in memory while the device stays
// below SpoolAbove there and all devices together below SpoolAllAbove.
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

// hold reports whether n bytes more may be kept in memory, and counts them then.
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

// complete makes the upload out of the first values seen and the content.
func complete(p Part, f File, head []byte) *Upload {
	u := &Upload{ID: p.ID, Filename: CleanName(p.Filename), Caption: p.Caption, File: f}
	u.Kind, u.Mime = Correct(p.Kind, p.Mime, head)
	return u
}
