package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"hermes-mobile/internal/access"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/media"
	"hermes-mobile/internal/quota"
	"hermes-mobile/internal/strangers"
	"hermes-mobile/internal/wsconn"
)

const (
	maxUpload = 64 << 20 // bytes of a file of the agent
	// writeStall is longer than a stall (doc/hermes/relay.md §7), in which the gateway reads nothing
	// for 30 s.
	writeStall = 90 * time.Second
)

// Handler serves /relay and everything below it.
func (a *Agent) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := strings.TrimSuffix(r.URL.Path, "/"); {
		case path == "/relay":
			a.upgrade(w, r)
		case path == mediaPath:
			a.upload(w, r)
		case strings.HasPrefix(r.URL.Path, mediaPath+"/"):
			a.download(w, r, strings.TrimPrefix(r.URL.Path, mediaPath+"/"))
		case path == "/relay/policy":
			if allow(w, r, http.MethodPost) && a.authorize(w, r) != nil {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, "{}") // an error is the peer's
			}
		default: // also for provision: the owner configures gateways
			http.Error(w, "not found", http.StatusNotFound)
		}
	})
}

func allow(w http.ResponseWriter, r *http.Request, methods ...string) bool {
	for _, m := range methods {
		if r.Method == m {
			return true
		}
	}
	w.Header().Set("Allow", strings.Join(methods, ", "))
	http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
	return false
}

// authorize returns the gateway whose bearer token the request carries. It answers other requests
// with 401 and returns nil.
func (a *Agent) authorize(w http.ResponseWriter, r *http.Request) *gateway {
	gateways := a.routes.Load().byID
	headers := r.Header.Values("Authorization")
	header := ""
	if len(headers) == 1 {
		header = headers[0]
	}
	id, no := verify(header, func(id string) (string, bool) {
		g, ok := gateways[id]
		if !ok {
			return "", false
		}
		return g.config().Secret, true
	}, a.opt.Now())
	if no == nil {
		strangers.Admit(r.Context())
		return gateways[id]
	}
	a.refused(r, no)
	w.Header().Set("WWW-Authenticate", "Bearer")
	http.Error(w, "unauthorized", http.StatusUnauthorized)
	return nil
}

// refused notes and logs a request without a valid bearer token.
func (a *Agent) refused(r *http.Request, no *refusal) {
	a.count(CountRefused, no.Gateway)
	from := a.opt.From(r)
	a.mu.Lock()
	a.lastRefusal = &Refusal{At: a.opt.Now(), Gateway: no.Gateway, Kind: no.Kind, From: from, Reason: no.Reason, Skew: no.Skew}
	a.refusedLast[no.Gateway] = *a.lastRefusal
	a.refusals++
	n := a.refusals
	a.mu.Unlock()
	path := r.URL.Path
	if strings.HasPrefix(path, mediaPath) {
		path = mediaPath // the rest names a file, or is as long as a stranger likes
	}
	a.log.Warn("gateway rejected", "gateway", no.Gateway, "reason", no.Reason, "addr", from,
		"path", path, "clock_difference", no.Skew, "total", n)
}

// upgrade makes an authorized request a connection.
func (a *Agent) upgrade(w http.ResponseWriter, r *http.Request) {
	g := a.authorize(w, r)
	if g == nil {
		return
	}
	if !a.begins(r.Context()) {
		http.Error(w, "starting or stopping, try again", http.StatusServiceUnavailable)
		return
	}
	conn, err := wsconn.Upgrade(w, r, &wsconn.Options{
		MaxMessage: maxLine, MaxQueue: maxQueue, LowWater: maxQueue / 2, WriteStall: writeStall, Keeper: a.opt.Keeper,
		Batch: true, // a gateway that streams for many devices sends many ops at a time, each with its answer
	})
	if err != nil {
		g.log.Warn("upgrade failed", "err", err)
		return
	}
	l := &link{owner: g, log: g.log, conn: conn, base: access.Base(r, true), local: isLocal(r), from: a.opt.From(r)}
	l.near = sync.OnceValues(func() (Sees, bool) { return a.near(r) })
	if !a.link(l) {
		conn.CloseNow()
		return
	}
	g.connected(l)
	conn.Serve(l)
}

// begins reports whether the agent runs. A gateway that dials while the server starts waits for that: if
// it was rejected, it would dial again much later.
func (a *Agent) begins(ctx context.Context) bool {
	limited, cancel := context.WithTimeout(ctx, helloWithin)
	defer cancel()
	select {
	case <-a.begun:
	case <-limited.Done():
	}
	return a.running() != nil
}

