package device_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"hermes-mobile/device"
	"hermes-mobile/device/devicetest"
	"hermes-mobile/frame"
)

func text(s string) *string { return &s }

func TestStreamedReply(t *testing.T) {
	srv := devicetest.New(t)
	a := open(t, config(srv.URL))
	c := srv.Accept(nil)
	c.Send(&frame.Message{ID: "r", Text: "😀 one", Edit: true, Chunk: frame.Chunk{Total: 1}})
	expect(a, func(m device.Message) bool { return m.Text == "😀 one" && !m.Final })
	c.Send(&frame.Message{ID: "r", Append: text(" two"), At: 6}) // the emoji is two units
	expect(a, func(m device.Message) bool { return m.Text == "😀 one two" })
	c.Send(&frame.Message{ID: "r", Append: text("?"), At: 99}) // does not fit: wait for a whole one
	c.Send(&frame.Message{ID: "x", Append: text("?"), At: 5})
	c.Send(&frame.Message{ID: "r", Text: "all new", Edit: true, Chunk: frame.Chunk{Total: 1}})
	expect(a, func(m device.Message) bool { return m.Text == "all new" })
	c.Send(&frame.Message{ID: "r", Append: text("!"), At: 7})
	expect(a, func(m device.Message) bool { return m.Text == "all new!" })
	c.Send(&frame.Message{ID: "r", Text: "all new! done", Edit: true, Final: true, ReplyTo: "m1", Seq: 3, Chunk: frame.Chunk{Total: 1}})
	if m := expect(a, final("r")); m.Text != "all new! done" || m.ReplyTo != "m1" {
		t.Fatalf("%+v", m)
	}
	for _, m := range all[device.Message](a) {
		if strings.Contains(m.Text, "?") {
			t.Fatalf("%+v", m)
		}
	}
	eventually(t, "ack of 3", func() bool { acks := c.Acks(); return len(acks) > 0 && acks[len(acks)-1].Seq == 3 })
}

// The final message of a streamed reply may hold only an addition. Where a piece before it is
// missing, the device rejects it and gets the whole message over the next connection.
func TestFinalThatOnlyAdds(t *testing.T) {
	srv := devicetest.New(t)
	a := open(t, config(srv.URL))
	c := srv.Accept(nil)
	step := func(id, text string) {
		t.Helper()
		c.Send(&frame.Message{ID: id, Text: text, Edit: true, Chunk: frame.Chunk{Total: 1}})
		expect(a, func(m device.Message) bool { return m.ID == id && m.Text == text })
	}
	ends := func(id, want string) {
		t.Helper()
		if m := expect(a, final(id)); m.Text != want || m.ReplyTo != "m1" {
			t.Fatalf("%+v", m)
		}
	}
	step("r1", "😀 one")
	c.Send(&frame.Message{ID: "r1", Append: text(" two"), At: 6, Final: true, ReplyTo: "m1", Seq: 1})
	ends("r1", "😀 one two")
	step("r2", "on")
	c.Send(&frame.Message{ID: "r2", Append: text("e")}) // at the end
	c.Send(&frame.Message{ID: "r2", Append: text(""), At: 3, Final: true, ReplyTo: "m1", Seq: 2})
	ends("r2", "one")
	step("r3", "one😀 or two")
	c.Send(&frame.Message{ID: "r3", Append: text(" two"), At: 5, Final: true, ReplyTo: "m1", Seq: 3})
	ends("r3", "one😀 two")
	eventually(t, "ack of 3", func() bool { acks := c.Acks(); return len(acks) > 0 && acks[len(acks)-1].Seq == 3 })

	for i, at := range []int{4, 1, -1} { // more than there is, inside a character, and nowhere
		id, seq := fmt.Sprint("gap", i), int64(4+i)
		step(id, "😀x")
		c.Send(&frame.Message{ID: id, Append: text("?"), At: at, Final: true, ReplyTo: "m1", Seq: seq},
			&frame.Message{ID: id + " after", Text: "next", Final: true, ReplyTo: "m1", Seq: seq + 1})
		before := c
		c = srv.Accept(nil)
		if r := c.Hello.Resume; r == nil || r.Seq != seq-1 {
			t.Fatalf("at %d: resume %+v", at, r)
		}
		for _, ack := range before.Acks() {
			if ack.Seq >= seq {
				t.Fatalf("at %d: %+v was acknowledged", at, ack)
			}
		}
		c.Send(&frame.Message{ID: id, Text: "😀xyz", Edit: true, Chunk: frame.Chunk{Total: 1}, Final: true, ReplyTo: "m1", Seq: seq})
		ends(id, "😀xyz")
	}
}

