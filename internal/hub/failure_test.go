package hub_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/store"
)

// The store takes nothing (its disk is full): what a device sends is refused with a code that says "later", the connection
// goes on, and once there is room the same message is taken as new.
func TestStoreFailsForMessages(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connect("d")
	wav := append([]byte("RIFF\x24\x00\x00\x00WAVEfmt "), make([]byte, 32)...)
	frames := map[string]frame.Up{
		"m1": &frame.Text{ID: "m1", Text: "one"},
		"m2": &frame.Audio{ID: "m2", Format: "wav", Data: wav},
		"m3": &frame.Media{ID: "m3", Kind: "document", Mime: "text/plain", Filename: "a.txt", Data: []byte("hello"), Parts: 1},
		"m4": &frame.Stop{ID: "m4"},
	}
	w.failWrites("inbox")
	for id, f := range frames {
		c.send(f)
		if e := expect[*frame.Error](c); e.Code != frame.Internal || e.Ref != id || !e.Code.Retry() {
			t.Errorf("%s gets %s", id, show(e))
		}
	}
	if w.hub.StoreFailedAt().IsZero() {
		t.Error("the failure is not noted")
	}
	c.send(&frame.Ping{ID: "p"})
	expect[*frame.Pong](c)
	c.sync()
	w.idle()
	w.healWrites("inbox")
	for id, f := range frames {
		c.send(f)
		if a := expect[*frame.Accepted](c); a.Duplicate || a.ID != id {
			t.Errorf("%s again gets %s", id, show(a))
		}
	}
	for range 3 {
		w.reply(w.take(), "fine")
	}
}

// Deliveries, likewise, of text and of files.
func TestStoreFailsForDeliveries(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connect("d")
	s := w.connect("s", withToken(deliverToken))
	deliveries := []*frame.Deliver{{ID: "x1", To: "d", Text: "one"}, {ID: "x2", To: "d", Kind: "document", Filename: "a.txt", Data: []byte("hello")}}
	for _, table := range []string{"outbox", "delivery"} {
		w.failWrites(table)
		for _, d := range deliveries {
			s.send(d)
			if e := expect[*frame.Error](s); e.Code != frame.Internal || e.Ref != d.ID {
				t.Errorf("%s gets %s", d.ID, show(e))
			}
		}
		w.healWrites(table)
	}
	c.quiet() // nothing half done
	for _, d := range deliveries {
		s.send(d)
		if a := expect[*frame.Delivered](s); a.Queued || a.ID != d.ID {
			t.Errorf("%s again gets %s", d.ID, show(a))
		}
	}
	if m := expect[*frame.Message](c); m.Text != "one" {
		t.Errorf("got %s", show(m))
	}
	if m := expect[*frame.Media](c); m.Filename != "a.txt" {
		t.Errorf("got %s", show(m))
	}
}

// A post of several events of which one cannot be stored: nothing of it is seen, and the agent may say it again.
func TestStoreFailsForAPost(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connect("d")
	c.text("m1", "one")
	c.text("m2", "two")
	h := w.take()
	w.post("d", agent.Say{ID: "s1", Text: "step", N: h.N, ReplyTo: h.ID})
	expect[*frame.Message](c)
	w.failWrites("card")
	events := []agent.Event{
		agent.Say{ID: "s1", Text: "step done", Final: true, N: h.N, ReplyTo: h.ID},
		agent.Ask{Card: approvalCard("c1", h.N)},
		agent.Home{},
		agent.Done{N: h.N},
	}
	if err := w.try("d", events...); err == nil {
		t.Fatal("stored in spite of the failing store")
	}
	c.quiet()
	if n, _ := w.unsettled(t); n != 0 {
		t.Error("the card is there")
	}
	s := w.connect("s", withToken(deliverToken))
	s.send(&frame.Deliver{ID: "x1", To: "home", Text: "one"})
	if e := expect[*frame.Error](s); e.Code != frame.DeviceOffline {
		t.Errorf("half of the post made the device the home: %s", show(e))
	}
	w.healWrites("card")
	ok(t, w.try("d", events...))
	if m := c.message(); m.ID != "s1" || m.Text != "step done" || m.Interrupted {
		t.Errorf("got %s", show(m))
	}
	expect[*frame.Prompt](c)
	if h := w.take(); h.Text != "two" {
		t.Errorf("handed %q", h.Text)
	}
	c.sync() // that it was taken is stored without anybody waiting
	w = w.crash()
	if h := w.next(); h.Text != "two" || !h.Handed {
		t.Errorf("after a crash handed %+v", h.Input)
	}
}

