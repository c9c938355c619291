package web

import (
	"net/http"
	"strconv"
	"strings"
)

// acceptsGzip reports whether the client accepts gzip. A quality of zero means no.
func acceptsGzip(r *http.Request) bool {
	for _, item := range strings.Split(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		name, params, _ := strings.Cut(item, ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			q, given := strings.CutPrefix(strings.TrimSpace(params), "q=")
			v, err := strconv.ParseFloat(q, 64)
			return !given || err == nil && v > 0
		}
	}
	return false
}

// serve sends the whole body, or 304 if the client has it. It supports no ranges, because the files
// are small.
func serve(w http.ResponseWriter, r *http.Request, body []byte, etag string) {
	for _, known := range strings.Split(r.Header.Get("If-None-Match"), ",") {
		if known = strings.TrimPrefix(strings.TrimSpace(known), "W/"); known == etag || known == "*" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // an error means that the client is gone
	}
}