func TestResumeGivesEachOnce(t *testing.T) {
	srv := devicetest.New(t)
	a := open(t, config(srv.URL))
	c := srv.Accept(nil)
	c.Send(&frame.Message{ID: "r1", Text: "one", Final: true, Seq: 1})
	expect(a, final("r1"))
	// The connection breaks inside a message in chunks.
	c.Send(&frame.Message{ID: "r2", Text: "tw", Chunk: frame.Chunk{Index: 0, Total: 2}, Seq: 2})
	expect(a, func(m device.Message) bool { return m.ID == "r2" })
	c.Drop()
	c = srv.Accept(nil)
	if r := c.Hello.Resume; r == nil || r.Epoch != "e1" || r.Seq != 1 {
		t.Fatalf("resume %+v", r)
	}
	c.Send(&frame.Message{ID: "r1", Text: "one", Final: true, Seq: 1}, // a server that goes back too far
		&frame.Message{ID: "r2", Text: "tw", Chunk: frame.Chunk{Index: 0, Total: 2}, Seq: 2},
		&frame.Message{ID: "r2", Text: "o", Chunk: frame.Chunk{Index: 1, Total: 2}, Final: true, Seq: 2})
	if m := expect(a, final("r2")); m.Text != "two" {
		t.Fatalf("%+v", m)
	}
	n := 0
	for _, m := range all[device.Message](a) {
		if m.Final {
			n++
		}
	}
	if n != 2 {
		t.Fatal(n, "finals")
	}
}

func TestCursorMovesWhenHandled(t *testing.T) {
	srv := devicetest.New(t)
	store := device.NewMemoryStore()
	cfg := config(srv.URL)
	cfg.Store = store
	a := quiet(t, cfg)
	c := srv.Accept(nil)
	c.Send(&frame.Message{ID: "r1", Text: "one", Final: true, Seq: 1}, &frame.Message{ID: "r2", Text: "two", Final: true, Seq: 2})
	for ev, err := range a.Events(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if m, ok := ev.(device.Message); ok && m.ID == "r1" {
			if s, _ := store.Load(); s.Cursor.Seq != 0 {
				t.Fatal("moved before the body ended")
			}
			break
		}
	}
	if s, _ := store.Load(); s.Cursor != (frame.Cursor{Epoch: "e1", Seq: 1}) {
		t.Fatalf("%+v", s.Cursor)
	}
	func() { // an event whose body panics is not handled
		defer func() { recover() }()
		for ev, err := range a.Events(t.Context()) {
			if err != nil {
				t.Error(err)
			}
			if _, ok := ev.(device.Message); ok {
				panic("the app")
			}
		}
	}()
	if s, _ := store.Load(); s.Cursor.Seq != 1 {
		t.Fatalf("%+v", s.Cursor)
	}
	a.Close(t.Context()) // and says so to the server
	if acks := c.Acks(); len(acks) == 0 || acks[len(acks)-1].Seq != 1 {
		t.Fatal(acks)
	}
	a = open(t, cfg)
	c = srv.Accept(nil)
	if r := c.Hello.Resume; r == nil || r.Seq != 1 {
		t.Fatalf("resume %+v", r)
	}
	c.Send(&frame.Message{ID: "r2", Text: "two", Final: true, Seq: 2})
	expect(a, final("r2"))
}

