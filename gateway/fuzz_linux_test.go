package gateway

import "testing"

// FuzzNetlink: messages of the kernel of any length are decoded without a panic.
func FuzzNetlink(f *testing.F) {
	f.Add([]byte{})
	f.Add(make([]byte, 16))
	f.Add([]byte{32, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0})
	f.Add([]byte{255, 255, 255, 255, 16, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 && matters(b) {
			t.Fatal("nothing was said, and it matters")
		}
		matters(b)
	})
}
