package hostile

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gobwas/ws"

	"hermes-mobile/device"
	"hermes-mobile/frame"
	"hermes-mobile/test/e2e"
)

// strangersCost is what strangers may cost the server in all, in bytes of its resident memory.
const strangersCost = 100 << 20

// maxStrangers is how many the server has at a time.
const maxStrangers = 1000

// resident samples what the server's process takes of the machine's memory, until the function it returns is called.
func resident(t testing.TB, memory func() float64) (most func() float64) {
	var peak float64
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			peak = max(peak, memory())
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	most = sync.OnceValue(func() float64 { close(stop); <-done; return peak })
	t.Cleanup(func() { most() })
	return most
}

// strangers opens connections, each of which begin has say something, and returns what closes them. Those that the server
// dropped meanwhile are no fault.
func strangers(t testing.TB, s *e2e.Server, many int, begin func(i int, c net.Conn)) (end func()) {
	t.Helper()
	conns := make([]net.Conn, many)
	next := make(chan int)
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for i := range next {
				c, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", s.Port), patience)
				if err != nil {
					t.Error(err)
					return
				}
				_ = c.SetDeadline(time.Now().Add(patience))
				begin(i, c)
				conns[i] = c
			}
		})
	}
	for i := range conns {
		next <- i
	}
	close(next)
	wg.Wait()
	return func() {
		for _, c := range conns {
			if c != nil {
				_ = c.Close()
			}
		}
	}
}

// many is a number of strangers that this process may have, and says so where it is less than it should be.
func many(t testing.TB, want int) int {
	if most := openFiles() - 1000; want > most {
		t.Logf("%d strangers instead of %d: a process may have %d files open here (ulimit -n)", most, want, openFiles())
		return most
	}
	return want
}

