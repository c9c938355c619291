package config

import (
	"net/mail"
	"net/netip"
	"strings"
)

// setContact sets the contact address for push services.
func setContact(to *string, v string) error {
	if address, isMail := strings.CutPrefix(v, "mailto:"); isMail {
		if a, err := mail.ParseAddress(address); err != nil || a.Name != "" || a.Address != address {
			return problemf("is not an email address: use the form mailto:me@example.com")
		}
		*to = v
		return nil
	}
	u, err := webURL(v, "mailto:me@example.com or https://example.com/contact")
	if err != nil {
		return err
	}
	if u.Scheme != "https" {
		return problemf("is neither mailto: nor https: use the form mailto:me@example.com")
	}
	*to = u.String()
	return nil
}

// setHosts sets a list of host names and addresses, without ports.
func setHosts(to *[]string, v string) error {
	items := split(v)
	if items == nil {
		return errCommas
	}
	for i, item := range items {
		item = strings.ToLower(item)
		_, err := netip.ParseAddr(strings.Trim(item, "[]"))
		if err != nil && (!hostName.MatchString(item) || allDigit.MatchString(item)) {
			return problemf(": item %d is not a host name or address: use the form ntfy.home.arpa, without https:// and port", i+1)
		}
		items[i] = item
	}
	*to = items
	return nil
}
