package hub_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"hermes-mobile/frame"
	"hermes-mobile/internal/access"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/hub"
	"hermes-mobile/internal/quota"
)

// file is a file of a size in one frame.
func file(id string, size int) *frame.Media {
	return &frame.Media{ID: id, Kind: "document", Filename: "x.bin", Data: bytes.Repeat([]byte(id), size/len(id)+1)[:size], Parts: 1}
}

// rejects expects an error for what was sent.
func (c *client) rejects(f frame.Up, id string, code frame.Code) *frame.Error {
	c.w.t.Helper()
	c.send(f)
	e := expect[*frame.Error](c)
	if e.Code != code || e.Ref != id {
		c.w.t.Errorf("%s gets %s, want %s", id, show(e), code)
	}
	return e
}

// accepted expects a receipt for what was sent.
func (c *client) accepted(f frame.Up, id string) {
	c.w.t.Helper()
	c.send(f)
	if a := expect[*frame.Accepted](c); a.ID != id || a.Duplicate {
		c.w.t.Errorf("%s gets %s", id, show(a))
	}
}

// stored is how many files the server has.
func (w *world) stored() (n int) {
	w.t.Helper()
	for _, e := range value[[]os.DirEntry](w.t)(os.ReadDir(filepath.Join(w.dir, "files"))) {
		if !e.IsDir() {
			n++
		}
	}
	return n
}

// A device that has used its share up is told so, in words and with when to try again; it can still talk for a while, others are not
// touched, a restart gives it no fresh share, and nothing of what was refused is kept.
func TestShareOfADevice(t *testing.T) {
	const share = 1 << 20
	w := newWorld(t, func(o *hub.Options) { o.DeviceShare = share })
	c, other := w.connect("d"), w.connect("e", withToken(extraToken))
	c.accepted(file("f1", 600<<10), "f1")
	e := c.rejects(file("f2", 500<<10), "f2", frame.NoSpace)
	if e.RetryAfter < 1 || e.RetryAfter > 86400 || !strings.Contains(e.Message, "1.0 MiB a day") || !strings.Contains(e.Message, "again in") {
		t.Errorf("refused with %s", show(e))
	}
	wav := append([]byte("RIFF\x24\x00\x00\x00WAVEfmt "), make([]byte, 500<<10)...)
	c.rejects(&frame.Audio{ID: "v1", Format: "wav", Data: wav}, "v1", frame.NoSpace)
	c.accepted(file("f3", 300<<10), "f3")
	c.send(file("f1", 600<<10)) // what is known already needs no room
	if a := expect[*frame.Accepted](c); !a.Duplicate {
		t.Errorf("a repeat gets %s", show(a))
	}
	if n := w.stored(); n != 2 {
		t.Errorf("%d files are kept, 2 were accepted", n)
	}
	for i := range 3 {
		c.text(fmt.Sprint("m", i), strings.Repeat("x", 80<<10))
	}
	e = c.rejects(&frame.Text{ID: "m3", Text: strings.Repeat("x", 200<<10)}, "m3", frame.RateLimited)
	if e.RetryAfter < 1 {
		t.Errorf("refused with %s", show(e))
	}
	c.text("m4", "short")
	if c.send(&frame.Text{ID: "m1", Text: "again"}); !expect[*frame.Accepted](c).Duplicate {
		t.Error("a repeat is not known")
	}
	other.accepted(file("f9", 900<<10), "f9")
	other.text("m1", strings.Repeat("x", 100<<10))

	w.restart()
	c = w.connect("d")
	c.rejects(file("f2", 500<<10), "f2", frame.NoSpace)
	c.text("m5", "short")
	w.connect("e", withToken(extraToken)).rejects(file("f8", 200<<10), "f8", frame.NoSpace)
}

// The same content sent again and again is one file on the disk, and counts on the share each time: it is written each time.
func TestSameFileAgain(t *testing.T) {
	w := newWorld(t, func(o *hub.Options) { o.DeviceShare = 1 << 20 })
	c := w.connect("d")
	same := func(id string) *frame.Media {
		f := file("f", 200<<10)
		f.ID = id
		return f
	}
	for i := range 4 {
		c.accepted(same(fmt.Sprint(i)), fmt.Sprint(i))
	}
	c.rejects(same("5"), "5", frame.NoSpace)
	if n := w.stored(); n != 1 {
		t.Errorf("%d files are kept", n)
	}
}

