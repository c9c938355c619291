package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Endpoint is one advertised operation: a method and an absolute path, which may hold variables such as {session_id}.
type Endpoint struct {
	Method string `json:"method"`
	Path   string `json:"path"`
}

// Capabilities are what a gateway says of itself in GET /v1/capabilities (api-facts §2). They are read tolerantly: what is
// malformed counts as not advertised. Immutable.
type Capabilities struct {
	Platform string // hermes-agent
	Model    string // the one model id of the gateway: hermes-agent or the name of its profile
	Version  string // of GET /health, as the route was proven with; may be empty
	Auth     string // bearer
	ID       string // instance_id, an opaque id of the gateway; empty where it offers none

	features  map[string]json.RawMessage
	endpoints map[string]Endpoint

	jobsAllowed bool // the endpoints of jobs are not advertised: the owner allows them ([Profile].Jobs)
}

// ParseCapabilities reads the body of GET /v1/capabilities. It fails only where that is not a JSON object.
func parseCapabilities(body []byte) (*Capabilities, error) {
	var raw struct {
		Platform  json.RawMessage `json:"platform"`
		Model     json.RawMessage `json:"model"`
		Auth      json.RawMessage `json:"auth"`
		ID        json.RawMessage `json:"instance_id"`
		Features  json.RawMessage `json:"features"`
		Endpoints json.RawMessage `json:"endpoints"`
	}
	if !bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")) {
		return nil, errors.New("gateway: capabilities are not a JSON object")
	}
	if err := json.Unmarshal(body, &raw); err != nil {
		return nil, fmt.Errorf("gateway: malformed capabilities: %w", err)
	}
	caps := &Capabilities{Platform: text(raw.Platform), Model: text(raw.Model), ID: text(raw.ID), features: map[string]json.RawMessage{}, endpoints: map[string]Endpoint{}}
	var auth struct{ Type json.RawMessage }
	if json.Unmarshal(raw.Auth, &auth) == nil {
		caps.Auth = text(auth.Type)
	}
	var features map[string]json.RawMessage
	if json.Unmarshal(raw.Features, &features) == nil && features != nil {
		caps.features = features
	}
	var endpoints map[string]json.RawMessage
	if json.Unmarshal(raw.Endpoints, &endpoints) == nil {
		for name, value := range endpoints {
			var endpoint Endpoint
			if json.Unmarshal(value, &endpoint) == nil && endpoint.valid() {
				caps.endpoints[name] = endpoint
			}
		}
	}
	return caps, nil
}

// valid keeps a gateway from naming another host, a query or a method of its own.
func (e Endpoint) valid() bool {
	switch e.Method {
	case "GET", "POST", "PUT", "PATCH", "DELETE":
	default:
		return false
	}
	return strings.HasPrefix(e.Path, "/") && !strings.HasPrefix(e.Path, "//") && !strings.ContainsAny(e.Path, "?#\\ \t\r\n") && !strings.Contains(e.Path, "..")
}

// text is a JSON string, or nothing.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// Feature reports whether a feature is on: the boolean true, a string that is not empty, or an object whose "supported" or
// "enabled" is true (api-facts §2: all three occur).
func (c *Capabilities) Feature(name string) bool {
	var value any
	if c == nil || json.Unmarshal(c.features[name], &value) != nil {
		return false
	}
	switch value := value.(type) {
	case bool:
		return value
	case string:
		return value != ""
	case map[string]any:
		return value["supported"] == true || value["enabled"] == true
	}
	return false
}

// Endpoint returns the advertised endpoint of an operation. Without one the error is an [*UnavailableError], and so it is where
// the gateway advertises it with another method, or says that the feature it belongs to is off.
func (c *Capabilities) endpoint(operation string) (Endpoint, error) {
	if c != nil {
		known := operations[operation]
		endpoint, ok := c.endpoints[operation]
		if ok && (known.method == "" || known.method == endpoint.Method) && !c.denies(known.feature) {
			return endpoint, nil
		}
	}
	return Endpoint{}, &UnavailableError{Operation: operation}
}

// denies reports whether the gateway lists a feature, and not as on.
func (c *Capabilities) denies(feature string) bool {
	_, listed := c.features[feature]
	return feature != "" && listed && !c.Feature(feature)
}

// Offers reports whether an operation is advertised.
func (c *Capabilities) Offers(operation string) bool {
	_, err := c.endpoint(operation)
	return err == nil
}

// streams is Offers for what a turn stands on: its feature has to be on, and not only not off.
func (c *Capabilities) streams(operation string) bool {
	return c.Offers(operation) && c.Feature(operations[operation].feature)
}

// Endpoints lists the operations that are advertised, sorted.
func (c *Capabilities) Endpoints() []string {
	if c == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(c.endpoints))
}

// Features lists the features that are on, sorted.
func (c *Capabilities) Features() []string {
	if c == nil {
		return nil
	}
	return slices.Sorted(func(yield func(string) bool) {
		for name := range c.features {
			if c.Feature(name) && !yield(name) {
				return
			}
		}
	})
}
