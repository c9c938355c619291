package setup

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// Variables of Hermes' API server.
const (
	envAPIOn   = "API_SERVER_ENABLED"
	envAPIKey  = "API_SERVER_KEY"
	envAPIHost = "API_SERVER_HOST"
	envAPIPort = "API_SERVER_PORT"
)

// stepAPI marks a run that enabled the API server.
const stepAPI = "API server"

// minAPIKey is the shortest key with which Hermes starts its API server.
const minAPIKey = 16

// API describes the API server of a Hermes home for this server's settings.
type API struct {
	URL      string `json:"url"`
	KeyName  string `json:"key_name"`
	KeyPlace string `json:"key_file"`
	// FromHere reports that a server on this machine finds the key by itself.
	FromHere bool `json:"key_found_by_itself"`
}

// NewAPIKey creates a key for the API server.
func NewAPIKey() string {
	var b [32]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// NewAPIPlan plans how to enable the API server of a home. It keeps existing settings, and writes key only if
// the home has none. With an empty key, the plan is only for display.
func NewAPIPlan(home Home, key string) (*Plan, API, error) {
	env, config, err := readBoth(home)
	if err != nil {
		return nil, API{}, err
	}
	d, err := parse(config.Before)
	if err != nil {
		return nil, API{}, err
	}
	if err := d.readable(Version{}, false); err != nil {
		return nil, API{}, err
	}
	p := &Plan{Options: Options{Home: home, Secret: key}, step: stepAPI, Files: []*File{env}}
	api := API{KeyName: envAPIKey, KeyPlace: env.Path, FromHere: true}
	inConfig := func(name string) string {
		v, _ := lookup(d.value, []string{"platforms", "api_server", name})
		if e, ok := lookup(d.value, []string{"platforms", "api_server", "extra", name}); ok {
			v = e
		}
		if v == nil {
			return ""
		}
		return strings.TrimSpace(fmt.Sprint(v))
	}

	there, hasKey := getenv(env.Before, envAPIKey)
	if !hasKey {
		if there = inConfig("key"); there != "" {
			api.KeyName, api.KeyPlace, api.FromHere = "platforms.api_server.extra.key", config.Path, false
		}
	}
	switch {
	case there == "":
		if err := env.set(envAPIKey, key); err != nil {
			return nil, api, err
		}
	case len(there) < minAPIKey:
		return nil, api, fmt.Errorf("%s in %s has %d characters, but Hermes requires at least %d: remove that line and run this again", api.KeyName, api.KeyPlace, len(there), minAPIKey)
	}
	if on, _ := getenv(env.Before, envAPIOn); !yes(on) {
		if err := env.set(envAPIOn, "true"); err != nil {
			return nil, api, err
		}
	}
	p.protect(env)
	off := []string{"platforms", "api_server", "enabled"}
	if on, set := lookup(d.value, off); set && !yes(fmt.Sprint(on)) {
		p.Files = append(p.Files, config)
		if err := p.apply(config, []want{{path: off, text: "true"}}); err != nil {
			return nil, api, err
		}
	}

	host, _ := getenv(env.Before, envAPIHost)
	port, _ := getenv(env.Before, envAPIPort)
	api.URL = apiURL(cmp.Or(host, inConfig("host")), cmp.Or(port, inConfig("port")))
	return p, api, nil
}

// apiURL returns the address of an API server with these settings, from its own machine.
func apiURL(host, port string) string {
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		port = "8642"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// yes reports whether Hermes reads a value as yes.
func yes(s string) bool {
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "true", "1", "yes", "on":
		return true
	}
	return false
}