// Many devices that came by one app token have a bound together; a device that was paired by itself is not held back by them.
func TestShareOfAToken(t *testing.T) {
	w := newWorld(t, func(o *hub.Options) { o.DeviceShare, o.TokenShare = 1<<20, 2<<20 })
	refused := 0
	for i := range 5 {
		c := w.connect(fmt.Sprint("d", i), withUser("one"))
		c.send(file("f", 600<<10))
		f, err := c.any()
		ok(t, err)
		if e, is := f.(*frame.Error); is && e.Code == frame.NoSpace {
			refused++
		}
	}
	if refused != 2 {
		t.Errorf("%d of 5 devices were refused, want 2", refused)
	}
	code, _, _, err := w.hub.Owner().Invite(ctx, access.PairingCode{}, patience)
	ok(t, err)
	w.connect("paired", withPair(code)).accepted(file("f", 900<<10), "f")
}

// A file in parts is refused at its first part when it says its size, and else as soon as it is too much; saying too little helps nobody.
// Later parts get the same answer, the parts in between take no place, and what is left over fits.
func TestShareOfAnUpload(t *testing.T) {
	const share = 1 << 20
	w := newWorld(t, func(o *hub.Options) { o.DeviceShare = share })
	c := w.connect("d")
	part := func(id string, i, parts int, size int64) *frame.Media {
		return &frame.Media{ID: id, Kind: "document", Data: bytes.Repeat([]byte{byte(i)}, 200<<10), Part: i, Parts: parts, Size: size}
	}
	for id, size := range map[string]int64{"a1": 2 << 20, "a2": 8 << 20} {
		c.rejects(part(id, 0, 10, size), id, frame.NoSpace)
		c.rejects(part(id, 1, 10, 0), id, frame.NoSpace)
	}
	c.rejects(part("a3", 0, 10, 1<<62), "a3", frame.TooBig) // larger than any file may be
	for id, size := range map[string]int64{"b1": 0, "b2": 1, "b3": -1 << 62} {
		var f frame.Down
		for i := 0; i < 10 && f == nil; i++ {
			c.send(part(id, i, 10, size))
			if got := c.sync(); len(got) > 0 {
				f = got[0]
				if i != 5 {
					t.Errorf("%s is answered at part %d: %s", id, i, show(f))
				}
			}
		}
		if e, is := f.(*frame.Error); !is || e.Code != frame.NoSpace || e.Ref != id {
			t.Errorf("%s ends with %v", id, f)
		}
	}
	if left := value[[]os.DirEntry](t)(os.ReadDir(filepath.Join(w.dir, "files", "incoming"))); len(left) != 0 {
		t.Errorf("%d temporary files are left", len(left))
	}
	for i := range 4 {
		c.send(part("c", i, 4, 800<<10))
	}
	if a := expect[*frame.Accepted](c); a.ID != "c" {
		t.Errorf("what fits gets %s", show(a))
	}
	if n := w.stored(); n != 1 {
		t.Errorf("%d files are kept", n)
	}
}

// Deliveries count on the token of their sender, whatever device id it names. The owner's have no share, and one that was made before is
// answered as it was then.
func TestShareOfASender(t *testing.T) {
	w := newWorld(t, func(o *hub.Options) { o.DeviceShare = 1 << 20 })
	c := w.connect("d")
	deliver := func(s *client, id string, size int) frame.Down {
		s.send(&frame.Deliver{ID: id, To: "d", Kind: "document", Filename: "x", Data: bytes.Repeat([]byte(id), size/len(id))})
		f, err := s.any()
		ok(t, err)
		return f
	}
	s := w.connect("s1", withToken(deliverToken))
	if d, is := deliver(s, "x1", 700<<10).(*frame.Delivered); !is {
		t.Fatalf("got %v", d)
	}
	for _, name := range []string{"s1", "s2", "s3"} {
		e, is := deliver(w.connect(name, withToken(deliverToken)), "x2", 700<<10).(*frame.Error)
		if !is || e.Code != frame.NoSpace || e.Ref != "x2" {
			t.Errorf("%s got %v", name, e)
		}
	}
	if d, is := deliver(s, "x1", 700<<10).(*frame.Delivered); !is {
		t.Errorf("a delivery that was made gets %v", d)
	}
	// Texts go on for a while, then are told to come later.
	for i := range 5 {
		s.send(&frame.Deliver{ID: fmt.Sprint("t", i), To: "d", Text: strings.Repeat("x", 100<<10)})
		f, err := s.any()
		ok(t, err)
		if e, is := f.(*frame.Error); is {
			if e.Code != frame.RateLimited || e.RetryAfter < 1 || i < 4 {
				t.Errorf("text %d gets %s", i, show(e))
			}
		} else if i == 5 {
			t.Errorf("text %d gets %s", i, show(f))
		}
	}
	if d, err := w.hub.Owner().Deliver(ctx, "owner", &frame.Deliver{ID: "o1", To: "d", Kind: "document", Data: make([]byte, 2<<20)}); err != nil || fmt.Sprintf("%T", d) != "*frame.Delivered" {
		t.Errorf("the owner's delivery gets %v, %v", d, err)
	}
	c.send(file("f", 700<<10)) // the addressee pays nothing
	find(c, func(a *frame.Accepted) bool { return a.ID == "f" })
}

