package hub

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"hermes-mobile/internal/push"
)

// FuzzAction: no token but one that was signed here decides anything, and what was signed says what it said.
func FuzzAction(f *testing.F) {
	h := &Hub{Options: Options{PushActions: []byte("a key of thirty-two bytes, nearly")}}
	now := time.Unix(1_800_000_000, 0)
	good := h.sign(actionToken{Expires: now.Unix() + 60})
	for _, token := range []string{"", ".", good, good + "A", good[:len(good)-4] + "\n" + good[len(good)-4:], good[1:], strings.ToUpper(good), strings.Split(good, ".")[0] + ".", "e30.e30", "bnVsbA.AAAA"} {
		f.Add(token)
	}
	f.Fuzz(func(t *testing.T, token string) {
		if a, err := h.verify(token, now); (err == nil) && (token != h.sign(a) || token != good) {
			t.Fatalf("%q is taken", token)
		}
	})
}

// FuzzPushText: whatever an agent says, a notification of it is one line of valid UTF-8 that has room in a message of a push service.
func FuzzPushText(f *testing.F) {
	for _, text := range []string{"", "plain", "# a\n> b\n```go\ncode\n```\n[a](b) **c**", "👨‍👩‍👧" + strings.Repeat("\u0301", 5000), "\xff\xfe", strings.Repeat("漢", 5000), "\u2028\x00\x1b[2J"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ToValidUTF8(text, "")
		short := plain(text)
		if !utf8.ValidString(short) || strings.ContainsAny(short, "\n\r\t") || utf8.RuneCountInString(short) > maxWords {
			t.Fatalf("%q gives %q", text, short)
		}
		n := noticeBody{Title: clip(text, maxTitle), Body: short, IDs: strings.Split(text, " ")}
		out := fit(n)
		if len(out) > push.MaxBody || !json.Valid(out) {
			t.Fatalf("%q gives %d bytes", text, len(out))
		}
	})
}

// FuzzChunks: a text is cut into pieces that are the text again, each within the limit and valid.
func FuzzChunks(f *testing.F) {
	f.Add("", 1)
	f.Add("words and words\nand lines\r\n", 7)
	f.Add("🇩🇪🇩🇪👨‍👩‍👧e\u0301", 2)
	f.Add(strings.Repeat("\u0301", 100), 10)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		if limit < 1 || limit > 1<<20 || !utf8.ValidString(text) {
			return
		}
		pieces := chunks(text, limit)
		if strings.Join(pieces, "") != text {
			t.Fatalf("%q in pieces of %d is %q", text, limit, pieces)
		}
		for _, p := range pieces {
			if utf8.RuneCountInString(p) > limit || !utf8.ValidString(p) || p == "" && text != "" {
				t.Fatalf("%q in pieces of %d: %q", text, limit, p)
			}
		}
	})
}
