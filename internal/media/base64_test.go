package media

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"
)

func TestDecode(t *testing.T) {
	all := append(bytes.Repeat(pattern(256), 3), 0xfb, 0xff, 0xfe, 0)
	for n := range len(all) {
		data := all[n:]
		for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
			got, err := Decode([]byte(enc.EncodeToString(data)))
			if err != nil || !bytes.Equal(got, data) || cap(got) != len(got) && len(got) > 0 && cap(got) > len(got)+len(got)/4+16 {
				t.Fatalf("%d bytes: %d, %v", len(data), len(got), err)
			}
		}
	}
	for text, want := range map[string]string{"": "", "QQ==": "A", "QQ": "A", "QR==": "A", "QUJ": "AB", "QUI=": "AB"} {
		if got, err := Decode([]byte(text)); string(got) != want || err != nil {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"not base64!", "AAAAA", "QUJDé", "@@", "=", "==", "====", "Q===", "QQ=", "QUJD=", "QUJD==", "QUJD====", "QUJDQQ=", "QQ==QUJD",
		" QUJD", "QUJD ", "QU JD", "QUJD\n", "QU\r\nJD", "QUJ\nD", "QUJD\n\n\n\n", "-_+/", "QUJ\x00",
	} {
		if got, err := Decode([]byte(text)); code(err) != "bad_frame" || got != nil {
			t.Errorf("%q: %q, %v, want bad_frame", text, got, err)
		}
	}
}

func TestDecodeAllocatesOnce(t *testing.T) {
	text := []byte(base64.StdEncoding.EncodeToString(pattern(1 << 20)))
	if n := testing.AllocsPerRun(5, func() { _, _ = Decode(text) }); n > 1 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{"", "QQ==", "QUI", "-_-_", "+/+/", "QUJD\n", "QQ=", "====", "A"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, s []byte) {
		got, err := Decode(s)
		if err != nil {
			return
		}
		// Exactly the characters of the data, in one alphabet; the bits that fill
		// no byte may differ in the last one.
		text := strings.TrimRight(string(s), "=")
		std, url := base64.RawStdEncoding.EncodeToString(got), base64.RawURLEncoding.EncodeToString(got)
		n := max(len(text)-1, 0)
		if len(std) != len(text) || std[:n] != text[:n] && url[:n] != text[:n] {
			t.Fatalf("%q decoded to %q", s, got)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	text := []byte(base64.StdEncoding.EncodeToString(pattern(8 << 20)))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Decode(text); err != nil {
			b.Fatal(err)
		}
	}
}
