package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// maxAnswer is the most bytes that are read of one JSON answer. A page of 500 messages with tool results is the largest
// that occurs; api-facts §4.1 has single frames of 7 MB.
const maxAnswer = 64 << 20

// conn is a route that was proven to lead to the gateway of the profile, with what is needed to use it. It is immutable, so
// a turn that holds one keeps to its route whatever the client decides meanwhile.
type conn struct {
	route      Route
	base       *url.URL
	http       *http.Client         // no overall timeout, redirects off, TLS as the profile asks
	authorize  func(*http.Request)  // adds the credential
	onResponse func(*http.Response) // takes refreshed cookies
	caps       *Capabilities

	signIn func(sent *http.Request) bool // after a 401: signs in anew where that is possible; may be nil
	scrub  func(string) string           // takes secrets and hosts out of what the gateway says; may be nil
}

// clean takes out of a text of the gateway's what must not be shown: it may quote what it was sent.
func (cn *conn) scrubText(s string) string {
	if cn.scrub == nil {
		return s
	}
	return cn.scrub(s)
}

// endpoint is an advertised operation with the {variables} of its path filled and escaped. vars are pairs of name and value.
func (cn *conn) endpoint(operation string, vars []string) (Endpoint, error) {
	e, err := cn.caps.endpoint(operation)
	if err != nil {
		return e, err
	}
	// A gateway behind /p/<profile> may advertise paths with that part or without it; the base address has it already.
	if prefix := strings.TrimRight(cn.base.EscapedPath(), "/"); prefix != "" {
		e.Path = "/" + strings.TrimPrefix(strings.TrimPrefix(e.Path, prefix+"/"), "/")
	}
	for i := 0; i+1 < len(vars); i += 2 {
		variable, value := "{"+vars[i]+"}", vars[i+1]
		if !strings.Contains(e.Path, variable) {
			continue
		}
		if value == "" || value == "." || value == ".." { // another operation's path
			return e, fmt.Errorf("gateway: %s: %s must not be empty, \".\" or \"..\"", operation, vars[i])
		}
		e.Path = strings.ReplaceAll(e.Path, variable, url.PathEscape(value))
	}
	if strings.ContainsAny(e.Path, "{}") {
		return e, &UnavailableError{Operation: operation}
	}
	return e, nil
}

// request builds the call of an advertised operation, whose vars are those of endpoint. body is marshalled to JSON; nil is no
// body. The API server wants a length (a chunked body over its limit is taken for bad JSON) and refuses any Origin
// (api-facts §1.2, §1.3).
func (cn *conn) request(ctx context.Context, operation string, vars []string, query url.Values, body any) (*http.Request, error) {
	e, err := cn.endpoint(operation, vars)
	if err != nil {
		return nil, err
	}
	return cn.requestPath(ctx, e.Method, e.Path, query, body)
}

// requestPath builds a call of an escaped path below the base address.
func (cn *conn) requestPath(ctx context.Context, method, path string, query url.Values, body any) (*http.Request, error) {
	address := strings.TrimSuffix(cn.base.String(), "/") + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	var reader io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("gateway: encode request: %w", err)
		}
		reader = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, address, reader)
	if err != nil {
		return nil, errMalformedAddress
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", userAgent)
	cn.authorize(req)
	return req, nil
}

// send does a request once. An answer other than 2xx is an [*Error] and its body is closed. Errors of the network name
// neither address nor credential: they are a [*linkError]. A 401 means that nothing was done with the request, so where a
// login can be repeated it is sent once more after that.
func (cn *conn) send(req *http.Request) (*http.Response, error) {
	resp, err := cn.do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusUnauthorized && cn.signIn != nil && (req.Body == nil || req.GetBody != nil) && cn.signIn(req) {
		resp.Body.Close()
		again := req.Clone(req.Context())
		if req.GetBody != nil {
			if again.Body, err = req.GetBody(); err != nil {
				return nil, fmt.Errorf("gateway: encode request: %w", err)
			}
		}
		cn.authorize(again)
		if resp, err = cn.do(again); err != nil {
			return nil, err
		}
	}
	if resp.StatusCode/100 != 2 {
		defer resp.Body.Close()
		refused := refusal(resp)
		refused.Message, refused.Code = cn.scrubText(refused.Message), cn.scrubText(refused.Code)
		return nil, refused
	}
	return resp, nil
}

func (cn *conn) do(req *http.Request) (*http.Response, error) {
	resp, err := cn.http.Do(req)
	if err != nil {
		return nil, &networkError{cause: err}
	}
	cn.onResponse(resp)
	return resp, nil
}

// call does a request and decodes the answer into out, where out is not nil.
func (cn *conn) call(req *http.Request, out any) error {
	resp, err := cn.send(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return &networkError{cause: err}
	}
	if len(data) > maxAnswer {
		return errResponseTooLarge
	}
	if out == nil {
		return nil
	}
	if json.Unmarshal(data, out) != nil {
		return errUnreadable
	}
	return nil
}

// refusal reads the body of an answer other than 2xx: Hermes has four shapes (api-facts §1.1), other servers and proxies more.
func refusal(resp *http.Response) *Error {
	e := &Error{Status: resp.StatusCode, RetryAfter: retryAfter(resp.Header.Get("Retry-After"), time.Now())}
	data, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // what did not arrive is not said
	data = bytes.TrimSpace(bytes.TrimPrefix(data, byteOrderMark))
	if json.Valid(data) {
		e.Message, e.Code = findReason(data)
	} else if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind == "text/plain" && utf8.Valid(data) {
		e.Message = shorten(string(data))
	}
	return e
}

// retryAfter reads the header of that name, which has seconds or a date; 0 is none.
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now)).Truncate(time.Second)
	}
	return 0
}
