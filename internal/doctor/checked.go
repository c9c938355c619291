package doctor

import (
	"fmt"
	"time"

	"hermes-mobile/internal/agent/relay"
)

// Checked summarizes what the doctor checked.
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
		say("Hermes       %s, owned by another account", h.Home.Path)
	} else if h != nil && h.Exists {
		how := "gateway not running"
		if h.Process != nil {
			how = "gateway running"
			if h.Process.PID > 0 {
				how += fmt.Sprintf(" (process %d)", h.Process.PID)
			}
		}
		say("Hermes       %s, version %s, %s", h.Home.Path, h.Version, how)
	}
	if s := f.Server; s != nil && s.Relay != nil {
		for _, g := range s.Relay.Gateways {
			how := "offline"
			if g.Online {
				how = "connected since " + g.Since.Local().Format(time.DateTime)
				switch g.Files {
				case relay.ByAddress:
					how += ", files by URLs below " + g.MediaBase + "/relay/media/"
				case relay.ByEither:
					how += ", files as local copies if it can read them, otherwise by URLs below " + g.MediaBase + "/relay/media/"
				case relay.ByCopy:
					how += ", files as local copies"
				default:
					how += ", no files (an older version on another machine)"
				}
			}
			say("gateway      %s, %s", g.Name, how)
		}
	}
	if s := f.Server; s != nil && s.API != nil && s.AgentOnline {
		say("API          at %s, %s", s.API.URL, s.AgentDetail)
	}
	if d := f.APIProxy; d != nil && d.Down == nil && !d.NoKey {
		say("API proxy    to Hermes' API server at %s, %s", d.URL, plural(max(0, d.Users), "user", "users"))
	}
	if p := f.Port; p != nil {
		say("port         %s", p.Address)
	}
	if p := f.Public; p != nil {
		closed := ""
		if p.Result != PublicUnreachable && len(p.Exposed) == 0 {
			closed = ", admin UI and metrics not exposed"
		}
		say("public       %s, WebSocket %s%s", p.URL, map[bool]string{true: "works", false: "does not work"}[p.Result == PublicGood], closed)
	}
	for _, c := range f.Certificates {
		say("certificate  for %s, valid until %s", c.Host, c.To.UTC().Format(time.DateOnly))
	}
	return list
}
