// Package plaintext removes byte-order marks from text that users write or pipe in, and rejects UTF-16.
package plaintext

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// BOM is the byte-order mark that editors on Windows put before UTF-8. It is not part of the text.
const BOM = "\ufeff"

// ErrEncoding means that a text is UTF-16 or UTF-32, which > writes in Windows PowerShell 5.
var ErrEncoding = errors.New("the text is UTF-16, not UTF-8: save it as UTF-8 (PowerShell: Out-File -Encoding utf8)")

// Trim removes one byte-order mark from the beginning of a text.
func Trim(text []byte) ([]byte, error) {
	if wide(text) {
		return nil, ErrEncoding
	}
	return bytes.TrimPrefix(text, []byte(BOM)), nil
}

// wide reports whether a text begins like UTF-16 or UTF-32: with its mark, or with a zero in one of two bytes.
func wide(text []byte) bool {
	if bytes.HasPrefix(text, []byte{0xff, 0xfe}) || bytes.HasPrefix(text, []byte{0xfe, 0xff}) || bytes.HasPrefix(text, []byte{0, 0, 0xfe, 0xff}) {
		return true
	}
	if len(text) < 4 {
		return false
	}
	little := text[0] != 0 && text[1] == 0 && text[2] != 0 && text[3] == 0
	big := text[0] == 0 && text[1] != 0 && text[2] == 0 && text[3] != 0
	return little || big
}

// Reader reads a text without the mark at its beginning. For UTF-16, its first Read fails.
func Reader(r io.Reader) io.Reader { return &reader{in: bufio.NewReader(r)} }

type reader struct {
	in    *bufio.Reader
	begun bool
}

func (r *reader) Read(p []byte) (int, error) {
	if !r.begun {
		r.begun = true
		// One byte can rule out a mark, so a user at a terminal need not type three.
		if first, _ := r.in.Peek(1); len(first) == 1 && (first[0] == 0xef || first[0] == 0xff || first[0] == 0xfe) {
			head, _ := r.in.Peek(len(BOM))
			if wide(head) {
				return 0, ErrEncoding
			}
			if string(head) == BOM {
				_, _ = r.in.Discard(len(BOM)) // it was peeked
			}
		}
	}
	return r.in.Read(p)
}
