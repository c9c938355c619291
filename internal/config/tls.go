package config

import (
	"net/netip"
	"net/url"
)

// ofTLS are the settings that only one way to a certificate uses.
var ofTLS = []struct{ name, mode string }{
	{"MOBILE_TLS_EMAIL", "auto"}, {"MOBILE_TLS_ACME", "auto"}, {"MOBILE_TLS_ACME_ROOT", "auto"},
	{"MOBILE_TLS_CERT", "files"}, {"MOBILE_TLS_KEY", "files"},
}

// checkTLS looks at the settings of the certificate together.
func (l *loader) checkTLS(c *Config) {
	for _, path := range []*string{&c.TLSACMERoot, &c.TLSCert, &c.TLSKey} {
		if *path != "" {
			*path = l.path(*path)
		}
	}
	for _, s := range ofTLS {
		if v, set := l.get(s.name); set && s.mode != c.TLS && c.TLS != "" {
			l.warn(v.key, v.where, "%s (%s) has no effect, because MOBILE_TLS is %s and not %s", v.key, v.where, c.TLS, s.mode)
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
		l.bad(mode, problemf("needs a name to have a certificate for: set MOBILE_PUBLIC_URL to the address of this server, such as https://agent.example.com"))
	case c.TLS == "auto" && c.PublicURL != "" && !isName(u.Hostname()):
		l.bad(public, problemf("has no name that an ACME authority gives a certificate for, which MOBILE_TLS=auto needs: write it like https://agent.example.com, or use MOBILE_TLS=self"))
	case (c.TLS == "auto" || c.TLS == "self" || c.TLS == "files") && u.Scheme == "http":
		l.bad(public, problemf("is plain http, which a server with MOBILE_TLS=%s refuses: write https", c.TLS))
	}
	if c.TLS == "files" {
		for _, s := range []struct{ name, path, what string }{{"MOBILE_TLS_CERT", c.TLSCert, "certificate with its chain"}, {"MOBILE_TLS_KEY", c.TLSKey, "key of the certificate"}} {
			if s.path == "" {
				l.bad(mode, problemf("needs %s: set it to the PEM file that holds the %s", s.name, s.what))
			}
		}
	}
	if c.TLS == "auto" && loopback(c.Host) {
		v, set := l.get("MOBILE_HOST")
		if !set {
			v = mode
		}
		l.warn(v.key, v.where, "the server listens on %s only, where neither phones nor the ACME authority reach it unless something on this machine passes connections on: set MOBILE_HOST=0.0.0.0", c.Host)
	}
}

// isName reports whether a host is a name of the DNS and not an address, nor one that every machine has.
func isName(host string) bool {
	_, err := netip.ParseAddr(host)
	return err != nil && !loopback(host) && hostName.MatchString(host) && !allDigit.MatchString(host)
}