// The data folder is full: files are refused whoever sends them, and messages go on until nothing is left at all. With room again all
// is as before, and what was refused is taken.
func TestBudgetIsUsedUp(t *testing.T) {
	const limit = 8 << 20
	var database atomic.Int64
	var b *quota.Budget
	w := newWorld(t, func(o *hub.Options) {
		b = quota.NewBudget(quota.Options{Limit: limit, Database: func() (int64, int64) { return database.Load(), 0 }})
		o.Files.Bound(b, 0)
		o.Budget = b
	})
	c, other := w.connect("d"), w.connect("e")
	sender := w.connect("s", withToken(deliverToken))
	for i := range 3 {
		c.accepted(file(fmt.Sprint("f", i), 2<<20), fmt.Sprint("f", i))
	}
	for _, c := range []*client{c, other} {
		e := c.rejects(file("g", 2<<20), "g", frame.NoSpace)
		if !strings.Contains(e.Message, "MOBILE_MAX_DATA") || e.RetryAfter != 0 {
			t.Errorf("refused with %s", show(e))
		}
	}
	sender.rejects(&frame.Deliver{ID: "x1", To: "d", Data: make([]byte, 2<<20)}, "x1", frame.NoSpace)
	if _, err := w.files.PutReader(bytes.NewReader(make([]byte, 2<<20)), 0); quota.Why(err) != quota.Total {
		t.Errorf("a file of the agent: %v", err)
	}
	if w.hub.StoreFailedAt() != (w.hub.StoreFailedAt()) || !w.hub.StoreFailedAt().IsZero() {
		t.Error("a limit that is reached counts as a failure of the store")
	}
	other.text("m1", "texts go on")
	sender.send(&frame.Deliver{ID: "x2", To: "d", Text: "also these"})
	expect[*frame.Delivered](sender)
	if m := c.message(); m.Text != "also these" {
		t.Errorf("got %s", show(m))
	}

	database.Store(limit) // and so nothing is left
	b.Measure()
	e := other.rejects(&frame.Text{ID: "m2", Text: "now not any more"}, "m2", frame.Internal)
	if !strings.Contains(e.Message, "MOBILE_MAX_DATA") {
		t.Errorf("refused with %s", show(e))
	}
	sender.rejects(&frame.Deliver{ID: "x3", To: "d", Text: "nor these"}, "x3", frame.Internal)
	w.say("d", "the agent's replies are always stored")
	if m := c.message(); !strings.HasPrefix(m.Text, "the agent's") {
		t.Errorf("got %s", show(m))
	}
	other.accepted(&frame.Stop{ID: "s1"}, "s1") // acts, and is not remembered
	receive(t, w.agent.stops, "the agent to be stopped")

	database.Store(0)
	b.Measure()
	other.text("m2", "now")
	sender.send(&frame.Deliver{ID: "x3", To: "d", Text: "and these"})
	expect[*frame.Delivered](sender)
	b.Give(4 << 20)
	other.accepted(file("g", 2<<20), "g")
}

