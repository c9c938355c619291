package device

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/coder/websocket"

	"hermes-mobile/frame"
)

// Ways a connection ends that are ours.
var (
	errCatchUp  = errors.New("device: reconnecting to fetch what the loop had no room for")
	errHalfOpen = errors.New("device: the server did not answer a ping")
	errGap      = errors.New("device: reconnecting to fetch a message of which a piece is missing here")
)

// ending is how one attempt, with the connection it may have made, came to its end.
type ending struct {
	err    error
	after  time.Duration // the server asked to wait so long
	online time.Duration // how long it was Online
}

// run connects again and again until Close, or until it is pointless and nobody asks for it.
func (d *Device) run() {
	defer close(d.ended)
	defer d.shut()
	for attempt := 0; d.ctx.Err() == nil; {
		select {
		case <-d.retry: // a wish for an attempt is met by this one
		default:
		}
		d.change(func(s *Status) { s.State, s.Until = Connecting, time.Time{} })
		end := d.connect()
		if d.ctx.Err() != nil || errors.Is(end.err, ErrClosed) {
			return
		}
		if end.online >= d.cfg.Backoff.Stable {
			attempt = 0
		}
		var refused *NoAccessError
		switch {
		case errors.Is(end.err, errCatchUp):
			continue
		case errors.As(end.err, &refused) && d.pairInstead(refused):
			continue
		case refused != nil, errors.Is(end.err, ErrReplaced):
			state := NoAccess
			if refused == nil {
				state = Replaced
			}
			d.change(func(s *Status) { s.State, s.Err = state, end.err })
			select {
			case <-d.retry:
				attempt = 0
				continue
			case <-d.ctx.Done():
				return
			}
		}
		wait := max(d.cfg.Backoff.delay(attempt), end.after)
		attempt++
		d.change(func(s *Status) { s.State, s.Err, s.Until = Waiting, end.err, time.Now().Add(wait) })
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-d.retry:
			attempt = 0
		case <-d.ctx.Done():
		}
		t.Stop()
	}
}

func (d *Device) change(change func(s *Status)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.changeLocked(change)
}

// delay is the random wait before attempt n, from 0.
func (b Backoff) delay(n int) time.Duration {
	top := b.Max
	if n < 32 && b.Min<<n > 0 {
		top = min(top, b.Min<<n)
	}
	return rand.N(top + 1)
}

// pairInstead reports whether the configured pairing code is worth a try after the stored token was refused.
func (d *Device) pairInstead(e *NoAccessError) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cfg.Token != "" || d.cfg.PairCode == "" || d.pairing || d.paired || e.Code != frame.AuthFailed {
		return false
	}
	d.pairing = true
	return true
}

// shut is the end of the device: nobody may wait for it any longer.
func (d *Device) shut() {
	d.mu.Lock()
	d.changeLocked(func(s *Status) { s.State, s.Until = Closed, time.Time{} })
	if d.lease != nil {
		d.lease.Stop()
	}
	for _, o := range d.out {
		if !o.ended {
			o.finish(Receipt{ID: o.ID, Err: ErrClosed})
		}
	}
	d.mu.Unlock()
	if d.own {
		d.client.CloseIdleConnections()
	}
}

// connect makes one connection and serves it to its end.
func (d *Device) connect() ending {
	ctx, cancel := context.WithCancel(d.ctx)
	defer cancel()
	l := &link{ctx: ctx, cancel: cancel, probe: make(chan struct{}, 1), began: time.Now()}
	conn, end := d.dial(l)
	if conn == nil {
		return end
	}
	defer conn.CloseNow()
	conn.SetReadLimit(frame.MaxFrame + 1024) // the server may count its limit differently by a few bytes
	l.conn = conn
	ready, end := d.greet(l)
	if ready == nil {
		return end
	}
	began := time.Now()
	d.online(l, ready)
	err := d.serve(l)
	d.offline(l)
	return ending{err: err, after: l.after, online: time.Since(began)}
}

// dial opens the WebSocket, or says why not and whether that can change.
func (d *Device) dial(l *link) (*websocket.Conn, ending) {
	ctx, cancel := context.WithTimeout(l.ctx, d.cfg.DialTimeout)
	defer cancel()
	conn, resp, err := websocket.Dial(ctx, d.target.String(), &websocket.DialOptions{
		HTTPClient: d.client, HTTPHeader: d.cfg.Header.Clone(),
		OnPingReceived: func(context.Context, []byte) bool { l.hear(); return true },
		OnPongReceived: func(context.Context, []byte) { l.hear() },
	})
	if err == nil {
		return conn, ending{}
	}
	if resp == nil || resp.StatusCode == http.StatusSwitchingProtocols {
		return nil, ending{err: err}
	}
	switch resp.StatusCode {
	case http.StatusNotFound:
		// Some proxies answer so while the server behind them restarts. A wrong path is found out before the first ready.
		if d.met() {
			break
		}
		fallthrough
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden:
		return nil, ending{err: &NoAccessError{Status: resp.StatusCode, Message: refusal(resp)}}
	}
	return nil, ending{err: err, after: retryAfter(resp.Header.Get("Retry-After"), time.Now())}
}

