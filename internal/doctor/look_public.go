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

// A probe is a WebSocket that the server opens for the doctor on the path for devices, so that it takes their way. The server
// says who it is and then waits for a word before it says more: what holds back either direction shows.
//
//	doctor                              server
//	  GET /ws?probe=<nonce>  upgrade ->
//	  <- "hermes-mobile <answer> 1"
//	  "go on" ->
//	  <- "hermes-mobile <answer> 2"
//
// Where the server takes the probe for one of a program on its own machine, the first line ends with the address of its peer. A
// request that has lost its Upgrade header is answered with 426, and with the same in headers.

// Probe is what the server and the doctor have agreed on for one try.
type Probe struct {
	Nonce  string `json:"nonce"`  // names the probe
	Answer string `json:"answer"` // by which the server shows that it is the one
	// Hosts are Host headers by which the server is reached on its own machine. A stranger may send them from anywhere.
	Hosts []string `json:"hosts"`
}

// ProbeQuery is the parameter of the nonce, ProbeHeader has the answer where there is no WebSocket and ProbeHere the peer, and
// ProbeWord is what the doctor sends.
const (
	ProbeQuery  = "probe"
	ProbeHeader = "Hermes-Mobile-Probe"
	ProbeHere   = "Hermes-Mobile-Probe-Here"
	ProbeWord   = "go on"
)

// Line is what the server says, n being 1 or 2. After the first one the peer may follow.
func (p Probe) Line(n int) string { return fmt.Sprintf("hermes-mobile %s %d", p.Answer, n) }

// Prober tries the public address.
type Prober struct {
	// Patience is how long each step may take.
	Patience time.Duration
}

// Look goes the way of an app: to the path for devices at the public address.
func (pr Prober) Look(ctx context.Context, public, path string, p Probe) *Public {
	out := &Public{URL: public}
	base := strings.TrimRight(public, "/")
	out.Result, out.Detail = pr.try(ctx, base+path, p, &out.Hidden)
	if out.Result != PublicUnreachable {
		out.Open = pr.open(ctx, base, p.Hosts)
	}
	return out
}

// client makes requests to the public address, and follows no redirect. dialled, if it is not nil, notes the own end of each
// connection.
func client(dialled func(net.Addr)) *http.Client {
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		var d net.Dialer
		c, err := d.DialContext(ctx, network, addr)
		if err == nil && dialled != nil {
			dialled(c.LocalAddr())
		}
		return c, err
	}
	transport := &http.Transport{DialContext: dial, DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // the certificate is looked at elsewhere
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// try tries the way of an app. hidden is set where something in between takes the probe to the server as one of the server's own
// machine: the server sees another end of a connection than ours.
func (pr Prober) try(ctx context.Context, address string, p Probe, hidden *bool) (PublicResult, string) {
	var mu sync.Mutex
	var own []string
	client := client(func(a net.Addr) { mu.Lock(); own = append(own, a.String()); mu.Unlock() })
	defer client.CloseIdleConnections()
	step := func(f func(ctx context.Context) error) error {
		ctx, cancel := context.WithTimeout(ctx, pr.Patience)
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
			return PublicBuffers, "a plain request is answered, and the answer to an upgrade does not come"
		}
		return PublicUnreachable, reason(err)
	}
	defer ws.CloseNow()
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
		return PublicOther, "a WebSocket is opened by something else"
	case err != nil:
		return PublicBuffers, "a WebSocket is opened, and what the server says first does not arrive"
	}
	if step(func(ctx context.Context) error { return ws.Write(ctx, websocket.MessageText, []byte(ProbeWord)) }) != nil || read(p.Line(2)) != nil {
		return PublicBuffers, "a WebSocket is opened, and an answer over it does not come back"
	}
	return PublicGood, ""
}

var errOther = errors.New("somebody else")

// answers asks for a plain page of the same host.
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

// refusal says what it means that there was an answer, and no WebSocket.
func refusal(address string, resp *http.Response, p Probe) (PublicResult, string) {
	status := "it answers " + resp.Status
	switch {
	case resp.Header.Get(ProbeHeader) == p.Answer:
		return PublicNoUpgrade, "the request arrives without its Upgrade header"
	case resp.StatusCode == http.StatusBadGateway, resp.StatusCode == http.StatusServiceUnavailable, resp.StatusCode == http.StatusGatewayTimeout:
		return PublicUnreachable, status + ": the proxy does not reach the server"
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return redirected(address, resp, status)
	case resp.StatusCode == http.StatusUnauthorized, resp.StatusCode == http.StatusForbidden, resp.StatusCode == http.StatusProxyAuthRequired:
		return PublicLogin, status
	}
	return PublicOther, status + " and does not know this server's probe"
}

func redirected(address string, resp *http.Response, status string) (PublicResult, string) {
	from, _ := url.Parse(address)
	to, err := resp.Location()
	switch {
	case err != nil:
		return PublicOther, status
	case to.Hostname() == from.Hostname() && from.Scheme == "http" && to.Scheme == "https":
		return PublicOther, "it leads on to https: set MOBILE_PUBLIC_URL to https://" + to.Host
	}
	return PublicLogin, status + " and leads on to " + to.Scheme + "://" + to.Host + to.Path
}

// reason is the innermost cause of a failed connection, which is what a person understands.
func reason(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "nothing answers in time"
	}
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err.Error()
		}
		err = next
	}
}
