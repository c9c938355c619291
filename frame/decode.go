package frame

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// DecodeUp reads one text message of a device. It rejects anything that is not one JSON object in
// UTF-8, a key twice in one object, nesting deeper than [MaxDepth], an unknown type, and known
// frames with a missing, mistyped or malformed field. It ignores unknown fields. It does not check
// the limits that a server can change, such as the sizes of files and voice messages.
//
// The error is an [*Error] that the server sends back as it is. It names the frame where it can.
// The error of a media frame is a [*PartError], which wraps the *Error. The frame does not alias
// data.
func DecodeUp(data []byte) (Up, error) {
	r := raw(data)
	if r.tooDeep() {
		return nil, &Error{Code: BadFrame, Message: fmt.Sprintf("the frame nests more than %d levels deep", MaxDepth)}
	}
	name, ok := r.typeName()
	t := upByName[string(name)]
	if !ok || t == nil {
		var err error
		if t, err = r.upType(); err != nil {
			return nil, err
		}
	}
	f := t.new()
	err := json.Unmarshal(data, f, t.options)
	if err != nil {
		f, err = t.retry(r, err)
	}
	if err == nil {
		err = t.check(f, r)
	}
	if err == nil {
		return f, nil
	}
	var e *Error
	if !errors.As(err, &e) || r.walk(func(string, jsontext.Value) {}) != nil {
		return nil, err // the frame has no fields to name it by
	}
	e.Ref = r.ref()
	if t.name == "media" {
		return nil, &PartError{e}
	}
	return nil, e
}

// upType finds the type of a frame that does not begin with a known one.
func (r raw) upType() (*upType, error) {
	if err := r.walk(func(string, jsontext.Value) {}); err != nil {
		return nil, err
	}
	name, ok := r.text("t")
	if !ok || name == "" {
		return nil, &Error{Code: BadFrame, Message: "the frame has no type: \"t\" must be a string", Ref: r.ref()}
	}
	if t := upByName[name]; t != nil {
		return t, nil
	}
	e := &Error{Code: Unsupported, Message: "this server does not know frames of this type: check \"t\", or the version of the server"}
	if id, ok := r.text("id"); ok && ValidMessageID(id) {
		e.Ref = id
	}
	return nil, e
}

// retry decodes a frame again without the mistyped fields that its type ignores, or says what is
// wrong.
func (t *upType) retry(r raw, err error) (Up, error) {
	for data := r; ; {
		if err := data.walk(func(string, jsontext.Value) {}); err != nil {
			return nil, err
		}
		var mistyped *json.SemanticError
		if !errors.As(err, &mistyped) {
			return nil, malformed(err)
		}
		field := strings.TrimPrefix(string(mistyped.JSONPointer), "/")
		if t.loose == nil || !t.loose(field, r) {
			return nil, wrongType(mistyped)
		}
		rest := data.without(mistyped.JSONPointer)
		if len(rest) == len(data) && string(rest) == string(data) {
			return nil, wrongType(mistyped)
		}
		data = rest
		f := t.new()
		if err = json.Unmarshal(data, f, t.options); err == nil {
			return f, nil
		}
	}
}

// wrongType says which field has which type.
func wrongType(e *json.SemanticError) error {
	want := "an object"
	if e.GoType != nil {
		switch e.GoType.Kind() {
		case reflect.String:
			want = "a string"
		case reflect.Int, reflect.Int64:
			want = "a whole number"
		case reflect.Bool:
			want = "true or false"
		case reflect.Slice:
			want = "in base64"
		}
	}
	name := strings.ReplaceAll(strings.TrimPrefix(string(e.JSONPointer), "/"), "/", ".")
	return &Error{Code: BadFrame, Message: fmt.Sprintf("%q must be %s", name, want)}
}

// PartError reports that a server rejected a media frame. The server drops the series of frames
// that Refusal.Ref names (doc/protocol.md §5).
type PartError struct{ Refusal *Error }

// Error returns the text of the refusal.
func (e *PartError) Error() string { return e.Refusal.Error() }

