package apiproxy

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	dialTimeout = 5 * time.Second
	// askTimeout bounds a request that the proxy itself makes to the API server.
	askTimeout = 15 * time.Second
	// maxAnswer bounds an answer that the proxy reads and doesn't only pass on.
	maxAnswer = 64 << 20
)

// Headers of the API server.
const (
	sessionIDHeader  = "X-Hermes-Session-Id"
	sessionKeyHeader = "X-Hermes-Session-Key"
	idempotency      = "Idempotency-Key"
)

// passage describes how a request reaches the API server.
type passage struct {
	path      string // escaped, of the API server
	query     string
	body      []byte
	sent      func() // called when the API server has the body
	caller    caller
	in        *http.Request // as received
	sessionID string        // for the header
	key       string        // of the conversation, as the client names it
	// done sees the answer before the client does. If it returns an error, the client gets an error
	// instead.
	done func(*http.Response) error
}

// passage returns the passage of a call, with the fields that the route allows.
func (c *call) passage(done func(*http.Response) error) passage {
	p := passage{path: c.path(), query: c.query, caller: c.caller, done: done}
	if c.in != nil {
		p.body, p.sent = c.in.body(), c.sent
		c.in = nil // only the passage holds it now
	}
	return p
}

type passageKey struct{}

func newTransport() *http.Transport {
	return &http.Transport{
		DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSHandshakeTimeout: dialTimeout,
		MaxIdleConnsPerHost: 16,
		IdleConnTimeout:     time.Minute,
		DisableCompression:  true, // streamed data passes on as it arrives
	}
}

func (f *Proxy) newProxy() *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Transport:      f.upstream,
		FlushInterval:  -1,
		Rewrite:        f.rewrite,
		ModifyResponse: f.answered,
		ErrorHandler:   f.failed,
		ErrorLog:       log.New(io.Discard, "", 0), // it would only log that a client is gone
	}
}

// forward sends a request to the API server and the answer back.
func (f *Proxy) forward(w http.ResponseWriter, r *http.Request, p passage) {
	p.in = r
	r = r.WithContext(context.WithValue(r.Context(), passageKey{}, &p))
	r.Body, r.ContentLength, r.TransferEncoding = http.NoBody, int64(len(p.body)), nil
	if len(p.body) > 0 {
		r.Body = &sent{data: p.body, done: p.sent}
		p.body = nil
	}
	f.proxy.ServeHTTP(w, r)
}

func passageOf(r *http.Request) *passage {
	p, _ := r.Context().Value(passageKey{}).(*passage)
	return p
}

// address returns the URL of a path of the API server.
func (f *Proxy) address(path, query string) *url.URL {
	u := *f.target
	u.RawPath = u.EscapedPath() + path
	u.Path, _ = url.PathUnescape(u.RawPath)
	u.RawQuery = query
	return &u
}

// passed are the headers of a client that reach the API server. All others stay here: cookies,
// Origin (which the API server rejects), headers of proxies, and those of one connection only.
var passed = []string{"Accept", "Content-Type", "Last-Event-Id"}

func (f *Proxy) rewrite(pr *httputil.ProxyRequest) {
	p := passageOf(pr.In)
	pr.Out.URL = f.address(p.path, p.query)
	pr.Out.Host = ""
	h := http.Header{}
	for _, name := range passed {
		if v := pr.In.Header.Get(name); v != "" {
			h.Set(name, v)
		}
	}
	h.Set("Authorization", "Bearer "+f.o.Key)
	h.Set("User-Agent", "hermes-mobile")
	if p.sessionID != "" {
		h.Set(sessionIDHeader, p.sessionID)
	}
	if p.key = strings.TrimSpace(pr.In.Header.Get(sessionKeyHeader)); p.key != "" {
		h.Set(sessionKeyHeader, p.caller.own(p.key))
	}
	if key := strings.TrimSpace(pr.In.Header.Get(idempotency)); key != "" {
		h.Set(idempotency, p.caller.own(key))
	}
	pr.Out.Header = h
}

// own makes a name that clients choose unique to the user: two users who choose the same name get
// two different ones.
func (c caller) own(name string) string {
	sum := sha256.Sum256([]byte(c.id + "\n" + name))
	return "front-" + c.id + "-" + hex.EncodeToString(sum[:16])
}

// returned are the headers of the API server that reach clients. The others describe its own
// connection or its own origin: cookies, CORS, and those that seal sets.
var returned = []string{"Content-Type", "Content-Encoding", "Retry-After", "X-Accel-Buffering", "Idempotency-Replayed"}

// returnedPrefix is the prefix of Hermes' own headers, which also reach clients.
const returnedPrefix = "X-Hermes-"

var errKey = errors.New("the API server rejects the key: MOBILE_API_KEY is not the API_SERVER_KEY of this Hermes")

