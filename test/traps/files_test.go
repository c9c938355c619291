package traps

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"hermes-mobile/device"
	"hermes-mobile/frame"
	"hermes-mobile/test/e2e"
	"hermes-mobile/test/gateway"
)

// largest is the largest file that a gateway takes (doc/hermes/relay.md §5).
const largest = 25 << 20

// content is a file of a length that no two share.
func content(size int, seed uint64) []byte {
	b := make([]byte, size)
	var key [32]byte
	key[0] = byte(seed)
	_, _ = rand.NewChaCha8(key).Read(b)
	return b
}

func shaOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// A file of 25 MiB in both directions: from the phone in parts, where the owner allows that much, and to it in parts or,
// where the owner allows less, as a link. The server never holds more than a part of it.
func TestFileOf25MiB(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]int{"allowed": largest, "by link": 8 << 20} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, fmt.Sprint("MOBILE_MAX_MEDIA_BYTES=", limit))
			g := hello(t, config(s, ""))
			p := e2e.NewPhone(t, s, "tel")
			p.Online()
			before := s.Memory(t)
			peak := watch(t, s)
			up := content(largest, 1)
			if limit == largest {
				out, err := p.SendFile(soon(t), device.FileOptions{Name: "large.bin", Mime: "application/octet-stream", Data: up, Caption: "take it"})
				ok(t, err)
				e := take(t, g, "take it")
				sha, status, err := g.Fetch(soon(t), e.URL)
				if err != nil || status != http.StatusOK || sha != shaOf(up) {
					t.Errorf("the gateway fetched %d %s: %v", status, sha, err)
				}
				p.Receipt(out)
				ok(t, g.Turn(soon(t), e, "got it"))
				p.Final(0, "the answer", func(m device.Message) bool { return m.Text == "got it" })
			}
			if _, err := p.SendFile(soon(t), device.FileOptions{Name: "larger.bin", Data: append(up, 1)}); err == nil {
				t.Error("a file over the limit is sent")
			}

			down := content(largest, 2)
			id, status, err := g.Upload(soon(t), "down.bin", "application/octet-stream", down)
			if err != nil || status != http.StatusOK {
				t.Fatalf("upload: %d %v", status, err)
			}
			mark := p.Mark()
			_, err = g.Must(soon(t), map[string]any{"op": "send_media", "chat_id": "tel", "media_kind": "document", "source_url": s.Base() + "/relay/media/" + id, "content": "for you"})
			ok(t, err)
			f := e2e.Wait(p, mark, "the file", func(f device.File) bool { return f.Filename == "down.bin" })
			got := f.Data
			if (f.URL == "") != (limit == largest) || f.Caption != "for you" || f.Size != largest || f.Err != nil {
				t.Errorf("the file came with %d bytes of %d, link %v, %v", len(f.Data), f.Size, f.URL != "", f.Err)
			}
			if f.URL != "" {
				var b bytes.Buffer
				_, err := p.Download(soon(t), f, &b)
				ok(t, err)
				got = b.Bytes()
			}
			if shaOf(got) != shaOf(down) {
				t.Errorf("%d bytes came, and not the same", len(got))
			}
			if used := peak() - before; used > 128<<20 {
				t.Errorf("a file of 25 MiB cost %.0f MiB", used/(1<<20))
			} else {
				t.Logf("%.0f MiB more at most", used/(1<<20))
			}
			settled(t, s, before+64<<20)
		})
	}
}

// Names of files that would be a path, a line, or something else than they seem, in both directions.
func TestNamesOfFiles(t *testing.T) {
	t.Parallel()
	s := start(t)
	g := hello(t, config(s, ""))
	p := e2e.NewPhone(t, s, "tel")
	p.Online()
	for i, name := range []string{"../../etc/passwd", "a\nb.txt", "photo\u202egnp.exe", strings.Repeat("ü", 300) + ".txt", "..", "C:\\x\\y.txt", "\x00.png"} {
		id, status, err := g.Upload(soon(t), strings.Map(func(r rune) rune {
			if r < ' ' {
				return '?' // no header can hold it
			}
			return r
		}, name), "text/plain", content(100, uint64(i)))
		if err != nil || status != http.StatusOK {
			t.Fatalf("%q: %d %v", name, status, err)
		}
		mark := p.Mark()
		_, err = g.Must(soon(t), map[string]any{"op": "send_media", "chat_id": "tel", "media_kind": "document", "filename": name, "source_url": s.Base() + "/relay/media/" + id})
		ok(t, err)
		f := e2e.Wait(p, mark, "the file", func(device.File) bool { return true })
		if f.Filename == "" || f.Filename == ".." || len(f.Filename) > 255 || strings.ContainsAny(f.Filename, "/\\\n\x00\u202e") {
			t.Errorf("%q came as %q", name, f.Filename)
		}
		mark = p.Mark()
		out, err := p.SendFile(soon(t), device.FileOptions{Name: name, Mime: "text/plain", Data: []byte("text"), Caption: fmt.Sprint("file ", i)})
		ok(t, err)
		e := take(t, g, fmt.Sprint("file ", i))
		if sha, status, err := g.Fetch(soon(t), e.URL); err != nil || status != http.StatusOK || sha != shaOf([]byte("text")) {
			t.Errorf("%q: fetched %d %s: %v", name, status, sha, err)
		}
		p.Receipt(out)
		ok(t, g.Turn(soon(t), e, fmt.Sprint("got ", i)))
		p.Final(mark, "the answer", func(m device.Message) bool { return m.Text == fmt.Sprint("got ", i) })
	}
}

