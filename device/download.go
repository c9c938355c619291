package device

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// DownloadError reports a download that a retry cannot fix: an expired link (403, 410), or a
// missing file.
type DownloadError struct {
	Status  int // HTTP status; 0 where there was no response
	Message string
}

// Error returns the message with the status.
func (e *DownloadError) Error() string {
	if e.Status == 0 {
		return "device: download: " + e.Message
	}
	return fmt.Sprintf("device: download: HTTP %d: %s", e.Status, e.Message)
}

// Download writes a file to w, from File.Data or from the link in File.URL, and returns the number
// of bytes. After a broken connection it continues at the same place until ctx ends. A link is
// valid for an hour. The error is f.Err, a [*DownloadError], [ErrClosed], that of w, or that of ctx
// together with the last failure.
func (d *Device) Download(ctx context.Context, f File, w io.Writer) (int64, error) {
	if f.Err != nil {
		return 0, f.Err
	}
	if f.URL == "" {
		n, err := w.Write(f.Data)
		return int64(n), err
	}
	link, err := d.fileURL(f.URL)
	if err != nil {
		return 0, err
	}
	total := int64(0)
	for attempt := 0; ; attempt++ {
		n, err := d.fetch(ctx, link, total, w)
		total += n
		if err == nil && f.Size > 0 && total != f.Size {
			if total > f.Size {
				return total, &DownloadError{Message: fmt.Sprintf("the file has %d bytes instead of %d", total, f.Size)}
			}
			err = io.ErrUnexpectedEOF
		}
		var final *DownloadError
		var written *writeError
		switch {
		case err == nil:
			return total, nil
		case errors.As(err, &written):
			return total, written.err
		case errors.As(err, &final):
			return total, err
		}
		if n > 0 {
			attempt = 0
		}
		t := time.NewTimer(d.cfg.Backoff.delay(attempt))
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return total, fmt.Errorf("device: download: %w; last attempt: %w", ctx.Err(), err)
		case <-d.ctx.Done():
			t.Stop()
			return total, ErrClosed
		}
	}
}

// fileURL returns the absolute form of a link. Links lead to this server (doc/protocol.md §5); only
// http and https are allowed.
func (d *Device) fileURL(s string) (string, error) {
	u, err := url.Parse(s)
	if err != nil {
		return "", &DownloadError{Message: "the link is not an address"}
	}
	base := *d.target
	base.Scheme = "http" + strings.TrimPrefix(base.Scheme, "ws")
	u = base.ResolveReference(u)
	if u.Scheme != "http" && u.Scheme != "https" {
		return "", &DownloadError{Message: "the link is not a web address"}
	}
	return u.String(), nil
}

// writeError marks an error of the app's writer, as opposed to one of the network.
type writeError struct{ err error }

func (e *writeError) Error() string { return e.err.Error() }

// fetch copies the file from the given offset on.
func (d *Device) fetch(ctx context.Context, link string, from int64, w io.Writer) (int64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.ctx, cancel)()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, link, nil)
	if err != nil {
		return 0, &DownloadError{Message: "the link is not an address"}
	}
	if from > 0 {
		req.Header.Set("Range", "bytes="+strconv.FormatInt(from, 10)+"-")
	}
	resp, err := d.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	body := io.Reader(resp.Body)
	switch {
	case resp.StatusCode == http.StatusPartialContent && strings.HasPrefix(resp.Header.Get("Content-Range"), "bytes "+strconv.FormatInt(from, 10)+"-"):
	case resp.StatusCode == http.StatusOK:
		// The server sends the whole file: skip the bytes that are there.
		if _, err := io.CopyN(io.Discard, body, from); err != nil {
			return 0, err
		}
	case resp.StatusCode == http.StatusTooManyRequests, resp.StatusCode >= 500:
		return 0, fmt.Errorf("device: download: HTTP %d", resp.StatusCode)
	case resp.StatusCode == http.StatusForbidden, resp.StatusCode == http.StatusGone:
		return 0, &DownloadError{Status: resp.StatusCode, Message: "the link expired or is not for this device"}
	default:
		return 0, &DownloadError{Status: resp.StatusCode, Message: strings.ToLower(http.StatusText(resp.StatusCode))}
	}
	return io.Copy(writerOf{w}, body)
}

type writerOf struct{ w io.Writer }

func (w writerOf) Write(p []byte) (int, error) {
	n, err := w.w.Write(p)
	if err != nil {
		err = &writeError{err}
	}
	return n, err
}
