package access

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestClient(t *testing.T) {
	for _, c := range []struct {
		proxies, peer string
		headers       []string // name, value, name, value
		want          string
		loopback      bool
	}{
		{"", "127.0.0.1:5", nil, "127.0.0.1", true},
		{"", "[::1]:5", nil, "::1", true},
		{"", "[::ffff:127.0.0.1]:5", nil, "127.0.0.1", true},
		{"none", "127.0.0.1:5", nil, "127.0.0.1", true},
		{"", "192.0.2.1:5", nil, "192.0.2.1", false},
		{"", "[fe80::1%eth0]:5", nil, "fe80::1", false},
		{"", "127.0.0.1:5", []string{"X-Forwarded-For", "203.0.113.5"}, "203.0.113.5", false},
		{"", "127.0.0.1:5", []string{"X-Forwarded-For", "198.51.100.1, 203.0.113.5"}, "203.0.113.5", false},
		{"", "127.0.0.1:5", []string{"X-Forwarded-For", "203.0.113.5, 127.0.0.1"}, "203.0.113.5", false},
		{"", "127.0.0.1:5", []string{"X-Forwarded-For", "127.0.0.1,203.0.113.5,127.0.0.9"}, "203.0.113.5", false},
		{"", "127.0.0.1:5", []string{"X-Forwarded-For", "198.51.100.1", "X-Forwarded-For", "203.0.113.5"}, "203.0.113.5", false},
		{"", "127.0.0.1:5", []string{"X-Forwarded-For", "127.0.0.2"}, "127.0.0.1", false},
		{"", "127.0.0.1:5", []string{"X-Forwarded-For", ""}, "127.0.0.1", false},
		{"", "127.0.0.1:5", []string{"X-Forwarded-For", "203.0.113.5, unknown"}, "127.0.0.1", false},
		{"", "127.0.0.1:5", []string{"X-Forwarded-For", "unknown, 203.0.113.5"}, "203.0.113.5", false},
		{"", "127.0.0.1:5", []string{"X-Forwarded-For", "203.0.113.5:4711"}, "203.0.113.5", false},
		{"", "127.0.0.1:5", []string{"X-Forwarded-For", "[2001:db8::1]:4711,"}, "2001:db8::1", false},
		{"", "127.0.0.1:5", []string{"X-Forwarded-For", "[2001:db8::1]"}, "2001:db8::1", false},
		{"", "127.0.0.1:5", []string{"X-Forwarded-For", "::ffff:203.0.113.5"}, "203.0.113.5", false},
		{"", "127.0.0.1:5", []string{"X-Forwarded-For", "203.0.113.5" + strings.Repeat(",127.0.0.1", 100)}, "127.0.0.1", false},
		{"none", "127.0.0.1:5", []string{"X-Forwarded-For", "203.0.113.5"}, "127.0.0.1", false},
		{"", "192.0.2.1:5", []string{"X-Forwarded-For", "203.0.113.5"}, "192.0.2.1", false},
		{"10.0.0.0/8, ::1", "10.9.9.9:5", []string{"X-Forwarded-For", "203.0.113.5,10.1.1.1"}, "203.0.113.5", false},
		{"10.0.0.0/8", "127.0.0.1:5", []string{"X-Forwarded-For", "203.0.113.5"}, "127.0.0.1", false},
		{"", "127.0.0.1:5", []string{"Forwarded", "for=203.0.113.5"}, "127.0.0.1", false},
		{"", "127.0.0.1:5", []string{"X-Real-IP", "203.0.113.5"}, "127.0.0.1", false},
		{"", "127.0.0.1:5", []string{"X-Forwarded-Proto", "https"}, "127.0.0.1", false},
		{"", "127.0.0.1:5", []string{"x-forwarded-whatever", ""}, "127.0.0.1", false},
		{"", "@", nil, "invalid IP", false},
		{"", "", []string{"X-Forwarded-For", "203.0.113.5"}, "invalid IP", false},
	} {
		r := &http.Request{RemoteAddr: c.peer, Header: http.Header{}}
		for i := 0; i < len(c.headers); i += 2 {
			r.Header.Add(c.headers[i], c.headers[i+1])
		}
		got, loopback := Client(r, must[Proxies](t)(ParseProxies(c.proxies)))
		if got.String() != c.want || loopback != c.loopback {
			t.Errorf("%q %s %q: %s %v", c.proxies, c.peer, c.headers, got, loopback)
		}
	}
}

