package frame

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"pgregory.net/rapid"
)

var (
	idRune   = rapid.OneOf(rapid.RuneFrom([]rune(`azAZ09 "\/{}[]:,é日😀`)), rapid.RuneFrom([]rune("-_.@:")))
	anID     = rapid.StringOfN(idRune, 1, MaxID, -1)
	maybeID  = rapid.OneOf(rapid.Just(""), anID)
	deviceID = rapid.StringOfN(rapid.RuneFrom([]rune("azAZ09._-:@")), 1, MaxID, -1)
	bytesOf  = rapid.SliceOfN(rapid.Byte(), 1, 40)
	// said draws a text that is not blank.
	said = rapid.Map(text, func(s string) string { return s + "." })
)

var upFrames = map[string]func(*rapid.T) Up{
	"hello": func(t *rapid.T) Up {
		h := &Hello{Device: Device{ID: deviceID.Draw(t, "device"), Name: CleanName(text.Draw(t, "name"))}}
		if rapid.Bool().Draw(t, "pair") {
			h.Pair = said.Draw(t, "code")
		} else {
			h.Token = said.Draw(t, "token")
		}
		if rapid.Bool().Draw(t, "user") {
			h.User = User{ID: deviceID.Draw(t, "user id"), Name: CleanName(text.Draw(t, "user name"))}
		}
		h.Accept = rapid.SampledFrom([][]string{nil, {AcceptDelta}, {AcceptTool}, {AcceptDelta, AcceptTool}, {AcceptDelta, AcceptTail, AcceptTool}}).Draw(t, "accept")
		if rapid.Bool().Draw(t, "resume") {
			h.Resume = &Cursor{Epoch: said.Draw(t, "epoch"), Seq: rapid.Int64Min(0).Draw(t, "seq")}
		}
		return h
	},
	"text": func(t *rapid.T) Up {
		return &Text{ID: maybeID.Draw(t, "id"), Text: said.Draw(t, "text"), ReplyTo: maybeID.Draw(t, "reply_to"), Steer: rapid.Bool().Draw(t, "steer")}
	},
	"audio": func(t *rapid.T) Up {
		format := rapid.SampledFrom([]string{"wav", "ogg", "m4a", "mp3", "webm"}).Draw(t, "format")
		return &Audio{ID: maybeID.Draw(t, "id"), Format: format, Data: bytesOf.Draw(t, "data"), Text: text.Draw(t, "text")}
	},
	"media": func(t *rapid.T) Up {
		parts := rapid.IntRange(1, MaxParts).Draw(t, "parts")
		return &Media{
			ID: anID.Draw(t, "id"), Kind: rapid.SampledFrom([]string{"", "image", "video", "document", "audio"}).Draw(t, "kind"), Mime: text.Draw(t, "mime"),
			Filename: text.Draw(t, "filename"), Caption: text.Draw(t, "caption"), Part: rapid.IntRange(0, parts-1).Draw(t, "part"), Parts: parts,
			Data: rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "data"),
		}
	},
	"prompt": func(t *rapid.T) Up {
		return &Answer{ID: maybeID.Draw(t, "id"), PromptID: anID.Draw(t, "prompt_id"), OptionID: text.Draw(t, "option_id"), Text: text.Draw(t, "text")}
	},
	"stop": func(t *rapid.T) Up { return &Stop{ID: maybeID.Draw(t, "id")} },
	"ping": func(t *rapid.T) Up { return &Ping{ID: maybeID.Draw(t, "id")} },
	"ack": func(t *rapid.T) Up {
		return &Ack{Seq: rapid.Int64Min(0).Draw(t, "seq"), Seen: rapid.Bool().Draw(t, "seen"), Token: rapid.Bool().Draw(t, "token")}
	},
	"deliver": func(t *rapid.T) Up {
		d := &Deliver{ID: maybeID.Draw(t, "id"), To: deviceID.Draw(t, "to"), Text: said.Draw(t, "text"), RequireLive: rapid.Bool().Draw(t, "live")}
		if rapid.Bool().Draw(t, "file") {
			d.Data, d.Kind, d.Filename = bytesOf.Draw(t, "data"), rapid.SampledFrom([]string{"", "voice", "image"}).Draw(t, "kind"), text.Draw(t, "filename")
		}
		return d
	},
	"call": func(t *rapid.T) Up {
		params := rapid.SampledFrom([][]byte{nil, []byte("{}"), []byte(`{"a":[1,{"b":null}],"c":"\u2028"}`)}).Draw(t, "params")
		return &Call{ID: anID.Draw(t, "id"), Method: said.Draw(t, "method"), Params: params}
	},
}

