package notify

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// A notification of an approval may hold a token for each option. The device answers the card with it, without a
// connection. A token is valid for that device, card and option until the card expires. It works once, because only one
// answer of a card counts.

// Reasons for which an action token decides nothing.
var (
	ErrForged   = errors.New("this button does not belong to a notification of this server")
	ErrExpired  = errors.New("the time to answer is over: open the app to see what was decided")
	ErrRejected = errors.New("this device can no longer answer this question: open the app to see why")
	ErrCut      = errors.New("a notification can't show all of this question: open the app to read and answer it")
	ErrTooNew   = errors.New("this device is new and can't answer questions in its first minute: try again later, or answer on another device")
)

// Action is the content of an action token: an option of a card.
type Action struct {
	Device  string `json:"d"`
	Card    string `json:"c"`
	Option  string `json:"o"`
	Expires int64  `json:"e"` // in Unix seconds
}

// Sign returns the token of an action.
func (s *Service) Sign(a Action) string {
	text, err := json.Marshal(a)
	if err != nil {
		panic(fmt.Sprintf("notify: encode action: %v", err)) // strings and numbers only
	}
	return base64.RawURLEncoding.EncodeToString(text) + "." + base64.RawURLEncoding.EncodeToString(s.mac(text))
}

func (s *Service) mac(text []byte) []byte {
	m := hmac.New(sha256.New, s.Key)
	m.Write([]byte("hermes-mobile push action\n"))
	m.Write(text)
	return m.Sum(nil)
}

// Verify returns the action of a token. It returns [ErrForged] for a token that this server did not sign, and
// [ErrExpired] for one whose card has expired.
func (s *Service) Verify(token string, now time.Time) (a Action, err error) {
	head, tail, _ := strings.Cut(token, ".")
	text, err1 := base64.RawURLEncoding.Strict().DecodeString(head)
	sum, err2 := base64.RawURLEncoding.Strict().DecodeString(tail)
	// Even the strict decoder skips line ends, and a token must have one form only.
	if err1 != nil || err2 != nil || strings.ContainsAny(token, "\r\n") || s.Key == nil || !hmac.Equal(sum, s.mac(text)) || json.Unmarshal(text, &a) != nil {
		return a, ErrForged
	}
	if now.Unix() >= a.Expires {
		return a, ErrExpired
	}
	return a, nil
}
