package notify

import (
	"cmp"
	"regexp"
	"strings"

	"github.com/rivo/uniseg"

	"hermes-mobile/frame"
)

// Bounds of the shown part of an entry, in characters.
const (
	maxTitle = 60
	maxWords = 120
)

// agentTitle is the title of what the agent says.
const agentTitle = "Hermes"

// words returns title and text of a notification.
func words(n Note) (title, text string) {
	title = agentTitle
	switch {
	case n.Prompt != nil:
		text, _ = question(n.Prompt)
	case n.Notice != nil:
		text = noticeWords(n.Notice)
	case n.Media != nil:
		text = plain(cmp.Or(n.Media.Caption, n.Media.Filename))
	case n.Message != nil:
		title, text = cmp.Or(n.Message.Job, agentTitle), plain(n.Message.Text)
	}
	return clip(frame.Visible(title).String(), maxTitle), text
}

// Offered returns the options of an approval or confirmation that a notification may choose. These are the safe option
// and, if the notification shows the whole question as it is, the options that let the agent do something.
func Offered(p *frame.Prompt) (list []frame.Option) {
	if p.Kind != frame.ExecApproval && p.Kind != frame.SlashConfirm {
		return nil
	}
	_, whole := question(p)
	for _, o := range p.Options {
		label := clip(frame.Visible(o.Label).String(), maxTitle)
		if frame.Grants(p.Kind, o.ID) && !(whole && label == o.Label) {
			continue
		}
		o.Label = label
		list = append(list, o)
	}
	return list
}

// question returns the text of a card and, in a second line, its command. whole reports whether both are shown as they
// are: nothing was cut, hidden, or joined to one line. Marks of emphasis in the text may be missing.
func question(p *frame.Prompt) (text string, whole bool) {
	text = plain(p.Text)
	whole = !p.Odd && !frame.Odd(p) && text == oneLine(strong.ReplaceAllString(p.Text, ""))
	if p.Command != "" {
		shown := frame.VisibleCommand(p.Command)
		line := clip(oneLine(shown.Folded()), maxWords)
		whole = whole && line == p.Command
		text = strings.TrimSpace(text + "\n" + line)
	}
	return text, whole
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// noticeWords returns the text of a notice.
func noticeWords(n *frame.Notice) string {
	device := clip(oneLine(cmp.Or(n.Device.Name, n.Device.ID)), maxTitle)
	switch n.Kind {
	case frame.DeviceJoined:
		return device + " joined one of your conversations. If you don't know it, revoke it."
	case frame.RightsChanged:
		return device + " was given more rights. If you don't know it, revoke it."
	}
	return device + " now has access to your agent. If you don't know it, revoke it."
}

// Markdown that is not part of the text.
var (
	fences  = regexp.MustCompile("(?m)^[ \t]*(```|~~~).*$")
	leaders = regexp.MustCompile(`(?m)^[ \t]*(#{1,6}|>|[-*+])[ \t]+`)
	links   = regexp.MustCompile(`!?\[([^\]\n]*)\]\([^)\n]*\)`)
	strong  = regexp.MustCompile("\\*\\*|__|`")
)

// plain returns the beginning of a text without Markdown, in one line, with nothing hidden in it.
func plain(text string) string {
	if len(text) > 8<<10 {
		text = strings.ToValidUTF8(text[:8<<10], "")
	}
	text = frame.Visible(text).String()
	text = fences.ReplaceAllString(text, "")
	text = leaders.ReplaceAllString(text, "")
	text = links.ReplaceAllString(text, "$1")
	text = strong.ReplaceAllString(text, "")
	return clip(oneLine(text), maxWords)
}

// clip cuts a text to n characters as a person counts them.
func clip(text string, n int) string {
	rest, state := text, -1
	for i := 0; i < n && rest != ""; i++ {
		_, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
	}
	if rest == "" {
		return bound(text, n)
	}
	return bound(text[:len(text)-len(rest)], n-1) + "…"
}

// bound cuts a text to n code points: one character may have a thousand.
func bound(text string, n int) string {
	runes := []rune(text)
	return string(runes[:min(len(runes), n)])
}
