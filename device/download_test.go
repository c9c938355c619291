package device_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hermes-mobile/device"
	"hermes-mobile/device/devicetest"
	"hermes-mobile/frame"
)

func TestDownloadGoesOnWhereItBroke(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789"), 10_000)
	for _, ranges := range []bool{true, false} {
		srv := devicetest.New(t)
		var tries atomic.Int32
		srv.Handle(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "" || r.URL.Path != "/media/x" {
				t.Error("odd request", r.URL)
			}
			n := tries.Add(1)
			if !ranges {
				r.Header.Del("Range")
			}
			if n <= 2 {
				w = &breaking{ResponseWriter: w, left: 30_000}
			}
			http.ServeContent(w, r, "x", time.Time{}, bytes.NewReader(data))
		}))
		a := open(t, config(srv.URL))
		c := srv.Accept(nil)
		c.Send(&frame.Media{ID: "f", Kind: "video", Size: int64(len(data)), URL: "/media/x?sig=1", Parts: 1, Final: true, Seq: 1})
		f := expect[device.File](a, nil)
		var got bytes.Buffer
		n, err := a.Download(t.Context(), f, &got)
		if err != nil || n != int64(len(data)) || !bytes.Equal(got.Bytes(), data) || tries.Load() != 3 {
			t.Fatal(ranges, n, err, tries.Load())
		}
	}
}

// breaking aborts the connection after the given number of bytes.
type breaking struct {
	http.ResponseWriter
	left int
}

func (b *breaking) Write(p []byte) (int, error) {
	if len(p) > b.left {
		b.ResponseWriter.Write(p[:b.left])
		b.ResponseWriter.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	b.left -= len(p)
	return b.ResponseWriter.Write(p)
}

func TestDownloadEnds(t *testing.T) {
	srv := devicetest.New(t)
	srv.Handle(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusGone) }))
	a := open(t, config(srv.URL))
	var d *device.DownloadError
	if _, err := a.Download(t.Context(), device.File{URL: "/media/x"}, &bytes.Buffer{}); !errors.As(err, &d) || d.Status != 410 {
		t.Fatal(err)
	}
	if _, err := a.Download(t.Context(), device.File{URL: "file:///etc/passwd"}, &bytes.Buffer{}); !errors.As(err, &d) {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if n, err := a.Download(t.Context(), device.File{Data: []byte("abc")}, &got); err != nil || n != 3 || got.String() != "abc" {
		t.Fatal(n, err)
	}
}

func TestPinnedCertificate(t *testing.T) {
	m := &model{ids: map[string]bool{}, files: map[string][]byte{}}
	srv := httptest.NewUnstartedServer(m)
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // the second device hangs up on it, as it should
	srv.StartTLS()
	defer srv.Close()
	sum := sha256.Sum256(srv.Certificate().Raw)
	cfg := config("https" + strings.TrimPrefix(srv.URL, "https"))
	cfg.Fingerprint = strings.ToUpper(hex.EncodeToString(sum[:]))
	a := open(t, cfg)
	if err := a.WaitOnline(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.Close(t.Context())

	cfg.Fingerprint = strings.Repeat("00:", 31) + "00"
	a = open(t, cfg)
	w := expect(a, state(device.Waiting))
	if !errors.Is(w.Err, device.ErrFingerprint) {
		t.Fatal(w.Err)
	}
	a.Close(t.Context())
}
