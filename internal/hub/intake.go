package hub

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/access"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/media"
	"hermes-mobile/internal/quota"
	"hermes-mobile/internal/store"
)

// Bounds of the inputs that wait for the agent, which are in memory, too.
const (
	smallInbox    = 64 << 10 // may wait in a conversation whatever waits in others
	spareCommands = 100      // commands beyond the limit: /stop must get through where messages are too many
)

// intake accepts what a device sends to the agent: it checks, stores, acknowledges, and submits.
type intake struct {
	*core
	group        *group
	conversation *conversation
	uploads      *uploads
	probation    *probation
	calls        *calls

	storing amount // messages that are being stored, and wait for the agent then
}

// ref returns the id by which an error names a frame.
func ref(f frame.Up) string {
	switch f := f.(type) {
	case *frame.Text:
		return f.ID
	case *frame.Audio:
		return f.ID
	case *frame.Media:
		return f.ID
	case *frame.Stop:
		return f.ID
	case *frame.Call:
		return f.ID
	case *frame.Deliver:
		return f.ID
	case *frame.Answer:
		if f.ID == "" {
			return f.PromptID
		}
		return f.ID
	}
	return ""
}

// accept takes a frame that came on c, the live connection.
func (i *intake) accept(b *batch, c *conn, f frame.Up) {
	if !i.approved(i.dev.UserID) {
		i.unapproved(b, c, f)
		return
	}
	if i.forbids(b, c, f) {
		return
	}
	switch f := f.(type) {
	case *frame.Text:
		i.text(b, c, f)
	case *frame.Audio:
		i.audio(b, c, f)
	case *frame.Media:
		i.media(b, c, f)
	case *frame.Answer:
		i.answer(b, c, f)
	case *frame.Stop:
		i.stop(b, c, f)
	case *frame.Call:
		i.calls.call(b, c, f)
	}
}

// forbids answers a frame that the device may not send, or not yet. A frame that was accepted before is acknowledged.
func (i *intake) forbids(b *batch, c *conn, f frame.Up) bool {
	refusal := i.probation.refusal(f)
	if refusal == nil {
		return false
	}
	if !i.acceptedBefore(b, c, f) {
		if f, ok := f.(*frame.Media); ok {
			i.uploads.drop(f.ID, refusal)
		}
		b.then(func() { c.send(refusal) })
	}
	return true
}

// acceptedBefore answers a frame that was accepted before, or that cannot be looked up.
func (i *intake) acceptedBefore(b *batch, c *conn, f frame.Up) bool {
	switch f := f.(type) {
	case *frame.Deliver:
		b.flush()
		queued, known, err := i.store.Delivered(i.ctx, i.id, f.ID)
		if err != nil {
			i.storeFailed("look up a delivery", err)
			c.send(storeDown(f.ID))
			return true
		}
		if known && f.ID != "" {
			c.send(&frame.Delivered{ID: f.ID, Queued: queued})
			return true
		}
		return false
	case *frame.Answer:
		return i.seen(b, c, f.ID, ref(f))
	}
	return i.seen(b, c, ref(f), ref(f))
}

// seen reports whether a message id is known, and answers the duplicate. If it cannot be looked up it answers the error.
func (i *intake) seen(b *batch, c *conn, id, ref string) bool {
	if id == "" {
		return false
	}
	b.flush()
	known, err := i.store.Seen(i.ctx, i.dev.N, id)
	if err != nil {
		i.storeFailed("look up a message id", err)
		c.send(storeDown(ref))
		return true
	}
	if known {
		i.duplicate(c, id)
	}
	return known
}

func (i *intake) duplicate(c *conn, id string) {
	i.Metrics.Duplicates.Inc()
	c.send(&frame.Accepted{ID: id, Duplicate: true})
}

