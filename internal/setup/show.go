package setup

import (
	"fmt"
	"path/filepath"
	"strings"
)

// hiddenSecret replaces the secret in the output.
const hiddenSecret = "<secret>"

// Shown is a file of the plan for display.
type Shown struct {
	Path  string   `json:"path"`
	New   bool     `json:"new,omitempty"`
	Lines []string `json:"lines"`
}

// Show returns the changes line by line, without the secret and without the rest of a line.
func (p *Plan) Show() (list []Shown) {
	for _, f := range p.Files {
		if !f.changed() {
			continue
		}
		s := Shown{Path: f.Path, New: !f.Exists}
		switch filepath.Base(f.Path) {
		case envFile:
			s.Lines = showEnv(f.Changes)
		case configFile:
			s.Lines = showConfig(f.Changes)
		default:
			if f.Exists {
				s.Lines = append(s.Lines, "  new content of the file:")
			}
			for l := range strings.Lines(string(f.After)) {
				s.Lines = append(s.Lines, "+ "+strings.TrimRight(l, "\r\n"))
			}
		}
		list = append(list, s)
	}
	return list
}

func showEnv(changes []Change) (out []string) {
	for _, c := range changes {
		value := c.New
		secret := c.Key == envSecret || c.Key == envAPIKey
		if secret {
			value = hiddenSecret
		}
		switch {
		case c.New == "" && c.Key == envURL:
			out = append(out, "- "+c.Key+"="+hideUser(c.Old))
		case c.Old != "" && !secret:
			out = append(out, fmt.Sprintf("  %s: %s becomes %s", c.Key, c.Old, value))
		default:
			out = append(out, "+ "+c.Key+"="+value)
		}
	}
	return out
}

func showConfig(changes []Change) (out []string) {
	added := map[string]bool{}
	last := ""
	for _, c := range changes {
		path := strings.Split(c.Key, ".")
		old := hideUser(c.Old)
		switch {
		case c.text == nil && c.From < 0:
			out = append(out, fmt.Sprintf("  line %d: %s: %s becomes %s", c.Line, c.Key, old, c.New))
		case c.text == nil && c.Item:
			out = append(out, fmt.Sprintf("  line %d: %s: + %s", c.Line, c.Key, c.New))
		case c.text == nil:
			out = append(out, fmt.Sprintf("  line %d: + %s: %s", c.Line, c.Key, c.New))
		default:
			parent := strings.Join(path[:min(c.From, len(path))], ".")
			if parent != "" && (!added[parent] || last != path[0]) && last != parent {
				out = append(out, "  in "+parent+":")
			}
			for _, l := range c.text {
				out = append(out, "+ "+strings.TrimRight(l, "\r\n"))
			}
			for i := c.From; i < len(path); i++ {
				added[strings.Join(path[:i+1], ".")] = true
			}
			if last = path[0]; parent != "" && !added[parent] {
				last = parent
			}
		}
	}
	return out
}

// Remote returns what to paste on another machine with Hermes, including the secret.
func Remote(url, id, secret string, v Version) string {
	url = strings.TrimRight(url, "/")
	streaming := ""
	switch {
	case v.Streams():
		streaming = "streaming: {enabled: true}\n"
	case !v.known():
		streaming = "streaming: {enabled: true}    # Hermes 0.20 and newer; omit this line on 0.19\n"
	}
	return fmt.Sprintf(`On the machine of Hermes, add to ~/.hermes/.env (chmod 600; anybody who has the secret can pose as your agent):

%s=%s
%s=%s

add to ~/.hermes/config.yaml, or merge with the keys that are there:

gateway: {relay_url: %q}
platforms: {relay: {enabled: true, extra: {relay_url: %q}}}
%sdisplay: {busy_ack_enabled: false, busy_input_mode: steer, platforms: {relay: {tool_progress: "off"}}}

and restart the gateway: hermes gateway restart (or end it and start it again: hermes gateway run)
`, envID, id, envSecret, secret, url, url, streaming)
}
