package onetime

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

// opens asks for a link; header lines come in pairs.
func opens(t *Tickets, method, key string, header ...string) (string, error) {
	r := httptest.NewRequest(method, "/enter?"+KeyName+"="+key, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return t.Exchange(r)
}

func with(cookies ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Cookie", strings.Join(cookies, "; "))
	return r
}

func TestKeyWorksOnce(t *testing.T) {
	c := &clock{time.Unix(1_800_000_000, 0)}
	tickets := New(time.Hour, c.now)
	key := tickets.Key()
	for _, early := range []struct {
		method string
		header []string
	}{
		{"HEAD", nil}, {"POST", nil}, {"OPTIONS", nil}, {"GET", []string{"Sec-Purpose", "prefetch"}}, {"GET", []string{"Sec-Purpose", "prefetch;prerender"}},
		{"GET", []string{"Purpose", "prefetch"}}, {"GET", []string{"X-Moz", "prefetch"}},
	} {
		if _, err := opens(tickets, early.method, key, early.header...); !errors.Is(err, ErrNotOpened) {
			t.Errorf("%s %v: %v", early.method, early.header, err)
		}
	}
	session, err := opens(tickets, "GET", key)
	if err != nil || session == "" || session == key {
		t.Fatalf("%q %v", session, err)
	}
	for _, bad := range []string{key, "", "AAAA", strings.Repeat("A", 26), session, strings.ToLower(key)} {
		if got, err := opens(tickets, "GET", bad); !errors.Is(err, ErrSpent) || got != "" {
			t.Errorf("%q opens a session, %v", bad, err)
		}
	}
	if !tickets.Holds(with("hm="+session), "hm") {
		t.Error("the session does not hold")
	}
}

func TestKeyExpires(t *testing.T) {
	c := &clock{time.Unix(1_800_000_000, 0)}
	tickets := New(time.Hour, c.now)
	early, late := tickets.Key(), tickets.Key()
	c.at = c.at.Add(KeyLife - time.Second)
	if _, err := opens(tickets, "GET", early); err != nil {
		t.Errorf("just before its end: %v", err)
	}
	c.at = c.at.Add(time.Second)
	if _, err := opens(tickets, "GET", late); !errors.Is(err, ErrSpent) {
		t.Errorf("after two minutes: %v", err)
	}
	if _, err := opens(New(time.Hour, c.now), "GET", tickets.Key()); !errors.Is(err, ErrSpent) {
		t.Error("a key of another run is taken")
	}
}

// However many ask at once, one gets in.
func TestKeyIsUsedByOne(t *testing.T) {
	tickets := New(time.Hour, time.Now)
	key := tickets.Key()
	var in atomic.Int32
	var work sync.WaitGroup
	for range 32 {
		work.Go(func() {
			if _, err := opens(tickets, "GET", key); err == nil {
				in.Add(1)
			}
		})
	}
	work.Wait()
	if n := in.Load(); n != 1 {
		t.Errorf("%d opened one link", n)
	}
}

// As many as one likes can be made, and the newest hold.
func TestTicketsAreBounded(t *testing.T) {
	tickets := New(time.Hour, time.Now)
	var keys, sessions []string
	for range 3 * maxSessions {
		keys, sessions = append(keys, tickets.Key()), append(sessions, tickets.Open())
	}
	if len(tickets.keys) != maxKeys || len(tickets.sessions) != maxSessions {
		t.Errorf("%d keys and %d sessions", len(tickets.keys), len(tickets.sessions))
	}
	for i, s := range sessions {
		if tickets.Holds(with("hm="+s), "hm") != (i >= len(sessions)-maxSessions) {
			t.Errorf("session %d of %d", i, len(sessions))
		}
	}
	for i, k := range keys {
		if _, err := opens(tickets, "GET", k); (err == nil) != (i >= len(keys)-maxKeys) {
			t.Errorf("key %d of %d: %v", i, len(keys), err)
		}
	}
}

func TestSessions(t *testing.T) {
	c := &clock{time.Unix(1_800_000_000, 0)}
	tickets := New(12*time.Hour, c.now)
	a, b := tickets.Open(), tickets.Open()
	for name, tt := range map[string]struct {
		cookies []string
		holds   bool
	}{
		"its cookie":            {[]string{"hm=" + a}, true},
		"beside a false one":    {[]string{"hm=x", "hm=" + a}, true},
		"none":                  {nil, false},
		"empty":                 {[]string{"hm="}, false},
		"under another name":    {[]string{"other=" + a}, false},
		"a name that is longer": {[]string{"hm2=" + a}, false},
		"changed":               {[]string{"hm=" + a + "A"}, false},
	} {
		if tickets.Holds(with(tt.cookies...), "hm") != tt.holds {
			t.Errorf("%s: holds is %t", name, !tt.holds)
		}
	}
	tickets.End(with("hm="+a), "hm")
	if tickets.Holds(with("hm="+a), "hm") || !tickets.Holds(with("hm="+b), "hm") {
		t.Error("the wrong session has ended")
	}
	c.at = c.at.Add(12*time.Hour - time.Second)
	if !tickets.Holds(with("hm="+b), "hm") {
		t.Error("it ended early")
	}
	c.at = c.at.Add(time.Second)
	if tickets.Holds(with("hm="+b), "hm") {
		t.Error("it does not end")
	}
	forever := New(0, c.now)
	s := forever.Open()
	c.at = c.at.Add(10000 * time.Hour)
	if !forever.Holds(with("hm="+s), "hm") {
		t.Error("a session of the program's run ended by itself")
	}
}

// The cookie alone, which other ports get to see, is not enough where the secret of the page is
// wanted, and that is told once.
func TestPage(t *testing.T) {
	c := &clock{time.Unix(1_800_000_000, 0)}
	tickets := New(time.Hour, c.now)
	a, b := tickets.Open(), tickets.Open()
	if tickets.HoldsPage(with("hm="+a), "hm", "") {
		t.Error("before there is a page the empty secret is right")
	}
	if page, ok := tickets.Claim(with("hm=x"), "hm"); ok || page != "" {
		t.Error("who has no session gets a secret")
	}
	page, ok := tickets.Claim(with("hm="+a), "hm")
	other, _ := tickets.Claim(with("hm="+b), "hm")
	if !ok || page == "" || page == a || page == other {
		t.Fatalf("%q %q %t", page, other, ok)
	}
	if again, ok := tickets.Claim(with("hm="+a), "hm"); ok || again != "" {
		t.Error("it is told a second time")
	}
	for secret, want := range map[string]bool{page: true, other: false, "": false, a: false, page + "A": false} {
		if tickets.HoldsPage(with("hm="+a), "hm", secret) != want {
			t.Errorf("%q: %t", secret, !want)
		}
	}
	if tickets.HoldsPage(with(), "hm", page) || tickets.HoldsPage(with("hm="+b), "hm", page) || !tickets.HoldsPage(with("hm=x", "hm="+a), "hm", page) {
		t.Error("the secret of the page is good without its cookie, or beside a false one not")
	}
	session, known := tickets.Admit()
	if !tickets.HoldsPage(with("hm="+session), "hm", known) || tickets.HoldsPage(with("hm="+session), "hm", page) {
		t.Error("who is admitted has no page, or that of another")
	}
	if _, ok := tickets.Claim(with("hm="+session), "hm"); ok {
		t.Error("the page of who is admitted is told a second time")
	}
	c.at = c.at.Add(time.Hour)
	if tickets.HoldsPage(with("hm="+a), "hm", page) {
		t.Error("it outlasts the session")
	}
}

func TestFromPage(t *testing.T) {
	own := func(origin string) bool { return origin == "https://agent.example" }
	for name, tt := range map[string]struct {
		method   string
		header   []string
		document bool
		want     bool
	}{
		"a person":                           {"GET", []string{"Sec-Fetch-Site", "none"}, false, true},
		"an old browser":                     {"GET", nil, false, true},
		"the page reads":                     {"GET", []string{"Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "cors"}, false, true},
		"the page writes":                    {"POST", []string{"Origin", "https://agent.example", "Sec-Fetch-Site", "same-origin"}, false, true},
		"nobody writes":                      {"POST", nil, false, false},
		"another page writes":                {"POST", []string{"Origin", "https://evil.example"}, false, false},
		"a sandbox writes":                   {"POST", []string{"Origin", "null"}, false, false},
		"another page reads":                 {"GET", []string{"Origin", "https://evil.example"}, false, false},
		"two origins":                        {"POST", []string{"Origin", "https://agent.example", "Origin", "https://evil.example"}, false, false},
		"a socket of no page":                {"GET", []string{"Upgrade", "websocket"}, false, false},
		"another site's image":               {"GET", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image"}, true, false},
		"another port's script":              {"GET", []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "script"}, true, false},
		"another site's frame":               {"GET", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, true, false},
		"a link on another site":             {"GET", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, true, true},
		"a link to what is no document":      {"GET", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, false, false},
		"a form on another site":             {"POST", []string{"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, true, false},
		"a value that no browser has so far": {"GET", []string{"Sec-Fetch-Site", "elsewhere"}, false, false},
	} {
		r := httptest.NewRequest(tt.method, "/", nil)
		for i := 0; i < len(tt.header); i += 2 {
			r.Header.Add(tt.header[i], tt.header[i+1])
		}
		if got := FromPage(r, own, tt.document); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestEndOthers(t *testing.T) {
	tickets := New(time.Hour, time.Now)
	mine, other := tickets.Open(), tickets.Open()
	tickets.EndOthers(with("hm="+mine, "hm=unknown"), "hm")
	if !tickets.Holds(with("hm="+mine), "hm") || tickets.Holds(with("hm="+other), "hm") {
		t.Error("the wrong sessions ended")
	}
	tickets.EndOthers(nil, "hm")
	if tickets.Holds(with("hm="+mine), "hm") {
		t.Error("a session outlives the end of all")
	}
}
