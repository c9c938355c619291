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

// Endpoint is the HTTP method and the absolute path of an operation. The path can contain variables
// such as {session_id}.
type Endpoint struct {
	Method string `json:"method"`
	Path   string `json:"path"`
}

// Capabilities are what a gateway advertises in GET /v1/capabilities (doc/hermes/api.md §2).
// Malformed parts count as not advertised. A Capabilities is immutable and safe for concurrent use;
// the methods also work on nil, which advertises nothing.
type Capabilities struct {
	Platform string // hermes-agent
	Model    string // the only model ID of the gateway: hermes-agent or the name of its profile
	Version  string // from GET /health when the route was verified; can be empty
	Auth     string // type of credential, such as bearer
	ID       string // instance_id, an opaque ID of the gateway; empty if it sends none

	features  map[string]json.RawMessage
	endpoints map[string]Endpoint

	jobsAllowed bool // the job endpoints are not advertised: [Profile].Jobs allows them
}

// parseCapabilities decodes the body of GET /v1/capabilities. It fails only if that is not a JSON
// object.
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

// valid rejects endpoints with another host, a query or an unusual method.
func (e Endpoint) valid() bool {
	switch e.Method {
	case "GET", "POST", "PUT", "PATCH", "DELETE":
	default:
		return false
	}
	return strings.HasPrefix(e.Path, "/") && !strings.HasPrefix(e.Path, "//") && !strings.ContainsAny(e.Path, "?#\\ \t\r\n") && !strings.Contains(e.Path, "..")
}

// text returns the value of a JSON string, or "" if raw is anything else.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// Feature reports whether a feature is on: its value is true, a non-empty string, or an object
// whose "supported" or "enabled" is true. Gateways use all three forms (doc/hermes/api.md §2).
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

// endpoint returns the advertised endpoint of an operation. The error is an [*UnavailableError] if
// the gateway advertises no endpoint, if its method is not the expected one, or if the gateway
// lists the operation's feature as off.
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

// denies reports whether the gateway lists a feature as off.
func (c *Capabilities) denies(feature string) bool {
	_, listed := c.features[feature]
	return feature != "" && listed && !c.Feature(feature)
}

// Offers reports whether the gateway advertises an operation, such as session_fork.
func (c *Capabilities) Offers(operation string) bool {
	_, err := c.endpoint(operation)
	return err == nil
}

// streams is Offers for the operations that turns need: their feature must be listed as on.
func (c *Capabilities) streams(operation string) bool {
	return c.Offers(operation) && c.Feature(operations[operation].feature)
}

// Endpoints returns the names of the advertised operations, sorted.
func (c *Capabilities) Endpoints() []string {
	if c == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(c.endpoints))
}

// Features returns the names of the features that are on, sorted.
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
