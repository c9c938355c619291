package plaintext

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"
)

// encode16 writes a text as Windows' editor does.
func encode16(text string, big, mark bool) string {
	var b strings.Builder
	units := utf16.Encode([]rune(text))
	if mark {
		units = append([]uint16{0xfeff}, units...)
	}
	for _, u := range units {
		if big {
			b.Write([]byte{byte(u >> 8), byte(u)})
		} else {
			b.Write([]byte{byte(u), byte(u >> 8)})
		}
	}
	return b.String()
}

func TestTrim(t *testing.T) {
	for in, want := range map[string]string{"": "", "a": "a", BOM: "", BOM + "a=b\n": "a=b\n", BOM + BOM + "a": BOM + "a", "a" + BOM: "a" + BOM, "\xef\xbb": "\xef\xbb", "é": "é", "\xffa": "\xffa"} {
		if got, err := Trim([]byte(in)); err != nil || string(got) != want {
			t.Errorf("%q becomes %q, %v", in, got, err)
		}
		for name, r := range map[string]io.Reader{"at once": strings.NewReader(in), "byte by byte": iotest.OneByteReader(strings.NewReader(in)), "with its end": iotest.DataErrReader(strings.NewReader(in))} {
			if got, err := io.ReadAll(Reader(r)); err != nil || string(got) != want {
				t.Errorf("%q read %s becomes %q, %v", in, name, got, err)
			}
		}
	}
	for _, in := range []string{encode16("a=b\n", false, true), encode16("a=b\n", true, true), encode16("a=b\n", false, false), encode16("a=b\n", true, false), encode16("", false, true), "\xff\xfe\x00\x00a\x00\x00\x00"} {
		if _, err := Trim([]byte(in)); !errors.Is(err, ErrEncoding) {
			t.Errorf("%q: %v", in, err)
		}
	}
	if _, err := io.ReadAll(Reader(strings.NewReader(encode16("hello", false, true)))); !errors.Is(err, ErrEncoding) {
		t.Errorf("a pipe in UTF-16: %v", err)
	}
}

// A reader that waits for more than the first character would keep a person at a terminal waiting.
func TestReaderTakesWhatThereIs(t *testing.T) {
	in, out := io.Pipe()
	defer in.Close()
	go func() { _, _ = out.Write([]byte("a")) }()
	buf := make([]byte, 10)
	if n, err := Reader(in).Read(buf); n != 1 || err != nil {
		t.Errorf("%d %v", n, err)
	}
}
