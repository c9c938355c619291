package frame

import (
	"slices"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// DecodeUp reads one text message of a device. It refuses, with an *Error that names the frame where it can and is to be
// sent back: what is not one JSON object in UTF-8, a key twice, nesting over MaxDepth, an unknown type, and known frames
// whose fields are missing, of a wrong type or out of their form. Unknown fields are ignored. Limits that a server can
// change (sizes of files and voice messages, counts of parts) are not checked here. The *Error of a media frame is in a
// *PartError.
func DecodeUp(data []byte) (Up, error) {
	o := objects.Get().(*object)
	defer func() {
		*o = object{}
		objects.Put(o)
	}()
	if err := o.parse(data); err != nil {
		return nil, err
	}
	t, ok := o.str("t")
	if !ok || t == "" {
		return nil, &Error{Code: BadFrame, Message: "the frame has no type: \"t\" must be a string", Ref: o.ref()}
	}
	decode, ok := upTypes[t]
	if !ok {
		e := &Error{Code: Unsupported, Message: "this server does not know frames of this type: check \"t\", or the version of the server"}
		if id, ok := o.id("id"); ok {
			e.Ref = id
		}
		return nil, e
	}
	f, err := decode(o)
	if err != nil {
		e := err.(*Error)
		e.Ref = o.ref()
		if t == "media" {
			return nil, &PartError{e}
		}
		return nil, e
	}
	return f, nil
}

// PartError says that a media frame was refused: whoever receives it drops the series of Refusal.Ref (doc/protocol.md §5).
type PartError struct{ Refusal *Error }

// Error returns what the refusal says.
func (e *PartError) Error() string { return e.Refusal.Error() }

// Unwrap returns the refusal, the frame to answer with.
func (e *PartError) Unwrap() error { return e.Refusal }

var upTypes = map[string]func(*object) (Up, error){
	"hello": decodeHello, "text": decodeText, "audio": decodeAudio, "media": decodeMedia, "prompt": decodeAnswer,
	"stop": decodeStop, "ack": decodeAck, "deliver": decodeDeliver, "ping": decodePing, "call": decodeCall,
}

// ref is what an error about this frame names: its id, or the card that an answer without id is for.
func (o *object) ref() string {
	if id, ok := o.id("id"); ok && id != "" {
		return id
	}
	if id, ok := o.id("prompt_id"); ok {
		return id
	}
	return ""
}

func bad(message string) error { return &Error{Code: BadFrame, Message: message} }

const badID = "\"id\" must be a string of 1 to 128 printable characters"

func decodeHello(o *object) (Up, error) {
	h := &Hello{}
	var ok bool
	if v := o.get("pair"); v != nil {
		if h.Pair, ok = o.str("pair"); !ok || h.Pair == "" {
			return nil, bad("\"pair\" must be the one-time code that the server printed")
		}
	} else if v := o.get("token"); v == nil {
		return nil, bad("hello needs the app's token in \"token\", or a one-time code in \"pair\"")
	} else if h.Token, ok = o.str("token"); !ok {
		return nil, bad("\"token\" must be a string")
	}
	device, ok := o.inner("device")
	if !ok {
		return nil, bad("hello needs \"device\" with an \"id\"")
	}
	if h.Device.ID, ok = device.str("id"); !ok || !ValidID(h.Device.ID) {
		return nil, bad("\"device.id\" must be 1 to 128 characters of A-Z a-z 0-9 . _ - : @")
	}
	h.Device.Name, h.Device.Platform, h.Device.App = device.name("name"), device.name("platform"), device.name("app")
	if o.get("user") != nil {
		user, ok := o.inner("user")
		if !ok {
			return nil, bad("\"user\" must be an object with an \"id\"")
		}
		if h.User.ID, ok = user.str("id"); !ok || h.User.ID != "" && !ValidID(h.User.ID) {
			return nil, bad("\"user.id\" must be 1 to 128 characters of A-Z a-z 0-9 . _ - : @")
		}
		h.User.Name = user.name("name")
	}
	h.Accept = features(o.get("accept"))
	if o.get("resume") != nil {
		h.Resume = &Cursor{Seq: -1}
		if c, ok := o.inner("resume"); ok {
			epoch, ok1 := c.str("epoch")
			seq, ok2 := c.integer("seq", -1)
			if ok1 && ok2 && seq >= 0 {
				h.Resume = &Cursor{Epoch: epoch, Seq: seq}
			}
		}
	}
	return h, nil
}

// inner reads an object member one level down.
func (o *object) inner(name string) (*object, bool) {
	v := o.get(name)
	if v.Kind() != '{' {
		return nil, false
	}
	var in object
	return &in, in.parse(v) == nil
}

func (o *object) name(name string) string {
	s, _ := o.str(name)
	return CleanName(s)
}

// features keeps the opt-ins this package knows, in whatever company they come.
func features(v jsontext.Value) []string {
	var names []any
	if v == nil || json.Unmarshal(v, &names) != nil {
		return nil
	}
	var out []string
	for _, f := range []string{AcceptDelta, AcceptTail, AcceptTool, AcceptNotice} {
		if slices.Contains(names, any(f)) {
			out = append(out, f)
		}
	}
	return out
}

func decodeText(o *object) (Up, error) {
	id, ok := o.id("id")
	if !ok {
		return nil, bad(badID)
	}
	text, ok := o.str("text")
	switch {
	case !ok || blank(text):
		return nil, bad("\"text\" must be a string that is not empty or only white space")
	case len(text) > MaxText:
		return nil, &Error{Code: TooBig, Message: "the text is longer than 1 MiB: send it as a file"}
	}
	replyTo, ok := o.id("reply_to")
	if !ok {
		replyTo = "" // an optional hint is no reason to refuse a message
	}
	return &Text{ID: id, Text: text, ReplyTo: replyTo, Steer: string(o.get("steer")) == "true"}, nil // nor is this one
}

func blank(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return !unicode.IsSpace(r) }) < 0
}

