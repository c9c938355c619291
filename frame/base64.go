package frame

import (
	"bytes"
	"encoding/base64"
)

// decodeBase64 accepts the standard and the URL-safe alphabet, with or without padding, and ignores
// line breaks (doc/protocol.md §5).
func decodeBase64(s []byte) ([]byte, bool) {
	if bytes.IndexByte(s, '\n') >= 0 || bytes.IndexByte(s, '\r') >= 0 { // some encoders break lines unless told not to
		s = bytes.Map(func(r rune) rune {
			if r == '\n' || r == '\r' {
				return -1
			}
			return r
		}, s)
	}
	padded := len(s)
	s = bytes.TrimRight(s, "=")
	if pad := padded - len(s); pad > 0 && (pad > 2 || padded%4 != 0) {
		return nil, false
	}
	enc := base64.RawStdEncoding
	if bytes.IndexByte(s, '-') >= 0 || bytes.IndexByte(s, '_') >= 0 {
		enc = base64.RawURLEncoding
	}
	b := make([]byte, enc.DecodedLen(len(s)))
	n, err := enc.Decode(b, s)
	return b[:n], err == nil
}
