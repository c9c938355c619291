package front

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/argon2"
)

// Cost is how much work a password is: memory in KiB, passes over it, and lanes.
type Cost struct {
	Memory, Passes uint32
	Lanes          uint8
}

// DefaultCost takes about a tenth of a second on a small machine, and memory that it has twice over.
var DefaultCost = Cost{Memory: 32 << 10, Passes: 3, Lanes: 1}

const (
	saltBytes = 16
	hashBytes = 32
	// What is stored may have been damaged: more than this is not tried.
	maxMemory = 256 << 10 // KiB
	maxPasses = 64
)

// hashed is a password as it is stored.
type hashed struct {
	cost      Cost
	salt, sum []byte
}

func (c Cost) sum(password string, salt []byte, size int) []byte {
	return argon2.IDKey([]byte(password), salt, c.Passes, c.Memory, c.Lanes, uint32(size))
}

// hash makes what is stored of a password.
func (c Cost) hash(password string) string {
	salt := make([]byte, saltBytes)
	rand.Read(salt)
	return hashed{c, salt, c.sum(password, salt, hashBytes)}.String()
}

var base = base64.RawStdEncoding

// String writes the usual form, $argon2id$v=19$m=…,t=…,p=…$salt$sum.
func (h hashed) String() string {
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, h.cost.Memory, h.cost.Passes, h.cost.Lanes, base.EncodeToString(h.salt), base.EncodeToString(h.sum))
}

var errHash = errors.New("the stored password cannot be read: set it anew with hermes-mobile users passwd")

// parseHash reads what String has written.
func parseHash(s string) (h hashed, err error) {
	parts := strings.Split(s, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return h, errHash
	}
	if n, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &h.cost.Memory, &h.cost.Passes, &h.cost.Lanes); err != nil || n != 3 {
		return h, errHash
	}
	var badSalt, badSum error
	h.salt, badSalt = base.DecodeString(parts[4])
	h.sum, badSum = base.DecodeString(parts[5])
	c := h.cost
	if badSalt != nil || badSum != nil || len(h.sum) < 16 || len(h.sum) > 128 || len(h.salt) < 8 || c.Lanes == 0 || c.Passes == 0 || c.Passes > maxPasses || c.Memory > maxMemory || h.String() != s {
		return h, errHash
	}
	return h, nil
}

func (h hashed) holds(password string) bool {
	return subtle.ConstantTimeCompare(h.sum, h.cost.sum(password, h.salt, len(h.sum))) == 1
}

// weaker reports whether a hash was made with less work than one is made with now.
func (h hashed) weaker(c Cost) bool {
	return h.cost.Memory < c.Memory || h.cost.Passes < c.Passes || len(h.sum) < hashBytes
}