func TestHistoryLost(t *testing.T) {
	srv := devicetest.New(t)
	a := open(t, config(srv.URL))
	c := srv.Accept(nil)
	c.Send(&frame.Message{ID: "r1", Text: "one", Final: true, Seq: 40})
	expect(a, final("r1"))
	c.Drop()
	c = srv.Next()
	r := devicetest.Ready(devicetest.Expect[*frame.Hello](c))
	r.Resume = frame.Span{Epoch: "e2", From: 1, To: 1, Lost: true}
	c.Send(r, &frame.Message{ID: "r1", Text: "one", Final: true, Seq: 1})
	expect[device.HistoryLost](a, nil)
	expect(a, final("r1"))
	c.Drop()
	c = srv.Next()
	if h := devicetest.Expect[*frame.Hello](c); h.Resume.Epoch != "e2" || h.Resume.Seq != 1 {
		t.Fatalf("%+v", h.Resume)
	}
}

func TestFilesComeDown(t *testing.T) {
	srv := devicetest.New(t)
	a := open(t, config(srv.URL))
	c := srv.Accept(nil)
	part := func(i int, data string, final bool) *frame.Media {
		return &frame.Media{ID: "f", Kind: "voice", Mime: "audio/ogg", Filename: "v.ogg", Size: 6, Part: i, Parts: 3, Final: final, Data: []byte(data), Seq: 1}
	}
	c.Send(part(0, "ab", false), part(1, "cd", false))
	c.Drop() // half a file is none
	c = srv.Accept(nil)
	c.Send(part(0, "ab", false), &frame.Message{ID: "between", Text: "x", Final: true, Seq: 2}, part(1, "cd", false), part(2, "ef", true))
	f := expect[device.File](a, nil)
	if string(f.Data) != "abcdef" || f.Kind != "voice" || f.Filename != "v.ogg" || f.Err != nil {
		t.Fatalf("%+v", f)
	}
	eventually(t, "ack of both", func() bool { acks := c.Acks(); return len(acks) > 0 && acks[len(acks)-1].Seq == 2 })
	c.Send(part(0, "ab", false), part(1, "cd", false), part(2, "ef", true)) // again: dropped
	c.Send(&frame.Media{ID: "g", Kind: "hologram", Size: 9, Parts: 1, Final: true, Data: []byte("ab"), Seq: 3})
	if f := expect[device.File](a, nil); f.ID != "g" || f.Err == nil || f.Data != nil || f.Kind != "hologram" {
		t.Fatalf("%+v", f)
	}
}

func TestCards(t *testing.T) {
	srv := devicetest.New(t)
	a := open(t, config(srv.URL))
	c := srv.Accept(nil)
	c.Send(&frame.Message{ID: "r1", Text: "x", Final: true, Seq: 1})
	card := &frame.Prompt{ID: "p1", Kind: frame.ExecApproval, Command: "rm -rf build", Odd: true, Options: []frame.Option{{ID: "once"}, {ID: "deny"}}, Seq: 3}
	c.Send(card)
	if p := expect[device.CardShown](a, nil); p.Again || !p.Odd || p.Command != "rm -rf build" {
		t.Fatalf("%+v", p)
	}
	c.Drop()
	c = srv.Accept(nil)
	c.Send(card, &frame.Message{ID: "r2", Text: "missed", Final: true, Seq: 2}) // the card comes first, with its own seq
	if p := expect[device.CardShown](a, nil); !p.Again || p.ID != "p1" {
		t.Fatalf("%+v", p)
	}
	expect(a, final("r2"))
	ans, err := a.Answer(t.Context(), "p1", "once", "")
	if err != nil {
		t.Fatal(err)
	}
	f := devicetest.Expect[*frame.Answer](c)
	if f.PromptID != "p1" || f.OptionID != "once" || f.ID == "" {
		t.Fatalf("%+v", f)
	}
	c.Drop() // before the receipt
	c = srv.Accept(nil)
	if again := devicetest.Expect[*frame.Answer](c); again.ID != f.ID {
		t.Fatal("another id")
	}
	c.Send(&frame.PromptDone{PromptID: "p1", ID: "p1", OptionID: "once", Seq: 4})
	if d := expect[device.CardDone](a, nil); d.ID != "p1" || d.OptionID != "once" {
		t.Fatalf("%+v", d)
	}
	if _, err := ans.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Send(&frame.PromptDone{PromptID: "p1", ID: "p1", OptionID: "once", Seq: 4}, card, &frame.Message{ID: "end", Text: "x", Final: true, Seq: 5})
	expect(a, final("end"))
	if n := len(all[device.CardDone](a)); n != 1 {
		t.Fatal(n, "ends of one card")
	}
	if n := len(all[device.CardShown](a)); n != 2 {
		t.Fatal(n, "shows of a card that is over")
	}
}

