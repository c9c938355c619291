package media

import "strconv"

// audioMimes has the formats of voice messages (doc/protocol.md §3).
var audioMimes = map[string]string{
	"wav":  "audio/wav",
	"ogg":  "audio/ogg",
	"m4a":  "audio/mp4",
	"mp3":  "audio/mpeg",
	"webm": "audio/webm",
}

// CheckAudio checks the decoded data of an audio frame: a known format, not empty, at most
// [MaxAudio] bytes, and for wav a RIFF/WAVE header (doc/protocol.md §3). It returns nil if the data
// is valid. Compare the result with nil before you convert it to an error.
func CheckAudio(format string, data []byte) *Refusal {
	switch {
	case audioMimes[format] == "":
		return badFrame("format must be wav, ogg, m4a, mp3 or webm.")
	case len(data) == 0:
		return badFrame("data must not be empty.")
	case len(data) > MaxAudio:
		return tooBig("A voice message may have at most " + strconv.Itoa(MaxAudio) + " bytes.")
	case format == "wav" && (len(data) < 12 || string(data[:4]) != "RIFF" || string(data[8:12]) != "WAVE"):
		return badFrame("A wav file must begin with a RIFF/WAVE header.")
	}
	return nil
}

// AudioMime returns the media type of a voice format, application/octet-stream for a format that
// [CheckAudio] doesn't know.
func AudioMime(format string) string {
	if m := audioMimes[format]; m != "" {
		return m
	}
	return octetStream
}