// The turn's end cannot be stored: the next message is not lost, and no turn runs for ever.
func TestStoreFailsForDone(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connect("d")
	c.text("m1", "one")
	c.text("m2", "two")
	h := w.take()
	w.sql("CREATE TRIGGER test_done BEFORE UPDATE OF state ON inbox WHEN NEW.state = 2 BEGIN SELECT RAISE(ABORT, 'disk full'); END")
	if err := w.try("d", agent.Done{N: h.N}); err == nil {
		t.Fatal("stored in spite of the failing store")
	}
	w.sql("DROP TRIGGER test_done")
	ok(t, w.try("d", agent.Done{N: h.N}))
	if h := w.take(); h.Text != "two" {
		t.Errorf("handed %q", h.Text)
	}
}

// Neither that a message was handed over nor that its turn ended can be stored, and the agent does not try again: both are
// noted once there is room, so that a later life knows them.
func TestStoreFailsForNotes(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connect("d")
	w.sql("CREATE TRIGGER test_notes BEFORE UPDATE OF state ON inbox BEGIN SELECT RAISE(ABORT, 'disk full'); END")
	c.text("m1", "one")
	one := w.take()
	if err := w.try("d", agent.Done{N: one.N}); err == nil {
		t.Fatal("stored in spite of the failing store")
	}
	c.text("m2", "two")
	if h := w.take(); h.Text != "two" {
		t.Errorf("handed %q", h.Text)
	}
	w.sql("DROP TRIGGER test_notes")
	db := value[*sql.DB](t)(sql.Open("sqlite", "file:"+filepath.Join(w.dir, store.File)+"?_pragma=busy_timeout(10000)"))
	defer db.Close()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		var noted int
		ok(t, db.QueryRowContext(ctx, "SELECT count(*) FROM inbox WHERE n=? AND state=2 OR n>? AND state=1", one.N, one.N).Scan(&noted))
		if noted == 2 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d of 2 notes were made", noted)
		}
	}
	w = w.crash()
	if h := w.next(); h.Text != "two" || !h.Handed {
		t.Errorf("after a crash handed %+v", h.Input)
	}
}

// That a delivery was seen cannot be stored: the next note makes good for it.
func TestStoreFailsForATrail(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connect("d")
	s := w.connect("s", withToken(deliverToken))
	deliver := func(id string) *frame.Message {
		t.Helper()
		s.send(&frame.Deliver{ID: id, To: "d", Text: id})
		expect[*frame.Delivered](s)
		return expect[*frame.Message](c)
	}
	m := deliver("x1")
	w.sql("CREATE TRIGGER test_trail BEFORE UPDATE ON delivery BEGIN SELECT RAISE(ABORT, 'disk full'); END")
	c.send(&frame.Ack{Seq: m.Seq, Seen: true})
	for end := time.Now().Add(time.Minute); w.hub.StoreFailedAt().IsZero(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("stored in spite of the failing store")
		}
	}
	w.sql("DROP TRIGGER test_trail")
	c.send(&frame.Ack{Seq: deliver("x2").Seq, Seen: true})
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		list, err := w.hub.Owner().Deliveries(ctx, "d", "seen", 10)
		ok(t, err)
		if len(list) == 2 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("seen are %+v", list)
		}
	}
}