func TestClientProperty(t *testing.T) {
	proxies := must[Proxies](t)(ParseProxies(""))
	part := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"127.0.0.1", "203.0.113.5", "::1", "[", "]", ":", "%", ","}))
	rapid.Check(t, func(t *rapid.T) {
		forged := strings.Join(rapid.SliceOf(part).Draw(t, "forged"), ",")
		r := &http.Request{RemoteAddr: "127.0.0.1:5", Header: http.Header{"X-Forwarded-For": {forged}}}
		if addr, loopback := Client(r, proxies); !addr.IsValid() || loopback {
			t.Fatal(addr, loopback)
		}
		// Whatever a client forges, what the proxy adds is what counts.
		r.Header.Set("X-Forwarded-For", forged+", 198.51.100.7")
		if addr, _ := Client(r, proxies); addr != netip.MustParseAddr("198.51.100.7") {
			t.Fatal(addr)
		}
	})
}

func TestParseProxies(t *testing.T) {
	for list, want := range map[string]string{
		"": "127.0.0.0/8 ::1/128", " ": "127.0.0.0/8 ::1/128", "none": "", "10.1.2.3/8": "10.0.0.0/8",
		"10.0.0.1, 2001:db8::/32,": "10.0.0.1/32 2001:db8::/32", "::ffff:10.0.0.0/104": "10.0.0.0/8", "::ffff:10.0.0.1": "10.0.0.1/32",
	} {
		var got []string
		for _, p := range must[Proxies](t)(ParseProxies(list)) {
			got = append(got, p.String())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %q", list, got)
		}
	}
	for _, list := range []string{"none,10.0.0.1", "localhost", "10.0.0.0/33", "10.0.0", "*"} {
		if _, err := ParseProxies(list); err == nil {
			t.Errorf("%q is taken", list)
		}
	}
}