// The database grows by messages: it is measured again now and then, so that they cannot go far beyond the limit.
func TestMessagesUseTheBudgetUp(t *testing.T) {
	const limit = 16 << 20
	w := newWorld(t, func(o *hub.Options) {
		st := o.Store
		o.Budget = quota.NewBudget(quota.Options{Limit: limit, Database: func() (int64, int64) {
			free, err := st.Reusable(ctx)
			ok(t, err)
			return st.Size(), free
		}})
		o.InboxBytes = 1 << 30
	})
	w.agent.online(false)
	c := w.connect("d")
	for i := range 64 {
		c.send(&frame.Text{ID: fmt.Sprint("m", i), Text: strings.Repeat("x", 1<<20)})
		f, err := c.any()
		ok(t, err)
		if e, is := f.(*frame.Error); is {
			if e.Code != frame.Internal {
				t.Errorf("refused with %s", show(e))
			}
			if size := w.store.Size(); size > limit+8<<20 || i < 5 {
				t.Errorf("after %d messages the database has %d bytes", i, size)
			}
			// When the agent has taken some, what they took is free within the database, which stays as large.
			w.agent.online(true)
			for range 3 {
				w.post("d", agent.Done{N: w.take().N})
			}
			until(t, "room", func() bool {
				c.send(&frame.Text{ID: "after", Text: "hello"})
				return find(c, func(f frame.Down) bool {
					switch f.(type) {
					case *frame.Accepted, *frame.Error:
						return true
					}
					return false
				}) != nil && w.rowsOf("inbox WHERE id='after'") == 1
			})
			return
		}
	}
	t.Error("the database grows without end")
}

// While the agent is away messages wait, and no more than a number and so many bytes of them. The next is told to come later, a command
// gets through, a repeat is known, and when the agent has taken some there is room again. A restart changes nothing.
func TestInboxIsFull(t *testing.T) {
	for name, change := range map[string]func(*hub.Options){
		"by number":                 func(o *hub.Options) { o.InboxWaits = 4 },
		"by bytes":                  func(o *hub.Options) { o.InboxBytes = 450_000 },
		"by bytes, of all together": func(o *hub.Options) { o.InboxAll = 450_000 },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, change)
			w.agent.online(false)
			c := w.connect("d")
			long := strings.Repeat("x", 100_000)
			for i := range 4 {
				if a := c.text(fmt.Sprint("m", i), long); !a.Queued {
					t.Errorf("receipt %s", show(a))
				}
			}
			full := func(c *client) {
				t.Helper()
				if e := c.rejects(&frame.Text{ID: "m4", Text: long}, "m4", frame.RateLimited); e.RetryAfter < 1 || !strings.Contains(e.Message, "wait for the agent") {
					t.Errorf("refused with %s", show(e))
				}
				c.rejects(file("f1", 10<<10), "f1", frame.RateLimited)
			}
			if name == "by number" {
				full(c)
				c.text("c1", "/stop")
			} else {
				c.rejects(&frame.Text{ID: "m4", Text: long}, "m4", frame.RateLimited)
			}
			if c.send(&frame.Text{ID: "m2", Text: long}); !expect[*frame.Accepted](c).Duplicate {
				t.Error("a repeat is not known")
			}
			w.connect("e").text("m1", "hello") // another conversation
			w.close()
			a := newAgent()
			a.status.Online = false
			w.start(a)
			until(t, "what waits to be read back", func() bool { return w.hub.Sessions() == 2 })
			c = w.connect("d")
			c.sync()
			c.rejects(&frame.Text{ID: "m4", Text: long}, "m4", frame.RateLimited)
			w.agent.online(true)
			for range 3 {
				h := w.take()
				w.reply(h, "fine")
			}
			until(t, "room for a message", func() bool {
				c.send(&frame.Text{ID: "m4", Text: long})
				for {
					f, err := c.any()
					ok(t, err)
					switch f := f.(type) {
					case *frame.Accepted:
						return true
					case *frame.Error:
						if f.Code != frame.RateLimited {
							t.Fatalf("refused with %s", show(f))
						}
						return false
					}
				}
			})
		})
	}
}

