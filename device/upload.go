package device

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"hermes-mobile/frame"
)

// FileOptions names a file to send. Exactly one of Data, ReaderAt and Reader holds it.
type FileOptions struct {
	Name    string // file name for display; what stands before the last slash is cut
	Mime    string // default: found by the server
	Kind    string // image, video, document or audio; default: by Mime, else document
	Caption string

	Data     []byte
	ReaderAt io.ReaderAt // read part by part, until the receipt: keep it open till then
	Size     int64       // of ReaderAt, bytes
	Reader   io.Reader   // read into memory before SendFile returns

	// Progress, when set, is called after each part with the bytes written so far in this attempt (after a drop it starts
	// over). It is called on the writing goroutine: return at once.
	Progress func(sent, total int64)
}

// upload is a file going up.
type upload struct {
	src      io.ReaderAt
	size     int64
	progress func(sent, total int64)

	// Under Device.mu.
	next, parts, partSize int
}

// partBytes is the most raw bytes in one part. The server would take more (chunk_bytes), but a message waits for the part
// that is being written, and on a slow link a small part is soon through.
const partBytes = 256 << 10

// start lays out the parts by what the server announces; zero means its default.
func (u *upload) start(c *frame.Capabilities) {
	size := int64(partBytes)
	if c.ChunkBytes > 0 {
		size = min(size, c.ChunkBytes)
	}
	size = max(size, c.MinChunkBytes, frame.MinChunk)
	if limit := int64(c.MaxParts); limit > 0 {
		size = max(size, (u.size+limit-1)/limit)
	}
	u.partSize = int(size)
	u.parts = max(int((u.size+size-1)/size), 1)
	u.next = 0
}

// SendFile takes a file for the agent, up to the server's max_media_bytes (8 MiB where not said). It is sent in parts, one
// at a time behind all messages, and as a whole again after a drop, with the same id. Unlike a message it does not survive
// the end of the process. Errors: *frame.Error (too_big, bad_frame) before anything is sent, ErrUnsupported, ErrClosed, or
// the Reader's.
func (d *Device) SendFile(ctx context.Context, f FileOptions, opts ...SendOption) (*Outgoing, error) {
	o, err := options(opts)
	if err != nil {
		return nil, err
	}
	if !d.offers(func(c *frame.Capabilities) bool { return c.Media }) {
		return nil, fmt.Errorf("%w: files", ErrUnsupported)
	}
	if err := fits(f.Caption, o.id); err != nil {
		return nil, err
	}
	limit := d.Status().Capabilities.MaxMediaBytes
	if limit <= 0 {
		limit = frame.MaxMedia
	}
	u := &upload{src: f.ReaderAt, size: f.Size, progress: f.Progress}
	switch {
	case f.Data != nil:
		u.src, u.size = bytes.NewReader(f.Data), int64(len(f.Data))
	case f.Reader != nil:
		data, err := io.ReadAll(io.LimitReader(f.Reader, limit+1))
		if err != nil {
			return nil, fmt.Errorf("device: read file: %w", err)
		}
		u.src, u.size = bytes.NewReader(data), int64(len(data))
	case f.ReaderAt == nil:
		return nil, &frame.Error{Code: frame.BadFrame, Message: "FileOptions holds no file", Ref: o.id}
	}
	if u.size > limit {
		return nil, &frame.Error{Code: frame.TooBig, Ref: o.id,
			Message: fmt.Sprintf("the file has %d bytes and the server takes %d at most: make it smaller", u.size, limit)}
	}
	if u.size <= 0 {
		return nil, &frame.Error{Code: frame.BadFrame, Message: "the file is empty", Ref: o.id}
	}
	kind := f.Kind
	switch kind {
	case "":
		kind = kindOf(f.Mime)
	case "image", "video", "document", "audio":
	default:
		return nil, &frame.Error{Code: frame.BadFrame, Message: "the kind of a file is image, video, document or audio", Ref: o.id}
	}
	head := &frame.Media{ID: o.id, Kind: kind, Mime: f.Mime, Filename: filepath.Base(f.Name), Caption: f.Caption, Size: u.size, ReplyTo: o.replyTo}
	if f.Name == "" {
		head.Filename = "file"
	}
	return d.add(ctx, &Outgoing{ID: o.id, lane: files, Frame: head, file: u})
}

func kindOf(mime string) string {
	major, _, _ := strings.Cut(mime, "/")
	switch major {
	case "image", "video", "audio":
		return major
	}
	return "document"
}

// readPart fills a job with its part. A source that fails ends the file: half of it is worth nothing.
func (d *Device) readPart(j *job) *job {
	u := j.o.file
	d.mu.Lock()
	size, parts := int64(u.partSize), u.parts
	d.mu.Unlock()
	at := int64(j.part) * size
	buf := make([]byte, min(size, u.size-at))
	if n, err := u.src.ReadAt(buf, at); n < len(buf) {
		if err == nil || errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		d.settle(Receipt{ID: j.o.ID, Err: fmt.Errorf("device: read file: %w", err)})
		return nil
	}
	m := *j.o.Frame.(*frame.Media)
	m.Part, m.Parts, m.Data = j.part, parts, buf
	if j.part > 0 {
		m.Caption, m.Size = "", 0 // once is enough; older servers want the rest in every part
	}
	j.data = frame.EncodeUp(&m)
	return j
}
