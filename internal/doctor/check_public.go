package doctor

import (
	"cmp"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"hermes-mobile/internal/cert"
	"hermes-mobile/internal/setup"
	"hermes-mobile/internal/strangers"
)

// soon is how long a certificate must still be valid.
const soon = 14 * 24 * time.Hour

// public checks how devices reach the server.
func (k *checker) public() {
	if k.Server != nil {
		for _, r := range k.Server.Forwarded {
			k.find("proxy_untrusted", refusedFrom(r.Addr), "If it is your proxy, add "+refusedFrom(r.Addr)+" to MOBILE_TRUSTED_PROXIES, then restart the server",
				"Requests with forwarding headers come from %s, which is not in MOBILE_TRUSTED_PROXIES (%d since %s). All clients behind it count as one address.", refusedFrom(r.Addr), r.Count, clock(r.First))
		}
	}
	if k.Server != nil {
		for _, d := range k.Server.Strangers {
			k.strangers(d)
		}
	}
	if p := k.Public; p != nil {
		text := sentence(p.URL + ": " + p.Detail)
		switch p.Result {
		case PublicUnreachable:
			k.find("public_unreachable", "", "Check the name, the port, the firewall, and the proxy. MOBILE_PUBLIC_URL must be the address that phones use", "The public address does not answer from here. %s", text)
		case PublicLogin:
			k.find("proxy_login", "", "Exclude the server's paths from the proxy's login", "A login page is in front of the server. %s", text)
		case PublicOther:
			k.find("proxy_other_server", "", "Correct MOBILE_PUBLIC_URL or the proxy's target. The proxy must forward the path unchanged", "A different server answers. %s", text)
		case PublicNoUpgrade:
			k.find("proxy_drops_upgrades", "", "Let the proxy forward WebSocket upgrades and identify the client (nginx: proxy_http_version 1.1, and the headers Upgrade, Connection, Host, X-Forwarded-For, and X-Forwarded-Proto)", "The proxy drops WebSocket upgrades, so no app can connect. %s", text)
		case PublicBuffers:
			k.find("proxy_buffers", "", "Turn off buffering for these paths (nginx: proxy_buffering off), and WebSocket inspection", "The proxy buffers WebSocket messages. %s", text)
		}
	}
	if k.Public != nil {
		k.exposed(k.Public)
	}
	if k.Server != nil && k.Server.TLS != nil {
		k.ownCertificate(*k.Server.TLS)
	}
	for _, c := range k.Certificates {
		k.certificate(c)
	}
}

// exposed checks what strangers can read at the public address.
func (k *checker) exposed(p *Public) {
	const stop = "Stop the proxy from adding credentials (a cookie, Authorization) and from forwarding requests to the admin socket"
	for _, o := range p.Exposed {
		switch o {
		case ExposedAdmin:
			k.find("admin_open", "", stop+". Then restart the server, which ends every login to the admin UI", "The admin UI is open to strangers at %s. Anyone who finds it controls this server and can approve what the agent asks for.", p.URL)
		case ExposedMetrics:
			k.find("metrics_open", "", stop, "/metrics is open to strangers at %s.", p.URL)
		case ExposedHealth:
			k.find("health_open", "", stop, "/readyz shows strangers at %s its details: paths, devices, and gateways.", p.URL)
		}
	}
	if p.Hidden {
		k.find("proxy_hides_client", "", "Let the proxy send Host, X-Forwarded-For, and X-Forwarded-Proto (nginx: see doc/operate.md; HAProxy: option forwardfor, and http-request set-header X-Forwarded-Proto https). A TCP forward can't do this: use an HTTP proxy, or let phones connect to the server directly with MOBILE_TLS",
			"Requests to %s look like requests from this machine: nothing identifies the client.", p.URL)
	}
}

// manyDrops is the number of closed connections that makes an issue: strangers try every public port.
const manyDrops = 100

// strangers reports connections that the server closed because of a limit before they authenticated.
func (k *checker) strangers(d strangers.Drops) {
	if d.Count < manyDrops {
		return
	}
	why, do := "too many were open at once", "If it has stopped, nothing. Otherwise find out where they come from, and block that address in your firewall"
	switch d.Reason {
	case strangers.Network:
		why = "too many from one address were open at once"
		do = "If " + refusedFrom(d.Addr) + " is your proxy, add it to MOBILE_TRUSTED_PROXIES and restart the server. Otherwise block it in your firewall"
	case strangers.Memory:
		why = "they used too much memory"
	}
	k.find("strangers_dropped", string(d.Reason), do, "The server closed %d connections without a valid token since %s, because %s. The last one came from %s.",
		d.Count, clock(d.First), why, refusedFrom(d.Addr))
}