// The end of a streamed message cannot be stored, and the agent does not try again: its end still comes, with the turn's.
func TestStoreFailsForAFinal(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connect("d")
	c.text("m1", "one")
	h := w.take()
	w.post("d", agent.Say{ID: "s1", Text: "step", N: h.N, ReplyTo: h.ID})
	expect[*frame.Message](c)
	w.failWrites("outbox")
	if err := w.try("d", agent.Say{ID: "s1", Text: "step done", Final: true, N: h.N, ReplyTo: h.ID}); err == nil {
		t.Fatal("stored in spite of the failing store")
	}
	w.healWrites("outbox")
	w.post("d", agent.Done{N: h.N})
	var m *frame.Message
	for _, f := range c.sync() {
		if got, is := f.(*frame.Message); is && got.Final {
			m = got
		}
	}
	if m == nil || m.ID != "s1" {
		t.Error("a message was begun and has no end while the server runs")
	}
}

// A decision that cannot be stored was not made: the card stays open, and the next answer decides it.
func TestStoreFailsForADecision(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connect("d")
	w.post("d", agent.Ask{Card: approvalCard("c1", 0)})
	expect[*frame.Prompt](c)
	w.failWrites("outbox")
	c.send(&frame.Answer{ID: "a1", PromptID: "c1", OptionID: "once"})
	if e := expect[*frame.Error](c); e.Code != frame.Internal || e.Ref != "a1" {
		t.Errorf("the answer gets %s", show(e))
	}
	c.sync()
	w.idle()
	w.healWrites("outbox")
	c.send(&frame.Answer{ID: "a1", PromptID: "c1", OptionID: "deny"})
	if d := expect[*frame.PromptDone](c); d.OptionID != "deny" {
		t.Errorf("decided %s", show(d))
	}
	if a := w.told(); a.answer.OptionID != "deny" {
		t.Errorf("told %+v", a.answer)
	}
}

// A hello that cannot be stored or read is answered with "later", not with "wrong".
func TestStoreFailsForHello(t *testing.T) {
	w := newWorld(t, nil)
	w.failWrites("device")
	if code, closed := w.open("new").refusal(); code != frame.Internal || closed != int(frame.CloseTryLater) {
		t.Errorf("refused with %s and %d", code, closed)
	}
	w.healWrites("device")
	c := w.connect("new")
	w.say("new", "1")
	expect[*frame.Message](c)
	c.drop()
	until(t, "the session to leave memory", func() bool { return w.hub.Sessions() == 0 })
	for _, table := range []string{"card", "inbox", "outbox", "open_message"} { // the session cannot be read back
		w.sql("ALTER TABLE " + table + " RENAME TO away")
		if code, closed := w.open("new").refusal(); code != frame.Internal || closed != int(frame.CloseTryLater) {
			t.Errorf("without table %s refused with %s and %d", table, code, closed)
		}
		if err := w.try("new", agent.Say{ID: "s", Text: "x", Final: true}); err == nil {
			t.Errorf("without table %s a message was stored", table)
		}
		if _, err := w.hub.Owner().Deliver(ctx, "s", &frame.Deliver{ID: table, To: "new", Text: "x"}); err != nil {
			t.Errorf("a delivery without table %s: %v", table, err)
		}
		w.sql("ALTER TABLE away RENAME TO " + table)
	}
	c = w.connect("new", withResume("x", 0))
	wantTexts(t, texts(t, c.sync()), 1, 1)
}

// The backlog cannot be read in the middle of a replay: the connection is ended with "later", and the next one gets all.
func TestStoreFailsDuringReplay(t *testing.T) {
	w := newWorld(t, nil)
	w.connect("d").drop()
	const many = 300
	for i := 1; i <= many; i++ {
		w.say("d", fmt.Sprintf("%d %05000d", i, 0))
	}
	c := w.open("d", slow())
	until(t, "the device to be connected", func() bool { return w.live("d") })
	w.sql("ALTER TABLE outbox RENAME TO away")
	c.startReading()
	if code := c.closed(); code != int(frame.CloseTryLater) {
		t.Errorf("closed with %d", code)
	}
	w.sql("ALTER TABLE away RENAME TO outbox")
	c = w.connect("d", withResume("x", 0))
	if got := texts(t, c.sync()); len(got) != many {
		// What did not fit at once comes after the round trip.
		for len(got) < many {
			got = append(got, c.message().Text)
		}
	}
	c.text("m1", "fine?")
}

