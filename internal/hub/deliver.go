package hub

import (
	"context"
	"errors"
	"strings"

	"hermes-mobile/frame"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/media"
	"hermes-mobile/internal/quota"
	"hermes-mobile/internal/store"
)

// homeAddress stands for the device that is the home channel.
const homeAddress = "home"

// deliver takes a delivery from a connection: of a sender with a delivery token, or from this machine. given: the room that
// the frame holds was handed on with it.
func (c *conn) deliver(f *frame.Deliver, held int64) (given bool) {
	sender := c.sender
	if sender == "" {
		if !c.loopback {
			c.send(&frame.Error{Code: frame.Forbidden, Message: "deliveries come from the server's own machine, or with a token of MOBILE_DELIVER_TOKENS", Ref: f.ID})
			return false
		}
		sender = c.session.id
	}
	if c.session == nil {
		c.hub.deliver(sender, c.hub.senderAccount(c.label), f, c.send)
	} else {
		given = c.session.post(&received{c: c, f: f, held: held})
		c.session.wait()
	}
	if to := c.hub.Addressee(f.To); to != "" {
		c.hub.session(to).wait() // a sender that is faster than the disk waits for it
	}
	return given
}

// greetSender answers the hello of a connection with a delivery token. It is no device: it may be open several times, is
// bound to nothing, and cannot be addressed.
func (c *conn) greetSender(f *frame.Hello, label string) {
	c.sender, c.label = f.Device.ID, label
	c.hub.Metrics.Hellos.WithLabelValues("sender").Inc()
	c.hub.log.Info("a sender of deliveries is connected", "device", f.Device.ID, "addr", c.addr)
	st := c.hub.Agent.Status(f.Device.ID)
	c.send(&frame.Ready{Session: frame.SessionPrefix + f.Device.ID, AvatarURL: c.hub.AvatarURL, Capabilities: frame.Capabilities{Deliver: true, Accepted: true,
		Call: []string{}, MaxMediaBytes: c.hub.MaxMedia, MaxFrameBytes: frame.MaxFrame}, Protocol: frame.Protocol, Server: "hermes-mobile/" + c.hub.Version,
		Approved: true, Agent: agentState(st), Resume: frame.Span{Epoch: "none", From: 1}})
}