// In a shared conversation, the messages of others and the ends of cards come once and move the
// cursor.
func TestSharedConversation(t *testing.T) {
	srv := devicetest.New(t)
	a := open(t, config(srv.URL))
	c := srv.Accept(nil)
	echo := &frame.Echo{ID: "m7", From: frame.Peer{ID: "tab-1", Name: "Tablet"}, Text: "look", Seq: 1,
		File: &frame.EchoFile{Kind: "image", Mime: "image/png", Filename: "a.png", Size: 3, URL: srv.URL + "/media/x"}}
	done := &frame.PromptDone{PromptID: "p1", ID: "p1", OptionID: "deny", By: &frame.Peer{ID: "tab-1"}, Seq: 2}
	c.Send(echo, done)
	e := expect[device.Echo](a, nil)
	if f, ok := e.Attachment(); !ok || e.Text != "look" || e.From.Name != "Tablet" || f.Filename != "a.png" || f.URL != echo.File.URL || f.Caption != "look" {
		t.Errorf("%+v", e)
	}
	if d := expect[device.CardDone](a, nil); d.By == nil || d.By.ID != "tab-1" {
		t.Errorf("%+v", d)
	}
	eventually(t, "the ack", func() bool { acks := c.Acks(); return len(acks) > 0 && acks[len(acks)-1].Seq == 2 })
	c.Send(echo, &frame.Echo{ID: "m8", Text: "words", Seq: 3})
	if e := expect[device.Echo](a, nil); e.ID != "m8" {
		t.Errorf("came again: %+v", e)
	} else if _, ok := e.Attachment(); ok {
		t.Error("a text has a file")
	}
}

// A client requests notices of new devices. They come once, it acknowledges them, and it can revoke
// the device.
func TestNotice(t *testing.T) {
	srv := devicetest.New(t)
	cfg := config(srv.URL)
	cfg.Notices = true
	a := open(t, cfg)
	ready := devicetest.Ready(&frame.Hello{Device: cfg.Device})
	ready.Capabilities.Call = []string{"devices.revoke"}
	c := srv.Accept(ready)
	if !slices.Contains(c.Hello.Accept, frame.AcceptNotice) {
		t.Errorf("hello accepts %q", c.Hello.Accept)
	}
	told := &frame.Notice{ID: "n1", Kind: frame.DeviceAdded, Device: frame.NoticeDevice{ID: "tab-2", Name: "Tablet"}, User: "anna", Revocable: true, Seq: 1}
	c.Send(told, told, &frame.Notice{ID: "n2", Kind: "device_teleported", Device: frame.NoticeDevice{ID: "tab-3"}, Seq: 2})
	if n := expect[device.Notice](a, nil); n.Device.ID != "tab-2" || !n.Revocable || n.Kind != frame.DeviceAdded {
		t.Errorf("%+v", n)
	}
	if n := expect(a, func(n device.Notice) bool { return n.ID != "n1" }); n.Device.ID != "tab-3" {
		t.Errorf("%+v", n)
	}
	eventually(t, "the ack", func() bool { acks := c.Acks(); return len(acks) > 0 && acks[len(acks)-1].Seq == 2 })
	done := make(chan error, 1)
	go func() { done <- a.RevokeDevice(context.Background(), "tab-2") }()
	call := devicetest.Expect[*frame.Call](c)
	if call.Method != "devices.revoke" || string(call.Params) != `{"id":"tab-2"}` {
		t.Errorf("called %s %s", call.Method, call.Params)
	}
	c.Send(&frame.Result{ID: call.ID, Err: &frame.CallError{Code: "forbidden", Message: "no"}})
	var refused *frame.CallError
	if err := <-done; !errors.As(err, &refused) || refused.Code != "forbidden" {
		t.Errorf("%v", err)
	}
}

