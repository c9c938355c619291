package media

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"time"
)

// series is an unfinished upload of several parts.
type series struct {
	kind, mime, filename, caption string

	whole  int64           // size of the whole file according to the device; 0: unknown
	count  int             // number of parts
	parts  map[int]segment // received; a map, because one part of many must not cost an entry for each
	size   int64           // bytes of all parts
	memory int64           // bytes of the parts that are in memory
	spool  string          // path of the temporary file, empty while everything is in memory
	end    int64           // offset of the next part in the temporary file
	taken  int64           // bytes that the budget counts for the temporary file
	last   time.Time       // when the last part arrived
}

// segment is one part: in memory if data is set, else size bytes at off in the temporary file. An
// empty part is in neither.
type segment struct {
	data []byte
	off  int64
	size int
}

// fill sets the metadata that no earlier frame had.
func (s *series) fill(p Part) {
	for _, f := range s.fields(p) {
		if *f.held == "" {
			*f.held = f.got
		}
	}
	if s.whole == 0 {
		s.whole = p.Size
	}
}

// contradicts returns an error if p doesn't match the frames before.
func (s *series) contradicts(p Part) *Refusal {
	if p.Parts != s.count {
		return badFrame("parts differs from the first frame of this id; send the whole file again from part 0.")
	}
	if p.Size != 0 && s.whole != 0 && p.Size != s.whole {
		return badFrame("size differs from the first frame of this id; send the whole file again from part 0.")
	}
	total := 0
	for _, f := range s.fields(p) {
		if f.got != "" && *f.held != "" && f.got != *f.held {
			return badFrame(f.name + " differs from the first frame of this id; send the whole file again from part 0.")
		}
		total += max(len(f.got), len(*f.held))
	}
	if total > maxMeta {
		return tooBig(metaTooBig)
	}
	return nil
}

type field struct {
	name string
	held *string
	got  string
}

func (s *series) fields(p Part) [4]field {
	return [4]field{
		{"kind", &s.kind, p.Kind},
		{"mime", &s.mime, p.Mime},
		{"filename", &s.filename, p.Filename},
		{"caption", &s.caption, p.Caption},
	}
}

// same reports whether the received part g has exactly these bytes.
func (s *series) same(g segment, data []byte) (bool, error) {
	if g.size != len(data) {
		return false, nil
	}
	if g.data != nil || g.size == 0 {
		return bytes.Equal(g.data, data), nil
	}
	f, err := os.Open(s.spool)
	if err != nil {
		return false, fmt.Errorf("media: read spooled parts: %w", err)
	}
	defer f.Close()
	held := make([]byte, min(g.size, 64<<10))
	for off := 0; off < g.size; off += len(held) {
		held = held[:min(len(held), g.size-off)]
		if _, err := f.ReadAt(held, g.off+int64(off)); err != nil {
			return false, fmt.Errorf("media: read spooled parts: %w", err)
		}
		if !bytes.Equal(held, data[off:off+len(held)]) {
			return false, nil
		}
	}
	return true, nil
}

// toDisk moves the parts in memory to the temporary file and appends p. The file isn't kept open
// between parts: many devices with many series must not use up the process's file descriptors.
func (s *series) toDisk(files *Store, p Part) (err error) {
	n := s.memory + int64(len(p.Data))
	if err := files.budget.Take(n); err != nil {
		return fmt.Errorf("media: spool upload: %w", err)
	}
	s.taken += n
	var f *os.File
	if s.spool == "" {
		f, err = files.temp()
	} else {
		f, err = os.OpenFile(s.spool, os.O_WRONLY, 0)
	}
	if err != nil {
		return fmt.Errorf("media: spool upload: %w", err)
	}
	s.spool = f.Name()
	defer func() {
		// A late write error may show only here. Otherwise lost bytes would be detected when the
		// file is assembled.
		if e := f.Close(); e != nil && err == nil {
			err = fmt.Errorf("media: spool upload: %w", e)
		}
	}()
	for i, g := range s.parts {
		if g.data == nil {
			continue
		}
		if err := s.write(f, i, g.data); err != nil {
			return err
		}
	}
	s.memory = 0
	return s.write(f, p.Part, p.Data)
}

// write appends one part to the temporary file.
func (s *series) write(f *os.File, part int, data []byte) error {
	if _, err := f.WriteAt(data, s.end); err != nil {
		return fmt.Errorf("media: spool upload: %w", err)
	}
	s.parts[part] = segment{off: s.end, size: len(data)}
	s.end += int64(len(data))
	return nil
}

// reader returns the whole file in order, with last as the part that completes it. The caller must
// close the closer.
func (s *series) reader(last Part) (io.Reader, io.Closer, error) {
	var f *os.File
	var closer io.Closer = io.NopCloser(nil)
	if s.spool != "" {
		var err error
		if f, err = os.Open(s.spool); err != nil {
			return nil, nil, fmt.Errorf("media: read spooled parts: %w", err)
		}
		closer = f
	}
	all := make([]io.Reader, 0, s.count)
	for i := range s.count {
		switch g, ok := s.parts[i]; {
		case !ok:
			all = append(all, bytes.NewReader(last.Data))
		case g.data != nil:
			all = append(all, bytes.NewReader(g.data))
		case g.size > 0:
			all = append(all, io.NewSectionReader(f, g.off, int64(g.size)))
		}
	}
	return io.MultiReader(all...), closer, nil
}

// free removes the temporary file. If that fails, the next OpenStore removes it.
func (s *series) free(files *Store) {
	if s.spool != "" {
		_ = os.Remove(s.spool)
	}
	files.budget.Give(s.taken)
	s.parts = nil
}
