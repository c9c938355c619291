package relay

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// Made with the gateway's own code in Python (doc/hermes/relay.md §3), not with ours.
var tokens = []struct{ id, secret, token string }{
	{"gw-any-id", "s3cret", "Z3ctYW55LWlkOjE4MDAwMDAzMDA6ZTAyYzk0MDhlZjY3MWU5NDhmOGFlYzkzZWYzZDYxYWU0ZjdmZDdhZGVlNzI0YjQ1MmRlYmNhMzc1NDAxMmYwMw"},
	{"gw:with:colons", "pässwörd", "Z3c6d2l0aDpjb2xvbnM6MTgwMDAwMDMwMDpjZTVhOTBhMDQ3MWJjY2NkZDg0NGI3MDI3MDY2MDRhNGM3MzJiYTdlY2QxNTY0MWI3OThhMWE2YzY3MDA2MDNh"},
}

func TestToken(t *testing.T) {
	secret := func(id string) (string, bool) {
		for _, v := range tokens {
			if v.id == id {
				return v.secret, true
			}
		}
		return "", id == "empty"
	}
	now := time.Unix(1_800_000_000, 0)
	for _, v := range tokens {
		for _, h := range []string{"Bearer " + v.token, "bearer  " + v.token + "=="} {
			if id, no := verify(h, secret, now); no != nil || id != v.id {
				t.Errorf("%s: %q %+v", v.id, id, no)
			}
		}
		for _, at := range []struct {
			off  time.Duration
			good bool
		}{
			{300 * time.Second, true}, {419 * time.Second, true}, {421 * time.Second, false}, {601 * time.Second, false},
			{-299 * time.Second, true}, {-301 * time.Second, false}, {-24 * time.Hour, false},
		} {
			id, no := verify("Bearer "+v.token, secret, now.Add(at.off))
			if (no == nil) != at.good || (id == "") == at.good {
				t.Errorf("%s at %s: %+v", v.id, at.off, no)
			}
			if no != nil && (no.Skew != -at.off || !strings.Contains(no.Reason, "clock")) {
				t.Errorf("at %s the difference is given as %s: %s", at.off, no.Skew, no.Reason)
			}
		}
	}
	good := tokens[0].token
	for _, h := range []string{
		"", "Bearer", "Bearer ", "Basic " + good, good, "Bearer " + good[1:], "Bearer " + good[:len(good)-3], "Bearer !!!", "Bearer " + good + " x",
		bearer("gw-any-id", "wrong", now.Add(300*time.Second)), bearer("other", "s3cret", now.Add(300*time.Second)),
		bearer("empty", "", now.Add(300*time.Second)), bearer("", "s3cret", now.Add(300*time.Second)),
		bearer("gw-any-id", "s3cret", time.Unix(0, 0)), "Bearer " + strings.Repeat("A", 10_000),
	} {
		id, no := verify(h, secret, now)
		if id != "" || no == nil {
			t.Errorf("%q is accepted", h)
		} else if strings.Contains(no.Reason, "s3cret") || len(h) > 20 && strings.Contains(no.Reason, h[10:20]) {
			t.Errorf("the reason tells too much: %s", no.Reason)
		}
	}
}

func TestUpgradeRefused(t *testing.T) {
	r := newRig(t, nil)
	for _, c := range [][2]string{{"gw", "wrong"}, {"other", "s3cret"}} {
		_, resp, err := r.dialAs(c[0], c[1])
		if err == nil || resp == nil || resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("%v: %v", c, err)
		}
	}
	st := r.a.State()
	if st.Refusals != 2 || st.LastRefusal == nil || st.LastRefusal.Reason != "unknown gateway id" {
		t.Errorf("state %+v", st.LastRefusal)
	}
	for path, want := range map[string]int{"/relay/provision": 404, "/relay/policy": 401, "/relay/media": 401, "/relay/x": 404} {
		resp, err := http.Post(r.srv.URL+path, "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, resp.StatusCode, want)
		}
	}
	resp, err := http.Get(r.srv.URL + "/relay/media/x")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 401 {
		t.Errorf("a file without a bearer: %d", resp.StatusCode)
	}
	http.DefaultClient.CloseIdleConnections()
}