// Ten thousand strangers, of every kind that there is, cost the server little memory. A phone that is paired chats, and another one
// connects while they come.
func TestTenThousandStrangers(t *testing.T) {
	t.Parallel()
	unfinished := masked(ws.OpText, true, strings.Repeat("x", frame.MaxHello))
	first := upgrade + "\r\n" + unfinished[:len(unfinished)-1]
	fragment := upgrade + "\r\n" + masked(ws.OpText, false, strings.Repeat("x", frame.MaxHello-1))
	header := "GET /ws HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
	say := func(texts ...string) func(i int, c net.Conn) {
		return func(i int, c net.Conn) { _, _ = io.WriteString(c, texts[i%len(texts)]) }
	}
	full := scale(2000, 10_000)
	for name, kind := range map[string]struct {
		many  int
		tls   bool
		begin func(i int, c net.Conn)
	}{
		"unfinished first frames": {10_000, false, say(first, first+strings.Repeat(masked(ws.OpPing, true, ""), 10), fragment)},
		"every kind": {full, false, say("", header+"x", header+strings.Repeat("x", 30<<10), upgrade+"\r\n", first,
			"POST /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 300000\r\n\r\n"+strings.Repeat("x", 100<<10),
			"POST /push/action HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n",
			"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"+header+strings.Repeat("x", 30<<10))},
		"TLS handshakes": {full, true, say("", "\x16", "\x16\x03\x01\x40\x00\x01\x00\xff\xff"+strings.Repeat("x", 16<<10))},
		"after a TLS handshake": {full / 4, true, func(i int, c net.Conn) {
			secure := tls.Client(c, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // it is the server's own
			if secure.Handshake() == nil {
				_, _ = io.WriteString(secure, []string{"", header, first}[i%3])
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			env := []string{}
			if kind.tls {
				env = append(env, "MOBILE_TLS=self")
			}
			s, p := start(t, env...)
			before := s.Metrics(t)["process_resident_memory_bytes"]
			counted := 0.0
			most := resident(t, func() float64 {
				m := s.Metrics(t)
				counted = max(counted, m["hermes_mobile_stranger_bytes"])
				return m["process_resident_memory_bytes"]
			})
			began := time.Now()
			n := many(t, kind.many)
			arrived := make(chan struct{})
			go func() {
				defer close(arrived)
				defer strangers(t, s, n, kind.begin)()
				// Half of those over the bound: others end by themselves, and on a busy machine they wait for a while to be accepted.
				until(t, "the strangers to be bounded", func() bool {
					m := s.Metrics(t)
					return m["hermes_mobile_strangers"] <= maxStrangers && m["hermes_mobile_strangers_dropped_total"] >= float64(n-maxStrangers)/2
				})
			}()
			longest := time.Duration(0)
			for i := 0; ; i++ {
				asked := time.Now()
				p.Ask(fmt.Sprint("in between ", i), "You said: in between")
				e2e.NewPhone(t, s, fmt.Sprint("another-", i)).Ask("hello", "You said: hello")
				longest = max(longest, time.Since(asked))
				select {
				case <-arrived:
				default:
					continue
				}
				break
			}
			m := s.Metrics(t)
			dropped := m["hermes_mobile_strangers_dropped_total"]
			if cost := most() - before; cost > strangersCost {
				t.Errorf("%d strangers cost %.0f MiB", n, cost/(1<<20))
			} else {
				t.Logf("%d strangers in %.1f s cost %.0f MiB over %.0f, of which %.0f counted; %.0f were dropped; two phones waited for %v at most", n,
					time.Since(began).Seconds(), cost/(1<<20), before/(1<<20), counted/(1<<20), dropped, longest.Round(time.Millisecond))
			}
			unharmed(t, s, p, s.Memory(t), 32<<20)
			quietLog(t, s)
		})
	}
}

// One address that is no proxy's has few strangers at a time, whatever they are busy with; its own oldest goes, and a phone behind the same address
// gets in.
func TestStrangersOfOneAddress(t *testing.T) {
	t.Parallel()
	const most = 64
	s, p := start(t, "MOBILE_TRUSTED_PROXIES=192.0.2.200")
	conns := make([]net.Conn, 3*most)
	for i := range conns {
		conns[i] = dial(t, s, upgrade+"\r\n")
	}
	began := time.Now()
	for _, c := range conns[:2*most] {
		ends(c)
	}
	if d := time.Since(began); d > 8*time.Second { // after ten they would be ended in any case
		t.Errorf("the oldest stayed for %v", d)
	}
	for _, c := range conns[2*most+5:] { // less those that made room for what this test itself asks
		upgraded(t, c)
	}
	if n := s.Metrics(t)["hermes_mobile_strangers"]; n > most {
		t.Errorf("%.0f strangers", n)
	}
	e2e.NewPhone(t, s, "same-address").Ask("hello", "You said: hello")
	p.Ask("still here", "You said: still here")
}

// Behind a proxy everybody has an address of the own: one that opens very many keeps nobody else out, and loses its oldest only.
func TestStrangersBehindAProxy(t *testing.T) {
	t.Parallel()
	s, p := start(t)
	from := func(addr string) func(int, net.Conn) {
		return func(_ int, c net.Conn) {
			_, _ = io.WriteString(c, upgrade+"X-Forwarded-For: "+addr+"\r\n\r\n")
		}
	}
	quiet := dial(t, s, upgrade+"X-Forwarded-For: 198.51.100.1\r\n\r\n")
	in := upgraded(t, quiet)
	for _, addr := range []string{"198.51.100.2", "2001:db8::1"} {
		defer strangers(t, s, 500, from(addr))()
		until(t, "all but 64 to go", func() bool { return s.Metrics(t)["hermes_mobile_strangers"] <= 64+64+10 })
	}
	_, err := io.WriteString(quiet, masked(ws.OpText, true, hello(s.Token, "quiet")))
	ok(t, err)
	if h, err := ws.ReadHeader(in); err != nil || h.OpCode != ws.OpText {
		t.Errorf("a stranger of another address went: %v", err)
	}
	p.Ask("still here", "You said: still here")
	quietLog(t, s)
}

// Phones that come back all at once, far more than there may be strangers, are no strangers: all get in.
func TestPhonesThatComeAtOnce(t *testing.T) {
	t.Parallel()
	s, _ := start(t)
	n := many(t, scale(3000, 8000))
	const wanted = "HTTP/1.1 101"
	type answer struct {
		phone int
		in    bool
	}
	answers := make(chan answer, n)
	come := func(i int, c net.Conn) {
		_, _ = io.WriteString(c, upgrade+"\r\n"+masked(ws.OpText, true, hello(s.Token, "phone-"+strconv.Itoa(i))))
		go func() {
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			answers <- answer{i, err == nil && strings.HasPrefix(resp.Proto+" "+resp.Status, wanted)}
		}()
	}
	defer strangers(t, s, n, come)()
	dropped := 0
	for left := n; left > 0; {
		a := <-answers
		if a.in {
			left--
			continue
		}
		// On a machine that is busy with other work it may take the server too long to look at one. It comes again, as devices do.
		if dropped++; dropped > n/10 {
			t.Fatal("phones are dropped")
		}
		come(a.phone, dial(t, s, ""))
	}
	until(t, "all phones to be connected", func() bool { return s.Metrics(t)["hermes_mobile_device_connections"] >= float64(n) })
	if m := s.Metrics(t); m["hermes_mobile_strangers_dropped_total"] > float64(dropped) {
		t.Errorf("%.0f were dropped, %d phones came again", m["hermes_mobile_strangers_dropped_total"], dropped)
	}
}

// A hello that is larger than the largest, and every frame that is not one yet, is refused with a clear error.
func TestLargeHello(t *testing.T) {
	t.Parallel()
	s, _ := start(t)
	for name, text := range map[string]string{
		"whole":      masked(ws.OpText, true, strings.Repeat(" ", frame.MaxHello+1)),
		"announced":  masked(ws.OpText, true, strings.Repeat(" ", frame.MaxHello+1))[:8],
		"in pieces":  masked(ws.OpText, false, strings.Repeat(" ", frame.MaxHello)) + masked(ws.OpContinuation, true, " "),
		"very large": "\x81\xff\x00\x00\x00\x7f\xff\xff\xff\xff\x00\x00\x00\x00",
	} {
		c := dial(t, s, upgrade+"\r\n"+text)
		in := upgraded(t, c)
		h, err := ws.ReadHeader(in)
		ok(t, err)
		said := make([]byte, h.Length)
		_, err = io.ReadFull(in, said)
		ok(t, err)
		if !strings.Contains(string(said), `"too_big"`) || !strings.Contains(string(said), "4 KiB") {
			t.Errorf("%s: %s", name, said)
		}
		if code := closeCode(in); code != 1009 {
			t.Errorf("%s: closed with %d", name, code)
		}
	}
}

// A server in a control group with little memory keeps within it by itself.
func TestMemoryOfAControlGroup(t *testing.T) {
	t.Parallel()
	group, limit := controlGroup(t, 192<<20)
	s := e2e.NewServer(t, "MOBILE_LOG_LEVEL=info")
	wrapped := filepath.Join(t.TempDir(), "in-group")
	ok(t, os.WriteFile(wrapped, fmt.Appendf(nil, "#!/bin/sh\necho $$ > %s/cgroup.procs && exec %s \"$@\"\n", group, s.Binary), 0o700))
	s.Agent, s.Binary = "demo", wrapped
	s.Start()
	if log := s.LogTail(1 << 30); !strings.Contains(log, fmt.Sprint(`msg="memory limit set" bytes=`, limit/100*90)) {
		t.Errorf("the server does not heed its group: %s", log)
	}
	p := e2e.NewPhone(t, s, "paired")
	p.Ask("before", "You said: before")
	end := strangers(t, s, many(t, 3000), func(_ int, c net.Conn) {
		_, _ = io.WriteString(c, upgrade+"\r\n"+masked(ws.OpText, true, strings.Repeat("x", 4000))[:4000])
	})
	p.Upload(device.FileOptions{Name: "x.bin", Mime: "application/octet-stream", Data: make([]byte, 4<<20)})
	end()
	p.Ask("after", "You said: after")
}
