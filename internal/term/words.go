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

// reason is an error in words for a person.
func reason(err error) string {
	var f *frame.Error
	if errors.As(err, &f) {
		return line(f.Message)
	}
	return strings.TrimPrefix(line(err.Error()), "device: ")
}

// Unreadable says in words why a file that a person named cannot be opened.
func Unreadable(path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no file %s", path)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("you have no right to read %s", path)
	}
	return fmt.Errorf("%s cannot be read: %w", path, err)
}

// peer is another device in words.
func peer(p frame.Peer) string { return line(cmp.Or(p.Name, p.ID)) }

// echo is what another device said, in words.
func echo(e device.Echo) string {
	if f, ok := e.Attachment(); ok {
		return describe(f)
	}
	return clean(e.Text)
}

// describe is a file in one line.
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

// connection is the connection line in words: how it stands, and what to do. Level is 0 for good, 1 for wait, 2 for bad.
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
			return "not approved yet · " + line(s.Pairing), 1
		case !s.Approved:
			return "not approved yet · write a message to get a pairing code", 1
		case s.Agent == frame.Away:
			if why := o.why(); why != "" {
				return "the agent is offline: " + why + " · messages wait for it", 1
			}
			return "online, the agent is offline · " + address + " · messages wait for it", 1
		}
		return "online · " + address + waits, 0
	case device.Connecting:
		return "connecting · " + address + waits, 1
	case device.Waiting:
		in := max(int(s.Until.Sub(now).Round(time.Second).Seconds()), 0)
		text = fmt.Sprintf("offline · %s · connecting in %d s (Ctrl+R now)%s", address, in, waits)
		if s.Err != nil {
			text += " · " + short(s.Err)
		}
		return text, 1
	case device.NoAccess:
		text = "no access · "
		var refused *device.NoAccessError
		if errors.As(s.Err, &refused) {
			text += line(refused.Message)
		} else if s.Err != nil {
			text += reason(s.Err)
		}
		return text + " · Ctrl+R tries again", 2
	case device.Replaced:
		return "this device is connected from somewhere else now · Ctrl+R takes it back", 2
	}
	return "closed", 2
}

// short is the end of a chain of network errors, which says most.
func short(err error) string {
	s := reason(err)
	if i := strings.LastIndex(s, ": "); i >= 0 {
		s = s[i+2:]
	}
	return s
}
