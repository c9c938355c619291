package media

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strings"
	"time"
)

// LinkPrefix is the path prefix of all links, see [Handler].
const LinkPrefix = "/media/"

var (
	// ErrLink is returned for a link that wasn't signed with this key, or that was changed.
	ErrLink = errors.New("media: not a link of this server")
	// ErrLinkExpired is returned for a valid link that has expired.
	ErrLinkExpired = errors.New("media: link expired")
)

// Link is the content of a signed link.
type Link struct {
	// Device is the device that the link was made for.
	Device string
	// Hash names the file in the [Store].
	Hash string
	// Filename has passed [CleanName].
	Filename string
	// Mime is a media type, application/octet-stream if none was given.
	Mime string
	// Expires has a precision of seconds.
	Expires time.Time
}

// Signer signs and verifies links to stored files (doc/protocol.md §5). The token of a link
// contains everything, authenticated by HMAC-SHA256. Whoever has it may read that one file until it
// expires. A Signer is safe for concurrent use.
type Signer struct{ key [32]byte }

// linkDomain separates these MACs from any other use of the key, and identifies the version of the
// token's layout.
const linkDomain = "hermes-mobile media link 1\x00"

// maxToken bounds what Verify decodes, in bytes. Links by Sign stay far below it.
const maxToken = 8 << 10

var tokenEncoding = base64.RawURLEncoding.Strict()

// NewSigner returns a signer with a secret key. Links are valid as long as the key exists, so it
// must survive a restart.
func NewSigner(key [32]byte) *Signer { return &Signer{key: key} }

// Sign returns the path of a link to hash: "/media/" and a token of URL-safe characters. The caller
// prepends the address of the server. The file need not exist yet. Sign applies CleanName and
// Correct to name and type. For an invalid hash it returns an empty string.
func (s *Signer) Sign(device, hash, filename, mimeType string, expires time.Time) (path string) {
	if !validHash(hash) {
		return ""
	}
	mimeType = validMime(mimeType)
	if mimeType == "" {
		mimeType = octetStream
	}
	sum, _ := hex.DecodeString(hash)
	b := binary.BigEndian.AppendUint64(nil, uint64(expires.Unix()))
	b = append(b, sum...)
	for _, text := range []string{device, CleanName(filename), mimeType} {
		b = binary.AppendUvarint(b, uint64(len(text)))
		b = append(b, text...)
	}
	b = append(b, s.mac(b)...)
	return LinkPrefix + tokenEncoding.EncodeToString(b)
}

// Verify checks a link: the path and the raw query of a request. It returns [ErrLink] for anything
// that Sign didn't make exactly so, such as a query, and [ErrLinkExpired] from the second of its
// expiry on.
func (s *Signer) Verify(urlPath, query string, now time.Time) (Link, error) {
	token, ok := strings.CutPrefix(urlPath, LinkPrefix)
	if !ok || query != "" || len(token) > tokenEncoding.EncodedLen(maxToken) ||
		strings.ContainsAny(token, "\r\n") { // the decoder skips these
		return Link{}, ErrLink
	}
	b, err := tokenEncoding.DecodeString(token)
	if err != nil || len(b) < 8+2*sha256.Size {
		return Link{}, ErrLink
	}
	b, mac := b[:len(b)-sha256.Size], b[len(b)-sha256.Size:]
	if !hmac.Equal(mac, s.mac(b)) {
		return Link{}, ErrLink
	}
	l := Link{
		Expires: time.Unix(int64(binary.BigEndian.Uint64(b)), 0),
		Hash:    hex.EncodeToString(b[8 : 8+sha256.Size]),
	}
	b = b[8+sha256.Size:]
	for _, to := range []*string{&l.Device, &l.Filename, &l.Mime} {
		n, used := binary.Uvarint(b)
		if used <= 0 || n > uint64(len(b)-used) {
			return Link{}, ErrLink
		}
		*to = string(b[used : used+int(n)])
		b = b[used+int(n):]
	}
	if len(b) != 0 {
		return Link{}, ErrLink
	}
	if !now.Before(l.Expires) {
		return Link{}, ErrLinkExpired
	}
	return l, nil
}

func (s *Signer) mac(b []byte) []byte {
	h := hmac.New(sha256.New, s.key[:])
	h.Write([]byte(linkDomain))
	h.Write(b)
	return h.Sum(nil)
}
