package main

import (
	"bytes"
	"io"
	"net/http"
	"runtime"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// gorilla is gorilla/websocket with what keeps a waiting connection small: a read buffer of 256 bytes, write buffers that
// are shared, and a goroutine of its own for the reader, so that the one of net/http and the request can go.
type gorilla struct{}

const (
	writeLimit = 10 * time.Second
	silence    = 60 * time.Second
	frameLimit = 16 << 20
)

// upgrader is the same for all but what is read at a time: much of the one gateway, little of each device.
func upgrader(read int) *websocket.Upgrader {
	return &websocket.Upgrader{
		ReadBufferSize: read, WriteBufferSize: 1024, WriteBufferPool: &sync.Pool{},
		CheckOrigin: func(*http.Request) bool { return true },
	}
}

type gorillaPeer struct {
	c  *websocket.Conn
	mu sync.Mutex // writers take turns
}

func (p *gorillaPeer) send(b []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.c.SetWriteDeadline(time.Now().Add(writeLimit))
	return p.c.WriteMessage(websocket.TextMessage, b)
}

func (p *gorillaPeer) ping() {
	_ = p.c.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeLimit))
}

func (gorilla) devices(open opener) http.Handler { return accept(upgrader(256), open) }

func (gorilla) gateways(open opener) http.Handler {
	next := accept(upgrader(gatherMost), open)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(gathering{w}, r) })
}

func accept(u *websocket.Upgrader, open opener) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, err := u.Upgrade(w, r, nil); err == nil {
			p := &gorillaPeer{c: c}
			go p.read(open(p))
		}
	})
}

// payloads are buffers for what is read.
var payloads = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func (p *gorillaPeer) read(to reader) {
	defer to.end()
	defer p.c.Close()
	alive := func() { _ = p.c.SetReadDeadline(time.Now().Add(silence)) }
	p.c.SetReadLimit(frameLimit)
	p.c.SetPongHandler(func(string) error { alive(); return nil })
	alive()
	for {
		_, r, err := p.c.NextReader()
		if err != nil || readText(r, to) != nil {
			return
		}
	}
}

func readText(r io.Reader, to reader) error {
	b := payloads.Get().(*bytes.Buffer)
	b.Reset()
	_, err := b.ReadFrom(r)
	if err == nil {
		err = to.text(b.Bytes())
	}
	if b.Cap() <= 64<<10 {
		payloads.Put(b)
	}
	return err
}

func (gorilla) all(peers []peer, b []byte) {
	m, err := websocket.NewPreparedMessage(websocket.TextMessage, b)
	if err != nil {
		return
	}
	spread(peers, func(q peer) {
		p := q.(*gorillaPeer)
		p.mu.Lock()
		defer p.mu.Unlock()
		_ = p.c.SetWriteDeadline(time.Now().Add(writeLimit))
		_ = p.c.WritePreparedMessage(m)
	})
}

// spread does something for all peers, on all cores.
func spread(peers []peer, do func(peer)) {
	n := runtime.GOMAXPROCS(0)
	var work sync.WaitGroup
	for k := range n {
		work.Go(func() {
			for i := k; i < len(peers); i += n {
				do(peers[i])
			}
		})
	}
	work.Wait()
}
