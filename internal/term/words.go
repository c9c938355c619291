package term

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"hermes-mobile/device"
	"hermes-mobile/frame"
)

// reason returns an error as a sentence for the user.
func reason(err error) string {
	var f *frame.Error
	if errors.As(err, &f) {
		return line(f.Message)
	}
	var call *frame.CallError
	if errors.As(err, &call) {
		return line(call.Message)
	}
	return strings.TrimPrefix(line(err.Error()), "device: ")
}

// Unreadable explains why a file that the user named cannot be opened.
func Unreadable(path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: no such file", path)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s: permission denied: make the file readable", path)
	}
	return fmt.Errorf("%s: %w", path, err)
}

// peer returns the display name of another device.
func peer(p frame.Peer) string { return line(cmp.Or(p.Name, p.ID)) }

// echo returns the text of a message from another device.
func echo(e device.Echo) string {
	if f, ok := e.Attachment(); ok {
		return describe(f)
	}
	return clean(e.Text)
}

// describe returns a description of a file: one line, and its caption.
func describe(f device.File) string {
	kind := line(f.Kind)
	if kind == "" {
		kind = "file"
	}
	s := kind + " " + safeName(f.Filename)
	if f.Size > 0 {
		s += ", " + size(f.Size)
	}
	if f.Caption != "" {
		s += "\n" + clean(f.Caption)
	}
	return s
}

func join(parts []string) string {
	var out []string
	for _, p := range parts {
		if p != "" {
			out = append(out, p)
		}
	}
	return strings.Join(out, " · ")
}

// connection returns the connection line: the state, and what the user can do. Level is 0 for good,
// 1 for waiting, 2 for bad.
func connection(s device.Status, o Options, now time.Time) (text string, level int) {
	address := line(o.Address)
	waits := ""
	if s.Unconfirmed > 0 {
		waits = fmt.Sprintf(" · %d not sent yet", s.Unconfirmed)
	}
	switch s.State {
	case device.Online:
		switch {
		case !s.Approved && s.Pairing != "":
			return "Not approved yet · " + line(s.Pairing), 1
		case !s.Approved:
			return "Not approved yet · send a message to get an approval code", 1
		case s.Agent == frame.Away:
			if why := o.why(); why != "" {
				return "The agent is offline: " + why + " · your messages wait", 1
			}
			return "Online, but the agent is offline · " + address + " · your messages wait", 1
		}
		return "Online · " + address + waits, 0
	case device.Connecting:
		return "Connecting · " + address + waits, 1
	case device.Waiting:
		in := max(int(s.Until.Sub(now).Round(time.Second).Seconds()), 0)
		text = fmt.Sprintf("Offline · %s · reconnecting in %d s (Ctrl+R: now)%s", address, in, waits)
		if s.Err != nil {
			text += " · " + short(s.Err)
		}
		return text, 1
	case device.NoAccess:
		text = "No access · "
		var refused *device.NoAccessError
		if errors.As(s.Err, &refused) {
			text += line(refused.Message)
		} else if s.Err != nil {
			text += reason(s.Err)
		}
		return text + " · Ctrl+R: try again", 2
	case device.Replaced:
		return "This device is connected elsewhere · Ctrl+R: connect here", 2
	}
	return "Closed", 2
}

// short returns the end of a chain of network errors, which tells most.
func short(err error) string {
	s := reason(err)
	if i := strings.LastIndex(s, ": "); i >= 0 {
		s = s[i+2:]
	}
	return s
}
