package gateway

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strings"
)

// parseAddress parses the address of a gateway into its canonical form: scheme and host in lower
// case, no default port, no trailing slash. It keeps any other path, for gateways behind a proxy.
// For OpenAI servers it removes a final "/v1", which their documentation counts as part of the base
// URL.
func parseAddress(raw string, kind ServerKind) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil: // err would quote the address
		return nil, errors.New("must be a URL")
	case u.Scheme == "" || u.Host == "" || u.Opaque != "":
		return nil, errors.New("must be a full URL, such as https://gateway.example.org")
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, errors.New("must begin with https://")
	case u.User != nil:
		return nil, errors.New("must not contain a user name or password; set them as credentials")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, errors.New("must not have a query or a fragment")
	case u.Hostname() == "" || strings.ContainsAny(u.Hostname(), " \t\r\n"):
		return nil, errors.New("must have a host")
	case strings.Contains(u.EscapedPath(), "..") || strings.Contains(u.EscapedPath(), "//"):
		return nil, errors.New("has an invalid path")
	}
	host, port := strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")), u.Port()
	if port == "" && strings.HasSuffix(u.Host, ":") || port == "443" && u.Scheme == "https" || port == "80" && u.Scheme == "http" {
		port = ""
	}
	clean := &url.URL{Scheme: u.Scheme, Host: host}
	if strings.Contains(host, ":") {
		clean.Host = "[" + host + "]"
	}
	if port != "" {
		clean.Host = net.JoinHostPort(host, port)
	}
	path := strings.TrimRight(u.EscapedPath(), "/")
	if kind == OpenAI {
		path = strings.TrimSuffix(path, "/v1")
	}
	if clean.Path, err = url.PathUnescape(path); err != nil {
		return nil, errors.New("has an invalid path")
	}
	clean.RawPath = path
	return clean, nil
}

// checkPlain reports whether the profile may use an address without TLS: on this machine, or with
// insecure in a private network. A host name can resolve to any address, so the client checks the
// peer again when it connects (see plainAllowed).
func checkPlain(u *url.URL, insecure bool) error {
	if u.Scheme != "http" {
		return nil
	}
	host := u.Hostname()
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return nil
	}
	ip, err := netip.ParseAddr(host)
	switch {
	case err != nil && insecure, err == nil && plainAllowed(ip, insecure):
		return nil
	case insecure:
		return errors.New("must begin with https://: plain http is allowed only on this machine and in private networks")
	default:
		return errors.New("must begin with https://, or plain http must be allowed for private networks")
	}
}

// shared is the shared address space of RFC 6598, which mesh VPNs use.
var shared = netip.MustParsePrefix("100.64.0.0/10")

// plainAllowed reports whether the client may talk to a peer without TLS.
func plainAllowed(ip netip.Addr, insecure bool) bool {
	ip = ip.Unmap()
	return ip.IsLoopback() || insecure && (ip.IsPrivate() || ip.IsLinkLocalUnicast() || shared.Contains(ip))
}
