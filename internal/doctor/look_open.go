package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
)

// Opening is a part of the server that answers a stranger at the public address, and must not.
type Opening string

// The parts that are looked at.
const (
	OpenAdmin   Opening = "admin"   // the admin UI, or the admin socket behind a path
	OpenMetrics Opening = "metrics" // /metrics
	OpenHealth  Opening = "health"  // the details of /readyz
)

// openings says which path tells what, by what is in an answer that is too much.
var openings = []struct {
	path string
	part Opening
	told func(status int, body []byte) bool
}{
	{"/admin/api/session", OpenAdmin, func(_ int, body []byte) bool { a := text(body, "access"); return a == "session" || a == "here" }},
	{"/admin/api/status", OpenAdmin, isStatus},
	{"/status", OpenAdmin, isStatus},
	{"/metrics", OpenMetrics, func(status int, body []byte) bool {
		return status == http.StatusOK && bytes.Contains(body, []byte("\nhermes_mobile_"))
	}},
	{"/readyz", OpenHealth, func(_ int, body []byte) bool { return field(body, "details") == true }},
}

// isStatus reports whether this is what the admin interface says of the server.
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

// open asks for what is not for strangers, as one of them: without any proof, and by each Host that might make a difference.
func (pr Prober) open(ctx context.Context, base string, hosts []string) (list []Opening) {
	client := client(nil)
	defer client.CloseIdleConnections()
	for _, o := range openings {
		for _, host := range append([]string{""}, hosts...) {
			if !slices.Contains(list, o.part) && o.told(pr.ask(ctx, client, base+o.path, host)) {
				list = append(list, o.part)
			}
		}
	}
	return list
}

// ask gets a page. Whatever goes wrong, nothing is told.
func (pr Prober) ask(ctx context.Context, client *http.Client, address, host string) (status int, body []byte) {
	ctx, cancel := context.WithTimeout(ctx, pr.Patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, nil
	}
	req.Host = host // empty: that of the address
	req.Header.Set("X-Hermes-Mobile-Admin", "1")
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil
	}
	defer resp.Body.Close()
	body, _ = io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return resp.StatusCode, body
}
