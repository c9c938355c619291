package hub

import (
	"encoding/json"
	"fmt"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"hermes-mobile/frame"
	"hermes-mobile/internal/store"
)

// entry is what an outbox row holds, by its kind. Times and parts are worked out when it is sent.
type entry struct {
	seq     int64
	ended   *stream           // that this message is the final of; nil where it was read from the store
	Message *frame.Message    `json:"message,omitempty"`
	Media   *frame.Media      `json:"media,omitempty"`
	Hash    string            `json:"hash,omitempty"` // of the file
	Prompt  *frame.Prompt     `json:"prompt,omitempty"`
	Done    *frame.PromptDone `json:"done,omitempty"`
	Echo    *frame.Echo       `json:"echo,omitempty"`
	Notice  *frame.Notice     `json:"notice,omitempty"`
}

func (e *entry) kind() store.Kind {
	switch {
	case e.Message != nil:
		return store.KindMessage
	case e.Media != nil:
		return store.KindMedia
	case e.Prompt != nil:
		return store.KindPrompt
	case e.Echo != nil:
		return store.KindEcho
	case e.Notice != nil:
		return store.KindNotice
	}
	return store.KindPromptDone
}

// encode is the form in which an entry is stored.
func (e *entry) encode() []byte {
	if m := e.Message; m != nil {
		return append(m.AppendJSON(append(make([]byte, 0, len(m.Text)+160), `{"message":`...)), '}')
	}
	body, err := json.Marshal(e)
	if err != nil {
		panic(fmt.Sprintf("hub: encode an outbox entry: %v", err)) // strings and numbers only
	}
	return body
}

// readEntry reads what encode made, or encoding/json in an older version. The newer library takes half the time, and a device that comes back waits for it.
func readEntry(body []byte) (*entry, error) {
	e := &entry{}
	if err := jsonv2.Unmarshal(body, e, jsontext.AllowInvalidUTF8(true)); err != nil {
		return nil, err
	}
	return e, nil
}

// append stores an entry in the outbox with whatever else op stores, and sends it then. after may be nil.
func (s *session) append(b *batch, e *entry, op func(*store.Tx) error, after func(error)) {
	s.seq++
	e.seq = s.seq
	body := e.encode()
	device, size := s.dev.N, int64(len(body))
	drop, freed := s.makeRoom(size)
	if s.count >= s.hub.OutboxEntries {
		if oldest := s.seq - int64(s.count); oldest > drop { // entries were allotted one after the other: this leaves room for one
			drop = oldest
			s.held.cutTo(drop)
		}
	} else {
		s.count++ // now: others of the same batch count it; where storing fails it is an upper bound
	}
	if drop > 0 {
		s.count = int(min(int64(s.count), s.seq-drop))
		s.deliveriesSent() // or those would expire
	}
	b.do(func(tx *store.Tx) error {
		if drop > 0 {
			if err := tx.Expire(device, drop, time.Now()); err != nil {
				return err
			}
		}
		if err := tx.Append(device, e.seq, e.kind(), body, e.Hash, time.Now()); err != nil {
			return err
		}
		if op != nil {
			return op(tx)
		}
		return nil
	}, func(err error) {
		s.held.stored(size, freed, err)
		if err == nil {
			s.dev.Floor = max(s.dev.Floor, drop)
			s.deliverEntry(e)
			s.noteEntry(e)
		}
		if after != nil {
			after(err)
		}
	})
}

// deliverEntry sends a stored entry to the live connection, unless older ones are still to come: then the pump brings it.
func (s *session) deliverEntry(e *entry) {
	if s.conn == nil || e.seq <= s.cursor { // a connection that began in the same batch has read it from the store
		return
	}
	if e.Prompt != nil || e.Media != nil {
		s.overtake()
	}
	if s.behind || s.full() {
		s.behind = true
		s.await()
		return
	}
	if s.send(e) {
		s.behind = true
		s.await()
	}
}

// full reports whether the connection has enough to write for now.
func (s *session) full() bool { return s.conn.ws.Queued() >= softQueue }

// await asks for an event when the connection's queue has drained.
func (s *session) await() {
	s.conn.waiting.Store(true)
	if s.conn.ws.Queued() <= softQueue/2 {
		s.conn.Drained(s.conn.ws) // it drained before we asked
	}
}

// drained: what waited to be written to a connection has gone.
type drained struct{ c *conn }

func (e drained) apply(s *session, b *batch) {
	b.then(func() {
		if s.conn == e.c {
			s.pump()
		}
	})
}

// pumpRows bounds what one read takes from the outbox.
const pumpRows = 16

