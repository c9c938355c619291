package web

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"html"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"
)

// AvatarPath is the path of the owner's avatar page, prepared for its frame.
const AvatarPath = "/avatar"

const (
	// maxAvatar bounds an avatar page in bytes. What the page itself loads doesn't count.
	maxAvatar = 4 << 20
	// avatarTime is the timeout for the host of the avatar page.
	avatarTime = 10 * time.Second
	// avatarFresh is how long a fetched page, or a failure, is cached.
	avatarFresh = time.Minute
)

// avatarPolicy gives the avatar page an origin of its own, although it comes from our address: it
// has no storage, no cookies and no access to the page around it. Only our page may frame it.
const avatarPolicy = "sandbox allow-scripts; frame-ancestors 'self'"

//go:embed avatar.js
var avatarScript string

// avatar serves the avatar page of the owner for the frame of our page. A browser lets our page
// call nothing in a page of another origin. So the server fetches the page and inserts a script
// that turns messages into calls of window.hermesAvatar. It is safe for concurrent use.
type avatar struct {
	at     *url.URL
	client *http.Client
	log    *slog.Logger
	now    func() time.Time

	mu      sync.Mutex // held during a fetch, so there is one request at a time
	fetched time.Time
	body    []byte // nil if the fetch failed
	mime    string
	failure string // the last one logged
}

// newAvatar returns the avatar at an address. public reports which addresses belong to the public
// internet.
func newAvatar(at *url.URL, public func(netip.Addr) bool, log *slog.Logger) *avatar {
	dialer := &net.Dialer{Timeout: avatarTime}
	if !namedLocally(at.Hostname()) {
		// The owner of a public name could point it to a service of this network, which visitors
		// would then read here.
		dialer.Control = func(_, dialled string, _ syscall.RawConn) error {
			if to, err := netip.ParseAddrPort(dialled); err != nil || !public(to.Addr()) {
				return fmt.Errorf("%s is not an address of the public internet", dialled)
			}
			return nil
		}
	}
	return &avatar{at: at, log: log, now: time.Now, client: &http.Client{
		Timeout:   avatarTime,
		Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if r.URL.Host != at.Host || r.URL.Scheme != at.Scheme || len(via) > 5 {
				return errors.New("the page redirects to another address")
			}
			return nil
		},
	}}
}

// namedLocally reports whether a host is one of the owner's own network: an address, or a name that
// nobody else can own.
func namedLocally(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if _, err := netip.ParseAddr(host); err == nil || !strings.Contains(host, ".") {
		return true
	}
	for _, zone := range []string{".localhost", ".local", ".lan", ".internal", ".home.arpa"} {
		if strings.HasSuffix(host, zone) {
			return true
		}
	}
	return false
}

// ServeHTTP sends the page with the script. If the server can't fetch it, or if it is opened
// outside of a frame, it redirects the browser to the page's own address.
func (a *avatar) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", avatarPolicy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Vary", "Sec-Fetch-Dest")
	var body []byte
	var kind string
	if dest := r.Header.Get("Sec-Fetch-Dest"); dest == "" || dest == "iframe" {
		body, kind = a.page()
	}
	if body == nil {
		http.Redirect(w, r, a.at.String(), http.StatusFound)
		return
	}
	h.Set("Content-Type", kind)
	_, _ = w.Write(body) // an error means that the visitor is gone
}

// page returns the page and its type, at most [avatarFresh] old, nil if it can't be fetched.
func (a *avatar) page() ([]byte, string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now := a.now(); a.fetched.IsZero() || now.Sub(a.fetched) >= avatarFresh {
		a.fetched = now
		body, kind, err := a.fetch()
		failure := ""
		if err != nil {
			failure = err.Error()
		}
		if failure != a.failure && err != nil {
			a.log.Warn("cannot fetch the avatar page: apps that run in a browser load it themselves and cannot call window.hermesAvatar", "addr", a.at.Redacted(), "err", err)
		}
		a.body, a.mime, a.failure = body, kind, failure
	}
	return a.body, a.mime
}

// fetch requests the page from its host. It has its own context: the first visitor may be gone
// before the others have the page.
func (a *avatar) fetch() ([]byte, string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), avatarTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, a.at.String(), nil)
	if err != nil {
		return nil, "", err
	}
	r.Header.Set("Accept", "text/html")
	resp, err := a.client.Do(r)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, "", fmt.Errorf("its host answered with status %d", resp.StatusCode)
	}
	kind, params, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil || kind != "text/html" {
		return nil, "", fmt.Errorf("it is not HTML but %q", resp.Header.Get("Content-Type"))
	}
	content, err := io.ReadAll(io.LimitReader(resp.Body, maxAvatar+1))
	switch {
	case err != nil:
		return nil, "", err
	case len(content) > maxAvatar:
		return nil, "", fmt.Errorf("it is larger than the %d MiB limit", maxAvatar>>20)
	}
	charset := params["charset"]
	if charset == "" {
		charset = declaredCharset(content)
	}
	if strings.HasPrefix(strings.ToLower(charset), "utf-16") || bytes.HasPrefix(content, []byte("\xff\xfe")) || bytes.HasPrefix(content, []byte("\xfe\xff")) {
		return nil, "", errors.New("it is written in UTF-16: save it as UTF-8")
	}
	return withBridge(content, resp.Request.URL), mime.FormatMediaType(kind, map[string]string{"charset": charset}), nil
}

var (
	doctype     = regexp.MustCompile(`(?is)^(?:\x{feff}|\s|<!--.*?-->)*<!doctype[^>]*>`)
	ownBase     = regexp.MustCompile(`(?i)<base\s[^>]*?href\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))`)
	metaCharset = regexp.MustCompile(`(?i)<meta\s[^>]*charset\s*=\s*["']?\s*([a-z0-9_-]+)`)
)

// declaredCharset returns the charset that a page declares in its first 1024 bytes, where browsers
// look. Our script moves that place.
func declaredCharset(content []byte) string {
	if m := metaCharset.FindSubmatch(content[:min(len(content), 1024)]); m != nil {
		return string(m[1])
	}
	return "utf-8"
}

// withBridge inserts the script, and the base address for the page's relative links, before
// everything but the doctype.
func withBridge(content []byte, at *url.URL) []byte {
	base := at
	if m := ownBase.FindSubmatch(content); m != nil {
		if to, err := at.Parse(html.UnescapeString(string(m[1]) + string(m[2]) + string(m[3]))); err == nil {
			base = to
		}
	}
	head := doctype.Find(content)
	var b bytes.Buffer
	b.Write(head)
	b.WriteString(`<script>` + avatarScript + `</script><base href="` + html.EscapeString(base.String()) + `">`)
	b.Write(content[len(head):])
	return b.Bytes()
}