// met reports whether there was a server at the address before, in this life of the program or in one that is stored.
func (d *Device) met() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.status.Session != "" || d.cursor.Epoch != ""
}

// refusal is what a refused upgrade says: its own words where they are short and plain.
func refusal(resp *http.Response) string {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 300))
	text := strings.TrimSpace(string(body))
	odd := strings.IndexFunc(text, func(r rune) bool { return r == '<' || r == unicode.ReplacementChar || !unicode.IsPrint(r) })
	if text == "" || len(body) == 300 || odd >= 0 {
		text = map[int]string{
			http.StatusBadRequest:   "the server does not take this address: check it",
			http.StatusUnauthorized: "something in front of the server asks for a login",
			http.StatusForbidden:    "the server does not let this origin in",
			http.StatusNotFound:     "there is no Hermes Mobile at this address: check the path",
		}[resp.StatusCode]
	}
	return text
}

// retryAfter reads the header in seconds or as a date; what is absurdly far away is cut to an hour.
func retryAfter(h string, now time.Time) time.Duration {
	var wait time.Duration
	if s, err := strconv.Atoi(strings.TrimSpace(h)); err == nil {
		wait = time.Duration(min(max(s, 0), 3600)) * time.Second
	} else if t, err := http.ParseTime(h); err == nil {
		wait = t.Sub(now)
	}
	return min(max(wait, 0), time.Hour)
}

// greet sends hello and waits for ready.
func (d *Device) greet(l *link) (*frame.Ready, ending) {
	ctx, cancel := context.WithTimeout(l.ctx, d.cfg.DialTimeout)
	defer cancel()
	if err := l.conn.Write(ctx, websocket.MessageText, frame.EncodeUp(d.hello())); err != nil {
		return nil, ending{err: err}
	}
	var said *frame.Error
	for {
		typ, data, err := l.conn.Read(ctx)
		if err != nil {
			code := frame.CloseCode(websocket.CloseStatus(err))
			// The words say it too, where the close frame was lost.
			if code == frame.CloseNoAccess || said != nil && (said.Code == frame.AuthFailed || said.Code == frame.Forbidden) {
				return nil, ending{err: noAccess(said, err)}
			}
			if code == frame.CloseReplaced {
				return nil, ending{err: ErrReplaced}
			}
			if said != nil {
				return nil, ending{err: said, after: seconds(said.RetryAfter)}
			}
			return nil, ending{err: err}
		}
		if typ != websocket.MessageText {
			continue
		}
		f, err := frame.DecodeDown(data)
		if err != nil {
			continue
		}
		switch f := f.(type) {
		case *frame.Ready:
			l.hear()
			// A server of the reference says nothing about approval and the agent: then there is nothing to wait for.
			if f.Protocol == 0 {
				f.Approved = true
			}
			if f.Agent == "" {
				f.Agent = frame.Online
			}
			return f, ending{}
		case *frame.Error:
			said = f
		}
	}
}

func seconds(n int) time.Duration { return time.Duration(min(max(n, 0), 3600)) * time.Second }

// noAccess makes the reason out of the last error frame, or of the close frame where there was none.
func noAccess(said *frame.Error, err error) *NoAccessError {
	if said != nil {
		return &NoAccessError{Code: said.Code, Message: said.Message}
	}
	var closed websocket.CloseError
	if errors.As(err, &closed) && closed.Reason != "" {
		return &NoAccessError{Message: closed.Reason}
	}
	return &NoAccessError{Message: "the server refuses this device: check the token, or ask the agent's owner"}
}

func (d *Device) hello() *frame.Hello {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := &frame.Hello{Device: d.cfg.Device, User: d.cfg.User}
	switch {
	case d.cfg.Token != "":
		h.Token = d.cfg.Token
	case d.pairing && d.cfg.PairCode != "" && !d.paired:
		h.Pair = d.cfg.PairCode
	default:
		h.Token = d.token
	}
	if !d.cfg.NoDelta {
		h.Accept = append(h.Accept, frame.AcceptDelta, frame.AcceptTail)
	}
	if d.cfg.Tools {
		h.Accept = append(h.Accept, frame.AcceptTool)
	}
	if d.cfg.Notices {
		h.Accept = append(h.Accept, frame.AcceptNotice)
	}
	// What is only in memory is not claimed: the server would forget it.
	if d.cursor.Epoch != "" {
		c := d.cursor
		h.Resume = &c
	}
	return h
}
