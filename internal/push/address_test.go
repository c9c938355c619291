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

func TestPublic(t *testing.T) {
	for text, want := range map[string]bool{
		"1.1.1.1": true, "93.184.216.34": true, "2606:4700::1111": true, "::ffff:1.1.1.1": true, "64:ff9b::1.1.1.1": true,
		"0.0.0.0": false, "0.1.2.3": false, "10.0.0.1": false, "100.64.0.1": false, "127.0.0.1": false, "127.9.9.9": false, "169.254.169.254": false, "172.16.0.1": false,
		"192.168.1.1": false, "198.18.0.1": false, "224.0.0.1": false, "239.1.1.1": false, "255.255.255.255": false,
		"::": false, "::1": false, "fe80::1": false, "fe80::1%eth0": false, "fc00::1": false, "fd12::1": false, "ff02::1": false, "fec0::1": false, "2001:db8::1": false,
		"::ffff:127.0.0.1": false, "::ffff:169.254.169.254": false, "::127.0.0.1": false, "64:ff9b::127.0.0.1": false, "64:ff9b::10.0.0.1": false, "2002:7f00:1::": false, "2002:a00:1::": false,
	} {
		if got := public(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s is public: %v", text, got)
		}
	}
	if public(netip.Addr{}) {
		t.Error("no address is public")
	}
}

// Nothing is sent to an address of this machine or network, however it is written, and whatever a name stands for.
func TestRequestsStayOnThePublicInternet(t *testing.T) {
	to := service(t)
	sub := to.Subscribe()
	at, err := url.Parse(sub.Endpoint)
	ok(t, err)
	port := at.Port()
	s := sender(t)
	for _, host := range []string{"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "169.254.169.254", "10.1.2.3", "192.168.0.1", "0.0.0.0", "[fe80::1]", "[fd00::1]", "2130706433", "0x7f.1"} {
		over := target(sub)
		over.Endpoint = "https://" + host + ":" + port
		r := s.Try(ctx, over, Note{})
		if r.Outcome != Forbidden && (r.Outcome != Unreachable || !strings.ContainsAny(host, "x2") || r.Reason != "The name of the push service cannot be looked up.") {
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

// A listed host is one host: another name of the same machine is not, and a redirect there is not followed.
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
