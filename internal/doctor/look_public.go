package doctor

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
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
// A request that has lost its Upgrade header is answered with 426 and the answer in a header.

// Probe is what the server and the doctor have agreed on for one try.
type Probe struct {
	Nonce  string `json:"nonce"`  // names the probe
	Answer string `json:"answer"` // by which the server shows that it is the one
}

// ProbeQuery is the parameter of the nonce, ProbeHeader has the answer where there is no WebSocket, and ProbeWord is what the
// doctor sends.
const (
	ProbeQuery  = "probe"
	ProbeHeader = "Hermes-Mobile-Probe"
	ProbeWord   = "go on"
)

// Line is what the server says, n being 1 or 2.
func (p Probe) Line(n int) string { return fmt.Sprintf("hermes-mobile %s %d", p.Answer, n) }

// Prober tries the public address.
type Prober struct {
	// Patience is how long each step may take.
	Patience time.Duration
}

// Look goes the way of an app: to the path for devices at the public address.
func (pr Prober) Look(ctx context.Context, public, path string, p Probe) *Public {
	out := &Public{URL: public}
	out.Result, out.Detail = pr.try(ctx, strings.TrimRight(public, "/")+path, p)
	return out
}

func (pr Prober) try(ctx context.Context, address string, p Probe) (PublicResult, string) {
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // the certificate is looked at elsewhere
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
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
	if err != nil && resp != nil {
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
			if err == nil && string(text) != want {
				err = errOther
			}
			return err
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
