package frame

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// object is the top level of one frame: names and raw values in the order they came.
type object struct {
	fields [16]field
	more   []field
	n      int
}

type field struct {
	name  string
	value jsontext.Value
}

// Both are larger than most frames, so they are used for one after the other.
var (
	objects  = sync.Pool{New: func() any { return new(object) }}
	decoders = sync.Pool{New: func() any { d := &decoder{}; d.Decoder = jsontext.NewDecoder(&d.data); return d }}
)

type decoder struct {
	*jsontext.Decoder
	data bytes.Buffer
}

// read begins to read a frame.
func (d *decoder) read(data []byte, opts ...jsontext.Options) {
	d.data = *bytes.NewBuffer(data)
	d.Reset(&d.data, opts...)
}

// parse reads the whole frame. The values alias data. Unknown members are checked like known ones, for a key twice is an
// error at any depth (doc/protocol.md §1), but not kept beyond a bounded number.
func (o *object) parse(data []byte) error {
	if tooDeep(data) {
		return &Error{Code: BadFrame, Message: "the frame is nested more than " + strconv.Itoa(MaxDepth) + " levels deep"}
	}
	dec := decoders.Get().(*decoder)
	defer func() {
		dec.read(nil) // a pooled decoder must not hold a frame of megabytes
		decoders.Put(dec)
	}()
	dec.read(data, jsontext.AllowDuplicateNames(false), jsontext.AllowInvalidUTF8(false))
	tok, err := dec.ReadToken()
	if err != nil {
		return malformed(err)
	}
	if tok.Kind() != '{' {
		return &Error{Code: BadFrame, Message: "a frame is one JSON object with its type in \"t\""}
	}
	for {
		tok, err := dec.ReadToken()
		if err != nil {
			return malformed(err)
		}
		if tok.Kind() == '}' {
			break
		}
		name := tok.String()
		value, err := dec.ReadValue()
		if err != nil {
			return malformed(err)
		}
		// The decoder promises its slice until the next read only; the same bytes stand in data.
		end := int(dec.InputOffset())
		o.add(name, jsontext.Value(data[end-len(value):end]))
	}
	if _, err := dec.ReadToken(); err != io.EOF {
		return &Error{Code: BadFrame, Message: "something follows the JSON object: send one object in one message"}
	}
	return nil
}

func (o *object) add(name string, value jsontext.Value) {
	if !known[name] {
		return
	}
	if o.n < len(o.fields) {
		o.fields[o.n] = field{name, value}
	} else {
		o.more = append(o.more, field{name, value})
	}
	o.n++
}

// known are the names that some frame of ours has; whatever else a frame holds is ignored. They are those of the types in up.go, so a
// field that is added there is known here.
var known = func() map[string]bool {
	m := map[string]bool{"t": true, "params": true} // the type, and what a Call takes as it is
	for _, f := range []Up{&Hello{}, &Text{}, &Audio{}, &Media{}, &Answer{}, &Stop{}, &Ack{}, &Deliver{}, &Ping{}, &Call{}} {
		learn(m, reflect.TypeOf(f).Elem())
	}
	return m
}()

// learn takes the names of the members of a struct, and of the structs in it.
func learn(names map[string]bool, t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" {
			names[name] = true
		}
		of := f.Type
		if of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		if of.Kind() == reflect.Struct {
			learn(names, of)
		}
	}
}

func malformed(err error) error {
	m := "the message is not well-formed JSON"
	var syntax *jsontext.SyntacticError
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		m = "a key stands twice in one object"
	case errors.As(err, &syntax):
		m += ", at byte " + strconv.FormatInt(syntax.ByteOffset, 10)
	}
	return &Error{Code: BadFrame, Message: m + ": send one JSON object in UTF-8"}
}

// tooDeep reports whether brackets nest deeper than MaxDepth, without building anything.
func tooDeep(data []byte) bool {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '{', '[':
			if depth++; depth > MaxDepth {
				return true
			}
		case '}', ']':
			depth--
		case '"':
			for i++; i < len(data); {
				skip := bytes.IndexByte(data[i:], '"')
				if skip < 0 {
					return false
				}
				// A quote after an odd number of backslashes belongs to the string.
				end := i + skip
				slashes := 0
				for end-1-slashes >= i && data[end-1-slashes] == '\\' {
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

// get returns the raw value of a member, nil when it is absent or null.
func (o *object) get(name string) jsontext.Value {
	for i := range min(o.n, len(o.fields)) {
		if o.fields[i].name == name {
			return present(o.fields[i].value)
		}
	}
	for _, f := range o.more {
		if f.name == name {
			return present(f.value)
		}
	}
	return nil
}

func present(v jsontext.Value) jsontext.Value {
	if v.Kind() == 'n' {
		return nil
	}
	return v
}

// str returns a string member; ok is false when it has another type. Absent and null are "".
func (o *object) str(name string) (s string, ok bool) {
	v := o.get(name)
	if v == nil {
		return "", true
	}
	if v.Kind() != '"' {
		return "", false
	}
	if bytes.IndexByte(v, '\\') < 0 {
		return string(v[1 : len(v)-1]), true
	}
	b, err := jsontext.AppendUnquote(nil, v)
	if err != nil {
		return "", false
	}
	return string(b), true
}

// integer returns a whole number; ok is false for anything else. Absent and null give missing.
func (o *object) integer(name string, missing int64) (n int64, ok bool) {
	v := o.get(name)
	if v == nil {
		return missing, true
	}
	if v.Kind() != '0' {
		return 0, false
	}
	n, err := strconv.ParseInt(string(v), 10, 64)
	return n, err == nil
}

// data returns base64 content; ok is false when there is none or it is not base64.
func (o *object) data(name string) (b []byte, ok bool) {
	v := o.get(name)
	if v.Kind() != '"' {
		return nil, false
	}
	raw := []byte(v[1 : len(v)-1])
	if bytes.IndexByte(raw, '\\') >= 0 {
		var err error
		if raw, err = jsontext.AppendUnquote(nil, v); err != nil {
			return nil, false
		}
	}
	return decodeBase64(raw)
}

// id returns the message id, "" where there is none; ok is false for anything that cannot be one.
func (o *object) id(name string) (id string, ok bool) {
	id, ok = o.str(name)
	return id, ok && (id == "" || ValidMessageID(id))
}

// ValidMessageID reports whether id may name a message: 1 to 128 printable characters (doc/protocol.md §3).
func ValidMessageID(id string) bool {
	if id == "" || utf8.RuneCountInString(id) > MaxID {
		return false
	}
	for _, r := range id {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

// ValidID reports whether id may name a device or a user: 1 to 128 characters of A-Z a-z 0-9 . _ - : @ (doc/protocol.md §2).
func ValidID(id string) bool {
	if id == "" || len(id) > MaxID {
		return false
	}
	for i := range len(id) {
		c := id[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '.', c == '_', c == '-', c == ':', c == '@':
		default:
			return false
		}
	}
	return true
}

// CleanName makes a name fit for display: [Strip] removes what does not show as itself, and at most 128 characters stay.
func CleanName(s string) string {
	s = Strip(s)
	n := 0
	for i := range s {
		if n++; n > MaxName {
			return Strip(s[:i]) // the cut may have parted an emoji
		}
	}
	return s
}
