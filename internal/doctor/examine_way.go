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

// soon is how long a certificate must be good for.
const soon = 14 * 24 * time.Hour

// way looks at how devices come in.
func (e *examination) way() {
	if e.Server != nil {
		for _, r := range e.Server.Forwarded {
			e.find("proxy_untrusted", refusedFrom(r.Addr), "If it is your proxy: MOBILE_TRUSTED_PROXIES="+refusedFrom(r.Addr)+" beside those that are set, then restart the server",
				"Requests with forwarding headers come from %s, which is not in MOBILE_TRUSTED_PROXIES (%d since %s): all who come that way count as one address.", refusedFrom(r.Addr), r.Count, clock(r.First))
		}
	}
	if e.Server != nil {
		for _, d := range e.Server.Strangers {
			e.strangers(d)
		}
	}
	if p := e.Public; p != nil {
		text := sentence(p.URL + ": " + p.Detail)
		switch p.Result {
		case PublicUnreachable:
			e.find("public_unreachable", "", "Look at the name, the port, the firewall and the proxy; MOBILE_PUBLIC_URL must be the address that phones use", "The public address does not answer as seen from here. %s", text)
		case PublicLogin:
			e.find("proxy_login", "", "Leave the server's paths out of the proxy's login", "A login stands in front of the server. %s", text)
		case PublicOther:
			e.find("proxy_other_server", "", "Correct MOBILE_PUBLIC_URL or the target of the proxy, which has to pass the path on as it is", "Something else than this server answers. %s", text)
		case PublicNoUpgrade:
			e.find("proxy_drops_upgrades", "", "Let the proxy pass WebSocket upgrades on, and say who asks (nginx: proxy_http_version 1.1, and the headers Upgrade, Connection, Host, X-Forwarded-For and X-Forwarded-Proto)", "The proxy drops WebSocket upgrades, so no app can connect. %s", text)
		case PublicBuffers:
			e.find("proxy_buffers", "", "Switch buffering off for these paths (nginx: proxy_buffering off), and inspection of WebSockets", "The proxy holds back what is sent. %s", text)
		}
	}
	if e.Public != nil {
		e.exposed(e.Public)
	}
	if e.Server != nil && e.Server.TLS != nil {
		e.ownCertificate(*e.Server.TLS)
	}
	for _, c := range e.Certificates {
		e.certificate(c)
	}
}

// exposed looks at what strangers get at the public address.
func (e *examination) exposed(p *Public) {
	const stop = "Stop the proxy from sending credentials of its own (a cookie, Authorization) and from passing requests to the admin socket"
	for _, o := range p.Open {
		switch o {
		case OpenAdmin:
			e.find("admin_open", "", stop+"; then restart the server, which ends every login to the admin UI", "The admin UI answers strangers at %s. Whoever finds it owns this server and can approve what the agent asks for.", p.URL)
		case OpenMetrics:
			e.find("metrics_open", "", stop, "/metrics answers strangers at %s.", p.URL)
		case OpenHealth:
			e.find("health_open", "", stop, "/readyz tells strangers at %s its details: paths, devices and gateways.", p.URL)
		}
	}
	if p.Hidden {
		e.find("proxy_hides_client", "", "Let the proxy send Host, X-Forwarded-For and X-Forwarded-Proto (nginx: the recipe of doc/operate.md; HAProxy: option forwardfor, and http-request set-header X-Forwarded-Proto https). A TCP forward cannot: use an HTTP proxy, or let phones reach the server itself with MOBILE_TLS",
			"Requests to %s reach the server as if programs on this machine had made them: nothing says who asks.", p.URL)
	}
}

// manyDrops is how many connections must be closed before it is worth a finding: a port that everybody reaches is tried by many.
const manyDrops = 100

// strangers tells of connections that were closed because of a limit before they had authenticated.
func (e *examination) strangers(d strangers.Drops) {
	if d.Count < manyDrops {
		return
	}
	why, do := "too many were open at once", "Nothing, if it has passed. Otherwise find out where they come from, and block that in your firewall"
	switch d.Reason {
	case strangers.Network:
		why = "too many of one address were open at once"
		do = "If " + refusedFrom(d.Addr) + " is your proxy: add it to MOBILE_TRUSTED_PROXIES and restart the server. Otherwise block it in your firewall"
	case strangers.Memory:
		why = "they took too much memory"
	}
	e.find("strangers_dropped", string(d.Reason), do, "%d connections were closed before they had sent a valid token, since %s, because %s. The last one came from %s.",
		d.Count, clock(d.First), why, refusedFrom(d.Addr))
}

// ownCertificate looks at the certificate of the server itself. One that is renewed by itself is no matter while that works.
func (e *examination) ownCertificate(s cert.State) {
	switch {
	case s.NotAfter.IsZero():
		why := "the authority has not answered yet."
		if s.LastError != "" {
			why = sentence(s.LastError)
		}
		e.find("certificate_missing", "", "Have the name lead here and port 443 or 80 of it reach the server; then send the server SIGHUP", "The server has no certificate yet: %s", why)
		return
	case s.LastError != "":
		e.find("certificate_not_renewed", "", "Mend that, then send the server SIGHUP", "Since %s the certificate cannot be renewed: %s It is good until %s UTC.", clock(s.LastErrorAt), sentence(s.LastError), s.NotAfter.UTC().Format(time.DateTime))
	case s.Mode != cert.Files && e.Now.Before(s.NotAfter):
		return
	}
	host := "the server"
	if len(s.Names) > 0 {
		host = s.Names[0]
	}
	e.certificate(Certificate{Host: host, Names: s.Names, To: s.NotAfter, Chain: s.Chain})
}

