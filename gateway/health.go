package gateway

import (
	"context"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
)

// healthRequest builds the health request, which needs no credential and must not carry one
// (doc/hermes/api.md §1).
func healthRequest(ctx context.Context, base *url.URL) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(base.String(), "/")+"/health", nil)
	if err != nil {
		return nil, errMalformedAddress
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", userAgent)
	return req, nil
}

// health checks that a Hermes gateway answers at t, and returns its version.
func (t *target) health(ctx context.Context) (version string, err error) {
	req, err := healthRequest(ctx, t.base)
	if err != nil {
		return "", err
	}
	resp, err := t.http.Do(req)
	if err != nil {
		return "", &networkError{cause: err}
	}
	defer resp.Body.Close()
	return readHealth(resp)
}

// readHealth checks the response. A captive portal answers every request with a page or a redirect,
// so only the exact form counts.
func readHealth(resp *http.Response) (version string, err error) {
	if resp.StatusCode/100 == 3 {
		return "", errRedirect
	}
	media, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil || media != "application/json" || resp.StatusCode != http.StatusOK {
		return "", errNotGateway
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return "", &networkError{cause: err}
	}
	var body struct{ Status, Platform, Version string }
	if json.Unmarshal(data, &body) != nil || body.Status != "ok" || body.Platform != "hermes-agent" {
		return "", errNotGateway
	}
	if version, err = plainVersion(body.Version); err != nil {
		return "", errNotGateway
	}
	return version, nil
}