func decodeAudio(o *object) (Up, error) {
	id, ok := o.id("id")
	if !ok {
		return nil, bad(badID)
	}
	f := &Audio{ID: id}
	if f.Format, ok = o.str("format"); !ok || !AudioFormat(f.Format) {
		return nil, bad("\"format\" must be wav, ogg, m4a, mp3 or webm")
	}
	if f.Text, ok = o.str("text"); !ok {
		return nil, bad("\"text\" must be a string")
	}
	if len(f.Text) > MaxText {
		return nil, &Error{Code: TooBig, Message: "the text is longer than 1 MiB: send it as a file"}
	}
	if f.Data, ok = o.data("data"); !ok || len(f.Data) == 0 {
		return nil, bad("\"data\" must be the voice message in base64")
	}
	return f, nil
}

// AudioFormat reports whether a voice message may have this format.
func AudioFormat(format string) bool {
	switch format {
	case "wav", "ogg", "m4a", "mp3", "webm":
		return true
	}
	return false
}

func decodeMedia(o *object) (Up, error) {
	id, ok := o.id("id")
	if !ok {
		return nil, bad(badID)
	}
	f := &Media{ID: id}
	var ok1, ok2, ok3, ok4 bool
	f.Kind, ok1 = o.str("kind")
	f.Mime, ok2 = o.str("mime")
	f.Filename, ok3 = o.str("filename")
	f.Caption, ok4 = o.str("caption")
	if !ok1 || !ok2 || !ok3 || !ok4 {
		return nil, bad("\"kind\", \"mime\", \"filename\" and \"caption\" must be strings")
	}
	if f.Kind != "" && !uploadKind(f.Kind) {
		return nil, bad("\"kind\" must be image, video, document or audio")
	}
	if len(f.Caption) > MaxText {
		return nil, &Error{Code: TooBig, Message: "the caption is longer than 1 MiB"}
	}
	part, ok1 := o.integer("part", 0)
	parts, ok2 := o.integer("parts", 1)
	if !ok1 || !ok2 || parts < 1 || parts > MaxParts || part < 0 || part >= parts {
		return nil, bad("\"part\" must be a whole number from 0 to parts-1, and \"parts\" one from 1 to 2048")
	}
	f.Part, f.Parts = int(part), int(parts)
	if size, ok := o.integer("size", 0); ok && size > 0 { // else it says nothing, as in a client that means something else by it
		f.Size = size
	}
	if parts > 1 && id == "" {
		return nil, bad("a file in several parts needs an \"id\", the same in each")
	}
	if f.Data, ok = o.data("data"); !ok {
		return nil, bad("\"data\" must be the part's bytes in base64")
	}
	return f, nil
}