func TestOriginAllowed(t *testing.T) {
	listed := must[[]string](t)(ParseOrigins("https://app.example, https://Two.example:8443/, capacitor://localhost,http://three.example:80"))
	for _, c := range []struct {
		host   string
		origin []string
		tls    bool
		want   bool
	}{
		{"127.0.0.1:8787", nil, false, true},
		{"127.0.0.1:8787", []string{""}, false, true},
		{"127.0.0.1:8787", []string{"http://127.0.0.1:8787"}, false, true},
		{"127.0.0.1:8787", []string{"http://127.0.0.1"}, false, false},
		{"127.0.0.1:8787", []string{"http://127.0.0.1:8788"}, false, false},
		{"127.0.0.1:8787", []string{"http://127.0.0.1.evil.example:8787"}, false, false},
		{"127.0.0.1:8787", []string{"http://localhost:8787"}, false, false},
		{"127.0.0.1:8787", []string{"https://app.example"}, false, true},
		{"127.0.0.1:8787", []string{"https://app.example:443"}, false, true},
		{"127.0.0.1:8787", []string{"HTTPS://APP.example"}, false, true},
		{"127.0.0.1:8787", []string{"http://app.example"}, false, false},
		{"127.0.0.1:8787", []string{"https://app.example:444"}, false, false},
		{"127.0.0.1:8787", []string{"https://app.example.evil.example"}, false, false},
		{"127.0.0.1:8787", []string{"https://evil.example"}, false, false},
		{"127.0.0.1:8787", []string{"https://two.example:8443"}, false, true},
		{"127.0.0.1:8787", []string{"https://two.example"}, false, false},
		{"127.0.0.1:8787", []string{"http://three.example"}, false, true},
		{"127.0.0.1:8787", []string{"capacitor://localhost"}, false, true},
		{"127.0.0.1:8787", []string{"ionic://localhost"}, false, false},
		{"localhost", []string{"ionic://localhost"}, false, false},
		{"127.0.0.1:8787", []string{"null"}, false, false},
		{"null", []string{"null"}, false, false},
		{"127.0.0.1:8787", []string{"file://"}, false, false},
		{"127.0.0.1:8787", []string{"https://app.example", "https://app.example"}, false, false},
		{"127.0.0.1:8787", []string{"https://app.example https://evil.example"}, false, false},
		{"127.0.0.1:8787", []string{"https://x@app.example"}, false, false},
		{"127.0.0.1:8787", []string{"https://app.example/"}, false, false},
		{"127.0.0.1:8787", []string{"https://app.example?"}, false, false},
		{"127.0.0.1:8787", []string{"https://app.example#"}, false, false},
		{"127.0.0.1:8787", []string{"//127.0.0.1:8787"}, false, false},
		{"127.0.0.1:8787", []string{"http://127.0.0.1:8787\\@evil.example"}, false, false},
		{"a.example", []string{"https://a.example"}, false, true},
		{"a.example:443", []string{"https://a.example"}, false, true},
		{"A.example", []string{"https://a.EXAMPLE"}, true, true},
		{"a.example", []string{"http://a.example"}, true, false},
		{"a.example:8787", []string{"https://a.example"}, false, false},
		{"[::1]:8787", []string{"http://[::1]:8787"}, false, true},
		{"[::1]", []string{"http://[::1]"}, false, true},
		{"", []string{"http://"}, false, false},
		{"", []string{"https://evil.example"}, false, false},
		{"evil.example/a.example", []string{"https://a.example"}, false, false},
	} {
		r := &http.Request{Host: c.host, Header: http.Header{}}
		if c.origin != nil {
			r.Header["Origin"] = c.origin
		}
		r.Header.Set("X-Forwarded-Host", "evil.example")
		if c.tls {
			r.TLS = &tls.ConnectionState{}
		}
		if got := OriginAllowed(r, listed); got != c.want {
			t.Errorf("%s %q: %v", c.host, c.origin, got)
		}
	}
	for _, bad := range []string{"null", "*", "app.example", "https://", "https://app.example/path", "https://*.example", "https://a b"} {
		if _, err := ParseOrigins(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	r := &http.Request{Host: "h", Header: http.Header{"Origin": {"null"}}}
	if OriginAllowed(r, []string{"null"}) {
		t.Error("null, listed")
	}
}

func TestBase(t *testing.T) {
	for _, c := range []struct {
		tls, believed bool
		proto, host   []string
		want          string
	}{
		{false, true, nil, nil, "http://a.example:8787"},
		{true, true, nil, nil, "https://a.example:8787"},
		{false, true, []string{"https"}, []string{"phone.example:8443"}, "https://phone.example:8443"},
		{false, true, []string{"HTTPS"}, []string{"[2001:db8::1]:8443"}, "https://[2001:db8::1]:8443"},
		{false, false, []string{"https"}, []string{"phone.example"}, "http://a.example:8787"},
		{false, true, []string{"http, https"}, []string{"forged.example, phone.example"}, "https://phone.example"},
		{false, true, []string{"http", "https"}, []string{"forged.example", "phone.example"}, "https://phone.example"},
		{true, true, []string{"javascript"}, []string{"x@phone.example"}, "https://a.example:8787"},
		{false, true, []string{""}, []string{"phone.example/path"}, "http://a.example:8787"},
		{false, true, nil, []string{"a b"}, "http://a.example:8787"},
		{false, true, nil, []string{":8443"}, "http://a.example:8787"},
	} {
		r := &http.Request{Host: "a.example:8787", Header: http.Header{"X-Forwarded-Proto": c.proto, "X-Forwarded-Host": c.host}}
		if c.tls {
			r.TLS = &tls.ConnectionState{}
		}
		if got := Base(r, c.believed); got != c.want {
			t.Errorf("%q %q, believed %v: %s, want %s", c.proto, c.host, c.believed, got, c.want)
		}
	}
}

func TestOriginNeverPanics(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &http.Request{Host: rapid.String().Draw(t, "host"), Header: http.Header{"Origin": {rapid.StringN(1, 30, -1).Draw(t, "origin")}}}
		OriginAllowed(r, []string{rapid.String().Draw(t, "listed")})
	})
}

