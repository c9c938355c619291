package device

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/coder/websocket"

	"hermes-mobile/frame"
)

// dial opens the WebSocket, or says why not and whether a retry can help.
func (c *connector) dial(l *link) (*websocket.Conn, ending) {
	ctx, cancel := context.WithTimeout(l.ctx, c.cfg.DialTimeout)
	defer cancel()
	conn, resp, err := websocket.Dial(ctx, c.target.String(), &websocket.DialOptions{
		HTTPClient: c.client, HTTPHeader: c.cfg.Header.Clone(),
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
		// Some proxies answer 404 while the server behind them restarts. A wrong path fails before
		// the first ready.
		if c.board.get().Session != "" || c.acks.current() != nil {
			break
		}
		fallthrough
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden:
		return nil, ending{err: &NoAccessError{Status: resp.StatusCode, Message: rejection(resp)}}
	}
	return nil, ending{err: err, after: retryAfter(resp.Header.Get("Retry-After"), time.Now())}
}

// rejection returns the message of a rejected upgrade: that of the server where it is short and
// plain.
func rejection(resp *http.Response) string {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 300))
	text := strings.TrimSpace(string(body))
	odd := strings.IndexFunc(text, func(r rune) bool { return r == '<' || r == unicode.ReplacementChar || !unicode.IsPrint(r) })
	if text == "" || len(body) == 300 || odd >= 0 {
		text = map[int]string{
			http.StatusBadRequest:   "the server does not accept this address: check it",
			http.StatusUnauthorized: "something in front of the server asks for a login",
			http.StatusForbidden:    "the server does not allow this origin",
			http.StatusNotFound:     "there is no Hermes Mobile at this address: check the path",
		}[resp.StatusCode]
	}
	return text
}

// retryAfter reads the header in seconds or as a date, at most an hour.
func retryAfter(h string, now time.Time) time.Duration {
	var wait time.Duration
	if s, err := strconv.Atoi(strings.TrimSpace(h)); err == nil {
		wait = seconds(s)
	} else if t, err := http.ParseTime(h); err == nil {
		wait = t.Sub(now)
	}
	return min(max(wait, 0), time.Hour)
}

// greet sends hello and waits for ready.
func (c *connector) greet(l *link) (*frame.Ready, ending) {
	ctx, cancel := context.WithTimeout(l.ctx, c.cfg.DialTimeout)
	defer cancel()
	if err := l.conn.Write(ctx, websocket.MessageText, frame.EncodeUp(c.hello())); err != nil {
		return nil, ending{err: err}
	}
	var said *frame.Error
	for {
		typ, data, err := l.conn.Read(ctx)
		if err != nil {
			code := frame.CloseCode(websocket.CloseStatus(err))
			// The error frame says it too, where the close frame was lost.
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
			// A reference server tells neither approval nor the state of the agent: then there is
			// nothing to wait for.
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

func (c *connector) hello() *frame.Hello {
	h := &frame.Hello{Device: c.cfg.Device, User: c.cfg.User, Resume: c.acks.current()}
	c.login.sign(h)
	if !c.cfg.NoDelta {
		h.Accept = append(h.Accept, frame.AcceptDelta, frame.AcceptTail)
	}
	if c.cfg.Tools {
		h.Accept = append(h.Accept, frame.AcceptTool)
	}
	if c.cfg.Notices {
		h.Accept = append(h.Accept, frame.AcceptNotice)
	}
	return h
}

// seconds returns a wait that a server requested, at most an hour.
func seconds(n int) time.Duration { return time.Duration(min(max(n, 0), 3600)) * time.Second }

// noAccess takes the reason from the last error frame, or from the close frame where there was
// none.
func noAccess(said *frame.Error, err error) *NoAccessError {
	if said != nil {
		return &NoAccessError{Code: said.Code, Message: said.Message}
	}
	var closed websocket.CloseError
	if errors.As(err, &closed) && closed.Reason != "" {
		return &NoAccessError{Message: closed.Reason}
	}
	return &NoAccessError{Message: "the server rejects this device: check the token, or ask the agent's owner"}
}
