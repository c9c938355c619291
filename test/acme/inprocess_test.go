package acme

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"hermes-mobile/internal/cert"
	"hermes-mobile/internal/leak"
)

// A certificate is obtained and renewed in this process, and the end leaves no goroutine behind, nor a connection to the
// ACME server, which lives on.
func TestNothingIsLeft(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	port := l.Addr().(*net.TCPAddr).Port
	a := newAuthority(t, 1, port, 10*time.Minute)
	a.begin()
	own := fmt.Sprintf("p%d.home.test", port) // certmagic remembers failures by name, beyond this test
	here := goleak.IgnoreCurrent()
	c, err := cert.Open(cert.Options{Mode: cert.Auto, Data: t.TempDir(), Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Hosts: []string{own},
		Directory: a.directory(), RootFile: a.root, Host: "127.0.0.1", Port: port})
	ok(t, err)
	web := &http.Server{Handler: http.NotFoundHandler(), TLSNextProto: c.Silent()}
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() { _ = web.Serve(tls.NewListener(l, c.TLS())) })
	work.Go(func() { c.Run(ctx) })
	until(t, "a certificate", func() bool { return c.State().Leaf != "" })
	first := c.State()
	ok(t, c.Reload())
	until(t, "its renewal", func() bool { return c.State().Leaf != first.Leaf })
	ok(t, c.Reload()) // the next renewal is under way when the end comes
	cancel()
	ok(t, web.Close())
	work.Wait()
	c.Close()
	leak.None(t, here, goleak.IgnoreAnyFunction("hermes-mobile/test/acme.serveQuery")) // of the ACME server
}
