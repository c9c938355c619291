package doctor

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// A probe is a WebSocket on the path for devices, so it takes the same route as an app. The server
// identifies itself, then waits for a message before it sends another. So buffering in either
// direction shows.
//
//	doctor                              server
//	  GET /ws?probe=<nonce>  upgrade ->
//	  <- "hermes-mobile <answer> 1"
//	  "go on" ->
//	  <- "hermes-mobile <answer> 2"
//
// If the server takes the probe for a program on its own machine, the first line ends with the
// address of its peer. The server answers a request without an Upgrade header with 426 and the same
// data in headers.

// Probe holds the secrets that the server and the doctor share for one run.
type Probe struct {
	Nonce  string `json:"nonce"`  // identifies the probe
	Answer string `json:"answer"` // identifies the server
	// Hosts are the Host headers of requests from the server's own machine. A stranger can send
	// them, too.
	Hosts []string `json:"hosts"`
}

// ProbeQuery is the URL parameter of the nonce. Without a WebSocket, ProbeHeader holds the answer
// and ProbeHere the peer. ProbeWord is the message that the doctor sends.
const (
	ProbeQuery  = "probe"
	ProbeHeader = "Hermes-Mobile-Probe"
	ProbeHere   = "Hermes-Mobile-Probe-Here"
	ProbeWord   = "go on"
)

// Line returns the server's message n, 1 or 2. In the first one, the peer may follow.
func (p Probe) Line(n int) string { return fmt.Sprintf("hermes-mobile %s %d", p.Answer, n) }

// Prober probes the public address.
type Prober struct {
	// Timeout bounds each step of the probe.
	Timeout time.Duration
}

// Run connects as an app does: to the path for devices at the public address.
func (pr Prober) Run(ctx context.Context, public, path string, p Probe) *Public {
	out := &Public{URL: public}
	base := strings.TrimRight(public, "/")
	out.Result, out.Detail = pr.try(ctx, base+path, p, &out.Hidden)
	if out.Result != PublicUnreachable {
		out.Exposed = pr.exposed(ctx, base, p.Hosts)
	}
	return out
}

// client returns a client for the public address that follows no redirects. dialed, if not nil,
// gets the local address of each connection.
func client(dialed func(net.Addr)) *http.Client {
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		var d net.Dialer
		c, err := d.DialContext(ctx, network, addr)
		if err == nil && dialed != nil {
			dialed(c.LocalAddr())
		}
		return c, err
	}
	transport := &http.Transport{DialContext: dial, DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // ProbeCertificate checks the certificate
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// try connects as an app does. It sets hidden if a proxy makes the probe look as if it came from
// the server's own machine: the server then sees another peer than this end of the connection.
func (pr Prober) try(ctx context.Context, address string, p Probe, hidden *bool) (PublicResult, string) {
	var mu sync.Mutex
	var own []string
	client := client(func(a net.Addr) { mu.Lock(); own = append(own, a.String()); mu.Unlock() })
	defer client.CloseIdleConnections()
	step := func(f func(ctx context.Context) error) error {
		ctx, cancel := context.WithTimeout(ctx, pr.Timeout)
		defer cancel()
		return f(ctx)
	}
	var ws *websocket.Conn
	var resp *http.Response
	err := step(func(ctx context.Context) (err error) {
		ws, resp, err = websocket.Dial(ctx, address+"?"+url.Values{ProbeQuery: {p.Nonce}}.Encode(), &websocket.DialOptions{HTTPClient: client})
		return err
	})
	here := func(peer string) {
		mu.Lock()
		defer mu.Unlock()
		*hidden = peer != "" && !slices.Contains(own, peer)
	}
	if err != nil && resp != nil {
		if resp.Header.Get(ProbeHeader) == p.Answer {
			here(resp.Header.Get(ProbeHere))
		}
		return refusal(address, resp, p)
	}
	if err != nil {
		late := errors.Is(err, context.DeadlineExceeded)
		if late && step(func(ctx context.Context) error { return answers(ctx, client, address) }) == nil {
			return PublicBuffers, "a plain request gets an answer, but an upgrade does not"
		}
		return PublicUnreachable, reason(err)
	}
	defer func() { _ = ws.CloseNow() }()
	read := func(want string) error {
		return step(func(ctx context.Context) error {
			_, text, err := ws.Read(ctx)
			if err != nil {
				return err
			}
			rest, mine := strings.CutPrefix(string(text), want)
			if !mine || rest != "" && rest[0] != ' ' {
				return errOther
			}
			if rest != "" {
				here(rest[1:])
			}
			return nil
		})
	}
	switch err := read(p.Line(1)); {
	case errors.Is(err, errOther), websocket.CloseStatus(err) != -1:
		return PublicOther, "another server opens the WebSocket"
	case err != nil:
		return PublicBuffers, "the WebSocket opens, but the server's first message does not arrive"
	}
	if step(func(ctx context.Context) error { return ws.Write(ctx, websocket.MessageText, []byte(ProbeWord)) }) != nil || read(p.Line(2)) != nil {
		return PublicBuffers, "the WebSocket opens, but the server's answer does not arrive"
	}
	return PublicGood, ""
}

var errOther = errors.New("another server")

// answers requests a plain page from the same host.
func answers(ctx context.Context, client *http.Client, address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return err
	}
	u.Path = "/healthz"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
	return err
}

// refusal interprets an answer that is not a WebSocket.
func refusal(address string, resp *http.Response, p Probe) (PublicResult, string) {
	status := "the server answers " + resp.Status
	switch {
	case resp.Header.Get(ProbeHeader) == p.Answer:
		return PublicNoUpgrade, "the request arrives without its Upgrade header"
	case resp.StatusCode == http.StatusBadGateway, resp.StatusCode == http.StatusServiceUnavailable, resp.StatusCode == http.StatusGatewayTimeout:
		return PublicUnreachable, status + ": the proxy can't reach the server"
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return redirected(address, resp, status)
	case resp.StatusCode == http.StatusUnauthorized, resp.StatusCode == http.StatusForbidden, resp.StatusCode == http.StatusProxyAuthRequired:
		return PublicLogin, status
	}
	return PublicOther, status + " and does not recognize the probe"
}

func redirected(address string, resp *http.Response, status string) (PublicResult, string) {
	from, _ := url.Parse(address)
	to, err := resp.Location()
	switch {
	case err != nil:
		return PublicOther, status
	case to.Hostname() == from.Hostname() && from.Scheme == "http" && to.Scheme == "https":
		return PublicOther, "it redirects to https: set MOBILE_PUBLIC_URL to https://" + to.Host
	}
	return PublicLogin, status + " and redirects to " + to.Scheme + "://" + to.Host + to.Path
}

// reason returns the innermost error of a failed connection, which is the most readable one.
func reason(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer in time"
	}
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err.Error()
		}
		err = next
	}
}
