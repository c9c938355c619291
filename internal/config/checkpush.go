package config

import (
	"net/mail"
	"net/netip"
	"strings"
)

// setContact takes the address that push services are told.
func setContact(to *string, v string) error {
	if address, isMail := strings.CutPrefix(v, "mailto:"); isMail {
		if a, err := mail.ParseAddress(address); err != nil || a.Name != "" || a.Address != address {
			return problemf("is not an email address: write it like mailto:me@example.com")
		}
		*to = v
		return nil
	}
	u, err := webURL(v, "mailto:me@example.com or https://example.com/contact")
	if err != nil {
		return err
	}
	if u.Scheme != "https" {
		return problemf("is neither mailto: nor https: write it like mailto:me@example.com")
	}
	*to = u.String()
	return nil
}

// setHosts takes names and addresses of hosts, without ports.
func setHosts(to *[]string, v string) error {
	items := split(v)
	if items == nil {
		return errCommas
	}
	for i, item := range items {
		item = strings.ToLower(item)
		_, err := netip.ParseAddr(strings.Trim(item, "[]"))
		if err != nil && (!hostName.MatchString(item) || allDigit.MatchString(item)) {
			return problemf("has at item %d no host name or address: write it like ntfy.home.arpa, without https:// and port", i+1)
		}
		items[i] = item
	}
	*to = items
	return nil
}
