package term

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"hermes-mobile/device"
	"hermes-mobile/device/devicetest"
	"hermes-mobile/frame"
)

// buffer is a bytes.Buffer that is safe for concurrent use.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// talk is a chat in line mode under test.
type talk struct {
	t        *testing.T
	srv      *devicetest.Server
	out, err buffer
	dir      string
	end      chan error
}

func start(t *testing.T, in io.Reader, change ...func(*Options)) *talk {
	x := &talk{t: t, srv: devicetest.New(t), dir: t.TempDir(), end: make(chan error, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	o := Options{In: in, Out: &x.out, Err: &x.err, SaveDir: x.dir, Plain: true, Config: device.Config{
		URL: x.srv.URL, Token: "t", Device: frame.Device{ID: "term-1"}, Backoff: device.Backoff{Min: time.Millisecond, Max: 5 * time.Millisecond}}}
	for _, f := range change {
		f(&o)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); x.end <- Run(ctx, o) }()
	t.Cleanup(func() { cancel(); <-ended })
	return x
}

func (x *talk) wait() error {
	x.t.Helper()
	select {
	case err := <-x.end:
		return err
	case <-time.After(devicetest.Timeout):
		x.t.Fatalf("it did not end; out %q err %q", x.out.String(), x.err.String())
		return nil
	}
}

// text accepts a message and begins its turn.
func text(t *testing.T, c *devicetest.Conn, want string) string {
	t.Helper()
	f := devicetest.Expect[*frame.Text](c)
	if f.Text != want {
		t.Fatalf("%q, not %q", f.Text, want)
	}
	c.Send(&frame.Accepted{ID: f.ID}, &frame.Avatar{State: "thinking"}, &frame.Typing{})
	return f.ID
}

func TestPlainOneLineAfterTheOther(t *testing.T) {
	x := start(t, strings.NewReader("hello\n\nmore\n"))
	c := x.srv.Accept(nil)
	id := text(t, c, "hello")
	c.Send(&frame.Message{ID: "r1", Text: "st", Edit: true}, &frame.Message{ID: "r1", Text: "streamed \x1b[31m", Edit: true, Final: true, ReplyTo: id, Seq: 1})
	c.Silent(20 * time.Millisecond) // the turn goes on
	c.Send(&frame.Message{ID: "r2", Text: "second", Final: true, ReplyTo: id, Seq: 2}, &frame.Typing{Stop: true})
	id = text(t, c, "more")
	c.Send(&frame.Media{ID: "f", Kind: "image", Filename: "../a.png", Caption: "here", Size: 3, Data: []byte("png"), Parts: 1, Final: true, ReplyTo: id, Seq: 3},
		&frame.Media{ID: "g", Kind: "image", Filename: "a.png", Size: 3, Data: []byte("two"), Parts: 1, Final: true, ReplyTo: id, Seq: 4}, &frame.Typing{Stop: true})
	if err := x.wait(); err != nil {
		t.Fatal(err)
	}
	want := "streamed ␛[31m\nsecond\n[image a.png, 3 B] " + x.dir + "/a.png\nhere\n[image a.png, 3 B] " + x.dir + "/a-2.png\n"
	if x.out.String() != want || x.err.String() != "" {
		t.Fatalf("%q, not %q; err %q", x.out.String(), want, x.err.String())
	}
	if b, _ := os.ReadFile(filepath.Join(x.dir, "a-2.png")); string(b) != "two" {
		t.Fatal(string(b))
	}
	if code := c.Gone(); code != 1000 {
		t.Fatal(code)
	}
	if acks := c.Acks(); acks[len(acks)-1].Seq != 4 {
		t.Fatal(acks)
	}
}

func TestPlainCards(t *testing.T) {
	x := start(t, strings.NewReader("go\n2\nother\nmy own\n"))
	c := x.srv.Accept(nil)
	id := text(t, c, "go")
	c.Send(&frame.Prompt{ID: "p1", Kind: frame.ExecApproval, Command: "rm x", Description: "Deletes", Options: []frame.Option{{ID: "once", Label: "Allow"}, {ID: "deny", Label: "Deny"}}, Seq: 1})
	a := devicetest.Expect[*frame.Answer](c)
	if a.OptionID != "deny" {
		t.Fatalf("%+v", a)
	}
	c.Send(&frame.PromptDone{PromptID: "p1", ID: "p1", OptionID: "deny", Seq: 2})
	c.Send(&frame.Prompt{ID: "p2", Kind: frame.Clarify, Text: "Which?", Options: []frame.Option{{ID: "other", Label: "Own words"}}, Seq: 3})
	a = devicetest.Expect[*frame.Answer](c)
	if a.OptionID != "other" || a.Text != "my own" {
		t.Fatalf("%+v", a)
	}
	c.Send(&frame.PromptDone{PromptID: "p2", ID: "p2", OptionID: "other", Seq: 4}, &frame.Message{ID: "r", Text: "done", Final: true, ReplyTo: id, Seq: 5}, &frame.Typing{Stop: true})
	if err := x.wait(); err != nil {
		t.Fatal(err)
	}
	want := "? Allow this command? rm x\n  Deletes\n  1) Allow\n  2) Deny\n(answered: Deny)\n? Which?\n  1) Own words\nWrite your answer:\n(answered: my own)\ndone\n"
	if x.out.String() != want {
		t.Fatalf("%q, not %q", x.out.String(), want)
	}
}

func TestPlainSharedConversation(t *testing.T) {
	x := start(t, strings.NewReader("go\n"))
	c := x.srv.Accept(nil)
	id := text(t, c, "go")
	c.Send(&frame.Echo{ID: "m1", From: frame.Peer{ID: "tab-1"}, Text: "me too", Seq: 1}, &frame.Message{ID: "r", Text: "done", Final: true, ReplyTo: id, Seq: 2}, &frame.Typing{Stop: true})
	if err := x.wait(); err != nil {
		t.Fatal(err)
	}
	if want := "(tab-1: me too)\ndone\n"; x.out.String() != want {
		t.Fatalf("%q, not %q", x.out.String(), want)
	}
}

func TestPlainSendsFilesAndStops(t *testing.T) {
	in, w := io.Pipe()
	x := start(t, in)
	name := filepath.Join(t.TempDir(), "a b.txt")
	os.WriteFile(name, []byte("12345"), 0o600)
	c := x.srv.Accept(nil)
	io.WriteString(w, "/send '"+name+"' look here\n/stop\n")
	var id string
	for range 2 {
		switch f := c.Read().(type) {
		case *frame.Media:
			if f.Filename != "a b.txt" || f.Caption != "look here" || f.Mime != "text/plain" || string(f.Data) != "12345" {
				t.Fatalf("%+v", f)
			}
			id = f.ID
			c.Send(&frame.Accepted{ID: f.ID}, &frame.Typing{})
		case *frame.Stop:
		default:
			t.Fatalf("%T", f)
		}
	}
	c.Send(&frame.Message{ID: "r", Text: "stopped", Final: true, Interrupted: true, ReplyTo: id, Seq: 1}, &frame.Typing{Stop: true})
	w.Close()
	if err := x.wait(); err != nil || x.out.String() != "stopped\n" {
		t.Fatal(err, x.out.String())
	}
}

func TestPlainSaysWhyThereIsNoChat(t *testing.T) {
	x := start(t, strings.NewReader("hello\n"))
	c := x.srv.Next()
	devicetest.Expect[*frame.Hello](c)
	c.Send(&frame.Error{Code: frame.AuthFailed, Message: "the token is wrong"})
	c.Close(frame.CloseNoAccess, "")
	var refused *device.NoAccessError
	if err := x.wait(); !errors.As(err, &refused) {
		t.Fatal(err)
	}

	x = start(t, strings.NewReader("hello\n"))
	c = x.srv.Next()
	r := devicetest.Ready(devicetest.Expect[*frame.Hello](c))
	r.Approved = false
	c.Send(r)
	devicetest.Expect[*frame.Text](c)
	c.Send(&frame.Message{ID: "p", Text: "Your code is ABCD2345", Final: true})
	if err := x.wait(); !errors.Is(err, ErrNotApproved) || x.out.String() != "Your code is ABCD2345\n" {
		t.Fatal(err, x.out.String())
	}

	x = start(t, strings.NewReader("hello\n/send nowhere\n"))
	c = x.srv.Accept(nil)
	f := devicetest.Expect[*frame.Text](c)
	c.Send(&frame.Error{Code: frame.TooBig, Message: "too long", Ref: f.ID})
	var e *frame.Error
	if err := x.wait(); !errors.As(err, &e) || x.out.String() != "" || !strings.Contains(x.err.String(), "! too long\n! nowhere: no such file") {
		t.Fatal(err, x.out.String(), x.err.String())
	}
}

// A script does not wait for an agent that is offline for a reason that waiting does not fix. It
// continues when the agent comes back in time.
func TestPlainEndsWhereTheAgentStaysOffline(t *testing.T) {
	old := offlineLimit
	t.Cleanup(func() { offlineLimit = old })
	offlineLimit = 600 * time.Millisecond
	var mu sync.Mutex
	why := errors.New("the gateway's key has changed")
	offline := func(o *Options) {
		o.AgentOffline = func() error { mu.Lock(); defer mu.Unlock(); return why }
	}
	away := func(c *devicetest.Conn) {
		r := devicetest.Ready(devicetest.Expect[*frame.Hello](c))
		r.Agent = frame.Away
		c.Send(r)
		c.Send(&frame.Accepted{ID: devicetest.Expect[*frame.Text](c).ID, Queued: true})
	}
	x := start(t, strings.NewReader("hello\n"), offline)
	away(x.srv.Next())
	if err := x.wait(); err == nil || !strings.Contains(err.Error(), "the agent is offline: the gateway's key has changed") {
		t.Fatal(err)
	}
	if n := strings.Count(x.err.String(), "key has changed"); n != 1 {
		t.Errorf("told %d times: %q", n, x.err.String())
	}

	offlineLimit = devicetest.Timeout
	x = start(t, strings.NewReader("hello\n"), offline)
	c := x.srv.Next()
	r := devicetest.Ready(devicetest.Expect[*frame.Hello](c))
	r.Agent = frame.Away
	c.Send(r)
	id := devicetest.Expect[*frame.Text](c).ID
	c.Send(&frame.Accepted{ID: id, Queued: true})
	for !strings.Contains(x.err.String(), "key has changed") {
		time.Sleep(time.Millisecond)
	}
	mu.Lock()
	why = nil
	mu.Unlock()
	c.Send(&frame.CapabilitiesChanged{Capabilities: r.Capabilities, Agent: frame.Online}, &frame.Message{ID: "a", Text: "back", Final: true, ReplyTo: id})
	if err := x.wait(); err != nil || x.out.String() != "back\n" {
		t.Fatal(err, x.out.String())
	}
}

func TestPlainReconnectsInTheMiddle(t *testing.T) {
	x := start(t, strings.NewReader("hello\n"))
	c := x.srv.Accept(nil)
	id := text(t, c, "hello")
	c.Drop()
	c = x.srv.Accept(nil)
	c.Send(&frame.Typing{}, &frame.Message{ID: "r", Text: "late", Final: true, ReplyTo: id, Seq: 1}, &frame.Typing{Stop: true})
	if err := x.wait(); err != nil || x.out.String() != "late\n" {
		t.Fatal(err, x.out.String())
	}
}

// The full screen also runs over a stream that is not a terminal, as an SSH server would use it.
func TestFullScreen(t *testing.T) {
	srv := devicetest.New(t)
	in, w := io.Pipe()
	var out buffer
	end := make(chan error, 1)
	go func() {
		end <- Run(context.Background(), Options{In: in, Out: &out, Err: io.Discard, SaveDir: t.TempDir(), NoColor: true,
			Config: device.Config{URL: srv.URL, Token: "t", Device: frame.Device{ID: "term-1"}}})
	}()
	c := srv.Accept(nil)
	io.WriteString(w, "hi\r")
	m := devicetest.Expect[*frame.Text](c)
	c.Send(&frame.Accepted{ID: m.ID}, &frame.Message{ID: "r", Text: "**hello** there", Final: true, ReplyTo: m.ID, Seq: 1})
	for deadline := time.Now().Add(devicetest.Timeout); !strings.Contains(out.String(), "there"); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%q", out.String())
		}
	}
	io.WriteString(w, "\x04") // Ctrl+D
	select {
	case err := <-end:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(devicetest.Timeout):
		t.Fatal("it did not end")
	}
	w.Close()
	c.Gone()
	if acks := c.Acks(); len(acks) == 0 || acks[len(acks)-1].Seq != 1 {
		t.Fatal("an event on the screen was not acknowledged:", acks)
	}
}

// A text for the running turn goes out at once, not after the turn.
func TestPlainSteer(t *testing.T) {
	x := start(t, strings.NewReader("hello\n/steer and milk\nmore\n"))
	c := x.srv.Accept(nil)
	id := text(t, c, "hello")
	added := devicetest.Expect[*frame.Text](c)
	if added.Text != "and milk" || !added.Steer {
		t.Errorf("then came %+v", added)
	}
	c.Send(&frame.Accepted{ID: added.ID}, &frame.Message{ID: "r1", Text: "both", Final: true, ReplyTo: id, Seq: 1}, &frame.Typing{Stop: true})
	id = text(t, c, "more")
	c.Send(&frame.Message{ID: "r2", Text: "more", Final: true, ReplyTo: id, Seq: 2}, &frame.Typing{Stop: true})
	if err := x.wait(); err != nil {
		t.Fatal(err)
	}
}
