package device

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"hermes-mobile/frame"
)

// FileOptions describes a file to send. Exactly one of Data, ReaderAt and Reader holds its content.
type FileOptions struct {
	Name    string // file name for display; SendFile keeps only the base name
	Mime    string // default: the server detects it
	Kind    string // image, video, document or audio; default: by Mime, otherwise document
	Caption string

	Data     []byte
	ReaderAt io.ReaderAt // read part by part until the receipt: keep it open until then
	Size     int64       // of ReaderAt, in bytes
	Reader   io.Reader   // read into memory before SendFile returns

	// Progress, when set, is called after each part with the bytes sent so far in this attempt. It
	// starts over after a reconnect. The writing goroutine calls it, so it must return at once.
	Progress func(sent, total int64)
}

// upload is a file on its way to the server.
type upload struct {
	src      io.ReaderAt
	size     int64
	progress func(sent, total int64)

	// The queue's lock guards these.
	next, parts, partSize int
}

// partBytes is the preferred size of a part, in raw bytes. The server allows more (chunk_bytes),
// but a message waits for the part under way, and a small part is through soon even on a slow
// connection.
const partBytes = 256 << 10

// start plans the parts within the limits that the server announced; zero means its default.
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

// SendFile queues a file for the agent, up to the server's Capabilities.MaxMediaBytes
// ([frame.MaxMedia] where the server does not say). The device sends it in parts, after all
// messages, and again as a whole after a reconnect, with the same id. Unlike a message, a file does
// not survive the end of the process. The error wraps a [*frame.Error] (too_big, bad_frame) before
// anything is sent, or is [ErrUnsupported], [ErrClosed], or that of ctx or of the Reader.
func (d *Device) SendFile(ctx context.Context, f FileOptions, opts ...SendOption) (*Outgoing, error) {
	o, err := options(opts)
	if err != nil {
		return nil, err
	}
	if !d.board.offers(func(c *frame.Capabilities) bool { return c.Media }) {
		return nil, fmt.Errorf("%w: files", ErrUnsupported)
	}
	if err := checkText(f.Caption, o.id); err != nil {
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
		return nil, invalid(o.id, frame.BadFrame, "FileOptions has no content: set Data, ReaderAt or Reader")
	}
	if u.size > limit {
		return nil, invalid(o.id, frame.TooBig, "the file has %d bytes, and the server accepts at most %d: make it smaller", u.size, limit)
	}
	if u.size <= 0 {
		return nil, invalid(o.id, frame.BadFrame, "the file is empty")
	}
	kind := f.Kind
	switch kind {
	case "":
		kind = kindOf(f.Mime)
	case "image", "video", "document", "audio":
	default:
		return nil, invalid(o.id, frame.BadFrame, "the kind of a file must be image, video, document or audio, not %q", kind)
	}
	head := &frame.Media{ID: o.id, Kind: kind, Mime: f.Mime, Filename: filepath.Base(f.Name), Caption: f.Caption, Size: u.size, ReplyTo: o.replyTo}
	if f.Name == "" {
		head.Filename = "file"
	}
	return d.send(ctx, &Outgoing{ID: o.id, lane: files, Frame: head, file: u})
}

func kindOf(mime string) string {
	major, _, _ := strings.Cut(mime, "/")
	switch major {
	case "image", "video", "audio":
		return major
	}
	return "document"
}
