package frame

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Text and names come from people and agents. Encoding replaces invalid UTF-8 in them, because it
// must never lose a frame.
var encodeOptions = json.JoinOptions(json.DefaultOptionsV2(), jsontext.AllowInvalidUTF8(true))

// EncodeDown returns a frame as the server sends it. It panics for a type that is not of this
// package.
func EncodeDown(f Down) []byte {
	switch f := f.(type) {
	case *Message:
		return f.AppendJSON(make([]byte, 0, len(f.Text)+160))
	case *Media:
		return f.encode(true)
	case *Result:
		return f.encode()
	}
	return withType(DownName(f), f)
}

// EncodeUp returns a frame as a device sends it. It panics for a type that is not of this package.
func EncodeUp(f Up) []byte {
	switch f := f.(type) {
	case *Media:
		return f.encode(false)
	case *Call:
		return f.encode()
	}
	return withType(UpName(f), f)
}

var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// withType encodes a struct with "t" as its first member.
func withType(t string, v any) []byte {
	buf := bodies.Get().(*bytes.Buffer)
	buf.Reset()
	if err := json.MarshalWrite(buf, v, encodeOptions); err != nil {
		panic(fmt.Sprintf("frame: encode %T: %v", v, err)) // every frame is made of strings, numbers and booleans
	}
	body := buf.Bytes()
	b := make([]byte, 0, len(body)+len(t)+8)
	b = quote(append(b, `{"t":`...), t)
	if len(body) > 2 {
		b = append(b, ',')
	}
	b = append(b, body[1:]...)
	if buf.Cap() <= 64<<10 { // the pool must not keep the largest frames
		bodies.Put(buf)
	}
	return b
}

// encode writes the data straight into the frame, because a part has megabytes and every copy
// counts. A down frame always has "final": clients read it without asking.
func (m *Media) encode(down bool) []byte {
	head := *m
	head.Data = nil
	b := withType("media", &head)
	if down && !m.Final {
		b = append(b[:len(b)-1], `,"final":false}`...)
	}
	if m.Data == nil {
		return b
	}
	b = append(slices.Grow(b[:len(b)-1], base64.StdEncoding.EncodedLen(len(m.Data))+16), `,"data":"`...)
	b = base64.StdEncoding.AppendEncode(b, m.Data)
	return append(b, `"}`...)
}

// AppendJSON appends the encoded frame to b and returns the result. It is written by hand because a
// streamed reply sends many of them.
func (m *Message) AppendJSON(b []byte) []byte {
	b = append(b, `{"t":"message","id":`...)
	b = quote(b, m.ID)
	if m.Append != nil {
		if m.Edit {
			b = append(b, `,"edit":true`...)
		}
		if m.At != 0 || m.Edit || m.Final {
			b = append(b, `,"at":`...)
			b = strconv.AppendInt(b, int64(m.At), 10)
		}
		b = append(b, `,"append":`...)
		b = quote(b, *m.Append)
	} else {
		b = append(b, `,"text":`...)
		b = quote(b, m.Text)
		if m.Edit {
			b = append(b, `,"edit":true`...)
		}
		b = append(b, `,"chunk":{"index":`...)
		b = strconv.AppendInt(b, int64(m.Chunk.Index), 10)
		b = append(b, `,"total":`...)
		b = strconv.AppendInt(b, int64(m.Chunk.Total), 10)
		b = append(b, '}')
	}
	if m.Append == nil || m.Edit || m.Final {
		b = append(b, `,"final":`...)
		b = strconv.AppendBool(b, m.Final)
	}
	if m.Interrupted {
		b = append(b, `,"interrupted":true`...)
	}
	for _, f := range [...]struct{ name, value string }{{`,"reply_to":`, m.ReplyTo}, {`,"source":`, m.Source}, {`,"job":`, m.Job}} {
		if f.value != "" {
			b = append(b, f.name...)
			b = quote(b, f.value)
		}
	}
	if m.Seq != 0 {
		b = append(b, `,"seq":`...)
		b = strconv.AppendInt(b, m.Seq, 10)
	}
	return append(b, '}')
}

func quote(b []byte, s string) []byte {
	q, err := jsontext.AppendQuote(b, s)
	if err != nil { // invalid UTF-8
		q, _ = jsontext.AppendQuote(b, strings.ToValidUTF8(s, "\uFFFD"))
	}
	return q
}

func (r *Result) encode() []byte {
	b := quote([]byte(`{"t":"result","id":`), r.ID)
	if r.Err != nil {
		e, _ := json.Marshal(r.Err, encodeOptions)
		return append(append(append(b, `,"error":`...), e...), '}')
	}
	b = append(b, `,"result":`...)
	if len(r.Result) == 0 {
		b = append(b, "{}"...)
	}
	return append(append(b, r.Result...), '}')
}

func (c *Call) encode() []byte {
	b := quote([]byte(`{"t":"call","id":`), c.ID)
	b = quote(append(b, `,"method":`...), c.Method)
	b = append(b, `,"params":`...)
	if len(c.Params) == 0 {
		b = append(b, "{}"...)
	}
	return append(append(b, c.Params...), '}')
}
