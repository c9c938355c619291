package front

import (
	"encoding/json"
	"net/http"
	"strings"
)

// servedHere returns the operations that are here, by what the API server would call them.
func servedHere() map[string]bool {
	all := map[string]bool{operation("GET", "/health"): true, operation("GET", "/v1/health"): true}
	for _, rt := range routes {
		all[operation(rt.method, rt.path)] = true
	}
	return all
}

// capabilities passes on what the API server can do, without what is not offered here.
func (f *Front) capabilities(w http.ResponseWriter, r *http.Request, c *call) {
	f.forward(w, r, c.passage(func(resp *http.Response) error {
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
		all["auth"] = json.RawMessage(`{"type":"cookie","required":true,"login":{"method":"POST","path":"/auth/password-login"}}`)
		if c.key != "" {
			all["auth"] = json.RawMessage(`{"type":"bearer","required":true}`)
		}
		body, err = f.narrowed(all)
		setBody(resp, body)
		return err
	}))
}

func (f *Front) narrowed(all fields) ([]byte, error) {
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
			var e struct{ Method, Path string }
			if json.Unmarshal(raw, &e) != nil || !f.served[operation(e.Method, e.Path)] {
				delete(endpoints, name)
			}
		}
		all["endpoints"] = endpoints.body()
	}
	return json.Marshal(all)
}

// health is open to all: apps ask it before they log in.
func (f *Front) health(w http.ResponseWriter, r *http.Request) {
	f.forward(w, r, passage{path: "/health"})
}
