package direct

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hermes-mobile/gateway"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/quota"
)

// sees is a gateway on this machine that sees what lies in some folders.
type sees []string

func (s sees) Sees(path string) bool {
	_, err := os.Stat(path)
	return err == nil && slices.ContainsFunc(s, func(dir string) bool { return strings.HasPrefix(path, dir+"/") })
}

// copies are the files of a disk, of which a gateway on this machine gets copies.
type copies struct {
	*disk
	dir  string
	fail error
}

func (c copies) LocalCopy(hash, name string) (string, error) {
	path := filepath.Join(c.dir, name)
	if c.fail != nil {
		return "", c.fail
	}
	return path, os.WriteFile(path, c.files[hash], 0o600)
}

func folder(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	ok(t, err)
	return dir
}

// sentFiles are the files that a turn sent, by their names.
func (d *disk) sentFiles(n int64) map[string]agent.File {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := map[string]agent.File{}
	for _, e := range d.events {
		if f, is := e.(agent.SendFile); is && f.N == n {
			all[f.File.Name] = f.File
		}
	}
	return all
}

// A gateway that sees the same files names them, and they are sent: of every kind, each once, and nothing that is not for people.
func TestFilesOfAGatewayOnThisMachine(t *testing.T) {
	root := folder(t)
	work, home, data, elsewhere := root+"/work", root+"/hermes", root+"/data", folder(t)
	put := func(path, content string) string {
		t.Helper()
		ok(t, os.MkdirAll(filepath.Dir(path), 0o700))
		ok(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	const pixel = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x00\x00\x00\x00"
	secrets := []string{put(home+"/auth.json", "s"), put(home+"/cache/bws_cache.json", "s"), put(home+"/.env", "s"), put(home+"/sessions/a.json", "s"),
		put(home+"/pairing/a.json", "s"), put(home+"/cache/images/.hidden.png", "s"), put(data+"/tokens", "s"), put(data+"/files/local/x/a.txt", "s"), put(work+"/.ssh/id_rsa", "s"), put(work+"/.env", "s"), "/etc/hostname",
		"/proc/self/environ", "/dev/zero"}
	link := work + "/innocent.txt"
	ok(t, os.Symlink(secrets[0], link))
	secrets = append(secrets, link, home+"/cache/images/../../auth.json")
	huge := put(work+"/huge.bin", "")
	ok(t, os.Truncate(huge, maxFileOut+1))
	absent := []string{work + "/none.txt", work, "relative.txt", put(elsewhere+"/unseen.txt", "s"), huge, work + "/a\x00b"}
	report, image, sound := put(work+"/Mein Bericht.pdf", "%PDF-1.4 x"), put(home+"/cache/images/view.png", pixel), put(home+"/audio_cache/said.ogg", "OggS\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00")

	each(t, func(t *testing.T, v string) {
		g, d := newGateway(t, v), newDisk()
		l := begin(t, g.URL, d, func(o *Options, _ *gateway.Profile) {
			o.FindNeighbor, o.HermesHome, o.Data = func() (Neighbor, bool) { return sees{root, "/etc", "/proc", "/dev"}, true }, home, data
		})
		ok(t, receive(t, l.hand(message(1, "hi")), "taken"))
		run := g.run(1)
		run.text("Here.\nMEDIA:" + report)
		l.steps("Here.")
		run.complete("Here.\nMEDIA:" + report + "\n[[audio_as_voice]]\nMEDIA:`" + image + "`\n  MEDIA: " + sound + " \nand more")
		l.done(1)
		files := d.sentFiles(1)
		if len(files) != 3 || files["Mein Bericht.pdf"].Kind != "document" || files["view.png"].Kind != "image" || files["view.png"].Mime != "image/png" || files["said.ogg"].Kind != "voice" {
			t.Errorf("sent %+v", files)
		}
		if got := d.finals(1); len(got) != 1 || !strings.Contains(got[0], "Here.") || !strings.Contains(got[0], "and more") || strings.Contains(got[0], "MEDIA") || strings.Contains(got[0], "[[") {
			t.Errorf("said %q", got)
		}
		n := int64(1)
		for kind, list := range map[string][]string{"are not sent": secrets, "": absent} {
			for _, path := range list {
				n++
				ok(t, receive(t, l.hand(message(n, "hi")), "taken"))
				g.run(int(n)).complete("Look:\nMEDIA:" + path)
				l.done(n)
				if f := d.sentFiles(n); len(f) != 0 {
					t.Errorf("%q was sent: %+v", path, f)
				}
				if got := d.finals(n); len(got) != 2 || got[0] != "Look:" || !strings.Contains(got[1], "could not be sent") || !strings.Contains(got[1], kind) {
					t.Errorf("%q: said %q", path, got)
				}
			}
		}
		d.mu.Lock()
		d.full = fmt.Errorf("media: store file: %w", &quota.Full{Reason: quota.Total})
		d.mu.Unlock()
		n++
		ok(t, receive(t, l.hand(message(n, "hi")), "taken"))
		g.run(int(n)).complete("MEDIA:" + report)
		l.done(n)
		wantFinals(t, d, n, "*The file Mein Bericht.pdf could not be sent: the server has no room for files right now.*")
	})
}

// A turn that another life had begun is followed again: a file that was sent is not sent twice, and none is lost.
func TestFilesAreSentOnceAcrossLives(t *testing.T) {
	root := folder(t)
	ok(t, os.WriteFile(root+"/a.txt", []byte("a"), 0o600))
	near := func(o *Options, _ *gateway.Profile) {
		o.FindNeighbor = func() (Neighbor, bool) { return sees{root}, true }
	}
	g, d := newGateway(t, now), newDisk()
	l := begin(t, g.URL, d, near)
	ok(t, receive(t, l.hand(message(1, "hi")), "taken"))
	run := g.run(1)
	run.text("First.\nMEDIA:" + root + "/a.txt\nMEDIA:" + root + "/none.txt")
	run.tool("First.\nMEDIA:"+root+"/a.txt\nMEDIA:"+root+"/none.txt", "terminal")
	l.eventually("the file", func([]agent.Event) bool { return len(d.sentFiles(1)) == 1 && len(d.finals(1)) == 2 })
	l.kill()
	ok(t, os.Remove(root+"/a.txt")) // it is there no more when the turn is followed again
	l = begin(t, g.URL, d, near)
	ok(t, receive(t, l.hand(d.handed(message(1, "hi"))), "taken"))
	run.complete("Second.")
	l.done(1)
	if got := d.finals(1); len(got) != 3 || got[2] != "Second." || len(d.sentFiles(1)) != 1 {
		t.Errorf("said %q, sent %v", got, d.sentFiles(1))
	}
}

// A file of any kind reaches a gateway on this machine as the path of a copy, an image that is too large for the API among them.
func TestFilesForAGatewayOnThisMachine(t *testing.T) {
	root := folder(t)
	each(t, func(t *testing.T, v string) {
		g, d := newGateway(t, v), newDisk()
		c := &copies{disk: d, dir: root}
		l := begin(t, g.URL, d, func(o *Options, _ *gateway.Profile) {
			o.FindNeighbor, o.Files = func() (Neighbor, bool) { return sees{root}, true }, c
		})
		if s := l.agent.Status(phone); !s.AnyFile || s.FilesIn {
			t.Errorf("status %+v", s)
		}
		hash, size, err := d.Put(bytes.NewReader([]byte("words")), 100)
		ok(t, err)
		for i, f := range []agent.File{{Kind: "document", Name: "Brief an Ann.txt", Hash: hash, Size: size}, {Kind: "image", Name: "huge.png", Hash: hash, Size: maxImage + 1}} {
			n := int64(i + 1)
			in := message(n, "what is it?")
			in.Kind, in.File = agent.Media, &f
			if n == 2 {
				in.Text = ""
			}
			ok(t, receive(t, l.hand(in), "taken"))
			body := fmt.Sprint(g.run(int(n)).body)
			if want := "It is saved at: " + root + "/" + f.Name + "]"; !strings.Contains(body, want) || n == 1 && !strings.Contains(body, "what is it?") {
				t.Errorf("asked %s, want %s", body, want)
			}
			g.run(int(n)).complete("read")
			l.done(n)
		}
		c.fail = fmt.Errorf("others can change it")
		in := message(9, "and this?")
		in.Kind, in.File = agent.Media, &agent.File{Kind: "document", Name: "a.txt", Hash: hash, Size: size}
		ok(t, receive(t, l.hand(in), "taken"))
		l.done(9)
		if got := d.finals(9); len(got) != 1 || !strings.Contains(got[0], "could not be handed over") {
			t.Errorf("said %q", got)
		}
	})
}
