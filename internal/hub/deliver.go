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

// homeAddress is the address of the home channel.
const homeAddress = "home"

// deliver takes a delivery from a connection: of a sender with a delivery token, or from this machine. given: the session
// gives the frame's memory back.
func (c *reader) deliver(f *frame.Deliver, held int64) (given bool) {
	sender := c.sender
	if sender == "" {
		if !c.loopback {
			c.send(&frame.Error{Code: frame.Forbidden, Message: "deliveries come from the server's own machine, or with a token of MOBILE_DELIVER_TOKENS", Ref: f.ID})
			return false
		}
		sender = c.device.id
	}
	if c.device == nil {
		c.hub.deliver(sender, c.hub.senderAccount(c.label), f, c.send)
	} else {
		given = c.device.session.post(&evFrame{d: c.device, c: &c.conn, f: f, held: held})
		c.device.wait()
	}
	if to := c.hub.Addressee(f.To); to != "" {
		c.hub.device(to).wait() // a sender that is faster than the disk waits for it
	}
	return given
}

// greetSender answers the hello of a connection with a delivery token. A sender is no device: it may be connected several
// times, is bound to nothing, and has no address.
func (c *reader) greetSender(f *frame.Hello, label string) {
	c.sender, c.label = f.Device.ID, label
	c.hub.Metrics.Hellos.WithLabelValues("sender").Inc()
	c.hub.log.Info("sender connected", "device", f.Device.ID, "addr", c.addr)
	st := c.hub.Agent.Status(f.Device.ID)
	c.send(&frame.Ready{Session: frame.SessionPrefix + f.Device.ID, AvatarURL: c.hub.AvatarURL, Capabilities: frame.Capabilities{Deliver: true, Accepted: true,
		Call: []string{}, MaxMediaBytes: c.hub.MaxMedia, MaxFrameBytes: frame.MaxFrame}, Protocol: frame.Protocol, Server: "hermes-mobile/" + c.hub.Version,
		Approved: true, Agent: agentState(st), Resume: frame.Span{Epoch: "none", From: 1}})
}

// Deliver sends a text or file to a device, as the frame does, and waits for the answer: *frame.Delivered or *frame.Error.
// The owner's deliveries do not count towards a daily share.
func (o *Owner) Deliver(ctx context.Context, sender string, f *frame.Deliver) (frame.Down, error) {
	answer := make(chan frame.Down, 1)
	o.hub.deliver(sender, nil, f, func(d frame.Down) { answer <- d })
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
	h.post(to, &evDelivery{sender: sender, accounts: accounts, f: f, reply: reply})
}

// Addressee returns the device of an address, empty for the home channel if there is none.
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

// evDelivery: somebody sends this device a text or file.
type evDelivery struct {
	onDevice
	sender   string
	accounts []quota.Account // on which it is counted
	f        *frame.Deliver
	reply    func(frame.Down)
	twice    bool // it was made before, as storing it has shown
}

// jsonGrowth is how many bytes one byte of a text becomes in JSON at most.
const jsonGrowth = 6

// quick is false for a file, which is written to the disk first, for a delivery that was made before, and for a full
// outbox: both are looked up.
func (e *evDelivery) quick() bool {
	n := int64(len(e.f.Text)) + deliveryBytes
	return e.f.Data == nil && !e.twice && e.d.out.held.bytes+jsonGrowth*n <= e.d.OutboxBytes && !e.d.measures(n)
}

func (e *evDelivery) weight() int { return len(e.f.Data) + len(e.f.Text) }

func (e *evDelivery) fail(error) { e.reply(storeDown(e.f.ID)) }

