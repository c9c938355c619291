package demo

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image/gif"
	"image/png"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rivo/uniseg"
	"pgregory.net/rapid"

	"hermes-mobile/internal/agent"
)

func TestSamples(t *testing.T) {
	s := newStage(t)
	for _, tc := range []struct {
		word, kind, mime, name string
		check                  func(*testing.T, []byte)
	}{
		{"image", "image", "image/png", "demo.png", checkPNG},
		{"voice", "voice", "audio/wav", "demo.wav", checkWAV},
		{"video", "video", "video/mp4", "demo.mp4", checkMP4},
		{"file", "document", "application/pdf", "demo.pdf", checkPDF},
		{"animation", "animation", "image/gif", "demo.gif", checkGIF},
	} {
		t.Run(tc.word, func(t *testing.T) {
			s.t = t
			in := s.text("/demo " + tc.word)
			f := next[agent.SendFile](s)
			next[agent.Done](s)
			data := s.files.get(f.File.Hash)
			if f.ID == "" || f.ReplyTo != in.ID || f.N != in.N || f.Caption != tc.word+" for you" {
				t.Errorf("%+v", f)
			}
			if f.File.Kind != tc.kind || f.File.Mime != tc.mime || f.File.Name != tc.name || f.File.Size != int64(len(data)) || len(data) == 0 {
				t.Errorf("%+v, %d bytes", f.File, len(data))
			}
			tc.check(t, data)
		})
	}
	for _, n := range []int{0, 1, 250, 251, 252, 100_000} {
		s.t = t
		s.text(fmt.Sprint("/demo file ", n))
		f := next[agent.SendFile](s)
		next[agent.Done](s)
		data := s.files.get(f.File.Hash)
		if len(data) != n || f.File.Name != fmt.Sprintf("demo-%d.bin", n) || f.Caption != "file for you" {
			t.Errorf("%d bytes, %+v", len(data), f)
		}
		for i, b := range data {
			if int(b) != i%251 {
				t.Fatalf("byte %d is %d", i, b)
			}
		}
	}
}

func checkPNG(t *testing.T, data []byte) {
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil || img.Bounds().Dx() < 16 || img.Bounds().Dy() < 16 {
		t.Errorf("%v", err)
	}
}

func checkGIF(t *testing.T, data []byte) {
	g, err := gif.DecodeAll(bytes.NewReader(data))
	if err != nil || len(g.Image) < 2 {
		t.Errorf("%v", err)
	}
}

func checkWAV(t *testing.T, data []byte) {
	if string(data[:4]) != "RIFF" || string(data[8:16]) != "WAVEfmt " || string(data[36:40]) != "data" {
		t.Fatalf("header %q", data[:44])
	}
	u32, u16 := binary.LittleEndian.Uint32, binary.LittleEndian.Uint16
	if int(u32(data[4:])) != len(data)-8 || int(u32(data[40:])) != len(data)-44 || u32(data[16:]) != 16 || u16(data[20:]) != 1 {
		t.Errorf("sizes %d and %d of %d", u32(data[4:]), u32(data[40:]), len(data))
	}
	channels, rate, bytesPerSecond, align, bits := u16(data[22:]), u32(data[24:]), u32(data[28:]), u16(data[32:]), u16(data[34:])
	if uint32(align) != uint32(channels)*uint32(bits)/8 || bytesPerSecond != rate*uint32(align) {
		t.Errorf("%d channels of %d bits at %d: %d bytes a second, align %d", channels, bits, rate, bytesPerSecond, align)
	}
	if bytes.Equal(data[44:144], make([]byte, 100)) {
		t.Error("it is silent")
	}
}

func checkMP4(t *testing.T, data []byte) {
	boxes := map[string]bool{}
	for at := 0; at < len(data); {
		if at+8 > len(data) {
			t.Fatalf("a box header at %d is cut", at)
		}
		size, name := int(binary.BigEndian.Uint32(data[at:])), string(data[at+4:at+8])
		if at == 0 && name != "ftyp" {
			t.Errorf("it begins with %q", name)
		}
		if size < 8 || at+size > len(data) {
			t.Fatalf("box %q at %d has %d bytes", name, at, size)
		}
		boxes[name] = true
		at += size
	}
	if !boxes["ftyp"] || !boxes["moov"] || !boxes["mdat"] {
		t.Errorf("boxes %v", boxes)
	}
	if !bytes.Contains(data, []byte("avc1")) {
		t.Error("no H.264 in it, which is what all phones play")
	}
}