// ownCertificate checks the server's own certificate. Its expiry is no issue while automatic renewal works.
func (k *checker) ownCertificate(s cert.State) {
	switch {
	case s.NotAfter.IsZero():
		why := "the CA has not answered yet."
		if s.LastError != "" {
			why = sentence(s.LastError)
		}
		k.find("certificate_missing", "", "Make the name resolve to this server and port 443 or 80 reachable, then send the server SIGHUP", "The server has no certificate yet: %s", why)
		return
	case s.LastError != "":
		k.find("certificate_not_renewed", "", "Fix that, then send the server SIGHUP", "Since %s the server can't renew the certificate: %s It is valid until %s UTC.", clock(s.LastErrorAt), sentence(s.LastError), s.NotAfter.UTC().Format(time.DateTime))
	case s.Mode != cert.Files && k.Now.Before(s.NotAfter):
		return
	}
	host := "the server"
	if len(s.Names) > 0 {
		host = s.Names[0]
	}
	k.certificate(Certificate{Host: host, Names: s.Names, To: s.NotAfter, Chain: s.Chain})
}

func (k *checker) certificate(c Certificate) {
	until := c.To.UTC().Format(time.DateTime) + " UTC"
	switch left := c.To.Sub(k.Now); {
	case left <= 0:
		k.find("certificate_expired", c.Host, "Renew it, and make sure that the proxy loads the new one", "The certificate for %s has expired: it was valid until %s.", c.Host, until)
	case k.Now.Before(c.From):
		k.find("certificate_expired", c.Host, "Check this machine's clock, then the certificate", "The certificate for %s is not valid yet: its validity begins at %s UTC.", c.Host, c.From.UTC().Format(time.DateTime))
	case left < soon:
		k.find("certificate_expires_soon", c.Host, "Renew it, and find out why the automatic renewal failed", "The certificate for %s expires in %s, at %s.", c.Host, stretch(left), until)
	}
	if c.BadName {
		names := strings.Join(c.Names, ", ")
		k.find("certificate_wrong_name", c.Host, "Get a certificate for that name, or correct MOBILE_PUBLIC_URL", "The certificate for %s is for another name: %s.", c.Host, cmp.Or(names, "none"))
	}
	for _, text := range c.Chain {
		k.find("certificate_chain", c.Host, "Put the server's certificate and the certificates that signed it into one file, in that order (such as fullchain.pem of certbot), and load it again", "The certificate chain for %s: %s.", c.Host, text)
	}
	if c.Unknown && k.Config.TLS != cert.Self { // phones pin that one
		k.find("certificate_untrusted", c.Host, "If it is your own CA, install its certificate on the phones", "This machine does not know the CA that signed the certificate for %s: %s.", c.Host, cmp.Or(c.Issuer, "nobody"))
	}
}

// speaks reports whether a gateway that dials a target must use TLS. On loopback it need not, and it does
// not trust the server's own CA.
func speaks(tls *cert.State, dialed target) bool {
	switch {
	case tls == nil || tls.Mode == cert.Self:
		return false
	case dialed.secure:
		return true
	}
	return !loopback(dialed.host)
}

func loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && addr.Unmap().IsLoopback()
}

// target is an address in comparable parts.
type target struct {
	host, port string
	secure     bool
	path       string
}

// parseTarget parses an address as a gateway does.
func parseTarget(raw string) (t target, ok bool) {
	u, err := url.Parse(strings.TrimSpace(raw))
	if err != nil || u.Hostname() == "" {
		return t, false
	}
	switch u.Scheme {
	case "https", "wss":
		t.secure = true
	case "http", "ws":
	default:
		return t, false
	}
	t.host, t.port = strings.ToLower(u.Hostname()), u.Port()
	if t.port == "" {
		t.port = map[bool]string{false: "80", true: "443"}[t.secure]
	}
	t.path = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/relay")
	return t, true
}

