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

// healthRequest asks what needs no credential and must get none (api-facts §1).
func healthRequest(ctx context.Context, base *url.URL) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(base.String(), "/")+"/health", nil)
	if err != nil {
		return nil, errMalformedAddress
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", userAgent)
	return req, nil
}

// health asks an address whether a Hermes gateway is there, and of which version.
func (l *target) health(ctx context.Context) (version string, err error) {
	req, err := healthRequest(ctx, l.base)
	if err != nil {
		return "", err
	}
	resp, err := l.http.Do(req)
	if err != nil {
		return "", &networkError{cause: err}
	}
	defer resp.Body.Close()
	return readHealth(resp)
}

// readHealth reads the answer. A captive portal answers everything with a page or a redirect, so only the exact form counts.
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
