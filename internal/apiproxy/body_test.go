package apiproxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// upload is a request whose body comes as the test has it.
type upload struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

// announce begins a request with a body of a length, by its user's cookies.
func (c *client) announce(path string, length int) *upload {
	c.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(c.r.url, "http://"))
	ok(c.t, err)
	c.t.Cleanup(func() { _ = conn.Close() })
	u := &upload{c.t, conn, bufio.NewReader(conn)}
	u.send(fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nCookie: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", path, c.line(), length))
	return u
}

func (u *upload) send(text string) {
	u.t.Helper()
	_, err := io.WriteString(u.conn, text)
	ok(u.t, err)
}

func (u *upload) status() int {
	u.t.Helper()
	resp, err := http.ReadResponse(u.in, nil)
	ok(u.t, err)
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// until waits for what other goroutines do.
func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// larges is how many large bodies of a user count.
func (r *rig) larges(name string) int {
	u, err := r.store.FrontUser(r.t.Context(), name)
	ok(r.t, err)
	r.proxy.pace.mu.Lock()
	defer r.proxy.pace.mu.Unlock()
	if p := r.proxy.pace.users[u.ID]; p != nil {
		return p.large
	}
	return 0
}

// TestAnnouncedBodies: bodies that are announced and do not come take nothing from others, and of
// one user two large ones are waited for.
func TestAnnouncedBodies(t *testing.T) {
	r := newRig(t)
	anna, bert := r.login("anna"), r.login("bert")
	var waiting []*upload
	for range 2 {
		waiting = append(waiting, anna.announce("/api/sessions", maxBody))
	}
	until(t, "both to be read", func() bool { return r.larges("anna") == 2 })
	for range 5 {
		resp := anna.announce("/api/sessions", maxBody)
		if status := resp.status(); status != 429 {
			t.Errorf("one more is answered with %d", status)
		}
	}
	if n := r.proxy.held.Load(); n != 0 {
		t.Errorf("%d bytes are taken of what did not come", n)
	}
	large := `{"title":"` + strings.Repeat("x", 4<<20) + `"}`
	bert.want(201, "POST", "/api/sessions", large)
	anna.want(201, "POST", "/api/sessions", `{"title":"`+strings.Repeat("x", smallBody/2)+`"}`)
	anna.want(429, "POST", "/api/sessions", large, "rate_limit_exceeded")

	// What comes is counted as it comes.
	waiting[0].send(`{"title":"` + strings.Repeat("x", 1<<20))
	until(t, "it to count", func() bool { n := r.proxy.held.Load(); return n >= 1<<20 && n <= 4<<20 })
	for _, u := range waiting {
		_ = u.conn.Close()
	}
	until(t, "all to be given back", func() bool { return r.proxy.held.Load() == 0 && r.larges("anna") == 0 })
	anna.want(201, "POST", "/api/sessions", large)
	until(t, "all to be given back", func() bool { return r.proxy.held.Load() == 0 && r.larges("anna")+r.larges("bert") == 0 })
}

// TestBodyBudget: where all that is large together is too much, what is small goes on.
func TestBodyBudget(t *testing.T) {
	r := newRig(t, func(o *Options) {
		o.Limits = DefaultLimits
		o.Limits.Bodies = 3 << 20
	})
	anna, bert := r.login("anna"), r.login("bert")
	u := anna.announce("/api/sessions", 2<<20)
	u.send(`{"title":"` + strings.Repeat("x", 3<<19))
	until(t, "it to be held", func() bool { return r.proxy.held.Load() >= 3<<19 })
	bert.want(503, "POST", "/api/sessions", `{"title":"`+strings.Repeat("x", 2<<20)+`"}`, "busy")
	for range 5 {
		bert.want(201, "POST", "/api/sessions", `{"title":"`+strings.Repeat("x", 100<<10)+`"}`)
	}
	u.send(strings.Repeat("x", 2<<20-3<<19-len(`{"title":""}`)) + `"}`)
	if status := u.status(); status != 201 {
		t.Errorf("the one that was there before is answered with %d", status)
	}
	bert.want(201, "POST", "/api/sessions", `{"title":"`+strings.Repeat("x", 1<<20)+`"}`)
	until(t, "all to be given back", func() bool { return r.proxy.held.Load() == 0 && r.larges("anna")+r.larges("bert") == 0 })
}

// TestBodyEndsWithItsWay: a turn that runs holds nothing of its question, so long turns with
// pictures do not count as large bodies.
func TestBodyEndsWithItsWay(t *testing.T) {
	r := newRig(t)
	c := r.login("anna")
	id := c.session()
	for range 4 {
		resp := c.send(t.Context(), "POST", "/api/sessions/"+id+"/chat/stream", `{"message":"`+strings.Repeat("x", 2<<20)+`"}`)
		defer resp.Body.Close()
		if resp.StatusCode != 200 {
			t.Fatalf("%d", resp.StatusCode)
		}
		until(t, "it to be given back", func() bool { return r.proxy.held.Load() == 0 && r.larges("anna") == 0 })
	}
	if n := r.counted("front_turns"); n != 4 {
		t.Errorf("%v turns run", n)
	}
	// A body where none belongs is not kept either.
	run := made(t, c.want(202, "POST", "/v1/runs", `{"input":"x"}`))
	c.want(200, "POST", "/v1/runs/"+run+"/stop", strings.Repeat("x", 1<<20))
	close(r.up.next)
}

// TestBodySizes: a body arrives as it was sent, whatever its length and the pieces it comes in, and
// takes no more memory than twice its length.
func TestBodySizes(t *testing.T) {
	r := newRig(t)
	anna := r.login("anna")
	anna.session() // so that the user counts
	user, err := r.store.FrontUser(t.Context(), "anna")
	ok(t, err)
	for _, size := range []int{1, firstPiece - 1, firstPiece, firstPiece + 1, smallBody - 1, smallBody, smallBody + 1, 2*smallBody + 1, 1 << 20, maxBody} {
		for _, announced := range []bool{true, false} {
			text := strings.Repeat("0123456789", size/10+1)[:size]
			length := int64(-1)
			if announced {
				length = int64(size)
			}
			for name, from := range map[string]io.Reader{"whole": strings.NewReader(text), "with its end": iotest.DataErrReader(strings.NewReader(text)), "halves": iotest.HalfReader(strings.NewReader(text))} {
				b := &body{proxy: r.proxy, user: user.ID}
				if err := b.read(from, length); err != nil || string(b.data) != text {
					t.Errorf("%d bytes by %s: %d arrived (%v)", size, name, len(b.data), err)
				}
				if want := int64(cap(b.data)); size > smallBody && b.taken != want || b.taken > 2*int64(size) || size <= smallBody/2 && (b.taken != 0 || b.large) {
					t.Errorf("%d bytes by %s (announced %t) count as %d, large %t", size, name, announced, b.taken, b.large)
				}
				b.release()
				b.release()
			}
		}
	}
	if n := r.proxy.held.Load(); n != 0 || r.larges("anna") != 0 {
		t.Errorf("%d bytes and %d bodies are still counted", n, r.larges("anna"))
	}
}