// Unwrap returns the refusal, which is the frame to answer with.
func (e *PartError) Unwrap() error { return e.Refusal }

// The options of the strict codec: the defaults of json v2 reject duplicate keys and invalid UTF-8,
// and match names by case.
var (
	strict       = json.DefaultOptionsV2()
	strictBase64 = json.JoinOptions(strict, json.WithUnmarshalers(json.UnmarshalFromFunc(readBase64)))
	helloOptions = json.JoinOptions(strict, json.WithUnmarshalers(json.JoinUnmarshalers(
		json.UnmarshalFromFunc(readFeatures), json.UnmarshalFromFunc(readCursor))))
)

// readBase64 takes every spelling of base64 (see decodeBase64). Null leaves the data nil.
func readBase64(d *jsontext.Decoder, data *[]byte) error {
	v, err := d.ReadValue()
	if err != nil || v.Kind() == 'n' {
		return err
	}
	if v.Kind() != '"' {
		return errors.New("not a string")
	}
	text := []byte(v[1 : len(v)-1])
	if bytes.IndexByte(v, '\\') >= 0 {
		if text, err = jsontext.AppendUnquote(nil, v); err != nil {
			return err
		}
	}
	var ok bool
	if *data, ok = decodeBase64(text); !ok {
		return errors.New("not base64")
	}
	return nil
}

// readFeatures keeps the names that this package knows, whatever else the list holds.
func readFeatures(d *jsontext.Decoder, features *[]string) error {
	v, err := d.ReadValue()
	if err != nil {
		return err
	}
	*features = nil
	var names []any
	if json.Unmarshal(v, &names) != nil {
		return nil
	}
	for _, known := range []string{AcceptDelta, AcceptTail, AcceptTool, AcceptNotice} {
		for _, name := range names {
			if name == known {
				*features = append(*features, known)
				break
			}
		}
	}
	return nil
}

// readCursor turns a malformed cursor into one that matches no outbox.
func readCursor(d *jsontext.Decoder, c *Cursor) error {
	v, err := d.ReadValue()
	if err != nil {
		return err
	}
	var in struct {
		Epoch string `json:"epoch"`
		Seq   *int64 `json:"seq"`
	}
	*c = Cursor{Seq: -1}
	if json.Unmarshal(v, &in) == nil && in.Seq != nil && *in.Seq >= 0 {
		*c = Cursor{Epoch: in.Epoch, Seq: *in.Seq}
	}
	return nil
}

// The options of the tolerant codec, for frames of a server.
var tolerant = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// DecodeDown reads one text message of a server, as a client must: it ignores unknown fields and
// returns an [*Unknown] for an unknown type. The error is not an [*Error]; it reports a message
// that no server of this protocol sends.
func DecodeDown(data []byte) (Down, error) {
	var t *downType
	if name, ok := raw(data).typeName(); ok {
		t = downByName[string(name)]
	}
	if t == nil {
		var head struct {
			T string `json:"t"`
		}
		if err := json.Unmarshal(data, &head, tolerant); err != nil {
			return nil, fmt.Errorf("frame: read type: %w", err)
		}
		if t = downByName[head.T]; t == nil {
			return &Unknown{Type: head.T}, nil
		}
	}
	f := t.new()
	var err error
	if r, ok := f.(*Result); ok {
		err = r.decode(data)
	} else {
		err = json.Unmarshal(data, f, tolerant)
	}
	if err != nil {
		return nil, fmt.Errorf("frame: read %s: %w", t.name, err)
	}
	return f, nil
}

// decode keeps the result as the JSON it is.
func (r *Result) decode(data []byte) error {
	var in struct {
		ID     string         `json:"id"`
		Result jsontext.Value `json:"result"`
		Err    *CallError     `json:"error"`
	}
	if err := json.Unmarshal(data, &in, tolerant); err != nil {
		return err
	}
	r.ID, r.Result, r.Err = in.ID, []byte(in.Result), in.Err
	return nil
}
