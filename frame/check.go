package frame

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

func bad(message string) error { return &Error{Code: BadFrame, Message: message} }

// The sentences that several checks share. They name the limits that this package announces.
var (
	badID    = fmt.Sprintf("\"id\" must be 1 to %d printable characters", MaxID)
	idRule   = fmt.Sprintf("must be 1 to %d characters of A-Z a-z 0-9 . _ - : @", MaxID)
	maxText  = fmt.Sprintf("%d MiB", MaxText>>20)
	badParts = fmt.Sprintf("\"part\" must be a whole number from 0 to parts-1, and \"parts\" one from 1 to %d", MaxParts)
)

// checkID takes no id for one that the client left out.
func checkID(id string) error {
	if id != "" && !ValidMessageID(id) {
		return bad(badID)
	}
	return nil
}

func checkText(text, field, instead string) error {
	if len(text) > MaxText {
		return &Error{Code: TooBig, Message: fmt.Sprintf("the %s exceeds the limit of %s: %s", field, maxText, instead)}
	}
	return nil
}

func blank(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return !unicode.IsSpace(r) }) < 0
}

func (h *Hello) check(r raw) error {
	switch {
	case h.Pair != "":
		h.Token = "" // the pairing code counts
	case r.member("pair") != nil:
		return bad("\"pair\" must be a pairing code")
	case h.Token == "" && r.member("token") == nil:
		return bad("hello needs the app's token in \"token\", or a pairing code in \"pair\"")
	}
	if !ValidID(h.Device.ID) {
		if r.member("device") == nil {
			return bad("hello needs \"device\" with an \"id\"")
		}
		return bad("\"device.id\" " + idRule)
	}
	if h.User.ID != "" && !ValidID(h.User.ID) {
		return bad("\"user.id\" " + idRule)
	}
	for _, name := range []*string{&h.Device.Name, &h.Device.Platform, &h.Device.App, &h.User.Name} {
		*name = CleanName(*name)
	}
	return nil
}

func looseHello(field string, r raw) bool {
	switch field {
	case "device/name", "device/platform", "device/app", "user/name":
		return true
	case "token":
		return r.member("pair") != nil
	}
	return false
}

func (f *Text) check(raw) error {
	if err := checkID(f.ID); err != nil {
		return err
	}
	if blank(f.Text) {
		return bad("\"text\" must be a string that is not empty or only white space")
	}
	if !ValidMessageID(f.ReplyTo) {
		f.ReplyTo = "" // an optional hint is no reason to reject a message
	}
	return checkText(f.Text, "text", "send it as a file")
}

func looseText(field string, _ raw) bool { return field == "reply_to" || field == "steer" }

// audioFormats are the formats of voice messages that Hermes understands.
var audioFormats = []string{"wav", "ogg", "m4a", "mp3", "webm"}

// AudioFormat reports whether a voice message may have this format: wav, ogg, m4a, mp3 or webm.
func AudioFormat(format string) bool { return slices.Contains(audioFormats, format) }

func (f *Audio) check(raw) error {
	if err := checkID(f.ID); err != nil {
		return err
	}
	if !AudioFormat(f.Format) {
		return bad("\"format\" must be wav, ogg, m4a, mp3 or webm")
	}
	if err := checkText(f.Text, "text", "send it as a file"); err != nil {
		return err
	}
	if len(f.Data) == 0 {
		return bad("\"data\" must be the voice message in base64")
	}
	return nil
}

// uploadKinds are the kinds of files that a device sends; downKinds, those that a device receives.
var (
	uploadKinds = []string{"image", "video", "document", "audio"}
	downKinds   = append([]string{"voice", "animation"}, uploadKinds...)
)

func (m *Media) check(r raw) error {
	m.Final, m.ReplyTo, m.Source, m.URL, m.Seq = false, "", "", "", 0 // these come from a server only
	if err := checkID(m.ID); err != nil {
		return err
	}
	if m.Kind != "" && !slices.Contains(uploadKinds, m.Kind) {
		return bad("\"kind\" must be image, video, document or audio")
	}
	if err := checkText(m.Caption, "caption", "make it shorter"); err != nil {
		return err
	}
	if m.Parts == 0 && r.member("parts") == nil {
		m.Parts = 1
	}
	if m.Parts < 1 || m.Parts > MaxParts || m.Part < 0 || m.Part >= m.Parts {
		return bad(badParts)
	}
	m.Size = max(m.Size, 0)
	if m.Parts > 1 && m.ID == "" {
		return bad("a file in several parts needs an \"id\", the same in each")
	}
	if m.Data == nil {
		return bad("\"data\" must be the part's bytes in base64")
	}
	return nil
}

func looseMedia(field string, _ raw) bool {
	switch field {
	case "size", "final", "reply_to", "source", "url", "seq":
		return true
	}
	return false
}

func (f *Answer) check(raw) error {
	if err := checkID(f.ID); err != nil {
		return err
	}
	if !ValidMessageID(f.PromptID) {
		return bad("\"prompt_id\" must be the id of the card")
	}
	return checkText(f.Text, "text", "make it shorter")
}

func (f *Stop) check(raw) error { return checkID(f.ID) }

func (f *Ping) check(raw) error { return checkID(f.ID) }

func (f *Ack) check(r raw) error {
	if f.Seq < 0 || f.Seq == 0 && r.member("seq") == nil {
		return bad("\"seq\" must be the number of a frame")
	}
	return nil
}

func looseAck(field string, _ raw) bool { return field == "seen" || field == "token" }

func (f *Deliver) check(raw) error {
	if err := checkID(f.ID); err != nil {
		return err
	}
	if !ValidID(strings.TrimPrefix(f.To, SessionPrefix)) {
		return bad("\"to\" must be a device id, mobile:<device id>, or home")
	}
	if err := checkText(f.Text, "text", "deliver it as a file"); err != nil {
		return err
	}
	switch {
	case f.Data == nil:
		f.Kind, f.Mime, f.Filename = "", "", "" // they describe a file
	case len(f.Data) == 0:
		return bad("\"data\" must be the file in base64")
	case f.Kind != "" && !slices.Contains(downKinds, f.Kind):
		return bad("\"kind\" must be image, voice, video, document, animation or audio")
	}
	if blank(f.Text) && f.Data == nil {
		return bad("a delivery needs a \"text\" or a file in \"data\"")
	}
	return nil
}

func looseDeliver(field string, r raw) bool {
	switch field {
	case "kind", "mime", "filename":
		return r.member("data") == nil
	}
	return false
}

func (f *Call) check(r raw) error {
	if !ValidMessageID(f.ID) {
		return bad(badID)
	}
	if f.Method == "" {
		return bad("\"method\" must name a call")
	}
	if params := r.member("params"); params != nil {
		if params.Kind() != '{' {
			return bad("\"params\" must be an object")
		}
		f.Params = bytes.Clone(params)
	}
	return nil
}