func TestEveryUpFrameIsReadBack(t *testing.T) {
	for _, zero := range UpTypes() {
		name := UpName(zero)
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				f := upFrames[name](t)
				written := EncodeUp(f)
				if !json.Valid(written) || !utf8.Valid(written) {
					t.Fatalf("not JSON in UTF-8: %q", written)
				}
				back, err := DecodeUp(written)
				if err != nil {
					t.Fatalf("%q is rejected: %v", written, err)
				}
				got, want := show(repaired(meaning(back))), show(repaired(meaning(f)))
				if UpName(back) != name || got != want {
					t.Fatalf("written as %q\n got %s\nwant %s", written, got, want)
				}
			})
		})
	}
}

// The package pools its decoders: the frames of one goroutine must not leak into another.
func TestDecodersDoNotMix(t *testing.T) {
	type message struct{ file, raw, want string }
	var all []message
	for _, v := range vectors(t) {
		if v.Direction != "up" || v.Expect.Type == "" || v.RawParts != nil {
			continue
		}
		f, err := DecodeUp(v.raw())
		if err != nil {
			t.Fatalf("%s: %v", v.file, err)
		}
		all = append(all, message{v.file, string(v.raw()), show(meaning(f))})
	}
	var group sync.WaitGroup
	for n := range 8 {
		group.Go(func() {
			for i := range 20 * len(all) {
				m := all[(i*(n+1)+n)%len(all)]
				f, err := DecodeUp([]byte(m.raw))
				if err != nil || show(meaning(f)) != m.want {
					t.Errorf("%s: %v\n got %s\nwant %s", m.file, err, show(meaning(f)), m.want)
					return
				}
			}
		})
	}
	group.Wait()
}

// The largest hello that the limits of its fields allow fits into MaxHello, both in UTF-8 and with
// every non-ASCII character escaped, as some encoders do. The only exception are names full of
// escaped characters beyond the basic plane.
func TestLargestHello(t *testing.T) {
	for name, fill := range map[string]string{"cyrillic": "ж", "emoji": "🦊"} {
		largest := Hello{Token: strings.Repeat("t", 512), Device: Device{ID: strings.Repeat("d", MaxID), Name: strings.Repeat(fill, MaxName),
			Platform: strings.Repeat(fill, MaxName), App: strings.Repeat(fill, MaxName)}, User: User{ID: strings.Repeat("u", MaxID), Name: strings.Repeat(fill, MaxName)},
			Accept: []string{AcceptDelta, AcceptTail, AcceptTool}, Resume: &Cursor{Epoch: "5e1f0c77", Seq: math.MaxInt64}}
		plain := EncodeUp(&largest)
		if len(plain) > MaxHello {
			t.Errorf("%s: %d bytes", name, len(plain))
		}
		if f, err := DecodeUp(plain); err != nil || !reflect.DeepEqual(f, &largest) {
			t.Errorf("%s: %v", name, err)
		}
		var escaped []byte
		for _, r := range string(plain) {
			switch {
			case r < utf8.RuneSelf:
				escaped = append(escaped, byte(r))
			case r <= 0xffff:
				escaped = fmt.Appendf(escaped, `\u%04x`, r)
			default:
				a, b := utf16.EncodeRune(r)
				escaped = fmt.Appendf(escaped, `\u%04x\u%04x`, a, b)
			}
		}
		if f, err := DecodeUp(escaped); err != nil || !reflect.DeepEqual(f, &largest) {
			t.Errorf("%s, escaped: %v", name, err)
		}
		t.Logf("%s: %d bytes, %d escaped", name, len(plain), len(escaped))
		if len(escaped) > MaxHello && name != "emoji" {
			t.Errorf("%s: %d bytes escaped", name, len(escaped))
		}
	}
}