func checkPDF(t *testing.T, data []byte) {
	text := string(data)
	if !strings.HasPrefix(text, "%PDF-1.") || !strings.HasSuffix(strings.TrimSpace(text), "%%EOF") {
		t.Fatalf("%q", text)
	}
	m := regexp.MustCompile(`startxref\n(\d+)\n`).FindStringSubmatch(text)
	if m == nil {
		t.Fatal("no startxref")
	}
	table, _ := strconv.Atoi(m[1])
	rest, is := strings.CutPrefix(text[table:], "xref\n")
	if !is {
		t.Fatalf("startxref points to %q", text[table:min(len(text), table+20)])
	}
	var first, n int
	if _, err := fmt.Sscanf(rest, "%d %d\n", &first, &n); err != nil || first != 0 {
		t.Fatal(err)
	}
	_, rest, _ = strings.Cut(rest, "\n")
	for i := range n {
		entry := rest[i*20 : i*20+20] // each exactly 20 bytes
		if i == 0 {
			if entry != "0000000000 65535 f \n" {
				t.Errorf("entry 0 %q", entry)
			}
			continue
		}
		offset, err := strconv.Atoi(entry[:10])
		if err != nil || !strings.HasPrefix(text[offset:], fmt.Sprintf("%d 0 obj\n", i)) {
			t.Errorf("entry %q of object %d", entry, i)
		}
	}
	if !strings.Contains(text, fmt.Sprintf("/Size %d ", n)) {
		t.Errorf("the trailer has another size than %d", n)
	}
	s := regexp.MustCompile(`(?s)/Length (\d+) >>\nstream\n(.*?)\nendstream`).FindStringSubmatch(text)
	if s == nil || strconv.Itoa(len(s[2])) != s[1] {
		t.Errorf("stream %q", s)
	}
}

// Exactly N characters, in lines of 79 and a newline that begin with their number, an emoji family and a flag every
// tenth line, and no cluster in pieces.
func TestLong(t *testing.T) {
	check := func(t interface{ Fatalf(string, ...any) }, n int) {
		text := long(n)
		if got := utf8.RuneCountInString(text); got != n {
			t.Fatalf("long %d has %d characters", n, got)
		}
		lines := strings.Split(text, "\n")
		for i, line := range lines {
			last := i == len(lines)-1
			length := utf8.RuneCountInString(line)
			if !last && length != 79 {
				t.Fatalf("long %d: line %d has %d characters", n, i+1, length)
			}
			if last && (n%80 != 0 && length != n%80 || n%80 == 0 && length != 0) {
				t.Fatalf("long %d: the last line has %d characters", n, length)
			}
			if number := strconv.Itoa(i + 1); line != "" && !strings.HasPrefix(line, number) && !strings.HasPrefix(number, line) {
				t.Fatalf("long %d: line %d is %q", n, i+1, line)
			}
			if i%10 == 9 && !last && (!strings.Contains(line, family) || !strings.Contains(line, flag)) {
				t.Fatalf("long %d: line %d is %q", n, i+1, line)
			}
			// Whatever is not ASCII is a whole family or a whole flag.
			for rest, state := line, -1; rest != ""; {
				var c string
				c, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
				if len(c) > 1 && c != family && c != flag || len(c) == 1 && c[0] >= utf8.RuneSelf {
					t.Fatalf("long %d: line %d has %q", n, i+1, c)
				}
			}
			if last {
				bare := strings.NewReplacer(family, "", flag, "").Replace(line)
				for _, r := range bare {
					if r >= utf8.RuneSelf {
						t.Fatalf("long %d: the last line %q has a piece of a cluster", n, line)
					}
				}
			}
		}
	}
	for n := 1; n <= 2000; n++ {
		check(t, n)
	}
	rapid.Check(t, func(t *rapid.T) { check(t, rapid.IntRange(1, 60_000).Draw(t, "n")) })
	if testing.Short() {
		return
	}
	check(t, maxLong)
}

func TestLongReply(t *testing.T) {
	s := newStage(t)
	if got := s.final(s.text("/demo long 4001")); got != long(4001) {
		t.Errorf("%d bytes", len(got))
	}
}
