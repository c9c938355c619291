package hub

import (
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/media"
)

// uploads puts the files together that the live connection sends in parts.
type uploads struct {
	*core
	assembler *media.Assembler // nil: nothing is being uploaded
	old       timer
}

func (u *uploads) idle() bool { return !u.old.running() }

// free drops all unfinished files.
func (u *uploads) free() {
	if u.assembler != nil {
		u.assembler.Free()
		u.assembler = nil
	}
	u.old.stop()
}

func (u *uploads) assemble() *media.Assembler {
	if u.assembler == nil {
		limits := media.DefaultLimits()
		limits.MaxFile = u.MaxMedia
		u.assembler = media.NewAssembler(limits, u.Files)
	}
	return u.assembler
}

// drop drops a file of which a part was answered with an error. Its later parts get the same error.
func (u *uploads) drop(id string, refusal *frame.Error) {
	if id != "" {
		u.assemble().Drop(id, refusal)
	}
}

// has reports whether parts of a file have come.
func (u *uploads) has(id string) bool { return u.assemble().Has(id) }

// add takes a part of a file, and returns the file if it is complete. fits is asked whether a file of a size can be
// stored, before its bytes are accepted, which may be many more.
func (u *uploads) add(f *frame.Media, fits func(size int64) error) (*media.Upload, error) {
	now := time.Now()
	part := media.Part{ID: f.ID, Kind: f.Kind, Mime: f.Mime, Filename: f.Filename, Caption: f.Caption, Data: f.Data, Part: f.Part, Parts: f.Parts, Size: f.Size}
	var up *media.Upload
	err := error(nil)
	if size := u.assemble().Size(part); size <= u.MaxMedia { // otherwise it is too large, whatever room there is
		err = fits(size)
	}
	if err != nil {
		err = u.assembler.Refuse(part, err)
	} else {
		up, err = u.assembler.Add(part, now)
	}
	u.expireLater(now)
	return up, err
}

func (u *uploads) expireLater(now time.Time) {
	if next := u.assembler.Next(); !next.IsZero() {
		u.old.start(u, next.Sub(now), u.expire)
	}
}

// expire drops files that had no part for too long.
func (u *uploads) expire(*batch) {
	if u.assembler != nil {
		now := time.Now()
		u.assembler.Expire(now)
		u.expireLater(now)
	}
}
