// Package web serves the page that people see at the address of the server. Its files are built from the folder web and are part of the
// program.
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

// Options is what the page has to know of its server.
type Options struct {
	// Path is where devices connect.
	Path string
	// App: the page is that of the direct client, which sets itself up.
	App bool
	// AvatarURL is the page that the owner set as the avatar, or empty.
	AvatarURL string
	// Public tells which addresses belong to the public internet, and Log is told when the avatar page cannot be fetched. Both are needed
	// with an AvatarURL only.
	Public func(netip.Addr) bool
	Log    *slog.Logger
	// Base gives scheme and host by which a client reached the server.
	Base func(*http.Request) string
}

// file is one file of the page, ready to be sent.
type file struct {
	mime       string
	plain      []byte
	compressed func() []byte // nil where that saves nothing; made when the first client wants it
	etag       string
	fixed      bool // its name changes with its content
}

// Page serves the files of the page. Safe for concurrent use.
type Page struct {
	files  map[string]*file
	avatar *avatar // nil where the owner set none
	frame  string  // who may be shown in a frame
	base   func(*http.Request) string
}

// OwnerPath is the address of the admin UI, which not everybody may see: the server looks who asks.
const (
	OwnerPath = "/admin"
	ownerFile = "admin.html"
)

// pathMeta is where the page reads the path of its server's endpoint.
const pathMeta = `<meta name="hermes-path" content="/ws"`

// appMeta is where the page reads that it is the direct client's.
const appMeta = `<meta name="hermes-app" content=""`

// New prepares the files of the page.
func New(o Options) (*Page, error) {
	p := &Page{files: map[string]*file{}, frame: "'none'", base: o.Base}
	if u, err := url.Parse(o.AvatarURL); err == nil && (u.Scheme == "http" || u.Scheme == "https") && plainHost.MatchString(u.Host) {
		// It is fetched from here, or else sent on to its own address.
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

// types are those that differ from one system's table to the next.
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
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is a valid one
	_, _ = w.Write(content)                               // a Buffer takes everything
	_ = w.Close()
	if b.Len() > len(content)*9/10 {
		return nil
	}
	return b.Bytes()
}

// Paths are the addresses of all files that everybody may have.
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

// plainHost keeps a Host header from writing directives of its own.
var plainHost = regexp.MustCompile(`^[A-Za-z0-9._:\[\]-]+$`)

// policy allows the page its own files, its own server, and the owner's avatar page in a frame; nothing else. Text becomes HTML or
// script only where the page's two policies make it so.
func (p *Page) policy(r *http.Request) string {
	connect := "'self'"
	// Not every browser counts the WebSocket of a host as 'self'.
	if scheme, host, ok := strings.Cut(p.base(r), "://"); ok && plainHost.MatchString(host) {
		connect += " " + strings.Replace(scheme, "http", "ws", 1) + "://" + host
	}
	return "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; media-src 'self' blob: data:; " +
		"connect-src " + connect + "; frame-src " + p.frame + "; manifest-src 'self'; worker-src 'self'; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
		// HTML comes from DOMPurify alone, and a worker from the page's own address: web/src/view/trustedTypes.ts.
		"require-trusted-types-for 'script'; trusted-types dompurify hermes-mobile"
}
