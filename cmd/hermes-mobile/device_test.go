package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/coder/websocket"
	"github.com/rogpeppe/go-internal/testscript"
)

// phone is a connection of a device: plain frames, so that scripts test what any client would see.
type phone struct {
	conn   *websocket.Conn
	frames chan []byte // closed when the connection is
	err    error       // why, then
	last   []byte      // the frame that was waited for last
}

// cmdDevice is the command dev:
//
//	dev NAME hello TOKEN DEVICE [USER]   connect and say hello
//	dev NAME pair CODE DEVICE            connect with a one-time code
//	dev NAME send JSON                   send a frame
//	dev NAME expect PATH=VALUE...        wait for the next frame that has these values; those before it are dropped
//	dev NAME capture VAR PATH [REGEXP]   set $VAR to a value of that frame, or to the expression's group in it
//	dev NAME closed CODE                 wait for the end of the connection
//	dev NAME close                       end it
func cmdDevice(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) < 2, "dev NAME WHAT [ARG...]")
	s, name, what, args := of(ts), args[0], args[1], args[2:]
	if what == "hello" || what == "pair" {
		usage(ts, neg, len(args) < 2, "dev NAME hello TOKEN DEVICE [USER]")
		d := dial(ts)
		s.devices[name] = d
		hello := map[string]any{"t": "hello", "device": map[string]any{"id": args[1], "name": args[1]}}
		hello[map[string]string{"hello": "token", "pair": "pair"}[what]] = args[0]
		if len(args) > 2 {
			hello["user"] = map[string]any{"id": args[2]}
		}
		b, err := json.Marshal(hello)
		ts.Check(err)
		d.send(ts, b)
		return
	}
	d := s.devices[name]
	if d == nil {
		ts.Fatalf("there is no device %s", name)
	}
	switch what {
	case "send":
		d.send(ts, []byte(strings.Join(args, " ")))
	case "expect":
		d.expect(ts, args)
	case "capture":
		usage(ts, neg, len(args) < 2, "dev NAME capture VAR PATH [REGEXP]")
		v, ok := lookup(decode(ts, d.last), args[1])
		if ok && len(args) > 2 {
			m := regexp.MustCompile(args[2]).FindStringSubmatch(v)
			if ok = len(m) == 2; ok {
				v = m[1]
			}
		}
		if !ok {
			ts.Fatalf("no %v in %s", args[1:], d.last)
		}
		ts.Setenv(args[0], v)
	case "closed":
		usage(ts, neg, len(args) != 1, "dev NAME closed CODE")
		d.closed(ts, args[0])
	case "close":
		ts.Check(d.conn.Close(websocket.StatusNormalClosure, ""))
	default:
		ts.Fatalf("dev: unknown %s", what)
	}
}

func dial(ts *testscript.TestScript) *phone {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	// Scripts that care whose certificate it is use hermes-mobile chat.
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	conn, _, err := websocket.Dial(ctx, ts.Getenv("ADDR"), &websocket.DialOptions{HTTPClient: c})
	ts.Check(err)
	conn.SetReadLimit(32 << 20)
	d := &phone{conn: conn, frames: make(chan []byte, 1000)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(d.frames)
		for {
			_, b, err := conn.Read(context.Background())
			if err != nil {
				d.err = err
				return
			}
			d.frames <- b
		}
	}()
	ts.Defer(func() {
		_ = conn.CloseNow()
		<-done
	})
	return d
}

func (d *phone) send(ts *testscript.TestScript, b []byte) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ts.Check(d.conn.Write(ctx, websocket.MessageText, b))
}

func (d *phone) expect(ts *testscript.TestScript, want []string) {
	timeout := time.After(patience)
	var seen []string
	for {
		select {
		case b, ok := <-d.frames:
			if !ok {
				ts.Fatalf("the connection ended (%v) after %s", d.err, seen)
			}
			if mismatch(decode(ts, b), want) == "" {
				ts.Logf("frame: %.300s", b)
				d.last = b
				return
			}
			seen = append(seen, fmt.Sprintf("%.300s", b))
		case <-timeout:
			ts.Fatalf("no frame with %v came, only %s", want, seen)
		}
	}
}

func (d *phone) closed(ts *testscript.TestScript, code string) {
	timeout := time.After(patience)
	for {
		select {
		case _, ok := <-d.frames:
			if ok {
				continue
			}
			if got := fmt.Sprint(int(websocket.CloseStatus(d.err))); got != code {
				ts.Fatalf("closed with %s (%v), want %s", got, d.err, code)
			}
			return
		case <-timeout:
			ts.Fatalf("the connection is still open")
		}
	}
}