// Two gateways on one server, each for its own devices: texts, cards and files stay with theirs, nothing of one can be
// read or answered by the other, and when one dies the other goes on.
func TestSeveralGateways(t *testing.T) {
	t.Parallel()
	s := startFor(t, map[string]string{"one": "a,user:bea", "two": "*"})
	one, two := scripted(t, config(s, "one")), scripted(t, config(s, "two"))
	a, c := e2e.NewPhone(t, s, "a"), e2e.NewPhone(t, s, "c")
	b := e2e.NewPhone(t, s, "b", func(c *device.Config) { c.User.ID = "bea" })
	owner := map[*e2e.Phone]*gateway.Gateway{a: one, b: one, c: two}
	n := 0
	for p := range owner {
		p.Online()
		n++
		p.Ask(fmt.Sprintf("echo %d of %s", n, p.ID), fmt.Sprintf("reply %d of %s", n, p.ID))
	}
	// A card for each at once, answered by each; and a file in both directions.
	for p := range owner {
		n++
		mark := p.Mark()
		p.Say(fmt.Sprintf("ask %d", n))
		card := p.Card(mark, frame.ExecApproval)
		other := c
		if p == c {
			other = a
		}
		out, err := other.Answer(soon(t), card.ID, "once", "")
		ok(t, err)
		if _, err := out.Wait(soon(t)); err == nil {
			t.Errorf("%s answered a card of %s", other.ID, p.ID)
		}
		p.Choose(card, "deny", "")
		p.Final(mark, "the outcome", func(m device.Message) bool { return m.Text == fmt.Sprintf("decided %d deny", n) })
		n++
		p.Say(fmt.Sprintf("file %d", n))
		e2e.Wait(p, mark, "a file", func(f device.File) bool { return strings.Contains(f.Filename, fmt.Sprint(n)) })
		n++
		data := content(5000, uint64(n))
		p.Upload(device.FileOptions{Name: "up.bin", Data: data, Caption: fmt.Sprintf("take %d", n)})
		p.Final(mark, "what became of it", func(m device.Message) bool { return m.Text == fmt.Sprintf("took %d %s", n, shaOf(data)) })
	}
	for _, g := range []*gateway.Gateway{one, two} {
		for _, in := range g.Inputs() {
			for p, of := range owner {
				if in.Chat == p.ID && of != g {
					t.Errorf("%q of %s came to another gateway", in.Text, p.ID)
				}
			}
		}
		if f := g.Faults(); len(f) != 0 {
			t.Errorf("faults: %v", f)
		}
	}
	// A file that the one was given is none for the other, and neither writes to the other's devices.
	rawOne := config(s, "one")
	one.Close()
	thief := hello(t, config(s, "two")) // the second link of this id: the scripted one dials again and takes it back
	id, status, err := thief.Upload(soon(t), "x.bin", "application/octet-stream", []byte("of two"))
	if err != nil || status != http.StatusOK {
		t.Fatalf("upload %d %v", status, err)
	}
	g := hello(t, rawOne)
	for _, action := range []map[string]any{
		{"op": "send_media", "chat_id": "a", "media_kind": "document", "source_url": s.Base() + "/relay/media/" + id},
		{"op": "send", "chat_id": "c", "content": "from one"},
		{"op": "prompt", "chat_id": "c", "content": "?", "prompt_kind": "approval", "prompt_id": "x.1", "options": []any{map[string]any{"id": "once"}}},
	} {
		if res := value[gateway.Result](t)(g.Do(soon(t), action)); res.Success {
			t.Errorf("%v of another gateway's is taken", action["op"])
		}
	}
	// One is dead. What is said to it waits; the other's devices do not notice.
	g.Close()
	mark := a.Mark()
	a.Agent(frame.Away)
	a.Say("echo 900 later")
	until(t, "the other gateway", two.Online)
	c.Ask("echo 901 still here", "reply 901 still here")
	back := scripted(t, rawOne)
	a.Final(mark, "the late answer", func(m device.Message) bool { return m.Text == "reply 900 later" })
	if got := finals(a, mark); len(got) != 1 || len(back.Inputs()) != 1 {
		t.Errorf("a got %q, the gateway %d inputs", got, len(back.Inputs()))
	}
}
