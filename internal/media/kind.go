package media

import (
	"mime"
	"strings"

	"github.com/gabriel-vasile/mimetype"
)

const (
	octetStream = "application/octet-stream"
	// signatureBytes is how much of a file's beginning the detection reads.
	signatureBytes = 4096
	// maxMime bounds a claimed media type in bytes.
	maxMime = 127
)

// Correct checks the kind and media type of a file against the signature at its beginning. head is
// the whole file or its first 4 KiB. The result is for display and for choosing a handler. It
// doesn't promise that the content is harmless.
//
// For the kinds image, audio, video, voice, animation and the empty one, a known signature
// overrides the claim: a PNG called image/jpeg becomes image/png, a PDF called an image becomes a
// document. Other kinds, and content without a signature such as plain text, keep a claim that is
// syntactically a media type. Without a claim the type comes from the content,
// application/octet-stream if that is unknown.
func Correct(kind, mimeType string, head []byte) (kind2, mime2 string) {
	claim := validMime(mimeType)
	found := mimetype.Detect(head)
	base, _, _ := strings.Cut(found.String(), ";")
	if base == "audio/x-m4a" {
		base = "audio/mp4" // the registered name
	}
	known := base != octetStream && base != "text/plain"
	switch kind {
	case "image", "audio", "video", "voice", "animation", "":
	default:
		known = false
	}
	if !known {
		if claim == "" {
			claim = base
		}
		if kind == "" {
			kind = kindOf(claim)
		}
		return kind, claim
	}
	// A container may hold only sound. Then the claim knows more than the signature.
	if kind == "audio" || kind == "voice" {
		if m := soundOf(base); m != "" {
			if is(found, claim) && strings.HasPrefix(claim, "audio/") {
				return kind, claim
			}
			return kind, m
		}
	}
	kind2 = kindOf(base)
	switch {
	case kind == "voice" && kind2 == "audio", kind == "animation" && (kind2 == "image" || kind2 == "video"):
		kind2 = kind
	}
	if kindOf(claim) == kindOf(base) && is(found, claim) {
		return kind2, claim // an alias or parameters that we don't know
	}
	return kind2, base
}

// kindOf returns the kind of the protocol for a media type.
func kindOf(mimeType string) string {
	family, _, _ := strings.Cut(mimeType, "/")
	switch family {
	case "image", "audio", "video":
		return family
	}
	return "document"
}

// soundOf returns the audio type of a container that is known as video or as neither, empty for a
// type that can't hold only sound.
func soundOf(base string) string {
	switch base {
	case "video/mp4", "video/quicktime", "video/x-m4v":
		return "audio/mp4"
	case "video/webm":
		return "audio/webm"
	case "video/ogg", "application/ogg":
		return "audio/ogg"
	case "video/3gpp":
		return "audio/3gpp"
	case "video/3gpp2":
		return "audio/3gpp2"
	case "video/matroska":
		return "audio/x-matroska"
	case "video/x-ms-asf":
		return "audio/x-ms-wma"
	}
	return ""
}

// is reports whether claim is the detected type, an alias of it, or a more general type (an APNG is
// a PNG).
func is(found *mimetype.MIME, claim string) bool {
	for m := found; m != nil && m.Parent() != nil; m = m.Parent() {
		if m.Is(claim) {
			return true
		}
	}
	return false
}

// validMime returns a media type in its canonical spelling, empty for an invalid one. The result
// has no character that could end a header line.
func validMime(s string) string {
	if len(s) > maxMime {
		return ""
	}
	base, params, err := mime.ParseMediaType(s)
	if err != nil {
		return ""
	}
	family, sub, ok := strings.Cut(base, "/")
	if !ok || family == "" || sub == "" || strings.Contains(sub, "/") {
		return ""
	}
	return mime.FormatMediaType(base, params)
}