// Deliver sends a text or file to a device, as the frame does, and waits for the answer: *frame.Delivered or *frame.Error.
// It is for the owner, whose deliveries have no share of a day.
func (h *Hub) Deliver(ctx context.Context, sender string, f *frame.Deliver) (frame.Down, error) {
	answer := make(chan frame.Down, 1)
	h.deliver(sender, nil, f, func(d frame.Down) { answer <- d })
	select {
	case d := <-answer:
		return d, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (h *Hub) deliver(sender string, accounts []quota.Account, f *frame.Deliver, reply func(frame.Down)) {
	to := h.Addressee(f.To)
	if to == "" {
		h.offline(f, reply, "no device is the home channel: send /sethome from it")
		return
	}
	h.post(to, &delivery{sender: sender, accounts: accounts, f: f, reply: reply})
}

// Addressee is the device that an address stands for; empty when that is the home channel and there is none.
func (h *Hub) Addressee(to string) string {
	if to == homeAddress {
		return *h.home.Load()
	}
	return strings.TrimPrefix(to, frame.SessionPrefix)
}

func (h *Hub) offline(f *frame.Deliver, reply func(frame.Down), why string) {
	h.Metrics.Deliveries.WithLabelValues("offline").Inc()
	reply(&frame.Error{Code: frame.DeviceOffline, Message: why, Ref: f.ID})
}

// delivery: somebody sends this device something.
type delivery struct {
	sender   string
	accounts []quota.Account // on which it is counted
	f        *frame.Deliver
	reply    func(frame.Down)
	twice    bool // it was made before, as storing it has shown
}

// quick: a file is written to the disk first, what was made before is looked up, and so is what a full outbox holds.
func (e *delivery) quick(s *session) bool {
	n := int64(len(e.f.Text)) + deliveryBytes
	return e.f.Data == nil && !e.twice && s.held.bytes+encoded*n <= s.hub.OutboxBytes && !s.hub.measures(n)
}

// encoded is how many bytes one byte of a text becomes in JSON at most.
const encoded = 6

func (e *delivery) weight() int { return len(e.f.Data) + len(e.f.Text) }

func (e *delivery) fail(_ *session, _ error) { e.reply(storeDown(e.f.ID)) }

func (e *delivery) apply(s *session, b *batch) {
	b.flush()
	h, f := s.hub, e.f
	if e.twice && e.known(s) {
		return
	}
	live := s.conn != nil
	refusal := ""
	switch {
	case s.dev == nil || s.dev.Revoked || !s.dev.Bound() || !h.approved(s.dev.UserID):
		refusal = "there is no approved device of this name: check \"to\""
	case !live && (f.RequireLive || h.RejectOffline):
		refusal = "the device is not connected"
	case !live && (s.seq-s.dev.Sent >= int64(h.OutboxEntries) || !s.unsentFits(int64(len(f.Text))+rowBytes)): // what was sent already may make room
		refusal = "too much waits for this device already: it must connect first"
	}
	if refusal != "" {
		if !e.known(s) {
			h.offline(f, e.reply, refusal)
		}
		return
	}
	var file *media.File
	var size counted
	if f.Data == nil {
		n := int64(len(f.Text)) + deliveryBytes
		if full := h.messageFits(n, e.accounts); full != nil {
			e.noRoom(s, full)
			return
		}
		size = h.countMessage(n, e.accounts)
	} else {
		if int64(len(f.Data)) > h.MaxMedia {
			e.reply(&frame.Error{Code: frame.TooBig, Message: "the file is larger than max_media_bytes", Ref: f.ID})
			return
		}
		if full := h.fileFits(int64(len(f.Data)), e.accounts); full != nil {
			e.noRoom(s, full)
			return
		}
		put, err := h.Files.Put(f.Data)
		if quota.Why(err) != "" {
			e.noRoom(s, err)
			return
		}
		if err != nil {
			h.storeFailed("store a file", err)
			e.fail(s, err)
			return
		}
		file = &put
		size = h.countFile(file.Size, int64(len(f.Text))+deliveryBytes, e.accounts)
	}
	message := agent.NewID()
	record := s.record(store.Delivery{Source: sourceDeliver, Sender: e.sender, ID: f.ID, Message: message, Queued: !live})
	note := func(tx *store.Tx) error {
		if err := record(tx); err != nil {
			return err
		}
		return size.save(tx)
	}
	answer := func(err error) {
		if err != nil {
			size.undo()
		}
		switch {
		case errors.Is(err, errTwice):
			e.twice = true
			h.post(s.id, e)
		case err != nil:
			e.fail(s, err)
		default:
			h.Metrics.Deliveries.WithLabelValues(map[bool]string{true: "live", false: "queued"}[live]).Inc()
			e.reply(&frame.Delivered{ID: f.ID, Queued: !live})
		}
	}
	if file == nil {
		s.append(b, &entry{Message: &frame.Message{ID: message, Text: f.Text, Final: true}}, note, answer)
		return
	}
	kind, mime := media.Correct(f.Kind, f.Mime, head(f.Data))
	s.append(b, &entry{Media: &frame.Media{ID: message, Kind: kind, Mime: mime, Filename: media.CleanName(f.Filename), Caption: f.Text,
		Size: file.Size}, Hash: file.Hash}, note, answer)
}

// noRoom answers a delivery for which there is no room, unless it was made before.
func (e *delivery) noRoom(s *session, full error) {
	if !e.known(s) {
		e.reply(s.hub.noRoom(full, e.f.Data != nil, e.f.ID))
	}
}

// known answers a delivery that was made before as it was answered then. It reports whether there is an answer.
func (e *delivery) known(s *session) bool {
	if e.f.ID == "" {
		return false
	}
	queued, known, err := s.hub.store.Delivered(s.hub.ctx, e.sender, e.f.ID)
	switch {
	case err != nil:
		s.hub.storeFailed("look a delivery up", err)
		e.fail(s, err)
		return true
	case known:
		e.reply(&frame.Delivered{ID: e.f.ID, Queued: queued})
	}
	return known
}

var errTwice = errors.New("the delivery was made already")

func head(b []byte) []byte { return b[:min(len(b), 4096)] }

// sendFile stores a file of the agent for the device.
func (s *session) sendFile(b *batch, e agent.SendFile) {
	s.hub.Metrics.FilesOut.Inc()
	kind, mime := e.File.Kind, e.File.Mime
	if kind == "" {
		kind = "document"
	}
	b.then(s.speak)
	m := &frame.Media{ID: e.ID, Kind: kind, Mime: mime, Filename: media.CleanName(e.File.Name), Caption: e.Caption, Size: e.File.Size, ReplyTo: e.ReplyTo, Source: e.Source}
	record := none
	if e.Source == frame.SourceCron {
		record = s.record(store.Delivery{Source: e.Source, Job: e.Job, Message: e.ID, Queued: s.conn == nil})
	}
	s.appendAll(b, &entry{Media: m, Hash: e.File.Hash}, func(tx *store.Tx) error {
		if e.N != 0 {
			return errors.Join(record(tx), tx.Said(e.N))
		}
		return record(tx)
	}, nil)
}
