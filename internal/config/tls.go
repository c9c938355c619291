package config

import (
	"net/netip"
	"net/url"
)

// ofTLS lists the settings that apply to one mode of MOBILE_TLS only.
var ofTLS = []struct{ name, mode string }{
	{"MOBILE_TLS_EMAIL", "auto"}, {"MOBILE_TLS_ACME", "auto"}, {"MOBILE_TLS_ACME_ROOT", "auto"},
	{"MOBILE_TLS_CERT", "files"}, {"MOBILE_TLS_KEY", "files"},
}

// checkTLS checks the combination of TLS settings.
func (l *loader) checkTLS(c *Config) {
	for _, path := range []*string{&c.TLSACMERoot, &c.TLSCert, &c.TLSKey} {
		if *path != "" {
			*path = l.path(*path)
		}
	}
	for _, s := range ofTLS {
		if v, set := l.get(s.name); set && s.mode != c.TLS && c.TLS != "" {
			l.warn(v.key, v.where, "%s (%s) has no effect, because MOBILE_TLS is %s, not %s", v.key, v.where, c.TLS, s.mode)
		}
	}
	mode, _ := l.get(tlsName)
	public, _ := l.get(publicName)
	u, err := url.Parse(c.PublicURL)
	if err != nil {
		return // reported already
	}
	switch {
	case c.TLS == "auto" && c.PublicURL == "" && public.text == "":
		l.bad(mode, problemf("needs a host name for the certificate: set MOBILE_PUBLIC_URL to the address of this server, such as https://agent.example.com"))
	case c.TLS == "auto" && c.PublicURL != "" && !isName(u.Hostname()):
		l.bad(public, problemf("has no host name that an ACME CA can certify: use the form https://agent.example.com, or set MOBILE_TLS=self"))
	case (c.TLS == "auto" || c.TLS == "self" || c.TLS == "files") && u.Scheme == "http":
		l.bad(public, problemf("is plain http, which a server with MOBILE_TLS=%s rejects: use https", c.TLS))
	}
	if c.TLS == "files" {
		for _, s := range []struct{ name, path, what string }{{"MOBILE_TLS_CERT", c.TLSCert, "certificate and its chain"}, {"MOBILE_TLS_KEY", c.TLSKey, "private key"}} {
			if s.path == "" {
				l.bad(mode, problemf("needs %s: set it to the PEM file with the %s", s.name, s.what))
			}
		}
	}
	if c.TLS == "auto" && loopback(c.Host) {
		v, set := l.get("MOBILE_HOST")
		if !set {
			v = mode
		}
		l.warn(v.key, v.where, "the server listens only on %s, where neither phones nor the ACME CA can reach it: set MOBILE_HOST=0.0.0.0, unless a program on this machine forwards connections", c.Host)
	}
}

// isName reports whether a host is a DNS name: neither an address nor a loopback name.
func isName(host string) bool {
	_, err := netip.ParseAddr(host)
	return err != nil && !loopback(host) && hostName.MatchString(host) && !allDigit.MatchString(host)
}
