package gateway

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// parser reads JSON in one pass, as servers write it. It is stricter than encoding/json and never more generous: what it
// refuses is left to that. A string is valid until the next one is read.
type parser struct {
	b    []byte
	at   int
	text []byte // of strings with escapes
	kept []byte // of keep
}

// reset begins with a document.
func (p *parser) reset(b []byte) { p.b, p.at = b, 0 }

// peek is the next byte that is no blank; 0 at the end.
func (p *parser) peek() byte {
	for ; p.at < len(p.b); p.at++ {
		switch c := p.b[p.at]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

func (p *parser) take(c byte) bool {
	if p.peek() != c {
		return false
	}
	p.at++
	return true
}

// over reports whether nothing follows.
func (p *parser) over() bool { return p.peek() == 0 && p.at == len(p.b) }

// object reads an object. member reads the value of a name, and says no to a name that it does not know.
func (p *parser) object(member func(name []byte) bool) bool {
	if !p.take('{') {
		return false
	}
	if p.take('}') {
		return true
	}
	for {
		name, ok := p.str()
		if !ok || !p.take(':') || !member(name) {
			return false
		}
		if p.take('}') {
			return true
		}
		if !p.take(',') {
			return false
		}
	}
}

// null reads a null where there is one.
func (p *parser) null() bool {
	if p.peek() != 'n' || !bytes.HasPrefix(p.b[p.at:], []byte("null")) {
		return false
	}
	p.at += len("null")
	return true
}

// num reads a number.
func (p *parser) num() (float64, bool) {
	c := p.peek()
	from := p.at
	if c == '-' {
		p.at++
	}
	first := p.at
	whole := p.digits()
	if whole == 0 || whole > 1 && p.b[first] == '0' {
		return 0, false
	}
	if p.at < len(p.b) && p.b[p.at] == '.' {
		p.at++
		if p.digits() == 0 {
			return 0, false
		}
	}
	if p.at < len(p.b) && p.b[p.at]|0x20 == 'e' {
		return 0, false
	}
	n, err := strconv.ParseFloat(string(p.b[from:p.at]), 64)
	return n, err == nil
}

func (p *parser) digits() int {
	from := p.at
	for p.at < len(p.b) && p.b[p.at] >= '0' && p.b[p.at] <= '9' {
		p.at++
	}
	return p.at - from
}

// str reads a string of valid UTF-8.
func (p *parser) str() ([]byte, bool) {
	if !p.take('"') {
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

// keep reads a string that stays valid until keep is called again.
func (p *parser) keep() ([]byte, bool) {
	s, ok := p.str()
	p.kept = append(p.kept[:0], s...)
	return p.kept, ok
}

// escaped reads the string that began at from and has its first escape here.
func (p *parser) escaped(from int) ([]byte, bool) {
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

// rune reads what follows \u: one character, which may take two of them. Half a character is refused.
func (p *parser) rune() (rune, bool) {
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

func (p *parser) hex() (r rune, ok bool) {
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