// own reports whether a host is this machine.
func own(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	if name, err := os.Hostname(); err == nil && strings.EqualFold(name, host) {
		return true
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	if addr.IsLoopback() || addr.IsUnspecified() {
		return true
	}
	list, _ := net.InterfaceAddrs()
	for _, a := range list {
		if n, ok := a.(*net.IPNet); ok {
			if ip, ok := netip.AddrFromSlice(n.IP); ok && ip.Unmap() == addr.Unmap() {
				return true
			}
		}
	}
	return false
}

// hears reports whether a server that listens on an address of this machine is reachable by host, another
// name of this machine.
func hears(listen, host string) bool {
	at, err := netip.ParseAddr(listen)
	if err != nil || at.IsUnspecified() {
		return true
	}
	to, err := netip.ParseAddr(host)
	if err != nil {
		return at.IsLoopback() == (host == "localhost" || strings.HasSuffix(host, ".localhost")) || !at.IsLoopback()
	}
	return at.Unmap() == to.Unmap() || to.IsUnspecified() && at.IsLoopback() || at.Is4() && to.Is4() && at.IsLoopback() && to.IsLoopback()
}

// address compares the address that Hermes dials with the addresses of the server.
func (k *checker) address(r relaySettings) {
	shown := setup.HideUser(r.url)
	dialed, ok := parseTarget(r.url)
	if !ok {
		k.find("relay_url_scheme", r.id, "Run hermes-mobile setup, then restart the gateway", "%s is %q, which is not an address: it must begin with http:// or https://.", r.where, shown)
		return
	}
	host, port := k.Config.Host, ""
	if k.Config.Port != 0 {
		port = strconv.Itoa(k.Config.Port)
	}
	var tls *cert.State
	if k.Server != nil {
		if h, p, err := net.SplitHostPort(k.Server.Address); err == nil {
			host, port = h, p
		}
		tls = k.Server.TLS
	}
	secure := speaks(tls, dialed)
	outside := []string{k.Config.PublicURL}
	if g, known := k.gateway(r.id); known {
		outside = append(outside, g.PublicURL)
	}
	local := own(dialed.host) && (tls == nil || tls.Mode != cert.Self || loopback(dialed.host))
	if local && (port == "" || dialed.port == port) && dialed.secure == secure && hears(host, dialed.host) && dialed.path == "" {
		return
	}
	var public []target
	for _, raw := range outside {
		if t, ok := parseTarget(raw); ok {
			if t == dialed {
				return
			}
			public = append(public, t)
		}
	}
	do := "Run hermes-mobile setup (behind a proxy, with --url), then restart the gateway"
	if local && port != "" && dialed.port == port && dialed.path == "" && hears(host, dialed.host) {
		k.find("relay_url_scheme", r.id, "Use "+scheme(secure)+" instead of "+scheme(dialed.secure)+", or run hermes-mobile setup. Then restart the gateway", "%s is %s, but the server there speaks %s.", r.where, shown, scheme(secure))
		return
	}
	for _, t := range public {
		if t.host == dialed.host && t.secure != dialed.secure && t.path == dialed.path {
			k.find("relay_url_scheme", r.id, "Use "+scheme(t.secure)+" instead of "+scheme(dialed.secure)+", then restart the gateway", "%s is %s, but MOBILE_PUBLIC_URL is %s.", r.where, shown, scheme(t.secure)+"://"+t.host)
			return
		}
	}
	if _, err := netip.ParseAddr(dialed.host); err != nil && !local && dialed.port == port && dialed.secure == secure && dialed.path == "" {
		return // a name that only others use for this machine, such as in a container
	}
	server := scheme(secure) + "://" + net.JoinHostPort(host, cmp.Or(port, "?"))
	if k.Config.PublicURL != "" {
		server += " and " + k.Config.PublicURL
	}
	what := "another host"
	switch {
	case dialed.path != "":
		what = "a path, " + dialed.path + ", without a relay"
	case local && port != "" && dialed.port != port:
		what = "another port"
	case local:
		what = "an address of this machine on which the server does not listen"
	}
	k.find("relay_url_address", r.id, do, "%s is %s, which is %s. The server is at %s.", r.where, shown, what, server)
}

func scheme(secure bool) string {
	if secure {
		return "https"
	}
	return "http"
}
