// Package proxy tests the server behind the real Caddy and the real nginx, with TLS, as its users run it. The settings of
// the proxies are the recipes in doc/operate.md: the tests read them from there and change nothing but names, ports and
// paths, so what is proven is what is written. install.sh finds or fetches the two programs.
package proxy
