package term

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"hermes-mobile/device"
	"hermes-mobile/frame"
)

// announced says what a notice tells of another device, and what to do.
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
		what = "New device of yours: " + name + "."
	case frame.DeviceJoined:
		what = name + " takes part in the conversation of " + line(n.Conversation) + " now."
	case frame.RightsChanged:
		what = name + " has more rights now: " + line(strings.Join(n.Rights, ", ")) + "."
	default:
		what = "News of your device " + name + ": " + line(n.Kind) + "."
	}
	if n.Revocable {
		return what + " If you don't know it, write /revoke " + line(n.Device.ID)
	}
	return what + " If you don't know it, ask the owner of the agent to revoke it."
}

// revoked says what became of /revoke.
func revoked(id string, err error) string {
	if err != nil {
		return fmt.Sprintf("%s was not revoked: %s", line(id), reason(err))
	}
	return line(id) + " is revoked: it has lost its access."
}

// wait says for how long this device may not answer cards, empty where it may.
func wait(s device.Status, now time.Time) string {
	left := s.AnswersAt.Sub(now)
	if s.AnswersAt.IsZero() || left <= 0 {
		return ""
	}
	return fmt.Sprintf("this device is new: it can answer in %d s", int((left+time.Second-1)/time.Second))
}
