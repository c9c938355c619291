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

// maxAnswer is the largest JSON response, in bytes. The largest known one is a page of 500 messages
// with tool results; single events have reached 7 MB (doc/hermes/api.md §4.1).
const maxAnswer = 64 << 20

// conn is a verified route to the gateway of the profile, with what is needed to use it. It is
// immutable: a turn that holds one keeps its route, whatever the client selects later.
type conn struct {
	route      Route
	base       *url.URL
	http       *http.Client         // without overall timeout and redirects; TLS as in the profile
	authorize  func(*http.Request)  // adds the credential
	onResponse func(*http.Response) // stores refreshed cookies
	caps       *Capabilities

	signIn func(sent *http.Request) bool // signs in again after a 401 if possible; can be nil
	scrub  func(string) string           // removes secrets and hosts from texts of the gateway; can be nil
}

// scrubText removes secrets and hosts from a text of the gateway, which may quote the request.
func (cn *conn) scrubText(s string) string {
	if cn.scrub == nil {
		return s
	}
	return cn.scrub(s)
}

// endpoint returns an advertised operation with the {variables} of its path filled in and escaped.
// vars are pairs of name and value.
func (cn *conn) endpoint(operation string, vars []string) (Endpoint, error) {
	e, err := cn.caps.endpoint(operation)
	if err != nil {
		return e, err
	}
	// A gateway behind /p/<profile> advertises its paths with or without that prefix, which the
	// base address has already.
	if prefix := strings.TrimRight(cn.base.EscapedPath(), "/"); prefix != "" {
		e.Path = "/" + strings.TrimPrefix(strings.TrimPrefix(e.Path, prefix+"/"), "/")
	}
	for i := 0; i+1 < len(vars); i += 2 {
		variable, value := "{"+vars[i]+"}", vars[i+1]
		if !strings.Contains(e.Path, variable) {
			continue
		}
		if value == "" || value == "." || value == ".." { // this would be the path of another operation
			return e, fmt.Errorf("gateway: %s: %s must not be empty, \".\" or \"..\"", operation, vars[i])
		}
		e.Path = strings.ReplaceAll(e.Path, variable, url.PathEscape(value))
	}
	if strings.ContainsAny(e.Path, "{}") {
		return e, &UnavailableError{Operation: operation}
	}
	return e, nil
}

// request builds the request of an advertised operation; vars are those of endpoint. It encodes
// body as JSON, or sends none if body is nil. The API server needs a Content-Length, because it
// reports a chunked body over its limit as malformed JSON. It refuses every request with an Origin
// header (doc/hermes/api.md §1.2, §1.3).
func (cn *conn) request(ctx context.Context, operation string, vars []string, query url.Values, body any) (*http.Request, error) {
	e, err := cn.endpoint(operation, vars)
	if err != nil {
		return nil, err
	}
	return cn.requestPath(ctx, e.Method, e.Path, query, body)
}

// requestPath builds a request for an escaped path below the base address.
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

// send sends a request once. A response other than 2xx is an [*Error], and its body is closed. A
// failure below HTTP is a *networkError, which names neither address nor credential.
//
// A 401 means that the gateway did not process the request. So if signing in again works, send
// repeats the request.
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

// call sends a request and decodes the response into out, unless out is nil.
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

// refusal decodes the body of a response other than 2xx. Hermes has four forms (doc/hermes/api.md
// §1.1), other servers and proxies have more.
func refusal(resp *http.Response) *Error {
	e := &Error{Status: resp.StatusCode, RetryAfter: retryAfter(resp.Header.Get("Retry-After"), time.Now())}
	data, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // a body that breaks off is used as far as it came
	data = bytes.TrimSpace(bytes.TrimPrefix(data, byteOrderMark))
	if json.Valid(data) {
		e.Message, e.Code = findReason(data)
	} else if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind == "text/plain" && utf8.Valid(data) {
		e.Message = shorten(string(data))
	}
	return e
}

// retryAfter parses the Retry-After header, which holds seconds or a date. It returns 0 if there is
// none.
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now)).Truncate(time.Second)
	}
	return 0
}