// Writes that nobody waits for fail while a message is being streamed: the stream goes on.
func TestStoreFailsInMidStream(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connect("d")
	w.post("d", agent.Say{ID: "s1", Text: "a"})
	expect[*frame.Message](c)
	w.failWrites("open_message")
	began := time.Now()
	for i := 0; time.Since(began) < 2200*time.Millisecond; i++ { // past the interval at which the text is saved
		w.hub.Post("d", nil, agent.Say{ID: "s1", Text: fmt.Sprint("a ", i)})
		c.sync()
	}
	w.healWrites("open_message")
	w.post("d", agent.Say{ID: "s1", Text: "the end", Final: true})
	if m := c.message(); m.Text != "the end" || m.Interrupted {
		t.Errorf("final %s", show(m))
	}
}

// A post is one transaction also where it closes a card in the middle.
func TestStoreFailsForAPostThatClosesACard(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connect("d")
	w.post("d", agent.Ask{Card: approvalCard("c1", 0)})
	expect[*frame.Prompt](c)
	w.failWrites("card")
	events := []agent.Event{
		agent.Say{ID: "s1", Text: "one", Final: true},
		agent.CloseCard{ID: "c1", OptionID: "once"},
		agent.Ask{Card: approvalCard("c2", 0)},
		agent.CloseCard{ID: "c2", OptionID: "deny"},
	}
	if err := w.try("d", events...); err == nil {
		t.Fatal("stored in spite of the failing store")
	}
	c.quiet()
	if open, all := w.unsettled(t); open != 1 || all != 1 {
		t.Errorf("%d cards are open, %d not settled: the first one was closed", open, all)
	}
	w.healWrites("card")
	ok(t, w.try("d", events...))
	if m := c.message(); m.Text != "one" {
		t.Errorf("got %s", show(m))
	}
	if d := expect[*frame.PromptDone](c); d.PromptID != "c1" || d.OptionID != "once" {
		t.Errorf("got %s", show(d))
	}
	expect[*frame.Prompt](c)
	if d := expect[*frame.PromptDone](c); d.PromptID != "c2" || d.OptionID != "deny" {
		t.Errorf("got %s", show(d))
	}
	w.idle()
	c.drop()
	until(t, "the session to leave memory", func() bool { return w.hub.Sessions() == 0 })
}

