package frame

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// raw is a frame as it came. Its methods cost a pass over the bytes, so the usual frame needs none
// of them: they find out what a struct cannot say, and what is wrong with a frame that failed.
type raw []byte

// decoders are reused, because one is larger than most frames.
var decoders = sync.Pool{New: func() any {
	d := &decoder{}
	d.Decoder = jsontext.NewDecoder(&d.data)
	return d
}}

type decoder struct {
	*jsontext.Decoder
	data bytes.Buffer
}

// open starts to read the frame. The caller closes the decoder.
func (r raw) open() *decoder {
	d := decoders.Get().(*decoder)
	d.data = *bytes.NewBuffer(r)
	d.Reset(&d.data, jsontext.AllowDuplicateNames(false), jsontext.AllowInvalidUTF8(false))
	return d
}

func (d *decoder) close() {
	d.data = bytes.Buffer{} // a pooled decoder must not hold a frame of megabytes
	d.Reset(&d.data)
	decoders.Put(d)
}

// walk reads the whole frame and calls visit for each member of its object. The values alias the
// frame. The error is an *Error that says why the message is not one well-formed object.
func (r raw) walk(visit func(name string, value jsontext.Value)) error {
	d := r.open()
	defer d.close()
	tok, err := d.ReadToken()
	if err != nil {
		return malformed(err)
	}
	if tok.Kind() != '{' {
		return &Error{Code: BadFrame, Message: "a frame must be one JSON object with its type in \"t\""}
	}
	for {
		tok, err := d.ReadToken()
		if err != nil {
			return malformed(err)
		}
		if tok.Kind() == '}' {
			break
		}
		name := tok.String()
		value, err := d.ReadValue()
		if err != nil {
			return malformed(err)
		}
		end := int(d.InputOffset())
		visit(name, jsontext.Value(r[end-len(value):end]))
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return &Error{Code: BadFrame, Message: "data follows the JSON object: send one object in one message"}
	}
	return nil
}

func malformed(err error) error {
	message := "the message is not well-formed JSON"
	var syntax *jsontext.SyntacticError
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		message = "an object has the same key twice"
	case errors.As(err, &syntax):
		message += ", at byte " + strconv.FormatInt(syntax.ByteOffset, 10)
	}
	return &Error{Code: BadFrame, Message: message + ": send one JSON object in UTF-8"}
}

// member returns the value of a member, nil where it is absent or null.
func (r raw) member(name string) (value jsontext.Value) {
	_ = r.walk(func(n string, v jsontext.Value) { // a malformed frame has the members that were read
		if n == name && v.Kind() != 'n' {
			value = v
		}
	})
	return value
}

// text returns a string member; ok is false where the member is absent or has another type.
func (r raw) text(name string) (s string, ok bool) {
	v := r.member(name)
	if v.Kind() != '"' {
		return "", false
	}
	b, err := jsontext.AppendUnquote(nil, v)
	return string(b), err == nil
}

// typeStart begins nearly every frame: encoders write the type first.
const typeStart = `{"t":"`

// typeName returns the value of "t" where it comes first, without reading the rest; ok is false
// where only the slow path can tell.
func (r raw) typeName() (name []byte, ok bool) {
	rest, ok := bytes.CutPrefix(r, []byte(typeStart))
	if !ok {
		return nil, false
	}
	end := bytes.IndexByte(rest, '"')
	if end < 0 || bytes.IndexByte(rest[:end], '\\') >= 0 {
		return nil, false
	}
	return rest[:end], true
}

// ref returns what an error about the frame must name: its id, or the card that an answer without
// an id is for.
func (r raw) ref() string {
	for _, name := range []string{"id", "prompt_id"} {
		if id, ok := r.text(name); ok && ValidMessageID(id) {
			return id
		}
	}
	return ""
}

// without returns a copy of the frame in which the value at the pointer is null.
func (r raw) without(at jsontext.Pointer) raw {
	d := r.open()
	defer d.close()
	for {
		if _, err := d.ReadToken(); err != nil {
			return r
		}
		if d.StackPointer() != at {
			continue
		}
		if kind, n := d.StackIndex(d.StackDepth()); kind != '{' || n%2 == 0 {
			return r // the value was a single token, which the name before it has announced
		}
		start := int(d.InputOffset())
		if _, err := d.ReadValue(); err != nil {
			return r
		}
		end := int(d.InputOffset())
		return bytes.Join([][]byte{r[:start], r[end:]}, []byte(":null"))
	}
}

// tooDeep reports whether brackets nest deeper than MaxDepth, without building anything.
func (r raw) tooDeep() bool {
	depth := 0
	for i := 0; i < len(r); i++ {
		switch r[i] {
		case '{', '[':
			if depth++; depth > MaxDepth {
				return true
			}
		case '}', ']':
			depth--
		case '"':
			for i++; i < len(r); {
				skip := bytes.IndexByte(r[i:], '"')
				if skip < 0 {
					return false
				}
				// A quote after an odd number of backslashes belongs to the string.
				end := i + skip
				slashes := 0
				for end-1-slashes >= i && r[end-1-slashes] == '\\' {
					slashes++
				}
				i = end
				if slashes%2 == 0 {
					break
				}
				i++
			}
		}
	}
	return false
}
