package notify

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"hermes-mobile/internal/push"
)

// FuzzAction: only a token that was signed here is accepted, and it holds the action that was signed.
func FuzzAction(f *testing.F) {
	s := New(Options{Key: []byte("a key of thirty-two bytes, nearly")})
	f.Cleanup(func() { s.Close(f.Context()) })
	now := time.Unix(1_800_000_000, 0)
	good := s.Sign(Action{Expires: now.Unix() + 60})
	for _, token := range []string{"", ".", good, good + "A", good[:len(good)-4] + "\n" + good[len(good)-4:], good[1:], strings.ToUpper(good), strings.Split(good, ".")[0] + ".", "e30.e30", "bnVsbA.AAAA"} {
		f.Add(token)
	}
	f.Fuzz(func(t *testing.T, token string) {
		if a, err := s.Verify(token, now); (err == nil) && (token != s.Sign(a) || token != good) {
			t.Fatalf("%q is accepted", token)
		}
	})
}

// FuzzText: whatever an agent says, a notification of it is one line of valid UTF-8 within the size limit of push services.
func FuzzText(f *testing.F) {
	for _, text := range []string{"", "plain", "# a\n> b\n```go\ncode\n```\n[a](b) **c**", "👨‍👩‍👧" + strings.Repeat("\u0301", 5000), "\xff\xfe", strings.Repeat("漢", 5000), "\u2028\x00\x1b[2J"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ToValidUTF8(text, "")
		short := plain(text)
		if !utf8.ValidString(short) || strings.ContainsAny(short, "\n\r\t") || utf8.RuneCountInString(short) > maxWords {
			t.Fatalf("%q gives %q", text, short)
		}
		n := body{Title: clip(text, maxTitle), Body: short, IDs: strings.Split(text, " ")}
		out := fit(n)
		if len(out) > push.MaxBody || !json.Valid(out) {
			t.Fatalf("%q gives %d bytes", text, len(out))
		}
	})
}
