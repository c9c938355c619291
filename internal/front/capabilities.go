package front

import (
	"encoding/json"
	"net/http"
	"strings"
)

// offered begins the paths that are served here.
var offered = []string{"/v1/models", "/v1/capabilities", "/v1/skills", "/v1/toolsets", "/v1/chat/completions", "/v1/responses", "/v1/runs",
	"/api/sessions", "/api/jobs", "/api/model/options"}

func isOffered(path string) bool {
	for _, p := range offered {
		if path == p || strings.HasPrefix(path, p+"/") {
			return true
		}
	}
	return path == "/health" || path == "/v1/health"
}

// capabilities passes on what the API server can do, without what is not offered here.
func (f *Front) capabilities(w http.ResponseWriter, r *http.Request, c caller, _ []byte) {
	f.forward(w, r, passage{path: "/v1/capabilities", caller: c, done: func(resp *http.Response) error {
		if resp.StatusCode != http.StatusOK {
			return nil
		}
		body, err := whole(resp)
		if err != nil {
			return err
		}
		var all fields
		if err := json.Unmarshal(body, &all); err != nil {
			return err
		}
		body, err = narrowed(all)
		setBody(resp, body)
		return err
	}})
}

func narrowed(all fields) ([]byte, error) {
	if features, ok := object(all["features"]); ok {
		for name := range features {
			if strings.HasPrefix(name, "browser") || strings.HasPrefix(name, "artifact") || strings.HasPrefix(name, "platform") || strings.HasPrefix(name, "room") {
				delete(features, name)
			}
		}
		all["features"] = features.body()
	}
	if endpoints, ok := object(all["endpoints"]); ok {
		for name, raw := range endpoints {
			var e struct{ Path string }
			if json.Unmarshal(raw, &e) != nil || !isOffered(e.Path) {
				delete(endpoints, name)
			}
		}
		all["endpoints"] = endpoints.body()
	}
	all["auth"] = json.RawMessage(`{"type":"cookie","required":true,"login":{"method":"POST","path":"/auth/password-login"}}`)
	return json.Marshal(all)
}

// health is open to all: apps ask it before they log in.
func (f *Front) health(w http.ResponseWriter, r *http.Request) {
	f.forward(w, r, passage{path: "/health"})
}
