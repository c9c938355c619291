package apiproxy

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	"hermes-mobile/gateway"
)

// servedHere returns the operations of this proxy, by the names of the API server.
func servedHere() map[string]bool {
	all := map[string]bool{operation("GET", "/health"): true, operation("GET", "/v1/health"): true}
	for _, rt := range routes {
		all[operation(rt.method, rt.path)] = true
	}
	return all
}

// capabilities passes on the API server's capabilities, without those that the proxy doesn't offer.
func (f *Proxy) capabilities(w http.ResponseWriter, r *http.Request, c *call) {
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

func (f *Proxy) narrowed(all fields) ([]byte, error) {
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
		if f.o.Jobs {
			allowJobs(endpoints)
		}
		all["endpoints"] = endpoints.body()
	}
	return json.Marshal(all)
}

// jobPrefix is the path of scheduled jobs.
const jobPrefix = "/api/jobs"

// allowJobs adds the operations of jobs, which the API server has but doesn't advertise.
func allowJobs(endpoints fields) {
	for name, raw := range endpoints {
		var e struct{ Path string }
		if name == "jobs" || json.Unmarshal(raw, &e) == nil && strings.HasPrefix(e.Path, jobPrefix) {
			return // the API server advertises them
		}
	}
	for name, e := range gateway.JobEndpoints() {
		endpoints[name], _ = json.Marshal(e) // two strings
	}
}

// offeredFor is how long the list of advertised operations is cached.
const offeredFor = time.Minute

// offerLimit bounds the request for it.
const offerLimit = 5 * time.Second

// offered is the list that the API server advertised last.
type offered struct {
	mu    sync.Mutex
	until time.Time
	names map[string]bool // methods and paths, as operation writes them
}

// hasJob reports whether a route of jobs exists. It holds the lock during the request, so
// concurrent callers share one.
func (f *Proxy) hasJob(ctx context.Context, rt *route) bool {
	if f.o.Jobs {
		return true
	}
	f.offered.mu.Lock()
	defer f.offered.mu.Unlock()
	if now := f.o.Now(); now.After(f.offered.until) {
		ctx, cancel := context.WithTimeout(ctx, offerLimit)
		defer cancel()
		var c struct{ Endpoints map[string]json.RawMessage }
		if status, err := f.ask(ctx, "/v1/capabilities", "", &c); err != nil || status != http.StatusOK {
			return false
		}
		names := map[string]bool{}
		for _, raw := range c.Endpoints {
			var e struct{ Method, Path string }
			if json.Unmarshal(raw, &e) == nil {
				names[operation(e.Method, e.Path)] = true
			}
		}
		f.offered.names, f.offered.until = names, now.Add(offeredFor)
	}
	return f.offered.names[operation(rt.method, rt.path)]
}

// health serves /health to everybody: apps request it before the login.
func (f *Proxy) health(w http.ResponseWriter, r *http.Request) {
	f.forward(w, r, passage{path: "/health"})
}