// A client lists and chooses profiles. Where the agent has only one, the call fails without a
// request.
func TestProfiles(t *testing.T) {
	srv := devicetest.New(t)
	cfg := config(srv.URL)
	a := open(t, cfg)
	ready := devicetest.Ready(&frame.Hello{Device: cfg.Device})
	c := srv.Accept(ready)
	if _, err := a.Profiles(context.Background()); !errors.Is(err, device.ErrUnsupported) {
		t.Errorf("%v", err)
	}
	caps := ready.Capabilities
	caps.Call = []string{"profiles.list", "profiles.choose"}
	c.Send(&frame.CapabilitiesChanged{Capabilities: caps, Agent: frame.Online})
	eventually(t, "the profiles to be offered", func() bool { return len(a.Status().Capabilities.Call) == 2 })
	type answer struct {
		list []device.Profile
		err  error
	}
	done := make(chan answer, 1)
	for result, want := range map[string]int{`{"profiles":[{"name":"default","current":false},{"name":"work","current":true}]}`: 2, `{"profiles":7}`: 0} {
		go func() {
			list, err := a.Profiles(context.Background())
			done <- answer{list, err}
		}()
		call := devicetest.Expect[*frame.Call](c)
		c.Send(&frame.Result{ID: call.ID, Result: []byte(result)})
		if got := <-done; call.Method != "profiles.list" || len(got.list) != want || (got.err == nil) != (want > 0) || want > 0 && got.list[1] != (device.Profile{Name: "work", Current: true}) {
			t.Errorf("%s %s: %+v", call.Method, result, got)
		}
	}
	go func() { done <- answer{err: a.ChooseProfile(context.Background(), "none")} }()
	call := devicetest.Expect[*frame.Call](c)
	c.Send(&frame.Result{ID: call.ID, Err: &frame.CallError{Code: "not_found", Message: "there is none"}})
	var refused *frame.CallError
	if got := <-done; call.Method != "profiles.choose" || string(call.Params) != `{"name":"none"}` || !errors.As(got.err, &refused) || refused.Code != "not_found" {
		t.Errorf("%s %s: %v", call.Method, call.Params, got.err)
	}
}

// A new device that may not answer cards yet knows when it may, by its own clock.
func TestAnswersAt(t *testing.T) {
	srv := devicetest.New(t)
	cfg := config(srv.URL)
	a := open(t, cfg)
	ready := devicetest.Ready(&frame.Hello{Device: cfg.Device})
	ready.Capabilities.Prompt, ready.Capabilities.AnswersIn = false, 42
	ready.Capabilities.AnswersAt = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC) // a clock that goes wrong
	before := time.Now()
	c := srv.Accept(ready)
	s := expect(a, func(s device.StatusChanged) bool { return s.State == device.Online })
	if s.AnswersAt.Before(before.Add(42*time.Second)) || s.AnswersAt.After(time.Now().Add(42*time.Second)) {
		t.Errorf("may answer at %v", s.AnswersAt)
	}
	ready.Capabilities.Prompt, ready.Capabilities.AnswersIn, ready.Capabilities.AnswersAt = true, 0, time.Time{}
	c.Send(&frame.CapabilitiesChanged{Capabilities: ready.Capabilities, Agent: frame.Online})
	if s := expect(a, func(s device.StatusChanged) bool { return s.Capabilities.Prompt }); !s.AnswersAt.IsZero() {
		t.Errorf("may answer at %v", s.AnswersAt)
	}
}

