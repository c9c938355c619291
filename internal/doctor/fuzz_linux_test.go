package doctor

import "testing"

// FuzzCollides: a line of /proc/net/tcp is read whatever stands in it, and every address meets itself.
func FuzzCollides(f *testing.F) {
	f.Add("0100007F", "127.0.0.1")
	f.Add("00000000000000000000000001000000", "::1")
	f.Add("00000000", "192.0.2.1")
	f.Add("xyz", "")
	f.Add("01", "localhost")
	f.Fuzz(func(t *testing.T, written, host string) {
		if !collides("00000000", host) || !collides(written, "0.0.0.0") || !collides(written, "") {
			t.Fatalf("every address does not meet %q, %q", written, host)
		}
		collides(written, host)
	})
}
