package device_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"hermes-mobile/device"
	"hermes-mobile/device/devicetest"
	"hermes-mobile/frame"
)

func TestSendAgainUntilAccepted(t *testing.T) {
	srv := devicetest.New(t)
	a := open(t, config(srv.URL))
	m, err := a.Send(t.Context(), "hello", device.InReplyTo("r1"), device.WithID("m1"))
	if err != nil {
		t.Fatal(err)
	}
	c := srv.Accept(nil)
	if f := devicetest.Expect[*frame.Text](c); f.ID != "m1" || f.ReplyTo != "r1" {
		t.Fatalf("%+v", f)
	}
	a.Send(t.Context(), "second", device.Steer())
	c.Silent(20 * time.Millisecond) // one after the other: that is what keeps the order
	c.Drop()
	c = srv.Accept(nil)
	if f := devicetest.Expect[*frame.Text](c); f.ID != "m1" || f.Text != "hello" {
		t.Fatalf("%+v", f)
	}
	c.Send(&frame.Accepted{ID: "m1", Duplicate: true})
	if r, err := m.Wait(t.Context()); err != nil || !r.Duplicate {
		t.Fatal(r, err)
	}
	f := devicetest.Expect[*frame.Text](c)
	if !f.Steer {
		t.Errorf("%+v", f)
	}
	c.Send(&frame.Accepted{ID: f.ID, Queued: true})
	expect(a, func(r device.Receipt) bool { return r.ID == f.ID && r.Queued })
	if err := a.Flush(t.Context()); err != nil || a.Status().Unconfirmed != 0 {
		t.Fatal(err, a.Status().Unconfirmed)
	}
}