// While the disk is busy events pile up and are stored together: one of them that cannot be stored takes no others along,
// of whatever kind they are, and what is told keeps its order.
func TestOneBadEventInABatch(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connect("d")
	c.text("m1", "one")
	h := w.take()
	c.text("m2", "two")
	w.sql("CREATE TRIGGER test_bad BEFORE INSERT ON card WHEN NEW.id = 'bad' BEGIN SELECT RAISE(ABORT, 'cannot be stored'); END")
	release := w.holdDisk()
	outcomes := map[string]chan error{}
	post := func(name string, events ...agent.Event) {
		done := make(chan error, 1)
		outcomes[name] = done
		w.hub.Post("d", func(err error) { done <- err }, events...)
	}
	post("first", agent.Say{ID: "s0", Text: "first", Final: true}) // waits for the disk; the others wait for it
	post("before", agent.Say{ID: "s1", Text: "before", Final: true, N: h.N, ReplyTo: h.ID})
	post("good card", agent.Ask{Card: approvalCard("good", 0)})
	post("bad card", agent.Say{ID: "s2", Text: "with the bad card", Final: true}, agent.Ask{Card: approvalCard("bad", 0)})
	post("after", agent.Say{ID: "s3", Text: "after", Final: true})
	post("done", agent.Done{N: h.N})
	release()
	for name, done := range outcomes {
		if err := receive(t, done, name); (err != nil) != (name == "bad card") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, want := range []string{"first", "before"} {
		if m := c.message(); m.Text != want {
			t.Errorf("got %s, want %s", show(m), want)
		}
	}
	if p := expect[*frame.Prompt](c); p.ID != "good" {
		t.Errorf("got %s", show(p))
	}
	if m := c.message(); m.Text != "after" {
		t.Errorf("got %s", show(m))
	}
	if h := w.take(); h.Text != "two" { // the turn has ended
		t.Errorf("handed %q", h.Text)
	}
	c.quiet()
	if open, all := w.unsettled(t); open != 1 || all != 1 {
		t.Errorf("%d cards are open, %d not settled", open, all)
	}
	// Nothing of it is lost or doubled for a device that comes later.
	c = w.connect("d", withResume(c.Ready.Resume.Epoch, 0))
	wantFinals := []string{"first", "before", "after"}
	for _, f := range c.sync() {
		if m, is := f.(*frame.Message); is {
			if len(wantFinals) == 0 || m.Text != wantFinals[0] {
				t.Fatalf("replayed %s, want %v", show(m), wantFinals)
			}
			wantFinals = wantFinals[1:]
		}
	}
	if len(wantFinals) != 0 {
		t.Errorf("not replayed: %v", wantFinals)
	}
}

// Messages of a device that pile up: the one that cannot be stored is refused, the others are taken, each with its receipt.
func TestOneBadMessageInABatch(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connect("d")
	w.sql("CREATE TRIGGER test_bad BEFORE INSERT ON inbox WHEN NEW.id = 'm3' BEGIN SELECT RAISE(ABORT, 'cannot be stored'); END")
	release := w.holdDisk()
	const many = 5
	for i := 1; i <= many; i++ {
		c.send(&frame.Text{ID: fmt.Sprint("m", i), Text: fmt.Sprint(i)})
	}
	c.send(&frame.Ping{ID: "p"})
	expect[*frame.Pong](c) // all are read
	release()
	for i := 1; i <= many; i++ {
		id := fmt.Sprint("m", i)
		if id == "m3" {
			if e := expect[*frame.Error](c); e.Code != frame.Internal || e.Ref != id {
				t.Errorf("%s gets %s", id, show(e))
			}
			continue
		}
		if a := expect[*frame.Accepted](c); a.ID != id || a.Duplicate {
			t.Errorf("%s gets %s", id, show(a))
		}
	}
	for _, want := range []string{"1", "2", "4", "5"} {
		h := w.take()
		if h.Text != want {
			t.Errorf("handed %q, want %q", h.Text, want)
		}
		w.post("d", agent.Done{N: h.N})
	}
}

// A device that is revoked, and gone before that is stored: both come to the session at once.
func TestGoneWhileRevoked(t *testing.T) {
	for range 10 {
		w := newWorld(t, nil)
		c := w.connect("d")
		c.sync()
		db := value[*sql.DB](t)(sql.Open("sqlite", "file:"+filepath.Join(w.dir, store.File)+"?_pragma=busy_timeout(10000)"))
		db.SetMaxOpenConns(1)
		exec := func(statement string) { _, err := db.ExecContext(ctx, statement); ok(t, err) }
		exec("BEGIN IMMEDIATE") // nothing can be stored
		c.send(&frame.Text{ID: "m1", Text: "this keeps the session busy"})
		revoked := make(chan error, 1)
		go func() { revoked <- w.hub.Owner().Revoke(ctx, "d") }()
		_ = c.ws.CloseNow()
		until(t, "the connection to be gone", func() bool { return w.hub.Connections() == 0 })
		exec("ROLLBACK")
		ok(t, receive(t, revoked, "the revocation"))
		ok(t, db.Close())
		if w.live("d") {
			t.Error("it is still connected")
		}
		w.close()
	}
}
