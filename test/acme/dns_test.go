package acme

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
)

// startDNS answers every question for an address with 127.0.0.1, and others with nothing. It speaks TCP, as Pebble does
// with a server that it was given, and returns its own address.
func startDNS(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			work.Go(func() {
				defer c.Close()
				defer context.AfterFunc(ctx, func() { _ = c.Close() })()
				for serveQuery(c) == nil {
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		cancel()
		work.Wait()
	})
	return l.Addr().String()
}

func serveQuery(c net.Conn) error {
	var length [2]byte
	if _, err := io.ReadFull(c, length[:]); err != nil {
		return err
	}
	query := make([]byte, binary.BigEndian.Uint16(length[:]))
	if _, err := io.ReadFull(c, query); err != nil {
		return err
	}
	reply := answer(query)
	if reply == nil {
		return io.ErrUnexpectedEOF
	}
	_, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...))
	return err
}

// answer makes the reply to a query with one question (RFC 1035 §4).
func answer(query []byte) []byte {
	const header = 12
	end := header
	for end < len(query) && query[end] != 0 {
		end += int(query[end]) + 1
	}
	end += 5 // the root label, type and class
	if end > len(query) {
		return nil
	}
	reply := append([]byte{}, query[:end]...)
	reply[2], reply[3] = 0x81, 0x80                 // a reply, recursion available, no error
	copy(reply[6:header], []byte{0, 0, 0, 0, 0, 0}) // no records but the question
	if query[end-4] == 0 && query[end-3] == 1 {     // A
		reply[7] = 1
		reply = append(reply, 0xc0, header, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1)
	}
	return reply
}
