package media

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"hermes-mobile/internal/strangers"
)

// Handler serves the files behind signed links to GET and HEAD, with range requests, also to web
// pages of other origins (doc/protocol.md §5). Mount it at [LinkPrefix]. It answers 403 for a link
// that was changed or has expired, and 404 for a file that is gone. now is time.Now, or a test's
// clock.
//
// Anybody may have sent a file, so nothing in it may act for our origin: the answer is sandboxed,
// browsers don't guess its type, and scripts and style sheets are served as plain text. Only types
// that browsers display without running them are displayed. All others are downloads.
//
// allow reports, by Link.Device, whether the recipient of a link may still read it: false means
// 403, an error 503.
func Handler(store *Store, signer *Signer, now func() time.Time, allow func(ctx context.Context, device string) (bool, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
		h.Set("Referrer-Policy", "no-referrer") // the address is the permission
		// A page of any origin may read a file whose address it has. Nothing here depends on
		// cookies.
		h.Set("Access-Control-Allow-Origin", "*")
		h.Set("Access-Control-Expose-Headers", "Content-Range")
		if r.Method == http.MethodOptions {
			h.Set("Access-Control-Allow-Methods", "GET, HEAD")
			h.Set("Access-Control-Allow-Headers", "Range")
			h.Set("Access-Control-Max-Age", "86400")
			w.WriteHeader(http.StatusNoContent)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			h.Set("Allow", "GET, HEAD")
			fail(w, "Only GET and HEAD are served here.", http.StatusMethodNotAllowed)
			return
		}
		link, err := signer.Verify(r.URL.Path, r.URL.RawQuery, now())
		switch {
		case errors.Is(err, ErrLinkExpired):
			fail(w, "This link has expired.", http.StatusForbidden)
			return
		case err != nil:
			fail(w, "This link is not valid.", http.StatusForbidden)
			return
		}
		switch allowed, err := allow(r.Context(), link.Device); {
		case err != nil:
			fail(w, "This file cannot be read now.", http.StatusServiceUnavailable)
			return
		case !allowed:
			fail(w, "This link is not valid any more.", http.StatusForbidden)
			return
		}
		strangers.Admit(r.Context())
		f, err := store.Open(link.Hash)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			fail(w, "This file is gone.", http.StatusNotFound)
			return
		case err != nil:
			fail(w, "This file cannot be read now.", http.StatusInternalServerError)
			return
		}
		defer f.Close()
		h.Set("Content-Type", servedType(link.Mime))
		h.Set("Content-Disposition", disposition(link.Mime, link.Filename))
		h.Set("Cache-Control", "private")
		// The content never changes under its hash, but the file's time does (Touch). So only the
		// tag tells a client whether it may resume.
		h.Set("ETag", `"`+link.Hash+`"`)
		http.ServeContent(w, r, "", time.Time{}, f)
	})
}

func fail(w http.ResponseWriter, text string, status int) {
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, text, status)
}

// servedType returns the type that a file is served with. A page of ours could load scripts and
// style sheets despite the sandbox, which applies to documents only.
func servedType(mimeType string) string {
	base, _, _ := strings.Cut(mimeType, ";")
	for _, active := range []string{"javascript", "ecmascript", "jscript", "livescript", "text/css", "text/xsl"} {
		if strings.Contains(base, active) {
			return "text/plain"
		}
	}
	return mimeType
}

// disposition returns a Content-Disposition (RFC 6266). An SVG is a document with scripts as much
// as an image, so it is a download.
func disposition(mimeType, filename string) string {
	kind := "attachment"
	if kindOf(mimeType) != "document" && !strings.Contains(mimeType, "xml") {
		kind = "inline"
	}
	return kind + `; filename="` + asciiName(filename) + `"; filename*=UTF-8''` + percentName(filename)
}

// asciiName returns the name for clients that don't support filename*. It has no percent sign,
// because some clients decode it here.
func asciiName(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || r == '"' || r == '\\' || r == '%' {
			return '_'
		}
		return r
	}, s)
}

// percentName encodes a name as an ext-value of RFC 8187.
func percentName(s string) string {
	const hexDigits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("!#$&+-.^_`|~", c) >= 0 {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(hexDigits[c>>4])
		b.WriteByte(hexDigits[c&15])
	}
	return b.String()
}
