package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
)

// Exposure is a part of the server that answers strangers at the public address but must not.
type Exposure string

// The parts that the probe checks.
const (
	ExposedAdmin   Exposure = "admin"   // the admin UI, or the admin socket behind a path
	ExposedMetrics Exposure = "metrics" // /metrics
	ExposedHealth  Exposure = "health"  // the details of /readyz
)

// exposures lists the probed paths, and how to recognize an answer that reveals too much.
var exposures = []struct {
	path string
	part Exposure
	open func(status int, body []byte) bool
}{
	{"/admin/api/session", ExposedAdmin, func(_ int, body []byte) bool { a := text(body, "access"); return a == "session" || a == "here" }},
	{"/admin/api/status", ExposedAdmin, isStatus},
	{"/status", ExposedAdmin, isStatus},
	{"/metrics", ExposedMetrics, func(status int, body []byte) bool {
		return status == http.StatusOK && bytes.Contains(body, []byte("\nhermes_mobile_"))
	}},
	{"/readyz", ExposedHealth, func(_ int, body []byte) bool { return field(body, "details") == true }},
}

// isStatus reports whether an answer is the server's status from the admin interface.
func isStatus(status int, body []byte) bool {
	return status == http.StatusOK && text(body, "version") != "" && text(body, "data") != "" && field(body, "health") != nil
}

func field(body []byte, name string) any {
	var o map[string]any
	_ = json.Unmarshal(body, &o)
	return o[name]
}

func text(body []byte, name string) string {
	s, _ := field(body, name).(string)
	return s
}

// exposed requests protected paths without credentials, with each Host header that might make a difference.
func (pr Prober) exposed(ctx context.Context, base string, hosts []string) (list []Exposure) {
	client := client(nil)
	defer client.CloseIdleConnections()
	for _, o := range exposures {
		for _, host := range append([]string{""}, hosts...) {
			if !slices.Contains(list, o.part) && o.open(pr.ask(ctx, client, base+o.path, host)) {
				list = append(list, o.part)
			}
		}
	}
	return list
}

// ask fetches a page. It returns nothing if the request fails.
func (pr Prober) ask(ctx context.Context, client *http.Client, address, host string) (status int, body []byte) {
	ctx, cancel := context.WithTimeout(ctx, pr.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, nil
	}
	req.Host = host // empty: the host of the address
	req.Header.Set("X-Hermes-Mobile-Admin", "1")
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil
	}
	defer resp.Body.Close()
	body, _ = io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return resp.StatusCode, body
}
