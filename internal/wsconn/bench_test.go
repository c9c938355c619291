//go:build unix

package wsconn

import (
	"io"
	"net"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gobwas/ws"
)

// BenchmarkIdle reports what a connection costs that has exchanged a message and
// then stays silent, in bytes of heap and stacks of this process, without the
// kernel's. The peers are bare descriptors, so that they cost nothing here.
func BenchmarkIdle(b *testing.B) {
	const conns = 2000
	for b.Loop() {
		got := make(chan struct{}, conns)
		s := newServer(b, Options{
			MaxMessage: 16 << 20, MaxQueue: 1 << 20, WriteStall: 10 * time.Second,
			Keeper: keep(b, 25*time.Second, time.Minute),
		}, raw, func() Handler { return echo{got} })
		fds := make([]int, 0, conns)
		before, goroutines := memory(), runtime.NumGoroutine()
		for range conns {
			fds = append(fds, bareDial(b, s.Listener.Addr().(*net.TCPAddr)))
		}
		for range conns {
			<-got
		}
		b.ReportMetric(float64(memory()-before)/conns, "B/conn")
		b.ReportMetric(float64(runtime.NumGoroutine()-goroutines)/conns, "goroutines/conn")
		for range conns {
			(<-s.conns).CloseNow()
		}
		for _, fd := range fds {
			_ = syscall.Close(fd)
		}
		s.Server.Close()
	}
}

type echo struct{ got chan struct{} }

func (e echo) Message(c *Conn, _ bool, p []byte) {
	_ = c.Send(append([]byte(nil), p...))
	e.got <- struct{}{}
}
func (echo) TooBig(*Conn)        {}
func (echo) Drained(*Conn)       {}
func (echo) Closed(*Conn, error) {}

// bareDial opens a WebSocket without Go's net and sends one message.
func bareDial(b *testing.B, addr *net.TCPAddr) int {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		b.Fatal(err)
	}
	to := &syscall.SockaddrInet4{Port: addr.Port, Addr: [4]byte(addr.IP.To4())}
	if err := syscall.Connect(fd, to); err != nil {
		b.Fatal(err)
	}
	req := append([]byte("GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\nUser-Agent: "+strings.Repeat("u", 100)+"\r\n\r\n"), text(`{"t":"hello"}`)...)
	if _, err := syscall.Write(fd, req); err != nil {
		b.Fatal(err)
	}
	return fd
}

func memory() uint64 {
	var m runtime.MemStats
	for range 3 { // stacks shrink by half at each collection
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

func BenchmarkSend(b *testing.B) {
	for name, tr := range transports {
		b.Run(name, func(b *testing.B) {
			s := newServer(b, Options{WriteStall: time.Minute}, tr, func() Handler { return &recorder{} })
			p := s.dial(b)
			c := s.conn(b)
			go func() { _, _ = io.Copy(io.Discard, p.Conn) }()
			m := []byte(strings.Repeat("m", 200))
			b.ReportAllocs()
			for b.Loop() {
				if err := c.Send(m); err != nil {
					b.Fatal(err)
				}
				for c.Queued() > 1<<20 {
					runtime.Gosched()
				}
			}
			_ = p.Close()
		})
	}
}

func BenchmarkReceive(b *testing.B) {
	for _, size := range []int{200, 64 << 10, 4 << 20} {
		b.Run(byteSize(size), func(b *testing.B) {
			got := make(chan struct{}, 1)
			s := newServer(b, Options{}, raw, func() Handler { return &recordLess{got} })
			p := s.dial(b)
			s.conn(b)
			m := masked(ws.OpText, true, strings.Repeat("m", size))
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				p.send(m)
				<-got
			}
		})
	}
}

func byteSize(n int) string {
	switch {
	case n >= 1<<20:
		return "MiB"
	case n >= 1<<10:
		return "KiB"
	}
	return "B"
}

type recordLess struct{ got chan struct{} }

func (r *recordLess) Message(*Conn, bool, []byte) { r.got <- struct{}{} }
func (*recordLess) TooBig(*Conn)                  {}
func (*recordLess) Drained(*Conn)                 {}
func (*recordLess) Closed(*Conn, error)           {}
