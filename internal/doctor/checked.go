package doctor

import (
	"fmt"
	"time"

	"hermes-mobile/internal/agent/relay"
)

// Checked says in short what the facts are of, so that "all is well" says of what.
func Checked(f *Facts) (list []string) {
	say := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if s := f.Server; s != nil {
		say("server       on %s since %s", s.Address, s.Started.Local().Format(time.DateTime))
	}
	if d := f.Folder; d != nil {
		space := ""
		if d.Total > 0 {
			space = fmt.Sprintf(", %s free", size(d.Free))
		}
		say("data folder  %s%s", d.Path, space)
	}
	if h := f.Hermes; h != nil && h.Hidden {
		say("Hermes       %s, of another account", h.Home.Path)
	} else if h != nil && h.Exists {
		how := "its gateway is not running"
		if h.Process != nil {
			how = "its gateway runs"
			if h.Process.PID > 0 {
				how += fmt.Sprintf(" (process %d)", h.Process.PID)
			}
		}
		say("Hermes       %s, version %s, %s", h.Home.Path, h.Version, how)
	}
	if s := f.Server; s != nil && s.Relay != nil {
		for _, g := range s.Relay.Gateways {
			how := "away"
			if g.Online {
				how = "connected since " + g.Since.Local().Format(time.DateTime)
				switch g.Files {
				case relay.ByAddress:
					how += ", files by addresses below " + g.MediaBase + "/relay/media/"
				case relay.ByEither:
					how += ", files as copies where it sees them, else by addresses below " + g.MediaBase + "/relay/media/"
				case relay.ByCopy:
					how += ", files as copies on this machine"
				default:
					how += ", no files, since it is of an older version on another machine"
				}
			}
			say("gateway      %s, %s", g.Name, how)
		}
	}
	if s := f.Server; s != nil && s.API != nil && s.AgentOnline {
		say("API          at %s, %s", s.API.URL, s.AgentDetail)
	}
	if d := f.Front; d != nil && d.Down == nil && !d.NoKey {
		say("front door   to Hermes' API server at %s, %s", d.URL, plural(max(0, d.Users), "user", "users"))
	}
	if p := f.Port; p != nil {
		say("port         %s", p.Address)
	}
	if p := f.Public; p != nil {
		closed := ""
		if p.Result != PublicUnreachable && len(p.Open) == 0 {
			closed = ", admin UI and metrics closed to strangers"
		}
		say("public       %s, WebSocket %s%s", p.URL, map[bool]string{true: "works", false: "does not work"}[p.Result == PublicGood], closed)
	}
	for _, c := range f.Certificates {
		say("certificate  of %s, until %s", c.Host, c.To.UTC().Format(time.DateOnly))
	}
	return list
}