// pump sends the backlog, as far as the connection takes it, and then what is live.
func (s *session) pump() {
	for s.behind {
		if s.full() {
			s.await()
			return
		}
		rows, err := s.hub.store.Outbox(s.hub.ctx, s.dev.N, s.cursor, pumpRows)
		if err != nil {
			s.hub.storeFailed("read an outbox", err)
			s.conn.send(storeDown(""))
			s.conn.end(frame.CloseTryLater, "the store failed")
			return
		}
		for _, row := range rows {
			if s.full() {
				break
			}
			e, err := readEntry(row.Body)
			if err != nil {
				s.hub.log.Error("a stored frame cannot be read", "device", s.id, "seq", row.Seq, "error", err)
				s.cursor = row.Seq
				continue
			}
			e.seq = row.Seq
			if s.send(e) {
				break
			}
		}
		if s.cursor >= s.seq || len(rows) == 0 {
			s.behind = false
		}
	}
	s.noteWritten()
	s.showAgain()
	s.flushStreams()
}

// send gives an entry to the connection and moves the cursor. more: it is a file of which parts are still to be sent.
func (s *session) send(e *entry) (more bool) {
	c := s.conn
	switch {
	case e.Message != nil:
		s.sendMessage(e)
	case e.Media != nil:
		if s.sendMedia(e) {
			return true
		}
	case e.Prompt != nil:
		p := *e.Prompt
		p.Seq, p.TimeoutSeconds = e.seq, left(p.ExpiresAt)
		c.send(&p)
		if k := s.card(p.ID); k != nil {
			k.again = false
		}
	case e.Done != nil:
		d := *e.Done
		d.Seq = e.seq
		c.send(&d)
	case e.Echo != nil:
		f := *e.Echo
		f.Seq = e.seq
		if f.File != nil {
			file := *f.File
			file.URL = s.link(e.Hash, file.Filename, file.Mime)
			f.File = &file
		}
		c.send(&f)
	case e.Notice != nil && c.notices:
		f := *e.Notice
		f.Seq = e.seq
		var err error
		if f.Revocable, _, err = s.mayRevoke(f.Device.ID); err != nil {
			s.hub.storeFailed("see whether a device may revoke another one", err)
		}
		c.send(&f)
	}
	s.cursor, s.part = e.seq, 0
	s.noteWritten()
	s.noteGiven(e)
	return false
}

// left is how many seconds a card has.
func left(expires time.Time) int { return max(0, int(time.Until(expires).Seconds())) }

func (s *session) sendMessage(e *entry) {
	m := *e.Message
	m.Seq = e.seq
	if m.Edit {
		m.Chunk.Total = 1
		if e.ended != nil && s.conn.tail {
			e.ended.grows(s.conn, &m)
		}
		s.conn.step(&m)
		return
	}
	pieces := chunks(m.Text, frame.MessageChunk)
	replyTo := m.ReplyTo
	for i, piece := range pieces {
		m.Text, m.Chunk, m.Final = piece, frame.Chunk{Index: i, Total: len(pieces)}, i == len(pieces)-1
		if m.ReplyTo = ""; m.Final {
			m.ReplyTo = replyTo
		}
		s.conn.step(&m)
	}
}

// sendMedia gives the connection the next parts of a file. more: there are others to come, when it has room again.
func (s *session) sendMedia(e *entry) (more bool) {
	m := *e.Media
	m.Seq = e.seq
	if m.Size > s.hub.MaxMedia {
		m.Parts, m.Final = 1, true
		m.URL = s.link(e.Hash, m.Filename, m.Mime)
		s.conn.send(&m)
		return false
	}
	m.Parts = max(1, int((m.Size+frame.ChunkBytes-1)/frame.ChunkBytes))
	for ; s.part < m.Parts; s.part++ {
		if s.full() {
			return true
		}
		data, err := s.hub.Files.ReadPart(e.Hash, int64(s.part)*frame.ChunkBytes, frame.ChunkBytes)
		if err != nil {
			s.hub.log.Error("a stored file cannot be read", "device", s.id, "seq", e.seq, "error", err)
			s.conn.send(&frame.Error{Code: frame.Internal, Message: "the server lost a file that was on its way: ask the agent for it again", Ref: m.ID})
			return false
		}
		m.Part, m.Final, m.Data = s.part, s.part == m.Parts-1, data
		s.conn.write(frame.EncodeDown(&m))
	}
	return false
}

// forget drops from the outbox what the device has stored.
func (s *session) forget(seq int64) {
	if seq = min(seq, s.seq); seq <= s.dev.Floor {
		return
	}
	n, dev := s.dev.N, s.dev
	s.deliveriesAcked(seq, false)
	s.later("forget what was acknowledged", func(tx *store.Tx) error { return tx.Forget(n, seq) })
	dev.Floor = seq
	dev.Sent = max(dev.Sent, seq)
	s.written = max(s.written, seq)
	s.notes.UpdateShown()
	s.count = int(min(int64(s.count), s.seq-seq)) // an upper bound: numbers may have been skipped
	s.held.forgot(seq == s.seq)
	if seq > s.cursor {
		s.cursor, s.part = seq, 0
	}
}

// readPrompt returns the card that a stored entry shows, nil if it shows none.
func readPrompt(body []byte) *frame.Prompt {
	e, err := readEntry(body)
	if err != nil {
		return nil
	}
	return e.Prompt
}