// A great many at once are as bounded as one after the other.
func TestInboxFilledAtOnce(t *testing.T) {
	w := newWorld(t, func(o *hub.Options) { o.InboxWaits = 10 })
	w.agent.online(false)
	c := w.connect("d")
	c.sync()
	release := w.holdDisk()
	c.send(&frame.Text{ID: "first", Text: "x"})
	until(t, "the disk to be waited for", func() bool { return w.hub.Waiting("d") == 0 })
	for i := range 199 {
		c.send(&frame.Text{ID: fmt.Sprint("m", i), Text: "x"})
	}
	c.send(&frame.Ping{ID: "p"}) // is answered by the reader, when all before it are read
	find[*frame.Pong](c, nil)
	release()
	accepted := 0
	for _, f := range c.sync() {
		if _, is := f.(*frame.Accepted); is {
			accepted++
		}
	}
	if accepted != 10 {
		t.Errorf("%d were accepted, 10 may wait", accepted)
	}
}

// What a member of a shared conversation sends waits there, and is bounded by what waits there.
func TestInboxOfASharedConversation(t *testing.T) {
	w := newWorld(t, func(o *hub.Options) { o.InboxWaits = 4 })
	phone, tablet := w.share()
	w.agent.online(false)
	find[*frame.CapabilitiesChanged](phone, nil)
	find[*frame.CapabilitiesChanged](tablet, nil)
	for i := range 4 {
		c, o := phone, tablet
		if i%2 == 1 {
			c, o = tablet, phone
		}
		c.text(fmt.Sprint("m", i), "x")
		expect[*frame.Echo](o)
	}
	phone.rejects(&frame.Text{ID: "m5", Text: "x"}, "m5", frame.RateLimited)
	tablet.rejects(&frame.Text{ID: "m6", Text: "x"}, "m6", frame.RateLimited)
	ok(t, w.hub.Owner().Revoke(ctx, "phone")) // what waited is gone
	ok(t, w.hub.Owner().Unbind(ctx, "phone"))
	w.connect("phone", withUser("anna")).text("m7", "x")
}

// What could not be stored counts on nobody's share.
func TestShareWhenTheStoreFails(t *testing.T) {
	w := newWorld(t, func(o *hub.Options) { o.DeviceShare = 1 << 20 })
	c, s := w.connect("d"), w.connect("s", withToken(deliverToken))
	for _, table := range []string{"inbox", "upload_day", "outbox"} {
		w.failWrites(table)
		for range 5 {
			if table != "outbox" {
				c.rejects(file("f1", 400<<10), "f1", frame.Internal)
			}
			if table != "inbox" {
				s.rejects(&frame.Deliver{ID: "x1", To: "d", Data: make([]byte, 400<<10)}, "x1", frame.Internal)
			}
		}
		w.healWrites(table)
	}
	c.accepted(file("f1", 400<<10), "f1")
	c.accepted(file("f2", 400<<10), "f2")
	c.rejects(file("f3", 400<<10), "f3", frame.NoSpace)
	s.send(&frame.Deliver{ID: "x1", To: "d", Data: make([]byte, 400<<10)})
	find[*frame.Delivered](s, nil)
	// One that was made before is answered, and not counted again.
	for range 5 {
		s.send(&frame.Deliver{ID: "x1", To: "d", Data: make([]byte, 400<<10)})
		find[*frame.Delivered](s, nil)
	}
	s.send(&frame.Deliver{ID: "x2", To: "d", Data: make([]byte, 400<<10)})
	find[*frame.Delivered](s, nil)
}

// Ids of what is done at once are rows, too. A device that sends ever new ones is stopped from filling the disk with them, and not from
// stopping the agent.
func TestIDsCount(t *testing.T) {
	w := newWorld(t, func(o *hub.Options) { o.DeviceShare = 100 << 10 })
	c := w.connect("d")
	const many = 1000
	go func() {
		for i := range many {
			_ = c.write(&frame.Stop{ID: fmt.Sprint("s", i)})
			_ = c.write(&frame.Answer{ID: fmt.Sprint("a", i), PromptID: fmt.Sprint("p", i), OptionID: "once"})
		}
	}()
	for range 2 * many {
		find(c, func(a *frame.Accepted) bool { return !a.Duplicate })
	}
	dev := w.rowsOf("inbox")
	if dev < 100 || dev > 600 {
		t.Errorf("%d ids are kept of %d", dev, 2*many)
	}
}

// rowsOf counts the rows of a table.
func (w *world) rowsOf(table string) (n int) {
	w.t.Helper()
	w.query("SELECT count(*) FROM "+table, &n)
	return n
}
