package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/doctor"
	"hermes-mobile/internal/media"
)

// floods opens connections that ask for something and are left open.
func floods(t *testing.T, r *rig, many int, request string) (list []net.Conn) {
	t.Helper()
	for range many {
		list = append(list, rawDial(t, r.server.Addr().String(), request))
	}
	return list
}

func upgradeFrom(addr string) string {
	return "GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n" +
		"X-Forwarded-For: " + addr + "\r\n\r\n"
}

// Many connections of one address that say no hello: those that were open for longest are closed,
// and doctor tells who it was.
func TestDoctorStrangersDropped(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken)
	phone := r.connect("tel-1", mainToken, "X-Forwarded-For: 192.0.2.7")
	open := floods(t, r, strangersOfNetwork+90, upgradeFrom("192.0.2.7"))
	until(t, "90 to be closed", func() bool { d := r.server.strangers.Drops(); return len(d) == 1 && d[0].Count == 90 })
	mustNotFind(t, r.examined(), "strangers_dropped")
	floods(t, r, 10, upgradeFrom("192.0.2.7"))
	until(t, "100 to be closed", func() bool { d := r.server.strangers.Drops(); return len(d) == 1 && d[0].Count == 100 })
	f := mustFind(t, r.examined(), "strangers_dropped", "100 connections", "too many from one address", "192.0.2.7", "MOBILE_TRUSTED_PROXIES")
	if f.About != "network" || f.Severity != doctor.Warning {
		t.Errorf("%+v", f)
	}
	_ = open[0].SetReadDeadline(time.Now().Add(patience))
	if _, err := io.Copy(io.Discard, open[0]); err != nil && strings.Contains(err.Error(), "timeout") {
		t.Error("the oldest is still open")
	}
	r.connect("tel-2", mainToken, "X-Forwarded-For: 192.0.2.7")
	r.connect("tel-3", mainToken, "X-Forwarded-For: 192.0.2.8")
	phone.send(&frame.Ping{ID: "still here"})
	find[*frame.Pong](phone)
	r.until("hermes_mobile_strangers_dropped_total{reason=\"network\"}", 100)
	if code, body := r.get("/readyz", "X-Forwarded-For: 203.0.113.9"); strings.Contains(body, "192.0.2.7") {
		t.Errorf("a stranger is told: %d %s", code, body)
	}
}

// until waits for a metric to have at least a value.
func (r *rig) until(metric string, want float64) {
	r.t.Helper()
	until(r.t, metric, func() bool {
		body, err := r.admin.Text(r.t.Context(), "/metrics")
		ok(r.t, err)
		for line := range strings.Lines(body) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			var n float64
			if _, err := fmt.Sscan(value, &n); err == nil && name == metric && n >= want {
				return true
			}
		}
		return false
	})
}

// Over TLS it is the same: handshakes count, and a phone does not any more.
func TestStrangersOverTLS(t *testing.T) {
	t.Parallel()
	r := start(t, "MOBILE_TOKEN="+mainToken, "MOBILE_TLS=self", "MOBILE_TRUSTED_PROXIES=none")
	phone := r.overTLS("tel-1")
	until(t, "a phone to be no stranger", func() bool { return r.server.strangers.Count() == 0 })
	silent := floods(t, r, strangersOfNetwork, "")
	until(t, "all to count", func() bool { return r.server.strangers.Count() == strangersOfNetwork })
	floods(t, r, strangersOfNetwork, "\x16\x03\x01\x40\x00\x01")
	for _, c := range silent {
		_ = c.SetReadDeadline(time.Now().Add(patience))
		if _, err := io.Copy(io.Discard, c); err != nil && strings.Contains(err.Error(), "timeout") {
			t.Fatal("the oldest is still open")
		}
	}
	if n := r.server.strangers.Count(); n > strangersOfNetwork {
		t.Errorf("%d strangers", n)
	}
	phone.send(&frame.Ping{ID: "still here"})
	find[*frame.Pong](phone)
	r.overTLS("tel-2")
}

