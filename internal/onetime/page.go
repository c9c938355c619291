package onetime

import "net/http"

// FromPage reports whether a request comes from a page of this server or from the person at the
// browser, and not from another site's page. own reports which origins are the server's. A request
// that writes or upgrades needs such an origin. document allows a link on another page that a
// person follows.
//
// Browsers treat pages at other ports of a host as the same site and send them its cookies: a
// cookie alone proves nothing about the page.
func FromPage(r *http.Request, own func(origin string) bool, document bool) bool {
	origins := r.Header.Values("Origin")
	if len(origins) > 1 || len(origins) == 1 && !own(origins[0]) {
		return false
	}
	if len(origins) == 0 && (r.Method != http.MethodGet && r.Method != http.MethodHead || r.Header.Get("Upgrade") != "") {
		return false
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return true
	}
	return document && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}
