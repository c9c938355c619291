// Package web serves the web page at the address of the server. Its files are built from the folder
// web and are part of the program.
package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html"
	"io/fs"
	"log/slog"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"strings"
	"sync"
)

//go:embed all:dist
var dist embed.FS

// Options configure the page.
type Options struct {
	// Path is the path of the device endpoint.
	Path string
	// App says that the page belongs to the direct client, which sets itself up.
	App bool
	// AvatarURL is the owner's avatar page, or empty.
	AvatarURL string
	// Public reports which addresses belong to the public internet, and Log gets failures to fetch
	// the avatar page. Both are required only with an AvatarURL.
	Public func(netip.Addr) bool
	Log    *slog.Logger
	// Base returns the scheme and host by which a client reached the server.
	Base func(*http.Request) string
}

// file is one file of the page, ready to send.
type file struct {
	mime       string
	plain      []byte
	compressed func() []byte // nil if that saves nothing; made for the first client that accepts it
	etag       string
	fixed      bool // its name changes with its content
}

// Page serves the files of the page. It is safe for concurrent use.
type Page struct {
	files  map[string]*file
	avatar *avatar // nil: no avatar is set
	frame  string  // the origins that may be framed
	base   func(*http.Request) string
}

// OwnerPath is the path of the admin UI. The server checks who may see it.
const (
	OwnerPath = "/admin"
	ownerFile = "admin.html"
)

// pathMeta is the meta tag with the path of the device endpoint.
const pathMeta = `<meta name="hermes-path" content="/ws"`

// appMeta is the meta tag that marks the page of the direct client.
const appMeta = `<meta name="hermes-app" content=""`

// New prepares the files of the page.
func New(o Options) (*Page, error) {
	p := &Page{files: map[string]*file{}, frame: "'none'", base: o.Base}
	if u, err := url.Parse(o.AvatarURL); err == nil && (u.Scheme == "http" || u.Scheme == "https") && plainHost.MatchString(u.Host) {
		// The server serves it from here, or redirects to its own address.
		p.avatar, p.frame = newAvatar(u, o.Public, o.Log), "'self' "+u.Scheme+"://"+u.Host
	}
	root, err := fs.Sub(dist, "dist")
	if err != nil {
		return nil, err
	}
	return p, fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		if name == ownerFile {
			name = strings.TrimPrefix(OwnerPath, "/")
		}
		if name == "index.html" {
			if o.App {
				content = bytes.Replace(content, []byte(appMeta), []byte(`<meta name="hermes-app" content="1"`), 1)
			}
			content = bytes.Replace(content, []byte(pathMeta), []byte(`<meta name="hermes-path" content="`+html.EscapeString(o.Path)+`"`), 1)
			name = ""
		}
		p.files["/"+name] = prepare(name, content)
		return nil
	})
}

// types are the media types that differ between systems.
var types = map[string]string{
	"": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
	".webmanifest": "application/manifest+json", ".png": "image/png",
}

func prepare(name string, content []byte) *file {
	sum := sha256.Sum256(content)
	f := &file{plain: content, etag: hex.EncodeToString(sum[:12]), fixed: strings.HasPrefix(name, "assets/"), mime: types[path.Ext(name)]}
	if f.mime == "" {
		f.mime = mime.TypeByExtension(path.Ext(name))
	}
	f.compressed = sync.OnceValue(func() []byte { return compress(content) })
	return f
}

func compress(content []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is valid
	_, _ = w.Write(content)                               // a Buffer never fails
	_ = w.Close()
	if b.Len() > len(content)*9/10 {
		return nil
	}
	return b.Bytes()
}

// Paths returns the paths of all public files.
func (p *Page) Paths() []string {
	var list []string
	for name := range p.files {
		if name != OwnerPath {
			list = append(list, name)
		}
	}
	if p.avatar != nil {
		list = append(list, AvatarPath)
	}
	return list
}

// ServeHTTP sends a file, or the avatar page.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p.avatar != nil && r.URL.Path == AvatarPath {
		p.avatar.ServeHTTP(w, r)
		return
	}
	f, ok := p.files[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", f.mime)
	h.Set("Content-Security-Policy", p.policy(r))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "microphone=(self), camera=(self), geolocation=(), payment=(), usb=()")
	h.Set("Vary", "Accept-Encoding")
	switch {
	case f.fixed:
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	case r.URL.Path == OwnerPath:
		h.Set("Cache-Control", "no-store")
	default:
		h.Set("Cache-Control", "no-cache")
	}
	body, tag := f.plain, f.etag
	if acceptsGzip(r) {
		if small := f.compressed(); small != nil {
			body, tag = small, f.etag+"-gz"
			h.Set("Content-Encoding", "gzip")
		}
	}
	h.Set("ETag", `"`+tag+`"`)
	serve(w, r, body, `"`+tag+`"`)
}

// plainHost keeps a Host header from adding directives of its own.
var plainHost = regexp.MustCompile(`^[A-Za-z0-9._:\[\]-]+$`)

// policy allows the page its own files, its own server, and the owner's avatar page in a frame, and
// nothing else. Text becomes HTML or script only through the page's two policies.
func (p *Page) policy(r *http.Request) string {
	connect := "'self'"
	// Not every browser treats the WebSocket of a host as 'self'.
	if scheme, host, ok := strings.Cut(p.base(r), "://"); ok && plainHost.MatchString(host) {
		connect += " " + strings.Replace(scheme, "http", "ws", 1) + "://" + host
	}
	return "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; media-src 'self' blob: data:; " +
		"connect-src " + connect + "; frame-src " + p.frame + "; manifest-src 'self'; worker-src 'self'; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
		// HTML comes only from DOMPurify, and a worker only from the page's own address: see
		// trustedTypes.ts in web/src/view.
		"require-trusted-types-for 'script'; trusted-types dompurify hermes-mobile"
}
