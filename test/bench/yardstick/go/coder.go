package main

import (
	"context"
	"net/http"

	"github.com/coder/websocket"
)

// coder is coder/websocket: without compression, with a limit that lets a file in, and read by a goroutine of its own. Its
// buffers are those of net/http and cannot be chosen.
type coder struct{}

type coderPeer struct{ c *websocket.Conn }

func (p coderPeer) send(b []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), writeLimit)
	defer cancel()
	return p.c.Write(ctx, websocket.MessageText, b)
}

// ping waits for the answer, which here is the only way to see that a device is gone.
func (p coderPeer) ping() {
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), silence-pingEvery)
		defer cancel()
		if p.c.Ping(ctx) != nil {
			_ = p.c.CloseNow()
		}
	}()
}

func (c coder) devices(open opener) http.Handler { return c.gateways(open) }

func (coder) gateways(open opener) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionDisabled, InsecureSkipVerify: true})
		if err != nil {
			return
		}
		c.SetReadLimit(frameLimit)
		p := coderPeer{c}
		go func() {
			to := open(p)
			defer to.end()
			defer func() { _ = c.CloseNow() }()
			for {
				_, r, err := c.Reader(context.Background())
				if err != nil || readText(r, to) != nil {
					return
				}
			}
		}()
	})
}

func (coder) all(peers []peer, b []byte) {
	spread(peers, func(p peer) { _ = p.send(b) })
}
