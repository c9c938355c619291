package media

import (
	"encoding/base64"
	"testing"
)

var png, _ = base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")

func TestCorrect(t *testing.T) {
	const (
		mp4  = "\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp42isom"
		m4a  = "\x00\x00\x00\x18ftypM4A \x00\x00\x00\x00M4A mp42"
		wav  = "RIFF\x24\x00\x00\x00WAVEfmt "
		webm = "\x1a\x45\xdf\xa3\x9f\x42\x86\x81\x01\x42\x82\x84webm"
		ogg  = "OggS\x00\x02"
		gif  = "GIF89a\x01\x00\x01\x00"
		pdf  = "%PDF-1.7\n"
		html = "<!DOCTYPE html><html><script>alert(1)</script>"
		svg  = `<svg xmlns="http://www.w3.org/2000/svg"></svg>`
	)
	for _, c := range []struct{ kind, mime, head, kind2, mime2 string }{
		{"image", "image/png", string(png), "image", "image/png"},
		{"image", "image/jpeg", string(png), "image", "image/png"},
		{"image", "", string(png), "image", "image/png"},
		{"video", "video/mp4", gif, "image", "image/gif"},
		{"animation", "video/mp4", gif, "animation", "image/gif"},
		{"animation", "image/gif", mp4, "animation", "video/mp4"},
		{"image", "image/png", pdf, "document", "application/pdf"},
		{"image", "image/png", html, "document", "text/html"},
		{"image", "image/svg+xml", svg, "image", "image/svg+xml"},
		{"video", "video/mp4", mp4, "video", "video/mp4"},
		{"video", "video/mp4; codecs=avc1", mp4, "video", "video/mp4; codecs=avc1"},
		{"video", "image/png", mp4, "video", "video/mp4"},
		{"image", "image/png", mp4, "video", "video/mp4"},
		{"audio", "audio/mp4", mp4, "audio", "audio/mp4"},
		{"audio", "audio/mpeg", m4a, "audio", "audio/mp4"},
		{"audio", "audio/x-m4a", m4a, "audio", "audio/x-m4a"},
		{"video", "video/mp4", m4a, "audio", "audio/mp4"},
		{"audio", "audio/webm", webm, "audio", "audio/webm"},
		{"audio", "audio/webm;codecs=opus", webm, "audio", "audio/webm; codecs=opus"},
		{"video", "", webm, "video", "video/webm"},
		{"voice", "audio/ogg", ogg, "voice", "audio/ogg"},
		{"voice", "audio/x-wav", wav, "voice", "audio/x-wav"},
		{"audio", "audio/mpeg", wav, "audio", "audio/wav"},
		{"audio", "audio/wav", string(png), "image", "image/png"},
		{"image", "image/x-unheard-of", "\x01\x02\x03\x04", "image", "image/x-unheard-of"},
		{"image", "image/png", "plain words", "image", "image/png"},
		{"image", "nonsense", "\x01\x02\x03\x04", "image", octetStream},
		{"document", "TEXT/Plain; Charset=utf-8", string(png), "document", "text/plain; charset=utf-8"},
		{"document", "application/octet-stream", string(png), "document", octetStream},
		{"document", "", string(png), "document", "image/png"},
		{"document", "a/b\r\nX: y", "\x01\x02", "document", octetStream},
		{"document", "", "", "document", "text/plain"},
		{"", "", string(png), "image", "image/png"},
		{"", "audio/wav", "\x01\x02", "audio", "audio/wav"},
		{"", "", "\x01\x02", "document", octetStream},
	} {
		kind2, mime2 := Correct(c.kind, c.mime, []byte(c.head))
		if kind2 != c.kind2 || mime2 != c.mime2 {
			t.Errorf("%s %q with %.8q: %s %q, want %s %q", c.kind, c.mime, c.head, kind2, mime2, c.kind2, c.mime2)
		}
	}
}

func TestCheckAudio(t *testing.T) {
	wav := append([]byte("RIFF\x24\x00\x00\x00WAVE"), make([]byte, MaxAudio)...)
	for _, c := range []struct {
		format string
		data   []byte
		want   string
	}{
		{"wav", wav[:100], ""}, {"wav", wav[:12], ""}, {"wav", wav[:MaxAudio], ""},
		{"wav", wav[:MaxAudio+1], "too_big"}, {"mp3", wav, "too_big"},
		{"wav", wav[:11], "bad_frame"}, {"wav", []byte("not a wave file at all"), "bad_frame"},
		{"wav", []byte("RIFFxxxxAVI LIST"), "bad_frame"}, {"wav", nil, "bad_frame"}, {"ogg", nil, "bad_frame"},
		{"ogg", []byte("x"), ""}, {"m4a", []byte("x"), ""}, {"mp3", []byte("x"), ""}, {"webm", []byte("x"), ""},
		{"flac", []byte("x"), "bad_frame"}, {"", []byte("x"), "bad_frame"}, {"WAV", wav[:100], "bad_frame"},
	} {
		got := ""
		if r := CheckAudio(c.format, c.data); r != nil {
			got = code(r)
		}
		if got != c.want {
			t.Errorf("%s with %d bytes: %q, want %q", c.format, len(c.data), got, c.want)
		}
	}
	for format, want := range map[string]string{"wav": "audio/wav", "ogg": "audio/ogg", "m4a": "audio/mp4", "mp3": "audio/mpeg", "webm": "audio/webm", "flac": octetStream} {
		if got := AudioMime(format); got != want {
			t.Errorf("%s: %s", format, got)
		}
	}
}