func (f *Proxy) answered(resp *http.Response) error {
	p := passageOf(resp.Request)
	if resp.StatusCode == http.StatusUnauthorized {
		return errKey // the API server rejected our key, not the user's login
	}
	for name := range resp.Header {
		if !slices.Contains(returned, name) && !strings.HasPrefix(name, returnedPrefix) {
			resp.Header.Del(name)
		}
	}
	if resp.Header.Get(sessionKeyHeader) != "" {
		resp.Header.Set(sessionKeyHeader, p.key)
	}
	if p.done != nil {
		if err := p.done(resp); err != nil {
			return err
		}
	}
	p.show(resp)
	return nil
}

// show gives sessions the names that the client knows, and drops trailers.
func (p *passage) show(resp *http.Response) {
	var space string
	if p.caller.id != "" {
		space = p.caller.space()
	}
	if id := resp.Header.Get(sessionIDHeader); id != "" {
		resp.Header.Set(sessionIDHeader, strings.TrimPrefix(id, space))
	}
	resp.Trailer = nil // and again when they have arrived
	resp.Body = &shownBody{ReadCloser: resp.Body, space: []byte(space), end: func() { resp.Trailer = nil }}
	resp.ContentLength = -1 // the body may get shorter
	resp.Header.Del("Content-Length")
}

// failed answers if the API server doesn't.
func (f *Proxy) failed(w http.ResponseWriter, r *http.Request, err error) {
	if p := passageOf(r); p != nil {
		r = p.in
	}
	switch cause := context.Cause(r.Context()); {
	case errors.Is(cause, errEnded):
		f.logins.nobody(w, r)
		return
	case errors.Is(cause, errClosing):
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusServiceUnavailable, "server_error", "stopping", "The server is stopping.")
		return
	case r.Context().Err() != nil:
		return // the client is gone
	}
	f.o.Log.Warn("request to Hermes' API server failed", "err", withoutAddress(err))
	code, message := "upstream_unavailable", "Hermes' API server does not answer."
	if errors.Is(err, errKey) {
		code, message = "upstream_key_refused", "Hermes' API server rejects the key of this server: the owner must fix MOBILE_API_KEY."
	}
	if errors.Is(err, errStore) {
		refuse(w, http.StatusServiceUnavailable, "server_error", "store_failed", "The server can't store the owner of that: try again.")
		return
	}
	refuse(w, http.StatusBadGateway, "server_error", code, message)
}

// withoutAddress removes the URL from an error of the HTTP client, because it may contain the id of
// a session.
func withoutAddress(err error) error {
	if u := (*url.Error)(nil); errors.As(err, &u) {
		return u.Err
	}
	return err
}

// errStore reports that the owner of something could not be stored.
var errStore = errors.New("the store failed")

// whole reads an answer that must be inspected, and restores its body.
func whole(resp *http.Response) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err == nil && len(body) > maxAnswer {
		err = errors.New("the API server's answer is too long")
	}
	if err != nil {
		return nil, err
	}
	_ = resp.Body.Close()
	setBody(resp, body)
	return body, nil
}

func setBody(resp *http.Response, body []byte) {
	resp.Body = io.NopCloser(bytes.NewReader(body))
	resp.ContentLength = int64(len(body))
	resp.TransferEncoding = nil
	resp.Header.Set("Content-Length", strconv.Itoa(len(body)))
}

// ask makes a request of the proxy itself. A status of 500 and above is an error, because it says
// nothing about the thing asked for.
func (f *Proxy) ask(ctx context.Context, path, query string, to any) (status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "", nil)
	if err != nil {
		return 0, err
	}
	r.URL = f.address(path, query)
	r.Header.Set("Authorization", "Bearer "+f.o.Key)
	r.Header.Set("User-Agent", "hermes-mobile")
	resp, err := (&http.Client{Transport: f.upstream, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(r)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusUnauthorized {
		return resp.StatusCode, errKey
	}
	if resp.StatusCode >= 500 {
		return resp.StatusCode, fmt.Errorf("the API server answers with status %d", resp.StatusCode)
	}
	if resp.StatusCode != http.StatusOK {
		return resp.StatusCode, nil
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(to); err != nil {
		return resp.StatusCode, fmt.Errorf("the API server's answer isn't valid JSON: %w", err)
	}
	return resp.StatusCode, nil
}

// Reach returns why the API server can't be used, nil if it can.
func (f *Proxy) Reach(ctx context.Context) error {
	var c struct{ Object string }
	status, err := f.ask(ctx, "/v1/capabilities", "", &c)
	switch {
	case err != nil:
		return withoutAddress(err)
	case status != http.StatusOK:
		return fmt.Errorf("the API server answers with status %d", status)
	case c.Object != "hermes.api_server.capabilities":
		return errors.New("the program at this address is not Hermes' API server")
	}
	return nil
}