func TestSilentServerIsAskedAgain(t *testing.T) {
	srv := devicetest.New(t)
	cfg := config(srv.URL)
	cfg.AckTimeout = 20 * time.Millisecond
	a := open(t, cfg)
	c := srv.Accept(nil)
	m, _ := a.Send(t.Context(), "hello")
	devicetest.Expect[*frame.Text](c)
	devicetest.Expect[*frame.Text](c)
	c.Send(&frame.Accepted{ID: m.ID})
	if _, err := m.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestRefusals(t *testing.T) {
	srv := devicetest.New(t)
	a := open(t, config(srv.URL))
	c := srv.Accept(nil)
	bad, _ := a.Send(t.Context(), "one")
	next, _ := a.Send(t.Context(), "two")
	devicetest.Expect[*frame.Text](c)
	c.Send(&frame.Error{Code: frame.BadFrame, Message: "no", Ref: bad.ID})
	var e *frame.Error
	if _, err := bad.Wait(t.Context()); !errors.As(err, &e) || e.Code != frame.BadFrame {
		t.Fatal(err)
	}
	if f := devicetest.Expect[*frame.Text](c); f.ID != next.ID {
		t.Fatal("the rejected message came again")
	}
	began := time.Now()
	c.Send(&frame.Error{Code: frame.RateLimited, Message: "slower", Ref: next.ID, RetryAfter: 1})
	if f := devicetest.Expect[*frame.Text](c); f.ID != next.ID || time.Since(began) < 900*time.Millisecond {
		t.Fatal("not waited: ", time.Since(began))
	}
	c.Send(&frame.Accepted{ID: next.ID})

	// The server has no space for a file: the app decides when to retry.
	file, _ := a.SendFile(t.Context(), device.FileOptions{Data: []byte("x")})
	devicetest.Expect[*frame.Media](c)
	c.Send(&frame.Error{Code: frame.NoSpace, Message: "the server has no room", Ref: file.ID, RetryAfter: 3600})
	if _, err := file.Wait(t.Context()); !errors.As(err, &e) || e.Code != frame.NoSpace || e.RetryAfter != 3600 {
		t.Fatal(err)
	}

	// A close with 1009 and no error frame: the message under way was too big, and it fails.
	big, _ := a.Send(t.Context(), strings.Repeat("x", 1000))
	devicetest.Expect[*frame.Text](c)
	c.Close(frame.CloseTooBig, "")
	if _, err := big.Wait(t.Context()); !errors.As(err, &e) || e.Code != frame.TooBig {
		t.Fatal(err)
	}
	srv.Accept(nil).Silent(20 * time.Millisecond)
}

func TestWhatNoServerTakesIsRefusedHere(t *testing.T) {
	a := open(t, config("ws://127.0.0.1:1"))
	long := strings.Repeat("x", frame.MaxText+1)
	for name, send := range map[string]func() (*device.Outgoing, error){
		"empty": func() (*device.Outgoing, error) { return a.Send(t.Context(), " \n") },
		"long":  func() (*device.Outgoing, error) { return a.Send(t.Context(), long) },
		"id":    func() (*device.Outgoing, error) { return a.Send(t.Context(), "x", device.WithID("a\nb")) },
		"voice": func() (*device.Outgoing, error) { return a.SendVoice(t.Context(), "flac", []byte("x"), "") },
		"big voice": func() (*device.Outgoing, error) {
			return a.SendVoice(t.Context(), "wav", make([]byte, frame.MaxAudio+1), "")
		},
		"no file":    func() (*device.Outgoing, error) { return a.SendFile(t.Context(), device.FileOptions{}) },
		"empty file": func() (*device.Outgoing, error) { return a.SendFile(t.Context(), device.FileOptions{Data: []byte{}}) },
		"big file": func() (*device.Outgoing, error) {
			return a.SendFile(t.Context(), device.FileOptions{Data: make([]byte, frame.MaxMedia+1)})
		},
		"kind": func() (*device.Outgoing, error) {
			return a.SendFile(t.Context(), device.FileOptions{Data: []byte("x"), Kind: "gif"})
		},
		"answer": func() (*device.Outgoing, error) { return a.Answer(t.Context(), "c1", "", " ") },
	} {
		_, err := send()
		var e *frame.Error
		if !errors.As(err, &e) || e.Code != frame.BadFrame && e.Code != frame.TooBig {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestQueueSurvivesTheProcess(t *testing.T) {
	srv := devicetest.New(t)
	dir := t.TempDir()
	cfg := config("ws://127.0.0.1:1")
	cfg.Store = fileStore(t, dir)
	a := open(t, cfg)
	a.Send(t.Context(), "one <&>")
	a.SendVoice(t.Context(), "wav", []byte("RIFF"), "two")
	a.Answer(t.Context(), "card", "once", "")
	a.Close(t.Context())

	cfg.URL, cfg.Store = srv.URL, fileStore(t, dir)
	a = open(t, cfg)
	if n := len(a.Pending()); n != 3 {
		t.Fatal(n, "pending")
	}
	c := srv.Accept(nil)
	answer := devicetest.Expect[*frame.Answer](c)
	one := devicetest.Expect[*frame.Text](c)
	if one.Text != "one <&>" {
		t.Fatal(one.Text)
	}
	c.Send(&frame.Accepted{ID: one.ID}, &frame.PromptDone{PromptID: "card", ID: "card", OptionID: "once", Seq: 1}, &frame.Accepted{ID: answer.ID})
	two := devicetest.Expect[*frame.Audio](c)
	c.Send(&frame.Accepted{ID: two.ID})
	if err := a.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.Close(t.Context())
	saved, err := fileStore(t, dir).Load()
	if err != nil || len(saved.Queue) != 0 {
		t.Fatal(saved, err)
	}
}

func TestFileInPartsDoesNotHoldUpTexts(t *testing.T) {
	srv := devicetest.New(t)
	a := open(t, config(srv.URL))
	c := srv.Accept(nil)
	data := bytes.Repeat([]byte("0123456789"), 100_000)
	var seen []int64
	m, err := a.SendFile(t.Context(), device.FileOptions{Name: "/home/anna/a.png", Mime: "image/png", Caption: "look", Reader: bytes.NewReader(data),
		Progress: func(sent, total int64) { seen = append(seen, sent) }})
	if err != nil {
		t.Fatal(err)
	}
	var got []byte
	var text *frame.Text
	for part, parts := 0, 1; part < parts; {
		switch f := c.Read().(type) {
		case *frame.Media:
			if part == 0 {
				a.Send(t.Context(), "me first")
				if f.Kind != "image" || f.Filename != "a.png" || f.Caption != "look" {
					t.Fatalf("%+v", f)
				}
			}
			if f.ID != m.ID || f.Part != part {
				t.Fatalf("part %d of %s", f.Part, f.ID)
			}
			if want := map[bool]int64{true: int64(len(data))}[part == 0]; f.Size != want {
				t.Errorf("part %d announces %d bytes, want %d", part, f.Size, want)
			}
			parts = f.Parts
			got = append(got, f.Data...)
			part++
		case *frame.Text:
			text = f
		}
	}
	if !bytes.Equal(got, data) {
		t.Fatal("other bytes")
	}
	if text == nil {
		text = devicetest.Expect[*frame.Text](c)
	}
	c.Send(&frame.Accepted{ID: text.ID}, &frame.Accepted{ID: m.ID})
	if _, err := m.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if seen[len(seen)-1] != int64(len(data)) {
		t.Fatal(seen)
	}
}

func TestFileStartsOverAndDuplicateEndsIt(t *testing.T) {
	srv := devicetest.New(t)
	a := open(t, config(srv.URL))
	c := srv.Accept(nil)
	gate := &gatedReader{data: make([]byte, 2<<20), open: make(chan struct{})}
	m, _ := a.SendFile(t.Context(), device.FileOptions{ReaderAt: gate, Size: 2 << 20})
	devicetest.Expect[*frame.Media](c)
	c.Drop()
	close(gate.open)
	c = srv.Accept(nil)
	if f := devicetest.Expect[*frame.Media](c); f.ID != m.ID || f.Part != 0 {
		t.Fatalf("part %d of %s", f.Part, f.ID)
	}
	c.Send(&frame.Accepted{ID: m.ID, Duplicate: true})
	if r, err := m.Wait(t.Context()); err != nil || !r.Duplicate {
		t.Fatal(r, err)
	}

	short, _ := a.SendFile(t.Context(), device.FileOptions{ReaderAt: bytes.NewReader([]byte("x")), Size: 10})
	if _, err := short.Wait(t.Context()); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
}

// gatedReader passes the first part, and the rest once it is opened.
type gatedReader struct {
	data []byte
	open chan struct{}
}

func (g *gatedReader) ReadAt(p []byte, off int64) (int, error) {
	if off > 0 {
		<-g.open
	}
	return copy(p, g.data[off:]), nil
}

func TestFileRefusedStops(t *testing.T) {
	srv := devicetest.New(t)
	a := open(t, config(srv.URL))
	c := srv.Accept(nil)
	m, _ := a.SendFile(t.Context(), device.FileOptions{Data: make([]byte, 3<<20)})
	devicetest.Expect[*frame.Media](c)
	c.Send(&frame.Error{Code: frame.TooBig, Message: "too big", Ref: m.ID})
	if _, err := m.Wait(t.Context()); err == nil {
		t.Fatal("no error")
	}
	text, _ := a.Send(t.Context(), "after")
	for {
		if f, ok := c.Read().(*frame.Text); ok && f.ID == text.ID {
			break
		}
	}
	c.Silent(20 * time.Millisecond)
}

func TestServerWithoutReceipts(t *testing.T) {
	srv := devicetest.New(t)
	a := open(t, config(srv.URL))
	c := srv.Next()
	devicetest.Expect[*frame.Hello](c)
	c.SendRaw(`{"t":"ready","session":"mobile:tel-1","capabilities":{"text":true,"media":true}}`) // the reference's server
	m, _ := a.Send(t.Context(), "hello")
	if r, err := m.Wait(t.Context()); err != nil || !r.Unconfirmed {
		t.Fatal(r, err)
	}
	devicetest.Expect[*frame.Text](c)
	if s := a.Status(); !s.Approved || s.Agent != frame.Online {
		t.Fatalf("%+v", s)
	}
	c.SendRaw(`{"t":"message","id":"r1","text":"a","chunk":{"index":0,"total":2},"final":false}`)
	c.SendRaw(`{"t":"message","id":"r1","text":"b","chunk":{"index":1,"total":2},"final":true}`)
	if m := expect(a, final("r1")); m.Text != "ab" {
		t.Fatal(m.Text)
	}
}

func TestCallsPingStopDeliver(t *testing.T) {
	srv := devicetest.New(t)
	a := open(t, config(srv.URL))
	c := srv.Next()
	r := devicetest.Ready(devicetest.Expect[*frame.Hello](c))
	r.Capabilities.Call = []string{"models.list"}
	c.Send(r)
	played := make(chan struct{})
	go func() {
		defer close(played)
		for {
			switch f := c.Read().(type) {
			case *frame.Call:
				if string(f.Params) == `{"bad":true}` {
					c.Send(&frame.Result{ID: f.ID, Err: &frame.CallError{Code: "bad", Message: "no"}})
				} else {
					c.Send(&frame.Result{ID: f.ID, Result: []byte(`{"models":[]}`)})
				}
			case *frame.Ping:
				c.Send(&frame.Pong{ID: f.ID, Time: time.Now()})
			case *frame.Stop:
				c.Send(&frame.Typing{Stop: true}, &frame.Message{ID: "stopped", Text: "stopped", Final: true})
			case *frame.Deliver:
				if f.To == "nobody" {
					c.Send(&frame.Error{Code: frame.DeviceOffline, Message: "unknown", Ref: f.ID})
				} else {
					c.Send(&frame.Delivered{ID: f.ID, Queued: true})
				}
			case *frame.Text:
				return
			}
		}
	}()
	if res, err := a.Call(t.Context(), "models.list", nil); err != nil || string(res) != `{"models":[]}` {
		t.Fatal(string(res), err)
	}
	var ce *frame.CallError
	if _, err := a.Call(t.Context(), "models.list", map[string]bool{"bad": true}); !errors.As(err, &ce) || ce.Code != "bad" {
		t.Fatal(err)
	}
	if _, err := a.Call(t.Context(), "jobs.list", nil); !errors.Is(err, device.ErrUnsupported) {
		t.Fatal(err)
	}
	if rtt, err := a.Ping(t.Context()); err != nil || rtt <= 0 {
		t.Fatal(rtt, err)
	}
	if err := a.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect(a, final("stopped"))
	if d, err := a.Deliver(t.Context(), frame.Deliver{To: "home", Text: "x"}); err != nil || !d.Queued {
		t.Fatal(d, err)
	}
	var e *frame.Error
	if _, err := a.Deliver(t.Context(), frame.Deliver{To: "nobody", Text: "x"}); !errors.As(err, &e) || e.Code != frame.DeviceOffline {
		t.Fatal(err)
	}
	a.Send(t.Context(), "end")
	<-played
}
