package hub

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/access"
	"hermes-mobile/internal/agent"
)

// unapproved answers a device that is not approved, with an approval code or with how long to wait.
// Nothing is accepted. The answer goes to c, which may not be the live connection any more when it
// is given.
func (i *intake) unapproved(b *batch, c *conn, f frame.Up) {
	switch f.(type) {
	case *frame.Text, *frame.Audio, *frame.Media:
	default:
		b.then(func() {
			c.send(&frame.Error{Code: frame.Forbidden, Message: "this device is not approved yet: send a message to get a pairing code", Ref: ref(f)})
		})
		return
	}
	if m, ok := f.(*frame.Media); ok && m.Part > 0 {
		return // the first part of the file was answered
	}
	b.then(func() {
		c.send(&frame.Message{ID: agent.NewID(), Text: i.approvalText(), Chunk: frame.Chunk{Total: 1}, Final: true, ReplyTo: ref(f)})
	})
}

// approvalText requests an approval code, and returns the message that tells it.
func (i *intake) approvalText() string {
	code, err := i.Pairing.Request(i.dev.UserID, i.dev.UserName)
	var delay *access.DelayError
	switch {
	case err == nil:
		return "This device is not approved yet. Its pairing code is " + code + ", valid for one hour. The owner of the agent approves it with\n\n    " +
			"hermes-mobile pairing approve " + code + "\n\nor with `hermes pairing approve mobile " + code + "`. Then send the message again."
	case errors.As(err, &delay):
		why := "a pairing code was given a short while ago"
		if errors.Is(err, access.ErrTooMany) {
			why = "too many devices are waiting for approval"
		} else if errors.Is(err, access.ErrLocked) {
			why = "too many wrong codes were tried"
		}
		return "This device is not approved yet, and " + why + ": wait for the owner, or try again in " + minutes(delay.RetryAfter) + "."
	default:
		i.log.Error("approval request failed", "device", i.id, "err", err)
		return "This device is not approved yet, and no pairing code can be made now: ask the owner of the agent to look at the server's log."
	}
}

func minutes(d time.Duration) string {
	n := int((d + time.Minute - 1) / time.Minute)
	if n <= 1 {
		return "a minute"
	}
	return strings.TrimSpace(fmt.Sprintf("%d minutes", n))
}
