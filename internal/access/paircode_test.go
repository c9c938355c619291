package access

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestPairingCode(t *testing.T) {
	for want, c := range map[string]PairingCode{
		"for a new user": {},
		"for user anna, trusted, token for 30 days": {User: "anna", Trusted: true, Life: 30 * 24 * time.Hour},
		"for a new user, token for 1 hour":          {Life: time.Hour},
		"for a new user, token for 1.5s":            {Life: 1500 * time.Millisecond},
	} {
		if got := c.Describe(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if err := (PairingCode{User: "a b"}).Check(); !errors.Is(err, ErrBadUser) {
		t.Error(err)
	}
	if err := (PairingCode{}).Check(); err != nil {
		t.Error(err)
	}
}

func TestRedeemed(t *testing.T) {
	var r Redeemed
	now := time.Now()
	r.Add(Paired{Code: "old", At: now.Add(-pairedTTL - time.Second)})
	for i := range maxPaired + 1 {
		r.Add(Paired{Code: fmt.Sprint(i), At: now})
	}
	r.Add(Paired{Code: "5", ID: "again", At: now})
	list := r.List()
	if len(list) != maxPaired || list[0].Code != "1" || list[maxPaired-1].ID != "again" {
		t.Errorf("%d remembered, %v first, %v last", len(list), list[0], list[len(list)-1])
	}
}

func TestApprovals(t *testing.T) {
	var a Approvals
	if _, err := a.Write(func() (User, error) { return User{}, errors.New("disk full") }); err == nil || a.Own("") {
		t.Error("a failed approval is remembered")
	}
	if _, err := a.Write(func() (User, error) { return User{UserID: "anna"}, nil }); err != nil {
		t.Fatal(err)
	}
	if !a.Own("anna") || a.Own("anna") || a.Own("bert") {
		t.Error("an own approval is not known once")
	}
}

func TestFormatLife(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{time.Second: "1 second", 90 * time.Minute: "90 minutes", time.Hour: "1 hour", 12 * time.Hour: "12 hours",
		24 * time.Hour: "1 day", 720 * time.Hour: "30 days", 90 * time.Second: "90 seconds"} {
		if got := FormatLife(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}
