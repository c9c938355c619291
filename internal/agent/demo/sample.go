package demo

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/png"
	"io"
	"math"

	"hermes-mobile/internal/agent"
)

// A two-second test picture, H.264 in MP4. It is the only sample that is not made in code.
//
//go:embed sample.mp4
var sampleVideo []byte

// sample sends a small real file of a kind.
func (t *turn) sample(name string) {
	var f agent.File
	var data []byte
	switch name {
	case "image":
		f, data = agent.File{Kind: "image", Mime: "image/png", Name: "demo.png"}, picture()
	case "voice":
		f, data = agent.File{Kind: "voice", Mime: "audio/wav", Name: "demo.wav"}, tone()
	case "video":
		f, data = agent.File{Kind: "video", Mime: "video/mp4", Name: "demo.mp4"}, sampleVideo
	case "animation":
		f, data = agent.File{Kind: "animation", Mime: "image/gif", Name: "demo.gif"}, animation()
	case "file":
		f, data = agent.File{Kind: "document", Mime: "application/pdf", Name: "demo.pdf"}, page()
	}
	t.send(f, bytes.NewReader(data), name)
}

// file sends n bytes, of which byte i is i mod 251.
func (t *turn) file(n int) {
	t.send(agent.File{Kind: "document", Mime: "application/octet-stream", Name: fmt.Sprintf("demo-%d.bin", n)}, &pattern{left: n}, "file")
}

type pattern struct{ at, left int }

func (p *pattern) Read(b []byte) (int, error) {
	if p.left == 0 {
		return 0, io.EOF
	}
	n := min(len(b), p.left)
	for i := range n {
		b[i] = byte((p.at + i) % 251)
	}
	p.at += n
	p.left -= n
	return n, nil
}

func (t *turn) send(f agent.File, r io.Reader, word string) {
	var err error
	if f.Hash, f.Size, err = t.agent.files.Put(r, maxFile); err != nil {
		t.reply("The file could not be made: " + err.Error())
		return
	}
	t.ended = true
	var events []agent.Event
	if t.skip == 0 {
		events = append(events, agent.SendFile{ID: agent.NewID(), File: f, Caption: word + " for you", ReplyTo: t.in.ID, N: t.in.N})
	}
	t.agent.post(t.in.Device, append(events, agent.Done{N: t.in.N})...)
}

func picture() []byte {
	img := image.NewRGBA(image.Rect(0, 0, 160, 100))
	for y := range 100 {
		for x := range 160 {
			img.Set(x, y, color.RGBA{uint8(40 + x), uint8(60 + y), uint8(200 - x/2), 255})
		}
	}
	var b bytes.Buffer
	_ = png.Encode(&b, img) // a write to a bytes.Buffer does not fail
	return b.Bytes()
}

func animation() []byte {
	palette := color.Palette{color.White, color.RGBA{30, 90, 200, 255}}
	g := &gif.GIF{}
	for i := range 8 {
		img := image.NewPaletted(image.Rect(0, 0, 64, 64), palette)
		for y := range 16 {
			for x := range 16 {
				img.SetColorIndex(i*6+x, 24+y, 1)
			}
		}
		g.Image = append(g.Image, img)
		g.Delay = append(g.Delay, 10)
	}
	var b bytes.Buffer
	_ = gif.EncodeAll(&b, g)
	return b.Bytes()
}

// tone is half a second of A4 as a WAV: 16 kHz, mono, 16 bit.
func tone() []byte {
	const rate, samples = 16000, 8000
	var b bytes.Buffer
	b.WriteString("RIFF")
	_ = binary.Write(&b, binary.LittleEndian, uint32(36+2*samples))
	b.WriteString("WAVEfmt ")
	_ = binary.Write(&b, binary.LittleEndian, struct {
		Size            uint32
		Format, Chans   uint16
		Rate, ByteRate  uint32
		Align, BitDepth uint16
	}{16, 1, 1, rate, rate * 2, 2, 16})
	b.WriteString("data")
	_ = binary.Write(&b, binary.LittleEndian, uint32(2*samples))
	for i := range samples {
		_ = binary.Write(&b, binary.LittleEndian, int16(8000*math.Sin(2*math.Pi*440*float64(i)/rate)))
	}
	return b.Bytes()
}

// page is a PDF of one page, with the offsets that readers need.
func page() []byte {
	text := "BT /F1 24 Tf 72 720 Td (A page from the demo agent) Tj ET"
	objects := []string{
		"<< /Type /Catalog /Pages 2 0 R >>",
		"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
		"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
		fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", len(text), text),
		"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
	}
	var b bytes.Buffer
	b.WriteString("%PDF-1.4\n")
	var offsets []int
	for i, o := range objects {
		offsets = append(offsets, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	table := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for _, o := range offsets {
		fmt.Fprintf(&b, "%010d 00000 n \n", o)
	}
	fmt.Fprintf(&b, "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(objects)+1, table)
	return b.Bytes()
}