func TestUnknownThingsPassBy(t *testing.T) {
	srv := devicetest.New(t)
	a := open(t, config(srv.URL))
	c := srv.Accept(nil)
	for _, s := range []string{`{"t":"hologram","x":1}`, `null`, `[]`, `{}`, `nonsense`, `{"t":7}`, `{"t":"message","id":5}`} {
		c.SendRaw(s)
	}
	c.Send(&frame.Error{Code: frame.Internal, Message: "disk full"}, &frame.Message{ID: "r", Text: "fine", Final: true, Seq: 1})
	expect(a, final("r"))
	if u := all[device.Unknown](a); len(u) == 0 || u[0].Type != "hologram" || !bytes.Contains(u[0].Raw, []byte(`"x":1`)) {
		t.Fatalf("%+v", u)
	}
	if len(all[device.Problem](a)) == 0 {
		t.Fatal("no problem told")
	}
}

func TestTypingGoesOffByItself(t *testing.T) {
	srv := devicetest.New(t)
	cfg := config(srv.URL)
	cfg.TypingTimeout = 30 * time.Millisecond
	a := open(t, cfg)
	c := srv.Accept(nil)
	c.Send(&frame.Avatar{State: "thinking"}, &frame.Typing{})
	expect(a, func(x device.Activity) bool { return x.Typing && x.Avatar == "thinking" })
	expect(a, func(x device.Activity) bool { return !x.Typing && x.Avatar == "idle" })
	c.Send(&frame.Typing{})
	expect(a, func(x device.Activity) bool { return x.Typing })
	c.Drop()
	expect(a, func(x device.Activity) bool { return !x.Typing })
}

func TestSlowLoopLosesNothing(t *testing.T) {
	srv := devicetest.New(t)
	cfg := config(srv.URL)
	cfg.QueueBytes = 10_000
	cfg.SetRoomWait(20 * time.Millisecond)
	a := quiet(t, cfg)
	c := srv.Accept(nil)
	const n = 40
	send := func(c *devicetest.Conn, from int) {
		for i := from; i <= n; i++ {
			c.Send(&frame.Message{ID: fmt.Sprint("r", i), Text: strings.Repeat("x", 1000), Final: true, Seq: int64(i)})
		}
	}
	send(c, 1)
	m, _ := a.Send(t.Context(), "still works")
	c.Send(&frame.Accepted{ID: devicetest.Expect[*frame.Text](c).ID}) // after the wait for room
	if _, err := m.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.listen(nil)
	// It reconnects when the loop has caught up, as often as necessary.
	for got := 0; got < n; {
		c = srv.Accept(nil)
		got = int(c.Hello.Resume.Seq)
		if got == 0 {
			t.Fatal("nothing was handled")
		}
		send(c, got+1)
		eventually(t, "all, or another connection", func() bool { return len(all[device.Message](a)) == n || c.Left() })
		if len(all[device.Message](a)) == n {
			break
		}
	}
	expect(a, final(fmt.Sprint("r", n)))
	i := 0
	for _, m := range all[device.Message](a) {
		if i++; m.ID != fmt.Sprint("r", i) {
			t.Fatalf("%s where r%d was due", m.ID, i)
		}
	}
}

func TestNextEventComesAgainUntilHandled(t *testing.T) {
	srv := devicetest.New(t)
	a := quiet(t, config(srv.URL))
	c := srv.Accept(nil)
	c.Send(&frame.Message{ID: "r1", Text: "one", Final: true, Seq: 1})
	next := func() (device.Message, func()) {
		for {
			ev, handled, err := a.NextEvent(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if m, ok := ev.(device.Message); ok {
				return m, handled
			}
			handled()
		}
	}
	next()
	m, handled := next()
	if m.ID != "r1" {
		t.Fatalf("%+v", m)
	}
	handled()
	handled() // once is what counts
	a.Seen()
	eventually(t, "ack, seen", func() bool {
		acks := c.Acks()
		return len(acks) > 0 && acks[len(acks)-1] == (frame.Ack{Seq: 1, Seen: true})
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := a.NextEvent(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	a.Close(t.Context())
	if _, _, err := a.NextEvent(t.Context()); !errors.Is(err, device.ErrClosed) {
		t.Fatal(err)
	}
}