func (i *intake) text(b *batch, c *conn, f *frame.Text) {
	in := agent.Input{ID: f.ID, Kind: agent.Text, Text: f.Text, ReplyTo: f.ReplyTo, Steer: f.Steer}
	n, accounts := inputBytes(&in)+2*int64(len(f.ID)), i.accounts()
	full := i.messageFits(n, accounts)
	if full == nil {
		full = i.inboxFits(&in)
	}
	if full != nil {
		if !i.seen(b, c, f.ID, f.ID) { // a duplicate needs no room
			c.send(i.noRoom(full, false, f.ID))
		}
		return
	}
	i.submit(b, c, in, i.countMessage(n, accounts))
}

// submit stores a message, which was counted, and acknowledges it. Then the message waits for its turn.
func (i *intake) submit(b *batch, c *conn, in agent.Input, size counted) {
	id := in.ID
	in.Device, in.Quote = i.dev.Talks(), i.quote(in.ReplyTo)
	body, err := json.Marshal(in)
	if err != nil {
		panic(fmt.Sprintf("hub: encode input: %v", err))
	}
	hash := ""
	if in.File != nil {
		hash = in.File.Hash
	}
	device, conversation, dup := i.dev.N, i.group.conversation(), false
	share := none
	if i.group.shares() {
		share = i.group.share(&entry{Echo: echo(in, i.peer()), Hash: hash})
	}
	weight := inputBytes(&in)
	i.storing.messages++
	i.storing.bytes += weight
	b.do(func(tx *store.Tx) (err error) {
		if in.N, dup, err = tx.AcceptFor(conversation, device, id, store.Waiting, body, hash, time.Now()); err != nil || dup {
			return err
		}
		if err := size.save(tx); err != nil {
			return err
		}
		return share(tx)
	}, func(err error) {
		i.storing.messages--
		i.storing.bytes -= weight
		if err != nil || dup {
			size.undo()
		}
		switch {
		case err != nil:
			c.send(storeDown(id))
			return
		case dup:
			i.duplicate(c, id)
			return
		}
		i.Metrics.Accepted.WithLabelValues(kindName(in.Kind)).Inc()
		offline := !i.Agent.Status(in.Device).Online
		c.send(&frame.Accepted{ID: id, Queued: offline})
		if in.Device != i.id {
			i.group.peers.input(in.Device, in, offline, i.id)
			return
		}
		i.group.wake("")
		i.conversation.turns.enter(in, offline)
	})
}

// echo returns an input as the other devices of its conversation see it.
func echo(in agent.Input, from frame.Peer) *frame.Echo {
	e := &frame.Echo{ID: in.ID, From: from, Text: in.Text, ReplyTo: in.ReplyTo}
	if f := in.File; f != nil {
		e.File = &frame.EchoFile{Kind: f.Kind, Mime: f.Mime, Filename: f.Name, Size: f.Size}
	}
	return e
}

func kindName(k agent.InputKind) string {
	switch k {
	case agent.Voice:
		return "audio"
	case agent.Media:
		return "media"
	}
	return "text"
}

// quote returns the text of the message that a person replies to, while it is kept.
func (i *intake) quote(id string) string {
	if id == "" {
		return ""
	}
	text, err := i.store.Quote(i.ctx, i.dev.N, id)
	if err != nil {
		i.storeFailed("look up a quoted message", err)
	}
	return text
}

// inboxFits returns an error if a message cannot wait for the agent beside those that do.
func (i *intake) inboxFits(in *agent.Input) error {
	messages, bytes, most, mostBytes := i.storing.messages, i.storing.bytes, int64(i.InboxWaits), i.InboxBytes
	of := i.conversation.turns.waits
	if i.group.joined() {
		of = i.group.peers.waits(i.dev.Conversation)
	}
	if of != nil { // otherwise nothing waits there
		messages += of.messages.Load()
		bytes += of.bytes.Load()
	}
	all := i.waiting.Load() + i.storing.bytes + inputBytes(in)
	bytes += inputBytes(in)
	if isCommand(in) {
		most, mostBytes = most+spareCommands, mostBytes+smallInbox
	}
	if messages < most && bytes <= mostBytes && (bytes <= smallInbox || all <= i.InboxAll) {
		return nil
	}
	return &quota.Full{Reason: quota.Inbox, Retry: inboxRetry}
}

