package relay

import (
	"crypto/sha256"
	"strconv"
	"strings"
	"time"

	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/media"
)

const (
	mediaPath = "/relay/media"
	// fileLinkLife is how long a gateway may fetch a file. It does so at once, or when it comes back.
	// It is long because a clock of ours may be wrong and be corrected by hours meanwhile.
	fileLinkLife = 24 * time.Hour
)

// Directions of a file.
const (
	tokenUp   = "up:"   // from the agent, for send_media
	tokenDown = "down:" // to the agent, for GET
)

// fileLinks makes and checks the addresses of files. A token is one of media.Signer: it holds the
// hash, name, type and expiry, and instead of a device the direction, the size and the gateway to
// which it is bound. So no memory is needed, tokens outlive a restart, and a token of one gateway is
// worthless to another.
type fileLinks struct {
	signer *media.Signer
	now    func() time.Time
}

func newFileLinks(key []byte, now func() time.Time) *fileLinks {
	return &fileLinks{signer: media.NewSigner(sha256.Sum256(append([]byte("hermes-mobile relay media 1\x00"), key...))), now: now}
}

// token returns the token of a file in a direction, for one gateway.
func (l *fileLinks) token(direction, gateway string, f *agent.File) string {
	owner := direction + strconv.FormatInt(f.Size, 10) + ":" + gateway
	path := l.signer.Sign(owner, f.Hash, f.Name, f.Mime, l.now().Add(fileLinkLife))
	return strings.TrimPrefix(path, media.LinkPrefix)
}

// open checks a token of the given direction, and returns its file and its gateway.
func (l *fileLinks) open(direction, token string) (f agent.File, gateway string, err error) {
	link, err := l.signer.Verify(media.LinkPrefix+token, "", l.now())
	if err != nil {
		return agent.File{}, "", err
	}
	rest, right := strings.CutPrefix(link.Device, direction)
	sizeText, gateway, ok := strings.Cut(rest, ":")
	size, err := strconv.ParseInt(sizeText, 10, 64)
	if !right || !ok || err != nil {
		return agent.File{}, "", media.ErrLink
	}
	return agent.File{Hash: link.Hash, Name: link.Filename, Mime: link.Mime, Size: size}, gateway, nil
}

// down returns path and query of a file for a gateway.
func (l *fileLinks) down(gateway string, f *agent.File) string {
	return mediaPath + "/" + l.token(tokenDown, gateway, f)
}
