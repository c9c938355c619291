// Package onepass reads JSON of a known shape in one pass and without reflection. It is for the few kinds of
// messages of which a stream has thousands. It is stricter than a general decoder and never more tolerant:
// what it rejects, the caller gives to such a decoder.
package onepass

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Parser reads one document after another. A string that it returns is valid until the next string is read.
// A method that reads a value reports whether the value has the expected form.
type Parser struct {
	b    []byte
	at   int
	text []byte // of strings with escapes
	kept []byte // of Keep
}

// Reset begins a new document.
func (p *Parser) Reset(b []byte) { p.b, p.at = b, 0 }

// Peek returns the next byte that is no blank, or 0 at the end.
func (p *Parser) Peek() byte {
	for ; p.at < len(p.b); p.at++ {
		switch c := p.b[p.at]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// Take skips the byte c if it is the next one that is no blank, and reports whether it was.
func (p *Parser) Take(c byte) bool {
	if p.Peek() != c {
		return false
	}
	p.at++
	return true
}

// Over reports whether only blanks follow.
func (p *Parser) Over() bool { return p.Peek() == 0 && p.at == len(p.b) }

// Object reads an object. It calls member for each name, to read its value. If member returns false, the
// object is rejected.
func (p *Parser) Object(member func(name []byte) bool) bool {
	if !p.Take('{') {
		return false
	}
	if p.Take('}') {
		return true
	}
	for {
		name, ok := p.Str()
		if !ok || !p.Take(':') || !member(name) {
			return false
		}
		if p.Take('}') {
			return true
		}
		if !p.Take(',') {
			return false
		}
	}
}

// Null reads a null if there is one.
func (p *Parser) Null() bool {
	if p.Peek() != 'n' || !bytes.HasPrefix(p.b[p.at:], []byte("null")) {
		return false
	}
	p.at += len("null")
	return true
}

// Bool reads true or false.
func (p *Parser) Bool() (value, ok bool) {
	p.Peek()
	switch rest := p.b[p.at:]; {
	case bytes.HasPrefix(rest, []byte("true")):
		p.at += len("true")
		return true, true
	case bytes.HasPrefix(rest, []byte("false")):
		p.at += len("false")
		return false, true
	}
	return false, false
}

// Number reads a number without an exponent and returns its text.
func (p *Parser) Number() ([]byte, bool) {
	c := p.Peek()
	from := p.at
	if c == '-' {
		p.at++
	}
	first := p.at
	whole := p.digits()
	if whole == 0 || whole > 1 && p.b[first] == '0' {
		return nil, false
	}
	if p.at < len(p.b) && p.b[p.at] == '.' {
		p.at++
		if p.digits() == 0 {
			return nil, false
		}
	}
	if p.at < len(p.b) && p.b[p.at]|0x20 == 'e' {
		return nil, false
	}
	return p.b[from:p.at], true
}

// Num reads a number without an exponent.
func (p *Parser) Num() (float64, bool) {
	b, ok := p.Number()
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseFloat(string(b), 64)
	return n, err == nil
}

// Scalar skips a value that is neither an object nor an array.
func (p *Parser) Scalar() (ok bool) {
	switch c := p.Peek(); {
	case c == '"':
		_, ok = p.Str()
	case c == 't' || c == 'f':
		_, ok = p.Bool()
	case c == 'n':
		ok = p.Null()
	default:
		_, ok = p.Number()
	}
	return ok
}

// At returns how many bytes were read.
func (p *Parser) At() int { return p.at }

func (p *Parser) digits() int {
	from := p.at
	for p.at < len(p.b) && p.b[p.at] >= '0' && p.b[p.at] <= '9' {
		p.at++
	}
	return p.at - from
}

// Str reads a string of valid UTF-8.
func (p *Parser) Str() ([]byte, bool) {
	if !p.Take('"') {
		return nil, false
	}
	from := p.at
	ascii := true
	for ; p.at < len(p.b); p.at++ {
		switch c := p.b[p.at]; {
		case c == '"':
			s := p.b[from:p.at]
			p.at++
			return s, ascii || utf8.Valid(s)
		case c == '\\':
			return p.escaped(from)
		case c < ' ':
			return nil, false
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return nil, false
}

// Keep reads a string that stays valid until the next call of Keep.
func (p *Parser) Keep() ([]byte, bool) {
	s, ok := p.Str()
	p.kept = append(p.kept[:0], s...)
	return p.kept, ok
}

// escaped reads the rest of a string that began at from, and whose first escape is here.
func (p *Parser) escaped(from int) ([]byte, bool) {
	p.text = append(p.text[:0], p.b[from:p.at]...)
	for p.at < len(p.b) {
		c := p.b[p.at]
		p.at++
		switch {
		case c == '"':
			return p.text, utf8.Valid(p.text)
		case c < ' ':
			return nil, false
		case c != '\\':
			p.text = append(p.text, c)
			continue
		}
		if p.at == len(p.b) {
			return nil, false
		}
		c = p.b[p.at]
		p.at++
		switch c {
		case '"', '\\', '/':
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		case 'u':
			r, ok := p.rune()
			if !ok {
				return nil, false
			}
			p.text = utf8.AppendRune(p.text, r)
			continue
		default:
			return nil, false
		}
		p.text = append(p.text, c)
	}
	return nil, false
}

// rune reads the character after \u, which may take two escapes. Half a surrogate pair is rejected.
func (p *Parser) rune() (rune, bool) {
	r, ok := p.hex()
	if !ok || !utf16.IsSurrogate(r) {
		return r, ok
	}
	if !bytes.HasPrefix(p.b[p.at:], []byte(`\u`)) {
		return 0, false
	}
	p.at += 2
	low, ok := p.hex()
	r = utf16.DecodeRune(r, low)
	return r, ok && r != utf8.RuneError
}

func (p *Parser) hex() (r rune, ok bool) {
	if p.at+4 > len(p.b) {
		return 0, false
	}
	for _, c := range p.b[p.at : p.at+4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	p.at += 4
	return r, true
}