func noFiles(ref string) *frame.Error {
	return &frame.Error{Code: frame.Forbidden, Message: "the agent takes no files as it is connected now: see capabilities", Ref: ref}
}

func imagesOnly(ref string) *frame.Error {
	return &frame.Error{Code: frame.Forbidden, Message: "the agent takes images only, as it is connected now: see media_kinds in capabilities", Ref: ref}
}

// fileError returns the error for a file that is not acceptable.
func fileError(r *media.Refusal, ref string) *frame.Error {
	code := frame.BadFrame
	if r.TooBig {
		code = frame.TooBig
	}
	return &frame.Error{Code: code, Message: r.Reason, Ref: ref}
}

func (i *intake) audio(b *batch, c *conn, f *frame.Audio) {
	if !i.Agent.Status(i.dev.Talks()).FilesIn {
		c.send(noFiles(f.ID))
		return
	}
	if r := media.CheckAudio(f.Format, f.Data); r != nil {
		c.send(fileError(r, f.ID))
		return
	}
	if i.seen(b, c, f.ID, f.ID) {
		return
	}
	in := agent.Input{ID: f.ID, Kind: agent.Voice, Text: f.Text}
	if full := i.inputFits(&in, int64(len(f.Data))); full != nil {
		c.send(i.noRoom(full, true, f.ID))
		return
	}
	file, err := i.Files.Put(f.Data)
	if err != nil {
		i.fileFailed(c, f.ID, err)
		return
	}
	in.File = &agent.File{Kind: "voice", Mime: media.AudioMime(f.Format), Name: "voice." + f.Format, Hash: file.Hash, Size: file.Size}
	i.submit(b, c, in, i.countFile(file.Size, inputBytes(&in), i.accounts()))
}

// inputFits returns an error if a message with a file of a size cannot be stored.
func (i *intake) inputFits(in *agent.Input, size int64) error {
	if err := i.fileFits(size, i.accounts()); err != nil {
		return err
	}
	return i.inboxFits(in)
}

// fileFailed answers a file that was not stored: there is no room for it, or the store failed.
func (i *intake) fileFailed(c *conn, id string, err error) {
	if full := i.noRoom(err, true, id); full != nil {
		c.send(full)
		return
	}
	i.storeFailed("store a file", err)
	c.send(storeDown(id))
}

// mediaRefusal returns why the agent takes no such file now, nil if it does. Later parts of a file need not name its kind.
func (i *intake) mediaRefusal(f *frame.Media) *frame.Error {
	st := i.Agent.Status(i.dev.Talks())
	switch {
	case st.FilesIn || st.AnyFile:
		return nil
	case !st.Images:
		return noFiles(f.ID)
	case f.Kind != "image" && (f.Kind != "" || !i.uploads.has(f.ID)):
		return imagesOnly(f.ID)
	}
	return nil
}

// media takes a file, or a part of one.
func (i *intake) media(b *batch, c *conn, f *frame.Media) {
	if i.seen(b, c, f.ID, f.ID) {
		return
	}
	if refusal := i.mediaRefusal(f); refusal != nil {
		i.uploads.drop(f.ID, refusal)
		c.send(refusal)
		return
	}
	in := agent.Input{ID: f.ID, Kind: agent.Media}
	up, err := i.uploads.add(f, func(size int64) error { return i.inputFits(&in, size) })
	var r *media.Refusal
	var earlier *frame.Error
	switch {
	case errors.As(err, &r):
		c.send(fileError(r, f.ID))
		return
	case errors.As(err, &earlier): // of an earlier part
		c.send(earlier)
		return
	case err != nil:
		i.fileFailed(c, f.ID, err)
		return
	case up == nil:
		return
	}
	in.Text = up.Caption
	in.File = &agent.File{Kind: up.Kind, Mime: up.Mime, Name: up.Filename, Hash: up.File.Hash, Size: up.File.Size}
	i.submit(b, c, in, i.countFile(up.File.Size, inputBytes(&in), i.accounts()))
}

