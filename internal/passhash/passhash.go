// Package passhash hashes passwords with argon2id, encodes hashes in their usual form, and checks
// passwords against them. One hash takes memory and a tenth of a second, so callers must bound how
// many they compute at a time.
package passhash

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/argon2"
)

// Cost is the cost of a hash: memory in KiB, passes over it, and lanes.
type Cost struct {
	Memory, Passes uint32
	Lanes          uint8
}

// DefaultCost takes about a tenth of a second on a small machine, and half of its memory at most.
var DefaultCost = Cost{Memory: 32 << 10, Passes: 3, Lanes: 1}

// Prefix is the prefix of every encoded hash.
const Prefix = "$argon2id$"

const (
	saltBytes = 16
	hashBytes = 32
	// A stored hash may be corrupt or from another program, so Parse rejects a higher cost than
	// this.
	maxMemory = 256 << 10 // KiB
	maxPasses = 64
)

// Hash is the hash of a password. The zero Hash matches no password.
type Hash struct {
	cost      Cost
	salt, sum []byte
}

func (c Cost) sum(password string, salt []byte, size int) []byte {
	return argon2.IDKey([]byte(password), salt, c.Passes, c.Memory, c.Lanes, uint32(size))
}

// New hashes a password with a fresh salt.
func New(c Cost, password string) Hash {
	salt := make([]byte, saltBytes)
	rand.Read(salt)
	return Hash{c, salt, c.sum(password, salt, hashBytes)}
}

// Dummy returns a hash that no known password matches. It replaces the password of an unknown user,
// so a check takes as long as that of a known one.
func Dummy(c Cost) Hash {
	salt, sum := make([]byte, saltBytes), make([]byte, hashBytes)
	rand.Read(salt)
	rand.Read(sum)
	return Hash{c, salt, sum}
}

var base = base64.RawStdEncoding

// String returns the encoded hash, $argon2id$v=19$m=…,t=…,p=…$salt$sum.
func (h Hash) String() string {
	return fmt.Sprintf("%sv=%d$m=%d,t=%d,p=%d$%s$%s", Prefix, argon2.Version, h.cost.Memory, h.cost.Passes, h.cost.Lanes, base.EncodeToString(h.salt), base.EncodeToString(h.sum))
}

// ErrForm is returned by Parse for a text that isn't an argon2id hash, or whose cost is too high.
var ErrForm = errors.New("not an argon2id hash")

// Parse decodes a hash that String has encoded.
func Parse(s string) (h Hash, err error) {
	parts := strings.Split(s, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return Hash{}, ErrForm
	}
	if n, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &h.cost.Memory, &h.cost.Passes, &h.cost.Lanes); err != nil || n != 3 {
		return Hash{}, ErrForm
	}
	var badSalt, badSum error
	h.salt, badSalt = base.DecodeString(parts[4])
	h.sum, badSum = base.DecodeString(parts[5])
	c := h.cost
	if badSalt != nil || badSum != nil || len(h.sum) < 16 || len(h.sum) > 128 || len(h.salt) < 8 || c.Lanes == 0 || c.Passes == 0 || c.Passes > maxPasses || c.Memory > maxMemory || h.String() != s {
		return Hash{}, ErrForm
	}
	return h, nil
}

// Matches reports whether this is the hash of a password. It takes as long as computing the hash.
func (h Hash) Matches(password string) bool {
	return len(h.sum) > 0 && subtle.ConstantTimeCompare(h.sum, h.cost.sum(password, h.salt, len(h.sum))) == 1
}

// Weaker reports whether the hash has a lower cost than c.
func (h Hash) Weaker(c Cost) bool {
	return h.cost.Memory < c.Memory || h.cost.Passes < c.Passes || len(h.sum) < hashBytes
}