func uploadKind(kind string) bool {
	switch kind {
	case "image", "video", "document", "audio":
		return true
	}
	return false
}

func decodeAnswer(o *object) (Up, error) {
	id, ok := o.id("id")
	if !ok {
		return nil, bad(badID)
	}
	f := &Answer{ID: id}
	if f.PromptID, ok = o.id("prompt_id"); !ok || f.PromptID == "" {
		return nil, bad("\"prompt_id\" must be the id of the card")
	}
	var ok1, ok2 bool
	f.OptionID, ok1 = o.str("option_id")
	f.Text, ok2 = o.str("text")
	if !ok1 || !ok2 {
		return nil, bad("\"option_id\" and \"text\" must be strings")
	}
	if len(f.Text) > MaxText {
		return nil, &Error{Code: TooBig, Message: "the answer is longer than 1 MiB"}
	}
	return f, nil
}

func decodeStop(o *object) (Up, error) {
	id, ok := o.id("id")
	if !ok {
		return nil, bad(badID)
	}
	return &Stop{ID: id}, nil
}

func decodeAck(o *object) (Up, error) {
	seq, ok := o.integer("seq", -1)
	if !ok || seq < 0 {
		return nil, bad("\"seq\" must be the number of a frame")
	}
	seen, token := o.get("seen"), o.get("token")
	return &Ack{Seq: seq, Seen: seen.Kind() == 't', Token: token.Kind() == 't'}, nil
}

func decodeDeliver(o *object) (Up, error) {
	id, ok := o.id("id")
	if !ok {
		return nil, bad(badID)
	}
	f := &Deliver{ID: id}
	if f.To, ok = o.str("to"); !ok || !ValidID(strings.TrimPrefix(f.To, SessionPrefix)) {
		return nil, bad("\"to\" must be a device id, mobile:<device id>, or home")
	}
	if f.Text, ok = o.str("text"); !ok {
		return nil, bad("\"text\" must be a string")
	}
	if len(f.Text) > MaxText {
		return nil, &Error{Code: TooBig, Message: "the text is longer than 1 MiB: deliver it as a file"}
	}
	if o.get("data") != nil {
		if f.Data, ok = o.data("data"); !ok || len(f.Data) == 0 {
			return nil, bad("\"data\" must be the file in base64")
		}
		var ok1, ok2, ok3 bool
		f.Kind, ok1 = o.str("kind")
		f.Mime, ok2 = o.str("mime")
		f.Filename, ok3 = o.str("filename")
		if !ok1 || !ok2 || !ok3 {
			return nil, bad("\"kind\", \"mime\" and \"filename\" must be strings")
		}
		if f.Kind != "" && !downKind(f.Kind) {
			return nil, bad("\"kind\" must be image, voice, video, document, animation or audio")
		}
	}
	if blank(f.Text) && f.Data == nil {
		return nil, bad("a delivery needs a \"text\" or a file in \"data\"")
	}
	live := o.get("require_live")
	if live != nil && live.Kind() != 't' && live.Kind() != 'f' {
		return nil, bad("\"require_live\" must be true or false")
	}
	f.RequireLive = live.Kind() == 't'
	return f, nil
}

func downKind(kind string) bool {
	return uploadKind(kind) || kind == "voice" || kind == "animation"
}

func decodePing(o *object) (Up, error) {
	id, ok := o.id("id")
	if !ok {
		return nil, bad(badID)
	}
	return &Ping{ID: id}, nil
}

func decodeCall(o *object) (Up, error) {
	id, ok := o.id("id")
	if !ok || id == "" {
		return nil, bad(badID)
	}
	f := &Call{ID: id}
	if f.Method, ok = o.str("method"); !ok || f.Method == "" {
		return nil, bad("\"method\" must name a call")
	}
	if params := o.get("params"); params != nil {
		if params.Kind() != '{' {
			return nil, bad("\"params\" must be an object")
		}
		f.Params = append([]byte(nil), params...)
	}
	return f, nil
}