func TestFromHere(t *testing.T) {
	const own = "127.0.0.1:8787"
	for _, tt := range []struct {
		peer, own, host string
		header          string
		want            bool
	}{
		{"127.0.0.1:5", own, "127.0.0.1:8787", "", true},
		{"127.0.0.1:5", own, "localhost:8787", "", true},
		{"127.0.0.1:5", own, "LocalHost:8787", "", true},
		{"127.0.0.1:5", own, "[::1]:8787", "", true},
		{"[::1]:5", "[::1]:8787", "[::1]:8787", "", true},
		{"[::ffff:127.0.0.1]:5", "[::ffff:127.0.0.1]:8787", "127.0.0.1:8787", "", true},
		{"127.0.0.1:5", "127.0.0.9:8787", "127.0.0.9:8787", "", true},
		{"127.0.0.1:5", "127.0.0.1:80", "localhost", "", true},
		{"127.0.0.1:5", "127.0.0.1:80", "[::1]", "", true},
		// A listener on one address of a network is reached from this machine by that address.
		{"10.0.0.1:5", "10.0.0.1:8787", "10.0.0.1:8787", "", true},
		{"10.0.0.2:5", "10.0.0.1:8787", "10.0.0.1:8787", "", false},
		{"10.0.0.1:5", "10.0.0.1:8787", "localhost:8787", "", false},

		{"127.0.0.1:5", own, "127.0.0.1", "", false},
		{"127.0.0.1:5", own, "127.0.0.1:8788", "", false},
		{"127.0.0.1:5", own, "127.0.0.2:8787", "", false},
		{"127.0.0.1:5", own, "[::ffff:127.0.0.1]:8787", "", false},
		{"127.0.0.1:5", own, "localhost.:8787", "", false},
		{"127.0.0.1:5", own, "agent.example", "", false},
		{"127.0.0.1:5", own, "agent.example:8787", "", false},
		{"127.0.0.1:5", own, "localhost.agent.example:8787", "", false},
		{"127.0.0.1:5", own, "127.0.0.1.agent.example:8787", "", false},
		{"127.0.0.1:5", own, "2130706433:8787", "", false},
		{"127.0.0.1:5", own, "0.0.0.0:8787", "", false},
		{"127.0.0.1:5", own, "10.0.0.1:8787", "", false},
		{"127.0.0.1:5", own, "", "", false},
		{"10.0.0.2:5", own, "127.0.0.1:8787", "", false},
		{"not an address", own, "127.0.0.1:8787", "", false},
		{"127.0.0.1:5", "", "127.0.0.1:8787", "", false},
		{"127.0.0.1:5", own, "127.0.0.1:8787", "X-Forwarded-For", false},
		{"127.0.0.1:5", own, "127.0.0.1:8787", "x-forwarded-host", false},
		{"127.0.0.1:5", own, "127.0.0.1:8787", "X-Real-IP", false},
		{"127.0.0.1:5", own, "127.0.0.1:8787", "Forwarded", false},
		{"127.0.0.1:5", own, "127.0.0.1:8787", "Via", false},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		if tt.own != "" {
			r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.TCPAddrFromAddrPort(netip.MustParseAddrPort(tt.own))))
		}
		r.RemoteAddr, r.Host = tt.peer, tt.host
		if tt.header != "" {
			r.Header.Set(tt.header, "127.0.0.1")
		}
		if got := FromHere(r); got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
		r.ProtoMajor, r.ProtoMinor = 1, 0
		if FromHere(r) {
			t.Errorf("%+v: a browser that speaks HTTP/1.0", tt)
		}
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil).WithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 443}))
	r.RemoteAddr, r.Host = "127.0.0.1:5", "localhost"
	if FromHere(r) {
		t.Error("port 443 is not the usual one of plain HTTP")
	}
	r.TLS = &tls.ConnectionState{}
	if !FromHere(r) {
		t.Error("by TLS at its usual port")
	}
}

func TestSameOrigin(t *testing.T) {
	for _, tt := range []struct {
		address string
		origins []string
		want    bool
	}{
		{"https://a.example", []string{"https://a.example"}, true},
		{"https://a.example:443", []string{"https://A.example"}, true},
		{"http://a.example:8787/below", []string{"http://a.example:8787"}, true},
		{"https://a.example", []string{"http://a.example"}, false},
		{"https://a.example", []string{"https://a.example:8443"}, false},
		{"https://a.example", []string{"https://b.a.example"}, false},
		{"https://a.example", []string{"null"}, false},
		{"https://a.example", nil, false},
		{"https://a.example", []string{""}, false},
		{"https://a.example", []string{"https://a.example", "https://a.example"}, false},
		{"", []string{"null"}, false},
		{"", nil, false},
		{"", []string{""}, false},
	} {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.Header["Origin"] = tt.origins
		if got := SameOrigin(r, tt.address); got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}
