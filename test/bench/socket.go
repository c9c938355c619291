package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/gobwas/ws"
)

// socket is the client's side of one WebSocket, as cheap as it can be: one goroutine parked in a read, and several frames
// in one write where the caller has several. The load must not take the cores from what is measured.
type socket struct {
	nc  net.Conn
	br  *bufio.Reader
	hdr [ws.MaxHeaderSize]byte // of the reading goroutine
	buf []byte

	speech *dialect // nil: frames are not wrapped
	rest   []byte   // of a message with several frames

	mu    sync.Mutex
	out   []byte
	whdr  [ws.MaxHeaderSize]byte
	ended bool
}

// readBuffer is small: ten thousand of them are open.
const readBuffer = 1024

func dial(ctx context.Context, addr, path string, header http.Header) (*socket, error) {
	d := ws.Dialer{Timeout: 30 * time.Second, Header: ws.HandshakeHeaderHTTP(header)}
	nc, br, _, err := d.Dial(ctx, "ws://"+addr+path)
	if err != nil {
		return nil, err
	}
	k := &socket{nc: nc, br: bufio.NewReaderSize(nc, readBuffer)}
	if br != nil { // the server spoke at once
		first := make([]byte, br.Buffered())
		_, _ = io.ReadFull(br, first)
		k.br = bufio.NewReaderSize(io.MultiReader(&bytesOnce{first}, nc), readBuffer)
		ws.PutReader(br)
	}
	return k, nil
}

// bytesOnce reads what came with the handshake.
type bytesOnce struct{ b []byte }

func (r *bytesOnce) Read(p []byte) (int, error) {
	if len(r.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.b)
	r.b = r.b[n:]
	return n, nil
}

// queue adds a frame to what the next flush writes.
func (k *socket) queue(op ws.OpCode, p []byte) {
	if k.speech != nil && op == ws.OpText {
		p = k.speech.up(p)
	}
	k.add(op, p)
}

func (k *socket) add(op ws.OpCode, p []byte) {
	h := ws.Header{Fin: true, OpCode: op, Masked: true, Mask: [4]byte{1, 2, 3, 4}, Length: int64(len(p))}
	k.mu.Lock()
	_ = ws.WriteHeaderBuffer(io.Discard, h, k.whdr[:]) // fails for negative lengths only
	k.out = append(k.out, k.whdr[:ws.HeaderSize(h)]...)
	at := len(k.out)
	k.out = append(k.out, p...)
	ws.Cipher(k.out[at:], h.Mask, 0)
	k.mu.Unlock()
}

// flush writes what was queued.
func (k *socket) flush() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.out) > 0 && !k.ended {
		_, err := k.nc.Write(k.out)
		k.ended = err != nil // the reader says why
	}
	if k.out = k.out[:0]; cap(k.out) > 64<<10 {
		k.out = nil
	}
}

func (k *socket) send(p []byte) {
	k.queue(ws.OpText, p)
	k.flush()
}

// next returns the next frame, which is valid until it is called again.
func (k *socket) next() ([]byte, error) {
	if k.speech == nil {
		return k.message()
	}
	for {
		for len(k.rest) > 0 {
			var line []byte
			line, k.rest, _ = bytes.Cut(k.rest, []byte("\n"))
			if bytes.Equal(line, k.speech.ping) {
				pings.Add(1)
				k.add(ws.OpText, k.speech.ping)
			} else if p := k.speech.down(line); p != nil {
				return p, nil
			}
		}
		var err error
		if k.rest, err = k.message(); err != nil {
			return nil, err
		}
	}
}

// message returns the next text message, which is valid until it is called again. Pings are answered here. What the caller
// queued is written before this waits.
func (k *socket) message() ([]byte, error) {
	for {
		if k.br.Buffered() == 0 {
			k.flush()
		}
		h, err := ws.ReadHeaderBuffer(k.br, k.hdr[:])
		if err != nil {
			return nil, err
		}
		if int64(cap(k.buf)) < h.Length {
			k.buf = make([]byte, h.Length+h.Length/2)
		}
		p := k.buf[:h.Length]
		if _, err := io.ReadFull(k.br, p); err != nil {
			return nil, err
		}
		switch h.OpCode {
		case ws.OpText:
			return p, nil
		case ws.OpPing:
			pings.Add(1)
			k.queue(ws.OpPong, p)
		case ws.OpClose:
			code, reason := ws.ParseCloseFrameData(p)
			return nil, fmt.Errorf("closed with %d %s", code, reason)
		}
	}
}

func (k *socket) close() { _ = k.nc.Close() }