// Each bound before hello has its metric.
func TestStrangerMetrics(t *testing.T) {
	t.Parallel()
	r := start(t, "MOBILE_TOKEN="+mainToken)
	floods(t, r, 3, upgradeFrom("192.0.2.7"))
	r.until("hermes_mobile_strangers", 3)
	r.until("hermes_mobile_stranger_bytes", 3)
	c := rawDial(t, r.server.Addr().String(), upgradeFrom("192.0.2.8")+"\x81\xfe\xff\xff\x00\x00\x00\x00")
	in := bufio.NewReader(c)
	resp, err := http.ReadResponse(in, nil)
	ok(t, err)
	if resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(resp.Status)
	}
	r.until(`hermes_mobile_strangers_dropped_total{reason="hello_size"}`, 1)
	if helloTimeout > patience {
		t.Fatal("the test cannot wait for it")
	}
	r.until(`hermes_mobile_strangers_dropped_total{reason="hello_time"}`, 1)
}

// What has authenticated is no stranger: a phone, a sender, a paired one, a gateway, and for as
// long as it is answered a user of the API and whoever follows a signed link. What only looks like
// it is one.
func TestWhoIsNoStranger(t *testing.T) {
	t.Parallel()
	asked, answer := make(chan struct{}), make(chan struct{})
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/models" { // the server itself asks for others
			select {
			case asked <- struct{}{}:
			case <-r.Context().Done():
			}
			select {
			case <-answer:
			case <-r.Context().Done():
			}
		}
		_, _ = io.WriteString(w, `{"object":"hermes.api_server.capabilities"}`)
	}))
	t.Cleanup(api.Close)
	r := start(t, "MOBILE_TOKEN="+mainToken, "MOBILE_DELIVER_TOKENS="+otherToken, "MOBILE_AGENT=relay", "MOBILE_RELAY_ID=gw-home", "MOBILE_RELAY_SECRET="+gatewaySecret,
		"MOBILE_FRONT_API=1", "MOBILE_API_URL="+api.URL, "MOBILE_API_KEY="+apiKey)
	none := func(what string) {
		t.Helper()
		until(t, what+" to be no stranger", func() bool { return r.server.strangers.Count() == 0 })
	}
	one := func(what string) {
		t.Helper()
		until(t, what+" to be a stranger", func() bool { return r.server.strangers.Count() == 1 })
	}
	phone := r.connect("tel-1", mainToken)
	none("a phone")
	sender := r.connect("cron", otherToken)
	none("a sender")
	var inv Invitation
	r.post("/pair", Command{}, &inv)
	paired := &device{t: t, ws: r.socket()}
	one("a phone that has not said hello")
	paired.send(&frame.Hello{Pair: inv.Code, Device: frame.Device{ID: "tel-2"}})
	find[*frame.Ready](paired)
	none("a paired phone")
	r.joins()
	none("a gateway")

	const size = 16 << 20 // more than sockets take without being read
	file, err := r.server.files.Put(make([]byte, size))
	ok(t, err)
	dev, err := r.server.store.Device(t.Context(), "tel-2")
	ok(t, err)
	link := media.NewSigner(r.server.linkKey).Sign("device\n"+dev.Epoch+"\n0\ntel-2", file.Hash, "x.bin", "", time.Now().Add(time.Hour))
	for path, is := range map[string]func(string){link: none, link + "x": one} {
		c := rawDial(t, r.server.Addr().String(), "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n")
		_, err := bufio.NewReader(c).ReadString('\n')
		ok(t, err)
		is(path)
		_ = c.Close()
		none("nobody")
	}

	ok(t, r.admin.Post(t.Context(), "/users/add", Command{Name: "Anna", Password: "correct horse"}, nil))
	resp, err := r.http.Post(r.url("/auth/password-login"), "application/json", strings.NewReader(`{"provider":"basic","username":"anna","password":"correct horse"}`))
	ok(t, err)
	_ = resp.Body.Close()
	get := "GET /v1/models HTTP/1.1\r\nHost: x\r\nCookie: "
	for _, cookie := range resp.Cookies() {
		get += cookie.Name + "=" + cookie.Value + "; "
	}
	none("the login's connection")
	c := rawDial(t, r.server.Addr().String(), get+"\r\n\r\n")
	<-asked
	none("a user's request")
	answer <- struct{}{}
	_, err = bufio.NewReader(c).ReadString('\n')
	ok(t, err)
	one("the idle connection of a user")

	for _, d := range []*device{phone, sender, paired} {
		d.send(&frame.Ping{ID: "still here"})
		find[*frame.Pong](d)
	}
}
