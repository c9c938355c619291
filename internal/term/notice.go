package term

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"hermes-mobile/device"
	"hermes-mobile/frame"
)

// announced returns the text of a notice about another device, and what the user can do.
func announced(n device.Notice) string {
	name := cmp.Or(line(n.Device.Name), line(n.Device.ID))
	about := line(n.Device.ID)
	if name == about {
		about = ""
	}
	if about = join([]string{about, line(n.Device.Platform)}); about != "" {
		name += " (" + about + ")"
	}
	var what string
	switch n.Kind {
	case frame.DeviceAdded:
		what = "You have a new device: " + name + "."
	case frame.DeviceJoined:
		what = name + " joined the conversation of " + line(n.Conversation) + "."
	case frame.RightsChanged:
		what = name + " got more rights: " + line(strings.Join(n.Rights, ", ")) + "."
	default:
		what = "Notice about your device " + name + ": " + line(n.Kind) + "."
	}
	if n.Revocable {
		return what + " If you don't recognize it, enter /revoke " + line(n.Device.ID)
	}
	return what + " If you don't recognize it, ask the owner of the agent to revoke it."
}

// revoked returns the result of /revoke.
func revoked(id string, err error) string {
	if err != nil {
		return fmt.Sprintf("Could not revoke %s: %s", line(id), reason(err))
	}
	return "Revoked " + line(id) + "."
}

// wait tells how long this device must wait before it can answer cards, empty where it need not.
func wait(s device.Status, now time.Time) string {
	left := s.AnswersAt.Sub(now)
	if s.AnswersAt.IsZero() || left <= 0 {
		return ""
	}
	return fmt.Sprintf("This device is new: it can answer cards in %d s", int((left+time.Second-1)/time.Second))
}
