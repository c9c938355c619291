package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/gobwas/ws"
)

// gateway is a scripted Hermes gateway: it dials /relay as a stock one does (doc/hermes/relay.md
// §3), acknowledges what comes, and sends the ops it is told to.
type gateway struct {
	*socket
	ops      atomic.Int64 // sent
	answered atomic.Int64 // successfully
	refused  atomic.Int64
	closing  atomic.Bool
	done     chan struct{}
	err      error                        // read it after done
	inbound  func(chat, mid, text string) // in the reader
	files    func(urls []string)          // likewise, for a message that brings some
}

// bearer is the token of a dial: base64url("<id>:<exp>:<hex hmac>").
func bearer() string {
	signed := relayID + ":" + strconv.FormatInt(time.Now().Add(300*time.Second).Unix(), 10)
	mac := hmac.New(sha256.New, []byte(relaySecret))
	mac.Write([]byte(signed))
	return "Bearer " + base64.RawURLEncoding.EncodeToString([]byte(signed+":"+hex.EncodeToString(mac.Sum(nil))))
}

// dialGateway connects a gateway, which gets messages and, where it is told how, files.
func dialGateway(ctx context.Context, addr string, inbound func(chat, mid, text string), files ...func(urls []string)) (*gateway, error) {
	k, err := dial(ctx, addr, "/relay", http.Header{"Authorization": {bearer()}})
	if err != nil {
		return nil, fmt.Errorf("the gateway's dial: %w", err)
	}
	g := &gateway{socket: k, done: make(chan struct{}), inbound: inbound}
	if len(files) > 0 {
		g.files = files[0]
	}
	k.send([]byte(`{"type":"hello","platform":"relay","botId":""}` + "\n"))
	p, err := k.next()
	if err == nil && !has(p, `"descriptor"`) {
		err = fmt.Errorf("instead of a descriptor came %s", p)
	}
	if err != nil {
		k.close()
		return nil, fmt.Errorf("the gateway's hello: %w", err)
	}
	go g.read()
	return g, nil
}

func (g *gateway) read() {
	defer close(g.done)
	for {
		p, err := g.next()
		if err != nil {
			if !g.closing.Load() {
				g.err = fmt.Errorf("the gateway's connection: %w", err)
			}
			return
		}
		for line := range bytes.Lines(p) {
			switch {
			case bytes.HasPrefix(line, []byte(`{"type":"outbound_result"`)):
				if has(line, `"success":true`) {
					g.answered.Add(1)
				} else {
					g.refused.Add(1)
				}
			case bytes.HasPrefix(line, []byte(`{"type":"inbound"`)):
				var f struct {
					BufferID string `json:"bufferId"`
					Event    struct {
						Text      string   `json:"text"`
						MessageID string   `json:"message_id"`
						MediaURLs []string `json:"media_urls"`
						Source    struct {
							ChatID string `json:"chat_id"`
						} `json:"source"`
					} `json:"event"`
				}
				if err := json.Unmarshal(line, &f); err != nil {
					g.err = errors.Join(err, fmt.Errorf("an event cannot be read: %s", line))
					return
				}
				g.queue(ws.OpText, []byte(`{"type":"inbound_ack","bufferId":"`+f.BufferID+`"}`+"\n"))
				if g.files != nil && len(f.Event.MediaURLs) > 0 {
					g.files(f.Event.MediaURLs)
				}
				if g.inbound != nil {
					g.inbound(f.Event.Source.ChatID, f.Event.MessageID, f.Event.Text)
				}
			}
		}
	}
}

// op queues one outbound op; action is what follows "op" in it, beginning with its name.
func (g *gateway) op(action string) {
	n := g.ops.Add(1)
	b := make([]byte, 0, len(action)+100)
	b = append(b, `{"type":"outbound","requestId":"`...)
	b = fmt.Appendf(b, "%032x", n)
	b = append(b, `","action":{"op":`...)
	b = append(b, action...)
	b = append(b, "}}\n"...)
	g.queue(ws.OpText, b)
}

// settled waits until every op has its answer.
func (g *gateway) settled(ctx context.Context) error {
	for g.answered.Load()+g.refused.Load() < g.ops.Load() {
		select {
		case <-g.done:
			return errors.Join(errors.New("the gateway's connection ended"), g.err)
		case <-ctx.Done():
			return fmt.Errorf("%d of %d ops of the gateway have no answer", g.ops.Load()-g.answered.Load()-g.refused.Load(), g.ops.Load())
		case <-time.After(5 * time.Millisecond):
		}
	}
	if n := g.refused.Load(); n > 0 {
		return fmt.Errorf("%d ops of the gateway were refused", n)
	}
	return nil
}

func (g *gateway) end() {
	g.closing.Store(true)
	g.close()
	<-g.done
}