// link notes an open connection, which Run waits for. It reports false when Run has ended.
func (a *Agent) link(l *link) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ctx == nil {
		return false
	}
	a.open[l] = struct{}{}
	return true
}

func (a *Agent) unlink(l *link) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.open, l)
}

// upload stores a file of the agent (doc/hermes/relay.md §5). A send_media names it then.
func (a *Agent) upload(w http.ResponseWriter, r *http.Request) {
	if !allow(w, r, http.MethodPost) {
		return
	}
	g := a.authorize(w, r)
	if g == nil {
		return
	}
	if r.ContentLength > maxUpload {
		http.Error(w, "file too large", http.StatusRequestEntityTooLarge)
		return
	}
	mimeType := "application/octet-stream"
	if m, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err == nil {
		mimeType = m
	}
	body := http.MaxBytesReader(w, r.Body, maxUpload)
	hash, size, err := a.opt.Files.Put(body, maxUpload)
	if err != nil {
		g.log.Warn("cannot store a file of the agent", "err", err)
		status, text := http.StatusInternalServerError, "cannot be stored"
		var over *http.MaxBytesError
		var big *media.Refusal
		switch {
		case errors.As(err, &over), errors.As(err, &big) && big.TooBig:
			status = http.StatusRequestEntityTooLarge
		case quota.Why(err) != "":
			status, text = http.StatusInsufficientStorage, noSpace(err)
		}
		http.Error(w, text, status)
		return
	}
	id := a.links.token(tokenUp, g.config().ID, &agent.File{
		Hash: hash, Size: size, Mime: mimeType, Name: headerName(r.Header.Get("X-Media-Filename")),
	})
	if id == "" {
		http.Error(w, "cannot be stored", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"id":"%s","size":%d}`, id, size)
}

// noSpace says why there is no space for a file.
func noSpace(err error) string {
	full := &quota.Full{Reason: quota.Disk} // where it is the system that says so
	errors.As(err, &full)
	return full.Error()
}

// headerName reads a file name out of a header. It is UTF-8, or Latin-1 as Python's HTTP client writes
// it.
func headerName(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	runes := make([]rune, len(s))
	for i := range len(s) {
		runes[i] = rune(s[i])
	}
	return string(runes)
}

// download gives a user's file to the gateway that was told of it. Newer gateways send their bearer
// token only to the address that they dialed, so behind a proxy or under another name they come without
// one. The signed address, which nobody else was told, is enough then. A token that is wrong, or another
// gateway's, is not.
func (a *Agent) download(w http.ResponseWriter, r *http.Request, token string) {
	if !allow(w, r, http.MethodGet, http.MethodHead) {
		return
	}
	l, owner, err := a.links.open(tokenDown, token)
	g := a.routes.Load().byID[owner]
	if len(r.Header.Values("Authorization")) > 0 || err != nil {
		if g = a.authorize(w, r); g == nil {
			return
		}
	}
	if err != nil || g == nil || g.config().ID != owner {
		http.Error(w, "no such file", http.StatusNotFound)
		return
	}
	f, err := a.opt.Files.Open(l.Hash)
	if err != nil {
		g.log.Warn("file for the gateway is gone", "err", err)
		http.Error(w, "no such file", http.StatusNotFound)
		return
	}
	defer f.Close()
	w.Header().Set("Content-Type", l.Mime)
	// The gateway takes everything after filename= as the name, for its extension: nothing may follow it.
	w.Header().Set("Content-Disposition", `attachment; filename="`+asciiName(l.Name)+`"`)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	http.ServeContent(w, r, "", time.Time{}, f)
}

func asciiName(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || r == '"' || r == '\\' || r == '%' {
			return '_'
		}
		return r
	}, s)
}

// isLocal reports whether the gateway runs on this machine as far as its request shows.
func isLocal(r *http.Request) bool {
	for h := range r.Header {
		if h == "Forwarded" || h == "Via" || h == "X-Real-Ip" || strings.HasPrefix(h, "X-Forwarded-") {
			return false
		}
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(strings.Split(host, "%")[0])
	return ip != nil && ip.IsLoopback()
}

// near finds the process of the gateway that sent a request.
func (a *Agent) near(r *http.Request) (Sees, bool) {
	at, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return nil, false
	}
	local, err := netip.ParseAddrPort(at.String())
	remote, err2 := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || err2 != nil {
		return nil, false
	}
	return a.opt.Near(local, remote)
}
