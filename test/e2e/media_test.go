package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"hermes-mobile/device"
)

// picture makes a PNG file that no other one is like.
func picture(t *testing.T, shade uint8) []byte {
	t.Helper()
	img := image.NewGray(image.Rect(0, 0, 40, 30))
	img.SetGray(3, 4, color.Gray{Y: shade})
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// wave makes a voice message of half a second of silence.
func wave() []byte {
	const rate, seconds = 16000, 0.5
	data := make([]byte, int(rate*seconds)*2)
	var b bytes.Buffer
	b.WriteString("RIFF")
	for _, v := range []any{uint32(36 + len(data)), [8]byte([]byte("WAVEfmt ")), uint32(16), uint16(1), uint16(1), uint32(rate), uint32(rate * 2), uint16(2),
		uint16(16), [4]byte([]byte("data")), uint32(len(data))} {
		_ = binary.Write(&b, binary.LittleEndian, v)
	}
	b.Write(data)
	return b.Bytes()
}

func ogg() []byte { return append([]byte("OggS\x00\x02"), bytes.Repeat([]byte("opus"), 1500)...) }

// pdf makes a document of some size.
func pdf(size int) []byte {
	return append([]byte("%PDF-1.4\n"), bytes.Repeat([]byte("% nothing to see here\n"), size/22)...)
}

func mp4() []byte {
	return append([]byte("\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isommp42"), bytes.Repeat([]byte{0, 0, 0, 8, 'f', 'r', 'e', 'e'}, 500)...)
}

// filesUp: what the person sends reaches the model.
func filesUp(t *testing.T, w *world) {
	p := w.phone(t, "files-up")
	p.pictureUp(t, 1)
	p.documentUp(t, w)
	p.voiceUp(t)
}

func (p *Phone) pictureUp(t *testing.T, shade uint8) {
	t.Helper()
	data := picture(t, shade)
	mark := p.Mark()
	id := p.Upload(device.FileOptions{Name: "view.png", Mime: "image/png", Caption: "FM:echo", Data: data})
	if m := p.Answered(mark, id); !strings.Contains(m.Text, fmt.Sprintf("image/png %d bytes sha256=%x", len(data), sha256.Sum256(data))) {
		t.Errorf("of a picture of %d bytes the model saw %q", len(data), m.Text)
	}
	p.Idle()
}

// pdfPath finds a path in what the model was told.
var pdfPath = regexp.MustCompile(`/[^'"\n]+\.pdf`)

// documentUp sends a document: the model is told where it lies. A gateway beside the server, of either version, is handed the path of a
// copy under the name that the person gave it.
func (p *Phone) documentUp(t *testing.T, w *world) {
	t.Helper()
	data := pdf(700_000) // several parts
	mark := p.Mark()
	id := p.Upload(device.FileOptions{Name: "Bericht für Ann.pdf", Mime: "application/pdf", Caption: "FM:echo", Data: data})
	m := p.Answered(mark, id)
	found := pdfPath.FindString(m.Text)
	if found == "" {
		t.Fatalf("of a document the model saw %q", m.Text)
	}
	if here := strings.HasPrefix(found, w.server.Data); here == w.elsewhere || here && filepath.Base(found) != "Bericht für Ann.pdf" {
		t.Errorf("the document is handed over as %s", found)
	}
	if got, err := os.ReadFile(found); err != nil || !bytes.Equal(got, data) {
		t.Errorf("the document at %s has %d bytes, not the %d that were sent: %v", found, len(got), len(data), err)
	}
	p.Idle()
}

// voiceUp sends voice messages: the model is given the transcript.
func (p *Phone) voiceUp(t *testing.T) {
	t.Helper()
	for format, data := range map[string][]byte{"wav": wave(), "ogg": ogg()} {
		mark := p.Mark()
		out, err := p.SendVoice(t.Context(), format, data, "FM:echo")
		if err != nil {
			t.Fatal(err)
		}
		p.Receipt(out)
		if m := p.Answered(mark, out.ID); !strings.Contains(m.Text, fmt.Sprintf("transcript of %d bytes", len(data))) {
			t.Errorf("of a voice message %s of %d bytes the model saw %q", format, len(data), m.Text)
		}
		p.Idle()
	}
}

// filesDown: what the agent sends reaches the person, after its text.
func filesDown(t *testing.T, w *world) {
	p := w.phone(t, "files-down")
	for _, c := range []struct {
		name, kind, mime string
		data             []byte
	}{
		{"view.png", "image", "image/png", picture(t, 2)},
		{"Zürich.pdf", "document", "application/pdf", pdf(7000)},
		{"said.ogg", "voice", "audio/ogg", ogg()},
		{"said.wav", "voice", "audio/wav", wave()},
		{"film.mp4", "video", "video/mp4", mp4()},
	} {
		p.fileDown(t, c.name, c.kind, c.mime, c.data)
	}
}

func (p *Phone) fileDown(t *testing.T, name, kind, mime string, data []byte) {
	t.Helper()
	mark := p.Mark()
	id := p.Say("FM:media(" + write(t, name, data) + ")")
	f := Wait(p, mark, "the file "+name, func(device.File) bool { return true })
	m := p.Answered(mark, id)
	checkSteps(t, steps(p, mark, m.ID), m.Text)
	if m.Text != "Here is your file." {
		t.Errorf("the text with %s is %q", name, m.Text)
	}
	if f.Err != nil || !bytes.Equal(f.Data, data) || f.Kind != kind || strings.Replace(f.Mime, "/x-", "/", 1) != mime || f.Filename != name || f.ReplyTo != id {
		f.Data = nil
		t.Errorf("instead of %s (%s, %s, %d bytes, in reply to %s) came %+v", name, kind, mime, len(data), id, f)
	}
	p.Idle()
	if len(p.Finals(mark)) != 1 {
		t.Errorf("with %s came %+v", name, p.Finals(mark))
	}
}

// filesAsText: the older version cannot send files, and says before that it cannot.
func filesAsText(t *testing.T, w *world) {
	p := w.phone(t, "files-down")
	if c := p.Status().Capabilities; c.MediaURL || !c.Media || !c.Audio {
		t.Errorf("the capabilities are %+v", c)
	}
	p.fileAsText(t)
}

// fileAsText: of a file of the agent the text comes, and no file.
func (p *Phone) fileAsText(t *testing.T) {
	t.Helper()
	mark := p.Mark()
	id := p.Say("FM:media(" + write(t, "view.png", picture(t, 2)) + ")")
	m := p.Answered(mark, id)
	p.Idle()
	for _, ev := range p.Since(mark) {
		if f, ok := ev.(device.File); ok {
			t.Errorf("a file came: %+v", f)
		}
	}
	if !strings.Contains(m.Text, "Here is your file.") {
		t.Errorf("the text is %q", m.Text)
	}
}