func (e *examination) certificate(c Certificate) {
	until := c.To.UTC().Format(time.DateTime) + " UTC"
	switch left := c.To.Sub(e.Now); {
	case left <= 0:
		e.find("certificate_expired", c.Host, "Renew it, and have the proxy load the new one", "The certificate of %s has expired: it was good until %s.", c.Host, until)
	case e.Now.Before(c.From):
		e.find("certificate_expired", c.Host, "Look at this machine's clock, and then at the certificate", "The certificate of %s is not good yet: it begins at %s UTC.", c.Host, c.From.UTC().Format(time.DateTime))
	case left < soon:
		e.find("certificate_expires_soon", c.Host, "Renew it, and look why it was not renewed by itself", "The certificate of %s expires in %s, at %s.", c.Host, stretch(left), until)
	}
	if c.BadName {
		names := strings.Join(c.Names, ", ")
		e.find("certificate_wrong_name", c.Host, "Get one for that name, or correct MOBILE_PUBLIC_URL", "The certificate of %s is for another name: %s.", c.Host, cmp.Or(names, "none"))
	}
	for _, text := range c.Chain {
		e.find("certificate_chain", c.Host, "Put the server's certificate and all that signed it into one file, in that order (such as fullchain.pem of certbot), and load it again", "Of the certificate of %s %s.", c.Host, text)
	}
	if c.Unknown && e.Config.TLS != cert.Self { // phones pin that one
		e.find("certificate_untrusted", c.Host, "With an authority of your own: install its certificate on the phones", "This machine does not know who signed the certificate of %s: %s.", c.Host, cmp.Or(c.Issuer, "nobody"))
	}
}

// speaks reports whether a gateway that dials a target has to use TLS. On the machine's own loopback it never has to; what the
// server has signed itself it does not trust.
func speaks(tls *cert.State, dialled target) bool {
	switch {
	case tls == nil || tls.Mode == cert.Self:
		return false
	case dialled.secure:
		return true
	}
	return !loopback(dialled.host)
}

func loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && addr.Unmap().IsLoopback()
}

// target is an address in parts that can be compared.
type target struct {
	host, port string
	secure     bool
	path       string
}

// parseTarget reads an address as a gateway does. ok: it is one.
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

// hears reports whether a server that listens on an address of this machine is reached by another name of it.
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

// address compares the address that Hermes dials with those that lead to the server.
func (e *examination) address(r relaySettings) {
	shown := setup.HideUser(r.url)
	dialled, ok := parseTarget(r.url)
	if !ok {
		e.find("relay_url_scheme", r.id, "Let hermes-mobile write it: hermes-mobile setup; then restart the gateway", "%s is %q, which is no address: it begins with http:// or https://.", r.where, shown)
		return
	}
	host, port := e.Config.Host, ""
	if e.Config.Port != 0 {
		port = strconv.Itoa(e.Config.Port)
	}
	var tls *cert.State
	if e.Server != nil {
		if h, p, err := net.SplitHostPort(e.Server.Address); err == nil {
			host, port = h, p
		}
		tls = e.Server.TLS
	}
	secure := speaks(tls, dialled)
	outside := []string{e.Config.PublicURL}
	if g, known := e.gateway(r.id); known {
		outside = append(outside, g.PublicURL)
	}
	local := own(dialled.host) && (tls == nil || tls.Mode != cert.Self || loopback(dialled.host))
	if local && (port == "" || dialled.port == port) && dialled.secure == secure && hears(host, dialled.host) && dialled.path == "" {
		return
	}
	var public []target
	for _, raw := range outside {
		if t, ok := parseTarget(raw); ok {
			if t == dialled {
				return
			}
			public = append(public, t)
		}
	}
	do := "hermes-mobile setup writes the right one (behind a proxy: with --url); then restart the gateway"
	if local && port != "" && dialled.port == port && dialled.path == "" && hears(host, dialled.host) {
		e.find("relay_url_scheme", r.id, "Write "+scheme(secure)+" there instead of "+scheme(dialled.secure)+", or run hermes-mobile setup; then restart the gateway", "%s is %s, and the server there speaks %s.", r.where, shown, scheme(secure))
		return
	}
	for _, t := range public {
		if t.host == dialled.host && t.secure != dialled.secure && t.path == dialled.path {
			e.find("relay_url_scheme", r.id, "Write "+scheme(t.secure)+" there instead of "+scheme(dialled.secure)+"; then restart the gateway", "%s is %s, and MOBILE_PUBLIC_URL is %s.", r.where, shown, scheme(t.secure)+"://"+t.host)
			return
		}
	}
	if _, err := netip.ParseAddr(dialled.host); err != nil && !local && dialled.port == port && dialled.secure == secure && dialled.path == "" {
		return // a name of this machine that is known elsewhere, such as in a container
	}
	server := scheme(secure) + "://" + net.JoinHostPort(host, cmp.Or(port, "?"))
	if e.Config.PublicURL != "" {
		server += " and " + e.Config.PublicURL
	}
	what := "another host"
	switch {
	case dialled.path != "":
		what = "a path, " + dialled.path + ", that leads to no relay"
	case local && port != "" && dialled.port != port:
		what = "another port"
	case local:
		what = "an address of this machine on which the server does not listen"
	}
	e.find("relay_url_address", r.id, do, "%s is %s: that is %s. The server is at %s.", r.where, shown, what, server)
}

func scheme(secure bool) string {
	if secure {
		return "https"
	}
	return "http"
}
