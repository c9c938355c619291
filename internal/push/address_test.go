package push

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"hermes-mobile/internal/push/pushtest"
)

// ranges are all networks of IANA's registries of special-purpose addresses, and all others that
// are not for unicast between strangers. Requests go to none of them.
var ranges = []string{
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24",
	"192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4", "255.255.255.255/32",
	"::/128", "::1/128", "::/96", "::ffff:0:0:0/96", "64:ff9b:1::/48", "100::/64", "100:0:0:1::/64", "2001::/23", "2001::/32", "2001:1::1/128", "2001:2::/48", "2001:3::/32",
	"2001:4:112::/48", "2001:10::/28", "2001:20::/28", "2001:30::/28", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10",
	"ff00::/8", "4000::/3", "8000::/3", "e000::/4", "100::/8", "200::/7",
}

// last is the last address of a network.
func last(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for bit := p.Bits(); bit < len(b)*8; bit++ {
		b[bit/8] |= 0x80 >> (bit % 8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// embedded are all ways to write an IPv4 address within one of IPv6.
func embedded(a netip.Addr) map[string]netip.Addr {
	b := a.As4()
	put := func(prefix string, at int) netip.Addr {
		out := netip.MustParseAddr(prefix).As16()
		copy(out[at:], b[:])
		return netip.AddrFrom16(out)
	}
	teredo := put("2001:0:4136:e378:8000:63bf::", 12).As16()
	for i := 12; i < 16; i++ {
		teredo[i] ^= 0xff
	}
	return map[string]netip.Addr{"mapped": put("::ffff:0:0", 12), "compatible": put("::", 12), "translated (SIIT)": put("::ffff:0:0:0", 12), "NAT64": put("64:ff9b::", 12),
		"local NAT64": put("64:ff9b:1::", 12), "local NAT64 /48": put("64:ff9b:1:abcd::", 7), "6to4": put("2002::", 2), "Teredo": netip.AddrFrom16(teredo), "Teredo server": put("2001::", 4),
		"ISATAP": put("2606:4700::5efe:0:0", 12), "ISATAP, universal": put("2606:4700::200:5efe:0:0", 12), "ISATAP, group": put("2606:4700::300:5efe:0:0", 12), "ISATAP, link": put("fe80::5efe:0:0", 12)}
}

func TestPublic(t *testing.T) {
	for _, text := range []string{"1.1.1.1", "93.184.216.34", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.0", "223.255.255.255", "2606:4700::1111",
		"2a00:1450:4001::1", "2001:200::1", "2620:0:2d0::1", "::ffff:1.1.1.1", "64:ff9b::1.1.1.1", "2606:4700::5efe:101:101", "2606:4700::ffff:7f00:1"} {
		if !Public(netip.MustParseAddr(text)) {
			t.Errorf("%s is not public", text)
		}
	}
	for _, text := range ranges {
		p := netip.MustParsePrefix(text)
		for _, a := range []netip.Addr{p.Addr(), p.Addr().Next(), last(p)} {
			if !p.Contains(a) {
				continue
			}
			if Public(a) {
				t.Errorf("%s of %s is public", a, text)
			}
			if p.Addr().Is4() {
				for form, in := range embedded(a) {
					if Public(in) {
						t.Errorf("%s, which is %s %s, is public", in, form, a)
					}
				}
			}
		}
	}
	for _, text := range []string{"fe80::1%eth0", "2606:4700::1111%eth0"} {
		if Public(netip.MustParseAddr(text)) {
			t.Errorf("%s is public", text)
		}
	}
	if Public(netip.Addr{}) {
		t.Error("no address is public")
	}
}

// FuzzPublic: no form of an address makes a private one public.
func FuzzPublic(f *testing.F) {
	f.Add([]byte{127, 0, 0, 1})
	f.Add([]byte{8, 8, 8, 8})
	for _, text := range ranges {
		f.Add(netip.MustParsePrefix(text).Addr().AsSlice())
	}
	for _, a := range embedded(netip.MustParseAddr("10.1.2.3")) {
		f.Add(a.AsSlice())
	}
	var list []netip.Prefix
	for _, text := range ranges {
		list = append(list, netip.MustParsePrefix(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		a, ok := netip.AddrFromSlice(b)
		if !ok {
			return
		}
		if Public(a) != Public(a.Unmap()) || Public(a) && within(a.Unmap(), list) {
			t.Fatalf("%s", a)
		}
		if a = a.Unmap(); !a.Is4() {
			return
		}
		for form, in := range embedded(a) {
			if Public(in) && !Public(a) {
				t.Fatalf("%s is public as %s %s", a, form, in)
			}
		}
	})
}

// Nothing is sent to an address of this machine or network, however it is written, and whatever a
// name stands for.
func TestRequestsStayOnThePublicInternet(t *testing.T) {
	to := service(t)
	sub := to.Subscribe()
	at, err := url.Parse(sub.Endpoint)
	ok(t, err)
	port := at.Port()
	s := sender(t)
	for _, host := range []string{"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "169.254.169.254", "10.1.2.3", "192.168.0.1", "0.0.0.0", "[fe80::1]", "[fd00::1]", "2130706433", "0x7f.1", "[::ffff:0:127.0.0.1]", "[64:ff9b::127.0.0.1]",
		"[2002:7f00:1::]", "[::127.0.0.1]", "[2606:4700::5efe:127.0.0.1]"} {
		over := target(sub)
		over.Endpoint = "https://" + host + ":" + port
		r := s.Try(ctx, over, Note{})
		if r.Outcome != Forbidden && (r.Outcome != Unreachable || !strings.ContainsAny(host, "x2") || r.Reason != unreached) {
			t.Errorf("%s: %+v", host, r)
		}
		over.Kind, over.Keys = UnifiedPush, nil
		if r := s.Try(ctx, over, Note{}); r.Outcome == Sent {
			t.Errorf("%s without keys: %+v", host, r)
		}
	}
	// The dialer alone, as where the name was checked before and stands for something else now.
	for _, address := range []string{"localhost:" + port, "127.0.0.1:" + port, "[::1]:" + port} {
		if c, err := s.dial(ctx, "tcp", address); err == nil {
			_ = c.Close()
			t.Errorf("%s was dialled", address)
		} else if !strings.Contains(err.Error(), "MOBILE_PUSH_HOSTS") {
			t.Errorf("%s: %v", address, err)
		}
	}
	if len(to.Got) != 0 {
		t.Error("something arrived")
	}
}

// A listed host is one host: another name of the same machine is not, and a redirect there is not
// followed.
func TestListedHosts(t *testing.T) {
	to, s := service(t), sender(t, "LocalHost.")
	sub := to.Subscribe()
	listed := target(sub)
	listed.Endpoint = strings.Replace(sub.Endpoint, "127.0.0.1", "localhost", 1)
	var redirected atomic.Int32
	to.Answer(func(n pushtest.Notification, w http.ResponseWriter) {
		if n.Path != "/endpoint/1" {
			redirected.Add(1)
			return
		}
		w.Header().Set("Location", "http://127.0.0.1/endpoint/2")
		w.WriteHeader(http.StatusTemporaryRedirect)
	})
	if r := s.Try(ctx, listed, Note{}); r.Outcome != Refused || r.Status != http.StatusTemporaryRedirect || redirected.Load() != 0 {
		t.Errorf("%+v", r)
	}
	if r := s.Try(ctx, target(sub), Note{}); r.Outcome != Forbidden {
		t.Errorf("the address itself: %+v", r)
	}
	if !sender(t, "::1").listed("[0:0::1]") || sender(t, "ntfy.home").listed("ntfy.home.evil.example") || sender(t, "ntfy.home").listed("x.ntfy.home") {
		t.Error("hosts are not compared as what they are")
	}
}
