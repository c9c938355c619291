package push

import (
	"encoding/json"
	"net/netip"
	"net/url"
	"testing"
	"time"
)

// FuzzTarget: whatever a device registers, an endpoint that is taken is https without a login in it
// and no private address, and hours of quiet can be worked with.
func FuzzTarget(f *testing.F) {
	keys := `"keys":{"p256dh":"BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4","auth":"BTBZMqHH6r4Tts7J_aSIgg"}`
	for _, text := range []string{"{}", "null", `{"kind":"webpush","endpoint":"https://push.example/x",` + keys + `}`, `{"kind":"unifiedpush","endpoint":"https://ntfy.example/up?id=1"}`,
		`{"kind":"unifiedpush","endpoint":"http://127.0.0.1/"}`, `{"kind":"unifiedpush","endpoint":"https://a:b@push.example/#x"}`, `{"kind":"unifiedpush","endpoint":"https://[::ffff:10.0.0.1]/"}`,
		`{"kind":"unifiedpush","endpoint":"https://0x7f.1/","quiet":{"from":"22:00","to":"07:00","tz":"../../etc/passwd"}}`, `{"kind":"webpush","endpoint":"https://x","keys":{"p256dh":"","auth":"="}}`} {
		f.Add([]byte(text))
	}
	s := NewSender(Options{})
	f.Cleanup(s.Close)
	f.Fuzz(func(t *testing.T, b []byte) {
		var target Target
		if json.Unmarshal(b, &target) != nil {
			return
		}
		if target.Quiet != nil && target.Quiet.Check() == nil {
			target.Quiet.At(time.Unix(1_800_000_000, 0))
		}
		if s.Check(target) != nil {
			return
		}
		u, err := url.Parse(target.Endpoint)
		if err != nil || u.Scheme != "https" || u.User != nil || target.Host() == "" || len(target.Endpoint) > maxEndpoint || target.Kind == WebPush && !target.Encrypted() {
			t.Fatalf("%q is taken", b)
		}
		if a, err := netip.ParseAddr(u.Hostname()); err == nil && (a.IsPrivate() || a.IsLoopback() || a.IsUnspecified() || a.IsLinkLocalUnicast()) {
			t.Fatalf("%q is taken, %v", b, a)
		}
	})
}
