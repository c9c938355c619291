package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// tap stands between a gateway and the server and writes what they say to each other into a file, for a person who looks
// into a test that fails. It is there when E2E_TAP names a folder; it changes nothing but the time.
func tap(t testing.TB, server, name string) (address string) {
	t.Helper()
	dir := os.Getenv("E2E_TAP")
	if dir == "" {
		return server
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file, err := os.CreateTemp(dir, name+"-*.txt")
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	note := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(file, time.Now().Format("15:04:05.000 ")+format+"\n", args...)
	}
	rest := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		note("http %s %s", r.In.Method, r.In.URL.Path)
		r.SetURL(to)
		r.Out.Host = r.In.Host
	}}
	web := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			rest.ServeHTTP(w, r)
			return
		}
		between(w, r, "ws"+server[len("http"):], note)
	})}
	go func() { _ = web.Serve(l) }()
	t.Cleanup(func() {
		_ = web.Close()
		_ = file.Close()
		t.Logf("what %s and the server said is in %s", name, file.Name())
	})
	return "http://" + l.Addr().String()
}

// between joins a gateway's connection to one to the server.
func between(w http.ResponseWriter, r *http.Request, server string, note func(string, ...any)) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	up, _, err := websocket.Dial(ctx, server+r.URL.Path, &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": r.Header["Authorization"]}, Host: r.Host})
	if err != nil {
		note("the server does not answer: %v", err)
		http.Error(w, "the server does not answer", http.StatusBadGateway)
		return
	}
	defer func() { _ = up.CloseNow() }()
	down, err := websocket.Accept(w, r, nil)
	if err != nil {
		note("the gateway: %v", err)
		return
	}
	defer func() { _ = down.CloseNow() }()
	note("connected")
	var work sync.WaitGroup
	carry := func(from, to *websocket.Conn, mark string) {
		from.SetReadLimit(64 << 20)
		for {
			kind, data, err := from.Read(ctx)
			if err != nil {
				note("%s ended: %v", mark, err)
				if code := websocket.CloseStatus(err); code > 0 && code != websocket.StatusNoStatusRcvd && code != websocket.StatusAbnormalClosure {
					_ = to.Close(code, "")
				}
				_ = to.CloseNow()
				return
			}
			note("%s %s", mark, data)
			if err := to.Write(ctx, kind, data); err != nil {
				note("%s not carried: %v", mark, err)
			}
		}
	}
	work.Go(func() { carry(down, up, "gateway>") })
	work.Go(func() { carry(up, down, "        <server") })
	work.Wait()
}
