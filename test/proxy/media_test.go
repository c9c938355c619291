package proxy

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"hermes-mobile/device"
	"hermes-mobile/test/e2e"
	"hermes-mobile/test/gateway"
)

const (
	maxMedia = 8 << 20  // the server's own limit of a file
	maxFrame = 16 << 20 // and of a frame
)

func random(n int) []byte {
	b := make([]byte, n)
	rand.Read(b)
	return b
}

// Files as large as they may be go up in parts and in one frame of the largest size. A larger one comes down as a link on
// the address of the proxy, which the server learns from the proxy where nobody has told it.
func TestMedia(t *testing.T) {
	each(t, func(t *testing.T, kind string) {
		p := newPlace(t, newFront(t, kind))
		phone := p.phone("tel-1")
		data := random(maxMedia)
		mark := phone.Mark()
		phone.Upload(device.FileOptions{Name: "parts.bin", Mime: "application/octet-stream", Data: data})
		phone.Final(mark, "what arrived in parts", func(m device.Message) bool {
			return m.Text == fmt.Sprintf("received document parts.bin %d sha256:%s", maxMedia, gateway.SHA(data))
		})

		s := p.hello("tel-2", "", nil)
		s.write(wholeFrame(t, data))
		if text := s.final(); text != fmt.Sprintf("received document whole.bin %d sha256:%s", maxMedia, gateway.SHA(data)) {
			t.Errorf("of a frame of 16 MiB arrived: %q", text)
		}

		const size = maxMedia + 1234567
		mark = phone.Mark()
		phone.Say(fmt.Sprintf("/demo file %d", size))
		file := e2e.Wait(phone, mark, "the file", func(f device.File) bool { return f.Size == size })
		if !strings.HasPrefix(file.URL, p.front.url()+"/media/") {
			t.Fatalf("the link is %q, not on %s", file.URL, p.front.url())
		}
		var got bytes.Buffer
		if n, err := phone.Download(t.Context(), file, &got); err != nil || n != size || !bytes.Equal(got.Bytes(), demoFile(0, size)) {
			t.Errorf("the download: %d bytes, %v", n, err)
		}
		part, resp := fetchRange(t, p.front, file.URL, 5_000_000, 6_999_999)
		if resp.StatusCode != http.StatusPartialContent || !bytes.Equal(part, demoFile(5_000_000, 7_000_000)) {
			t.Errorf("a range: %s with %d bytes", resp.Status, len(part))
		}
	})
}

// wholeFrame is a media frame of exactly the largest size with all of a file; a member that nobody knows fills it.
func wholeFrame(t *testing.T, data []byte) []byte {
	t.Helper()
	frame := fmt.Appendf(nil, `{"t":"media","id":"f1","kind":"document","mime":"application/octet-stream","filename":"whole.bin","part":0,"parts":1,"data":"%s","x":"`,
		base64.StdEncoding.EncodeToString(data))
	const end = `"}`
	frame = append(frame, bytes.Repeat([]byte("x"), maxFrame-len(end)-len(frame))...)
	return append(frame, end...)
}

// demoFile is the part of the demo's large file between two places.
func demoFile(from, to int) []byte {
	b := make([]byte, to-from)
	for i := range b {
		b[i] = byte((from + i) % 251)
	}
	return b
}

func fetchRange(t *testing.T, f *front, link string, first, last int) ([]byte, *http.Response) {
	t.Helper()
	client := f.client("")
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, link, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", first, last))
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return body, resp
}