// spoiled answers a part of a file that cannot be read.
func (i *intake) spoiled(b *batch, c *conn, e *frame.Error) {
	if i.approved(i.dev.UserID) {
		i.uploads.drop(e.Ref, e)
	}
	b.then(func() { c.send(e) })
}

// answer decides a card. Exactly one answer counts; a later one is told the decision.
func (i *intake) answer(b *batch, c *conn, f *frame.Answer) {
	b.flush()
	if i.seen(b, c, f.ID, ref(f)) {
		return
	}
	if i.group.joined() && i.conversation.cards.find(f.PromptID) == nil {
		row, found, err := i.store.Card(i.ctx, f.PromptID)
		switch {
		case err != nil:
			i.storeFailed("look up a card", err)
			c.send(storeDown(ref(f)))
			return
		case found && row.Device == i.group.primary:
			i.group.peers.answer(i.dev.Conversation, c, f, i.dev.N, i.peer())
			return
		}
	}
	i.answerFrom(b, c, f, i.dev.N, i.peer())
}

// answerOf decides a card of this conversation for a participant.
func (i *intake) answerOf(b *batch, c *conn, f *frame.Answer, device int64, by frame.Peer) {
	b.flush()
	if i.dev == nil || !slices.Contains(i.group.participants, by.ID) {
		c.send(&frame.Error{Code: frame.Forbidden, Message: "this card was shown in another conversation: answer it there", Ref: ref(f)})
		return
	}
	i.answerFrom(b, c, f, device, by)
}

// answerFrom decides a card of this conversation for one of its devices.
func (i *intake) answerFrom(b *batch, c *conn, f *frame.Answer, device int64, by frame.Peer) {
	cards := &i.conversation.cards
	k := cards.find(f.PromptID)
	if k == nil || !k.open() {
		i.answerLate(b, c, f, device)
		return
	}
	choice, refusal := k.choice(f)
	if refusal != nil {
		c.send(refusal)
		return
	}
	cards.decide(b, k, choice, &by, func(tx *store.Tx) error {
		if f.ID == "" {
			return nil
		}
		_, _, err := tx.Accept(device, f.ID, store.Done, nil, "", time.Now())
		return err
	}, func(b *batch, v verdict) {
		switch {
		case errors.Is(v.err, store.ErrTooNew): // it became so meanwhile
			c.send(tooNew(i.AnswerWait, ref(f)))
		case v.err != nil:
			c.send(storeDown(ref(f)))
		case !v.first:
			i.answerLate(b, c, f, device)
		default:
			i.Metrics.Cards.WithLabelValues("answered").Inc()
			if f.ID != "" {
				c.send(&frame.Accepted{ID: f.ID})
			}
			cards.tell()
		}
	})
}

// answerLate answers an answer to a card that is decided, unknown, or another device's.
func (i *intake) answerLate(b *batch, c *conn, f *frame.Answer, device int64) {
	row, found, err := i.store.Card(i.ctx, f.PromptID)
	if err != nil {
		i.storeFailed("look up a card", err)
		c.send(storeDown(ref(f)))
		return
	}
	if found && row.Device != i.dev.N {
		c.send(&frame.Error{Code: frame.Forbidden, Message: "this card was shown to another device: answer it there", Ref: ref(f)})
		return
	}
	done := &frame.PromptDone{PromptID: f.PromptID, ID: f.PromptID, OptionID: row.OptionID, Expired: !found || row.Expired, By: i.conversation.cards.decidedBy(row)}
	if !i.remembers(f.ID) {
		c.send(done)
		if f.ID != "" {
			c.send(&frame.Accepted{ID: f.ID})
		}
		return
	}
	size := i.countID(f.ID)
	b.do(func(tx *store.Tx) error {
		if _, _, err := tx.Accept(device, f.ID, store.Done, nil, "", time.Now()); err != nil {
			return err
		}
		return size.save(tx)
	}, func(err error) {
		if err != nil {
			size.undo()
			c.send(storeDown(ref(f)))
			return
		}
		c.send(done)
		c.send(&frame.Accepted{ID: f.ID})
	})
}

