package passkey

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"time"
)

// challengeLife is how long a challenge is valid.
const challengeLife = 5 * time.Minute

const (
	expirySize = 8
	nonceSize  = 16
	headSize   = expirySize + nonceSize
)

// challenges issues challenges that carry their own proof: the expiry, a nonce, and a MAC over both
// and the purpose. So a request for one costs no memory, however many strangers make it. Only
// challenges with a right answer are remembered, until they expire. It is not safe for concurrent
// use. A restart invalidates all challenges.
type challenges struct {
	secret [32]byte
	spent  map[[nonceSize]byte]time.Time
}

func newChallenges() *challenges {
	c := &challenges{spent: map[[nonceSize]byte]time.Time{}}
	rand.Read(c.secret[:])
	return c
}

// issue returns a challenge for one purpose.
func (c *challenges) issue(use string, now time.Time) []byte {
	head := make([]byte, headSize)
	binary.BigEndian.PutUint64(head, uint64(now.Add(challengeLife).UnixMilli()))
	rand.Read(head[expirySize:])
	return append(head, c.mac(use, head)...)
}

func (c *challenges) mac(use string, head []byte) []byte {
	m := hmac.New(sha256.New, c.secret[:])
	m.Write(head)
	m.Write([]byte(use))
	return m.Sum(nil)
}

// valid reports whether a challenge, in base64url, was issued for this purpose, hasn't expired, and
// wasn't answered before.
func (c *challenges) valid(text, use string, now time.Time) bool {
	head, ok := c.open(text, use)
	if !ok || now.UnixMilli() >= int64(binary.BigEndian.Uint64(head)) {
		return false
	}
	_, spent := c.spent[[nonceSize]byte(head[expirySize:])]
	return !spent
}

// spend marks a challenge as answered.
func (c *challenges) spend(text, use string, now time.Time) {
	for nonce, ends := range c.spent {
		if !now.Before(ends) {
			delete(c.spent, nonce)
		}
	}
	if head, ok := c.open(text, use); ok {
		c.spent[[nonceSize]byte(head[expirySize:])] = time.UnixMilli(int64(binary.BigEndian.Uint64(head)))
	}
}

func (c *challenges) open(text, use string) (head []byte, ok bool) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(raw) != headSize+sha256.Size || !hmac.Equal(raw[headSize:], c.mac(use, raw[:headSize])) {
		return nil, false
	}
	return raw[:headSize], true
}
