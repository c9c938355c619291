package hub

import (
	"strconv"
	"time"

	"hermes-mobile/frame"
)

// give sends an entry to the connection and moves the cursor. more: the entry is a file of which parts are still to come.
func (o *outbox) give(e *entry) (more bool) {
	c := o.conn
	switch {
	case e.Message != nil:
		o.giveMessage(e)
	case e.Media != nil:
		if o.giveMedia(e) {
			return true
		}
	case e.Prompt != nil:
		p := *e.Prompt
		p.Seq, p.TimeoutSeconds = e.seq, secondsLeft(p.ExpiresAt)
		c.send(&p)
	case e.Done != nil:
		d := *e.Done
		d.Seq = e.seq
		c.send(&d)
	case e.Echo != nil:
		f := *e.Echo
		f.Seq = e.seq
		if f.File != nil {
			file := *f.File
			file.URL = o.link(e.Hash, file.Filename, file.Mime)
			f.File = &file
		}
		c.send(&f)
	case e.Notice != nil && c.notices:
		f := *e.Notice
		f.Seq = e.seq
		var err error
		if f.Revocable, _, err = o.observer.mayRevoke(f.Device.ID); err != nil {
			o.storeFailed("look up a device", err)
		}
		c.send(&f)
	}
	o.cursor, o.part = e.seq, 0
	o.noteWritten()
	o.observer.entryGiven(e)
	return false
}

func (o *outbox) giveMessage(e *entry) {
	m := *e.Message
	m.Seq = e.seq
	if m.Edit {
		m.Chunk.Total = 1
		if e.ended != nil && o.conn.tail {
			e.ended.shorten(o.conn, &m)
		}
		o.conn.step(&m)
		return
	}
	pieces := chunks(m.Text, frame.MessageChunk)
	replyTo := m.ReplyTo
	for i, piece := range pieces {
		m.Text, m.Chunk, m.Final = piece, frame.Chunk{Index: i, Total: len(pieces)}, i == len(pieces)-1
		if m.ReplyTo = ""; m.Final {
			m.ReplyTo = replyTo
		}
		o.conn.step(&m)
	}
}

// giveMedia sends the next parts of a file. more: others are to come when the connection has room again.
func (o *outbox) giveMedia(e *entry) (more bool) {
	m := *e.Media
	m.Seq = e.seq
	if m.Size > o.MaxMedia {
		m.Parts, m.Final = 1, true
		m.URL = o.link(e.Hash, m.Filename, m.Mime)
		o.conn.send(&m)
		return false
	}
	m.Parts = max(1, int((m.Size+frame.ChunkBytes-1)/frame.ChunkBytes))
	for ; o.part < m.Parts; o.part++ {
		if o.conn.full() {
			return true
		}
		data, err := o.Files.ReadPart(e.Hash, int64(o.part)*frame.ChunkBytes, frame.ChunkBytes)
		if err != nil {
			o.log.Error("stored file unreadable", "device", o.id, "seq", e.seq, "err", err)
			o.conn.send(&frame.Error{Code: frame.Internal, Message: "the server lost a file that it was sending: ask the agent for it again", Ref: m.ID})
			return false
		}
		m.Part, m.Final, m.Data = o.part, o.part == m.Parts-1, data
		o.conn.write(frame.EncodeDown(&m))
	}
	return false
}

// linkTTL is how long a link to a large file is valid (doc/protocol.md §5).
const linkTTL = time.Hour

// linkOwner begins the owner of a device's link, which distinguishes it from links of gateways.
const linkOwner = "device\n"

// link returns the address of a file for the device. The link is for this device, and is valid no longer than its access:
// the owner in it names the epoch of the device's outbox, which revoking ends, and the app token that the device
// authenticated with.
func (o *outbox) link(hash, name, mime string) string {
	base := o.conn.base
	if o.PublicURL != "" {
		base = o.PublicURL
	}
	owner := linkOwner + o.dev.Epoch + "\n" + strconv.FormatUint(o.conn.token.Load(), 16) + "\n" + o.id
	return base + o.Links.Sign(owner, hash, name, mime, time.Now().Add(linkTTL))
}
