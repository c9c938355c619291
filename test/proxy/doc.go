// Package proxy tests the server behind the real Caddy, nginx and HAProxy, with TLS, as its users run it. The settings of
// the proxies are the recipes in doc/internet.md: the tests read them from there and change nothing but names, ports and
// paths, so what is proven is what is written. Others are what people copy from the proxies' own documentation, which hides
// who asks: there the tests prove that strangers get nothing. install.sh finds or fetches the programs.
package proxy
