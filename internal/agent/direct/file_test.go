package direct

import (
	"fmt"
	"strings"
	"testing"

	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/quota"
)

// MEDIA lines name files that the API does not transfer. Data URLs become files.
func TestFilesOfAReply(t *testing.T) {
	g, d := newGateway(t, now), newDisk()
	l := begin(t, g.URL, d)
	ok(t, receive(t, l.hand(message(1, "hi")), "taken"))
	const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
	run := g.run(1)
	run.text("See ![x](data:image/png;base64,iVBOR")
	l.steps("See")
	run.complete("See ![x](data:image/png;base64," + pixel + ") and ![y](data:image/svg+xml;base64,PHN2Zz48L3N2Zz4=)\nMEDIA:/tmp/secret/report.pdf")
	l.done(1)
	wantFinals(t, d, 1, "See  and ![y](data:image/svg+xml;base64,PHN2Zz48L3N2Zz4=)\n*The file report.pdf is on the gateway's machine. Its HTTP API cannot transfer files.*")
	d.mu.Lock()
	defer d.mu.Unlock()
	files := 0
	for _, e := range d.events {
		if f, is := e.(agent.SendFile); is {
			files++
			if f.File.Mime != "image/png" || f.File.Name != "image-1.png" || f.N != 1 || f.ReplyTo != "m1" || len(d.files[f.File.Hash]) == 0 {
				t.Errorf("the file is %+v", f)
			}
		}
	}
	if files != 1 {
		t.Errorf("%d files", files)
	}
}

// Without disk space for an image of a reply, the user gets the rest of the reply and a note.
func TestNoRoomForAnImage(t *testing.T) {
	g, d := newGateway(t, now), newDisk()
	d.full = fmt.Errorf("media: store file: %w", &quota.Full{Reason: quota.Total})
	l := begin(t, g.URL, d)
	ok(t, receive(t, l.hand(message(1, "hi")), "taken"))
	const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
	g.run(1).complete("See ![x](data:image/png;base64," + pixel + ") here")
	l.done(1)
	wantFinals(t, d, 1, "See *An image of this reply could not be stored: the server has no room for files right now.* here")
}

// An image is sent by the stream of its session. Other files, and images that are too large, are
// refused before anything is sent.
func TestFilesOfAPerson(t *testing.T) {
	each(t, func(t *testing.T, v string) {
		g, d := newGateway(t, v), newDisk()
		l := begin(t, g.URL, d)
		hash, size, err := d.Put(strings.NewReader("pixels"), 100)
		ok(t, err)
		sent := g.nextStream(`run.started {}`, `assistant.delta {"delta":"a dot"}`, `assistant.completed {"content":"a dot","completed":true}`,
			`run.completed {"completed":true,"messages":[{"role":"assistant","content":"a dot"}]}`, `done {}`)
		in := message(1, "what is it?")
		in.Kind, in.File = agent.Media, &agent.File{Kind: "image", Mime: "image/png", Hash: hash, Size: size}
		ok(t, receive(t, l.hand(in), "taken"))
		if body := receive(t, sent, "the image"); !strings.Contains(body, "data:image/png;base64,cGl4ZWxz") || !strings.Contains(body, "what is it?") {
			t.Errorf("sent %s", body)
		}
		l.done(1)
		wantFinals(t, d, 1, "a dot")

		for n, f := range map[int64]agent.File{2: {Kind: "document", Mime: "text/plain", Hash: hash, Size: 6}, 3: {Kind: "image", Mime: "image/png", Hash: hash, Size: 11 << 20}, 4: {Kind: "image", Mime: "image/png", Hash: "gone", Size: 6}} {
			in := message(n, "")
			in.Kind, in.File = agent.Media, &f
			ok(t, receive(t, l.hand(in), "taken"))
			l.done(n)
			if got, want := d.finals(n), map[int64]string{2: "images and no other files", 3: "up to 7 MiB, this one has 11", 4: "no longer there"}[n]; len(got) != 1 || !strings.Contains(got[0], want) {
				t.Errorf("%+v: %q", f, got)
			}
		}
		if g.count("POST /v1/runs") != 0 {
			t.Error("something was sent")
		}
	})
}

// 0.19 reports a turn with an image as completed although the model failed.
func TestFailedTurnOfOlder(t *testing.T) {
	g, d := newGateway(t, older), newDisk()
	l := begin(t, g.URL, d)
	hash, size, err := d.Put(strings.NewReader("pixels"), 100)
	ok(t, err)
	g.nextStream(`run.started {}`, `assistant.completed {"content":"HTTP 400: no such model","completed":true}`, `run.completed {"completed":true,"messages":[]}`, `done {}`)
	in := message(1, "what is it?")
	in.Kind, in.File = agent.Media, &agent.File{Kind: "image", Mime: "image/png", Hash: hash, Size: size}
	ok(t, receive(t, l.hand(in), "taken"))
	if e := l.done(1); !e.Interrupted {
		t.Error("it ended well")
	}
	wantFinals(t, d, 1, "The turn failed: HTTP 400: no such model")
}