// stop interrupts the running turn.
func (i *intake) stop(b *batch, c *conn, f *frame.Stop) {
	if f.ID == "" {
		b.then(i.interrupt)
		return
	}
	if !i.remembers(f.ID) {
		if !i.seen(b, c, f.ID, f.ID) {
			b.then(func() {
				c.send(&frame.Accepted{ID: f.ID})
				i.interrupt()
			})
		}
		return
	}
	device, dup, size := i.dev.N, false, i.countID(f.ID)
	b.do(func(tx *store.Tx) (err error) {
		if _, dup, err = tx.Accept(device, f.ID, store.Done, nil, "", time.Now()); err != nil || dup {
			return err
		}
		return size.save(tx)
	}, func(err error) {
		if err != nil || dup {
			size.undo()
		}
		switch {
		case err != nil:
			c.send(storeDown(f.ID))
		case dup:
			i.duplicate(c, f.ID)
		default:
			c.send(&frame.Accepted{ID: f.ID})
			i.interrupt()
		}
	})
}

func (i *intake) interrupt() {
	if i.group.joined() {
		i.group.peers.stop(i.dev.Conversation)
		return
	}
	i.conversation.turns.stop()
}

// unapproved answers a device that is not approved, with an approval code or with how long to wait. Nothing is accepted.
// The answer goes to c, which may not be the live connection any more when it is given.
func (i *intake) unapproved(b *batch, c *conn, f frame.Up) {
	switch f.(type) {
	case *frame.Text, *frame.Audio, *frame.Media:
	default:
		b.then(func() {
			c.send(&frame.Error{Code: frame.Forbidden, Message: "this device is not approved yet: send a message to get a pairing code", Ref: ref(f)})
		})
		return
	}
	if m, ok := f.(*frame.Media); ok && m.Part > 0 {
		return // the first part of the file was answered
	}
	b.then(func() {
		c.send(&frame.Message{ID: agent.NewID(), Text: i.approvalText(), Chunk: frame.Chunk{Total: 1}, Final: true, ReplyTo: ref(f)})
	})
}

// approvalText requests an approval code, and returns the message that tells it.
func (i *intake) approvalText() string {
	code, err := i.Pairing.Request(i.dev.UserID, i.dev.UserName)
	var delay *access.DelayError
	switch {
	case err == nil:
		return "This device is not approved yet. Its pairing code is " + code + ", valid for one hour. The owner of the agent approves it with\n\n    " +
			"hermes-mobile pairing approve " + code + "\n\nor with `hermes pairing approve mobile " + code + "`. Then send the message again."
	case errors.As(err, &delay):
		why := "a pairing code was given a short while ago"
		if errors.Is(err, access.ErrTooMany) {
			why = "too many devices are waiting for approval"
		} else if errors.Is(err, access.ErrLocked) {
			why = "too many wrong codes were tried"
		}
		return "This device is not approved yet, and " + why + ": wait for the owner, or try again in " + minutes(delay.RetryAfter) + "."
	default:
		i.log.Error("approval request failed", "device", i.id, "err", err)
		return "This device is not approved yet, and no pairing code can be made now: ask the owner of the agent to look at the server's log."
	}
}

func minutes(d time.Duration) string {
	n := int((d + time.Minute - 1) / time.Minute)
	if n <= 1 {
		return "a minute"
	}
	return strings.TrimSpace(fmt.Sprintf("%d minutes", n))
}