func (e *evDelivery) apply(b *batch) {
	b.flush()
	d, f := e.d, e.f
	if e.twice && e.known() {
		return
	}
	if refusal := e.refusal(); refusal != "" {
		if !e.known() {
			d.hub.offline(f, e.reply, refusal)
		}
		return
	}
	file, size, ok := e.admit()
	if !ok {
		return
	}
	live, message := d.out.conn != nil, agent.NewID()
	record := d.deliveries.record(store.Delivery{Source: sourceDeliver, Sender: e.sender, ID: f.ID, Message: message, Queued: !live}, d.out.seq+1)
	op := func(tx *store.Tx) error {
		if err := record(tx); err != nil {
			return err
		}
		return size.save(tx)
	}
	after := func(err error) {
		if err != nil {
			size.undo()
		}
		switch {
		case errors.Is(err, errTwice):
			e.twice = true
			d.hub.post(d.id, e)
		case err != nil:
			e.fail(err)
		default:
			d.Metrics.Deliveries.WithLabelValues(map[bool]string{true: "live", false: "queued"}[live]).Inc()
			e.reply(&frame.Delivered{ID: f.ID, Queued: !live})
		}
	}
	if file == nil {
		d.out.append(b, &entry{Message: &frame.Message{ID: message, Text: f.Text, Final: true}}, op, after)
		return
	}
	kind, mime := media.Correct(f.Kind, f.Mime, head(f.Data))
	d.out.append(b, &entry{Media: &frame.Media{ID: message, Kind: kind, Mime: mime, Filename: media.CleanName(f.Filename), Caption: f.Text,
		Size: file.Size}, Hash: file.Hash}, op, after)
}

// refusal returns why the device can't be delivered to now, empty if it can.
func (e *evDelivery) refusal() string {
	d, f := e.d, e.f
	live := d.out.conn != nil
	switch {
	case d.dev == nil || d.dev.Revoked || !d.dev.Bound() || !d.approved(d.dev.UserID):
		return "there is no approved device of this name: check \"to\""
	case !live && (f.RequireLive || d.RejectOffline):
		return "the device is not connected"
	case !live && (d.out.seq-d.dev.Sent >= int64(d.OutboxEntries) || !d.out.unsentFits(int64(len(f.Text))+rowBytes)): // sent entries may make room
		return "too much waits for this device already: it must connect first"
	}
	return ""
}

// admit stores the file of a delivery, if it has one, and counts the delivery. If there is no room for it, or the store
// fails, admit answers that and ok is false.
func (e *evDelivery) admit() (file *media.File, size counted, ok bool) {
	d, f := e.d, e.f
	beside := int64(len(f.Text)) + deliveryBytes
	if f.Data == nil {
		if full := d.messageFits(beside, e.accounts); full != nil {
			e.noRoom(full)
			return nil, counted{}, false
		}
		return nil, d.countMessage(beside, e.accounts), true
	}
	if int64(len(f.Data)) > d.MaxMedia {
		e.reply(&frame.Error{Code: frame.TooBig, Message: "the file is larger than max_media_bytes", Ref: f.ID})
		return nil, counted{}, false
	}
	if full := d.fileFits(int64(len(f.Data)), e.accounts); full != nil {
		e.noRoom(full)
		return nil, counted{}, false
	}
	put, err := d.Files.Put(f.Data)
	switch {
	case quota.Why(err) != "":
		e.noRoom(err)
		return nil, counted{}, false
	case err != nil:
		d.storeFailed("store a file", err)
		e.fail(err)
		return nil, counted{}, false
	}
	return &put, d.countFile(put.Size, beside, e.accounts), true
}

// noRoom answers a delivery for which there is no room, unless it was made before.
func (e *evDelivery) noRoom(full error) {
	if !e.known() {
		e.reply(e.d.noRoom(full, e.f.Data != nil, e.f.ID))
	}
}

// known answers a delivery that was made before as it was answered then. It reports whether there is an answer.
func (e *evDelivery) known() bool {
	if e.f.ID == "" {
		return false
	}
	d := e.d
	queued, known, err := d.store.Delivered(d.ctx, e.sender, e.f.ID)
	switch {
	case err != nil:
		d.storeFailed("look up a delivery", err)
		e.fail(err)
		return true
	case known:
		e.reply(&frame.Delivered{ID: e.f.ID, Queued: queued})
	}
	return known
}

func head(b []byte) []byte { return b[:min(len(b), 4096)] }

// deliverFor takes a delivery from the live connection of the device, which is on this machine.
func (d *device) deliverFor(b *batch, c *conn, f *frame.Deliver) {
	if !d.approved(d.dev.UserID) { // a tunnel makes every phone local
		b.then(func() {
			c.send(&frame.Error{Code: frame.Forbidden, Message: "this device is not approved: approve it, or deliver with a token of MOBILE_DELIVER_TOKENS", Ref: f.ID})
		})
		return
	}
	if !d.intake.forbids(b, c, f) {
		accounts := d.accounts()
		b.then(func() { d.hub.deliver(d.id, accounts, f, c.send) })
	}
}
