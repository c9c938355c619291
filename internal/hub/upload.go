package hub

import (
	"errors"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/media"
)

func noFiles(ref string) *frame.Error {
	return &frame.Error{Code: frame.Forbidden, Message: "the agent takes no files as it is connected now: see capabilities", Ref: ref}
}

func imagesOnly(ref string) *frame.Error {
	return &frame.Error{Code: frame.Forbidden, Message: "the agent takes images only, as it is connected now: see media_kinds in capabilities", Ref: ref}
}

func refused(r *media.Refusal, ref string) *frame.Error {
	code := frame.BadFrame
	if r.TooBig {
		code = frame.TooBig
	}
	return &frame.Error{Code: code, Message: r.Reason, Ref: ref}
}

// assembler puts the uploads of the session's connection together.
func (s *session) assembler() *media.Assembler {
	if s.uploads == nil {
		limits := media.DefaultLimits()
		limits.MaxFile = s.hub.MaxMedia
		s.uploads = media.NewAssembler(limits, s.hub.Files)
	}
	return s.uploads
}

// dropUpload drops the series of a part that is answered with an error: its later parts get the same one.
func (s *session) dropUpload(id string, refusal *frame.Error) {
	if id != "" {
		s.assembler().Drop(id, refusal)
	}
}

// spoiled: the live connection brought a part of a file that cannot be read.
type spoiled struct {
	c *conn
	e *frame.Error
}

func (e *spoiled) apply(s *session, b *batch) {
	s.flushHello(e.c, b)
	if s.conn != e.c {
		return
	}
	if s.hub.approved(s.dev.UserID) {
		s.dropUpload(e.e.Ref, e.e)
	}
	b.then(func() { e.c.send(e.e) })
}

func (e *spoiled) fail(_ *session, _ error) { e.c.send(storeDown(e.e.Ref)) }

// unwelcome is why the agent takes no such file now, nil where it does. The later parts of a series need not name its kind.
func (s *session) unwelcome(f *frame.Media) *frame.Error {
	st := s.hub.Agent.Status(s.dev.Talks())
	switch {
	case st.FilesIn || st.AnyFile:
		return nil
	case !st.Images:
		return noFiles(f.ID)
	case f.Kind != "image" && (f.Kind != "" || !s.assembler().Has(f.ID)):
		return imagesOnly(f.ID)
	}
	return nil
}

// upload takes a file, or a part of one.
func (s *session) upload(b *batch, e *received, f *frame.Media) {
	if s.seen(b, e, f.ID) {
		return
	}
	if refusal := s.unwelcome(f); refusal != nil {
		s.dropUpload(f.ID, refusal)
		e.c.send(refusal)
		return
	}
	uploads, now := s.assembler(), time.Now()
	part := media.Part{ID: f.ID, Kind: f.Kind, Mime: f.Mime, Filename: f.Filename, Caption: f.Caption, Data: f.Data, Part: f.Part, Parts: f.Parts, Size: f.Size}
	in := agent.Input{ID: f.ID, Kind: agent.Media}
	var up *media.Upload
	err := error(nil)
	if size := uploads.Size(part); size <= s.hub.MaxMedia { // else it is too big, whatever room there is
		err = s.fileFits(&in, size) // before its bytes are taken, which may be many more
	}
	if err != nil {
		err = uploads.Refuse(part, err)
	} else {
		up, err = uploads.Add(part, now)
	}
	if next := uploads.Next(); !next.IsZero() {
		s.start(&s.timers.uploads, next.Sub(now), uploadsOld{})
	}
	var r *media.Refusal
	var said *frame.Error
	switch {
	case errors.As(err, &r):
		e.c.send(refused(r, f.ID))
		return
	case errors.As(err, &said): // of an earlier part
		e.c.send(said)
		return
	case err != nil:
		s.fileFailed(e, f.ID, err)
		return
	case up == nil:
		return
	}
	in.Text = up.Caption
	in.File = &agent.File{Kind: up.Kind, Mime: up.Mime, Name: up.Filename, Hash: up.File.Hash, Size: up.File.Size}
	s.accept(b, e, f.ID, in, s.hub.countFile(up.File.Size, inputBytes(&in), s.accounts()))
}

// uploadsOld: an unfinished upload may have had no part for too long.
type uploadsOld struct{}

func (uploadsOld) apply(s *session, _ *batch) {
	s.timers.uploads = nil
	if s.uploads == nil {
		return
	}
	now := time.Now()
	s.uploads.Expire(now)
	if next := s.uploads.Next(); !next.IsZero() {
		s.start(&s.timers.uploads, next.Sub(now), uploadsOld{})
	}
}
