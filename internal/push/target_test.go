package push

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestCheck(t *testing.T) {
	s := sender(t, "ntfy.home.arpa", "10.0.0.7")
	good := target(service(t).Subscribe())
	good.Endpoint = "https://push.example.net/x"
	for name, tc := range map[string]struct {
		change func(*Target)
		says   string // empty: it is good
	}{
		"a browser":             {func(*Target) {}, ""},
		"with padding":          {func(t *Target) { t.Keys = &Secret{t.Keys.P256dh + "=", t.Keys.Auth + "=="} }, ""},
		"unifiedpush":           {func(t *Target) { t.Kind = UnifiedPush }, ""},
		"unifiedpush, bare":     {func(t *Target) { t.Kind, t.Keys = UnifiedPush, nil }, ""},
		"at home":               {func(t *Target) { t.Endpoint = "http://ntfy.home.arpa:8080/up?up=1" }, ""},
		"at home, by address":   {func(t *Target) { t.Endpoint = "http://10.0.0.7/up" }, ""},
		"another kind":          {func(t *Target) { t.Kind = "apns" }, "kind"},
		"no keys":               {func(t *Target) { t.Keys = nil }, "keys"},
		"no endpoint":           {func(t *Target) { t.Endpoint = "" }, "endpoint"},
		"no host":               {func(t *Target) { t.Endpoint = "https:///x" }, "https address"},
		"another scheme":        {func(t *Target) { t.Endpoint = "file:///etc/passwd" }, "https address"},
		"plain http":            {func(t *Target) { t.Endpoint = "http://push.example.net/x" }, "MOBILE_PUSH_HOSTS"},
		"a private address":     {func(t *Target) { t.Endpoint = "https://10.0.0.8/x" }, "MOBILE_PUSH_HOSTS"},
		"a name and a password": {func(t *Target) { t.Endpoint = "https://u:p@push.example.net/x" }, "password"},
		"a fragment":            {func(t *Target) { t.Endpoint += "#x" }, "#"},
		"too long":              {func(t *Target) { t.Endpoint += strings.Repeat("x", 2048) }, "2048"},
		"a key of nothing":      {func(t *Target) { t.Keys = &Secret{"", t.Keys.Auth} }, "p256dh"},
		"a key off the curve":   {func(t *Target) { t.Keys = &Secret{"BA" + strings.Repeat("A", 85), t.Keys.Auth} }, "p256dh"},
		"a short secret":        {func(t *Target) { t.Keys = &Secret{t.Keys.P256dh, "AAAA"} }, "auth"},
	} {
		to := good
		tc.change(&to)
		err := s.Check(to)
		if tc.says == "" && err != nil || tc.says != "" && (err == nil || !strings.Contains(err.Error(), tc.says)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestQuiet(t *testing.T) {
	night := &Quiet{From: "22:00", To: "07:00", TZ: "Europe/Berlin"}
	noon := &Quiet{From: "12:00", To: "13:30", TZ: "America/New_York"}
	ok(t, night.Check())
	for _, tc := range []struct {
		q    *Quiet
		at   string // in UTC; Berlin is one hour ahead in winter, two in summer
		want bool
	}{{nil, "2026-01-02T23:00:00Z", false}, {night, "2026-01-02T20:59:59Z", false}, {night, "2026-01-02T21:00:00Z", true}, {night, "2026-01-03T03:00:00Z", true},
		{night, "2026-01-03T05:59:00Z", true}, {night, "2026-01-03T06:00:00Z", false}, {night, "2026-07-02T20:00:00Z", true}, {night, "2026-07-03T05:00:00Z", false},
		{noon, "2026-01-02T17:00:00Z", true}, {noon, "2026-01-02T18:30:00Z", false}, {noon, "2026-01-02T16:59:00Z", false}} {
		at, err := time.Parse(time.RFC3339, tc.at)
		ok(t, err)
		if tc.q.At(at) != tc.want {
			t.Errorf("%+v at %s: %v", tc.q, tc.at, !tc.want)
		}
	}
	for _, bad := range []Quiet{{"7:00", "22:00", "UTC"}, {"22:00", "24:00", "UTC"}, {"22:00", "", "UTC"}, {"22:00", "22:00", "UTC"}, {"22:00", "07:00", "Mars/Olympus"}, {"22:00", "07:00", ""},
		{"22:00", "07:00", "Local"}, {"22:00", "07:00", "../../etc/passwd"}} {
		if bad.Check() == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}

func TestKeys(t *testing.T) {
	dir := t.TempDir()
	first, err := OpenKeys(dir)
	ok(t, err)
	path := filepath.Join(dir, KeysFile)
	info, err := os.Stat(path)
	ok(t, err)
	again, err := OpenKeys(dir)
	ok(t, err)
	if *first != *again || info.Mode().Perm() != 0o600 || len(first.Public) != 87 {
		t.Errorf("%q then %q, mode %v", first.Public, again.Public, info.Mode())
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("the folder holds %v (%v)", left, err)
	}
	other, err := OpenKeys(t.TempDir())
	ok(t, err)
	for _, text := range []string{"", "{}", "null", `{"public_key":"` + first.Public + `","private_key":"` + other.Private + `"}`} {
		ok(t, os.WriteFile(path, []byte(text), 0o600))
		if _, err := OpenKeys(dir); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := OpenKeys(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
}
