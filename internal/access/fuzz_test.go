package access

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hermes-mobile/internal/ratelimit"
)

// FuzzPairingFile: no content of Hermes' pairing files makes reading fail in another way than by saying that the file is damaged, approves
// somebody who does not stand in it, or is lost by an approval that is added.
func FuzzPairingFile(f *testing.F) {
	for _, text := range []string{"", "{}", "null", "[]", `{"anna":{"user_name":"Anna","approved_at":1700000000.5}}`, `{"anna":null,"b":7,"c":{}}`, `{"anna":{"approved_at":1e999}}`,
		"\xef\xbb\xbf{}", `{"0123456789abcdef":{"hash":"x","salt":"y","user_id":"u","created_at":-1}}`, `{"mobile:u":"soon","_lockout:mobile":1e300,"_failures:mobile":"x"}`} {
		f.Add(text, text)
	}
	f.Fuzz(func(t *testing.T, approved, other string) {
		dir := t.TempDir()
		for name, text := range map[string]string{"mobile-approved.json": approved, "mobile-pending.json": other, "_rate_limits.json": other} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		p, err := OpenPairing(dir, "mobile")
		if err != nil {
			return
		}
		if p.Approved("nobody at all") && !strings.Contains(approved, "nobody at all") && !strings.Contains(approved, `\u`) {
			t.Fatalf("%q approves somebody", approved)
		}
		if _, err := p.ApproveUser("nobody at all", "x"); err == nil && !p.Approved("nobody at all") {
			t.Fatalf("%q: an approval is not kept", approved)
		}
		if d, _, err := readDocument(filepath.Join(dir, "mobile-approved.json")); err == nil {
			d.prune(time.Now())
			for key := range d {
				d.entry(key).time("approved_at")
			}
			if _, err := d.encode(); err != nil {
				t.Fatalf("%q: %v", approved, err)
			}
		}
	})
}

// FuzzTokens: whatever a list or file of tokens holds, none of the tokens that come out is empty, without a name or unprintable.
func FuzzTokens(f *testing.F) {
	for _, text := range []string{"", "a", "phone:" + strings.Repeat("1", 64), "a:b,c:d", "# comment\nphone " + strings.Repeat("1", 64) + "\n", "a:\n:b\n", "\xff\x00", "x=y, ,z:" + strings.Repeat("é", 40)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := ParseTokens(text, App, "main", Labels)
		if err != nil {
			list = nil
		}
		path := filepath.Join(t.TempDir(), "tokens")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if more, err := LoadFile(path); err == nil {
			list = append(list, more...)
		}
		for _, tok := range list {
			if tok.Secret == "" || tok.Label == "" || !ValidLabel(tok.Label) || !validSecret(tok.Secret) || strings.Contains(tok.String(), tok.Secret) && !strings.Contains(tok.Label, tok.Secret) && len(tok.Secret) > 8 {
				t.Fatalf("%q gives %+v", text, tok)
			}
		}
	})
}

// FuzzClient: whatever forwarding headers say, a peer that is no proxy is who it is, nobody who comes through something counts as of this
// machine, and a proxy's client is an address that stands in the header.
func FuzzClient(f *testing.F) {
	for _, header := range []string{"", "127.0.0.1", "192.0.2.1, 10.0.0.1", "::ffff:127.0.0.1", "[2001:db8::1]:80", "fe80::1%eth0", ",,,", "unknown, _hidden", "192.0.2.1:99999", strings.Repeat("10.0.0.1,", 200)} {
		f.Add(header, header, "192.0.2.7:1")
		f.Add(header, "", "127.0.0.1:1")
	}
	proxies := Proxies{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8")}
	f.Fuzz(func(t *testing.T, first, second, peer string) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = peer
		r.Header["X-Forwarded-For"] = []string{first, second}
		addr, loopback := Client(r, proxies)
		if loopback {
			t.Fatalf("%q, %q of %q is of this machine", first, second, peer)
		}
		at, err := netip.ParseAddrPort(peer)
		if err != nil {
			return
		}
		who := at.Addr().Unmap().WithZone("")
		if !proxies.Trusts(who) && addr != who {
			t.Fatalf("%q, %q made %v of %q", first, second, addr, peer)
		}
		if addr != who && proxies.Trusts(addr) {
			t.Fatalf("%q, %q: the client is the proxy %v", first, second, addr)
		}
		if n := ratelimit.Network(addr); n != ratelimit.Network(n.Addr()) {
			t.Fatalf("%v counts as two", addr)
		}
		r.Header.Set("X-Forwarded-Host", first)
		r.Header.Set("X-Forwarded-Proto", second)
		if base := Base(r, true); strings.ContainsAny(strings.TrimPrefix(strings.TrimPrefix(base, "https://"), "http://"), "/?#@\r\n") && !strings.ContainsAny(r.Host, "/?#@\r\n") {
			t.Fatalf("links would begin with %q", base)
		}
	})
}

// FuzzOrigins: what an owner lists allows nothing but what stands there, and a foreign page never is the own one.
func FuzzOrigins(f *testing.F) {
	for _, origin := range []string{"", "null", "https://a.example", "http://a.example:80", "https://A.example:443/", "https://a.example@evil.example", "file://", "https://[::1]", "\x00"} {
		f.Add(origin, "https://a.example")
	}
	f.Fuzz(func(t *testing.T, origin, list string) {
		allowed, err := ParseOrigins(list)
		if err != nil || slices.Contains(allowed, "*") {
			return
		}
		r := httptest.NewRequest(http.MethodGet, "http://server.example/", nil)
		r.Header.Set("Origin", origin)
		if c, ok := canonicalOrigin(origin, false); origin != "" && OriginAllowed(r, allowed) && (!ok || hostPort(c) == "") {
			t.Fatalf("%q is let in by %q", origin, list)
		}
		SameOrigin(r, list)
	})
}
