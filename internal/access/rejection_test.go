package access

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"
)

func TestRejections(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	r := NewRejections(func() time.Time { return now })
	a, b := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	note := func(device string, addr netip.Addr, times int) {
		for range times {
			r.Note(device, addr, "auth_failed", "the token is wrong")
			now = now.Add(time.Minute)
		}
	}
	often := func() string {
		var out []string
		for _, x := range r.Often() {
			out = append(out, fmt.Sprintf("%s@%s %s×%d", x.Device, x.Addr, x.Code, x.Count))
		}
		return strings.Join(out, ", ")
	}
	note("tel-1", a, 2)
	note("tel-1", b, 2) // from elsewhere it is another
	note("tel-2", a, 2)
	if got := often(); got != "" {
		t.Errorf("twice is nothing: %s", got)
	}
	note("tel-1", a, 3)
	note("tel-2", a, 1)
	if got := often(); got != "tel-2@192.0.2.1 auth_failed×3, tel-1@192.0.2.1 auth_failed×5" {
		t.Errorf("%s", got)
	}
	if x := r.Often()[1]; !x.First.Equal(time.Unix(1_800_000_000, 0)) || x.Last.Sub(x.First) != 8*time.Minute || x.Why != "the token is wrong" {
		t.Errorf("%+v", x)
	}
	r.Forget("tel-2") // it was let in
	if got := often(); got != "tel-1@192.0.2.1 auth_failed×5" {
		t.Errorf("%s", got)
	}
	now = now.Add(50 * time.Minute)
	if got := often(); got == "" {
		t.Error("forgotten before an hour is over")
	}
	now = now.Add(10 * time.Minute)
	if got := often(); got != "" {
		t.Errorf("after an hour: %s", got)
	}
	note("tel-1", a, 2)
	if got := often(); got != "" {
		t.Errorf("after a pause it begins anew: %s", got)
	}
	note("tel-1", a, 1)
	if got := often(); got != "tel-1@192.0.2.1 auth_failed×3" {
		t.Errorf("%s", got)
	}
	// Slowly is not often.
	for range 10 {
		r.Note("tel-3", a, "forbidden", "no")
		now = now.Add(25 * time.Minute)
	}
	now = now.Add(11 * time.Minute)
	if got := often(); strings.Contains(got, "tel-3") {
		t.Errorf("twice an hour: %s", got)
	}
}

// Strangers can make up as many ids as they like.
func TestRejectionsAreBounded(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	r := NewRejections(func() time.Time { return now })
	for i := range 10 * maxRejected {
		r.Note(fmt.Sprintf("made-up-%d", i), netip.Addr{}, "auth_failed", strings.Repeat("x", 10_000))
		now = now.Add(time.Millisecond)
		for range 3 {
			r.Note("mine", netip.Addr{}, "forbidden", "bound to another token")
		}
	}
	if len(r.known) > maxRejected {
		t.Errorf("%d are remembered", len(r.known))
	}
	for _, e := range r.known {
		if len(e.Why) > maxWhy {
			t.Errorf("a reason of %d bytes is kept", len(e.Why))
		}
	}
	if list := r.Often(); len(list) != 1 || list[0].Device != "mine" {
		t.Errorf("the one that counts is lost: %+v", list)
	}
}
