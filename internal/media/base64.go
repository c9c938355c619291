package media

import (
	"bytes"
	"encoding/base64"
)

// Decode returns the bytes of a data field: base64 with the standard or the
// URL-safe alphabet, with or without padding (protocol §5). Blanks, line ends,
// a mix of both alphabets and wrong padding are refused; bits that do not fill
// a last byte are ignored. The error is a [*Refusal].
//
// It allocates once, exactly the result, which shares nothing with s.
func Decode(s []byte) ([]byte, error) {
	enc := base64.RawStdEncoding
	if bytes.IndexByte(s, '-') >= 0 || bytes.IndexByte(s, '_') >= 0 {
		enc = base64.RawURLEncoding
	}
	// The decoder of the standard library skips line ends; we do not.
	if bytes.IndexByte(s, '\n') >= 0 || bytes.IndexByte(s, '\r') >= 0 {
		return nil, errBase64
	}
	if n := len(s); n > 0 && n%4 == 0 {
		// Padding counts only where it fills the last group of four. More than
		// that stays in place and is an invalid character below.
		switch {
		case s[n-2] == '=' && s[n-1] == '=':
			s = s[:n-2]
		case s[n-1] == '=':
			s = s[:n-1]
		}
	}
	out := make([]byte, enc.DecodedLen(len(s)))
	n, err := enc.Decode(out, s)
	if err != nil || n != len(out) {
		return nil, errBase64
	}
	return out, nil
}

var errBase64 = badFrame("data must be base64, without line ends or blanks.")
