package direct

import (
	"regexp"
	"strings"

	"hermes-mobile/gateway"
	"hermes-mobile/internal/chat"
)

// reply turns the segments of a turn into messages: each segment is one, and ends where a tool or the next one begins. A
// turn of an earlier life is followed from its beginning again, and what that life had stored is passed over.
type reply struct {
	turn     *turn
	segments []string
	open     int    // the segment that is being streamed
	id       string // its message; empty where nothing of it was posted
	done     int    // segments whose message is finished
	given    int    // messages and files that were finished
	skip     int    // of those, what an earlier life had stored
}

// apply takes an event with text, and gives out what is to be said.
func (r *reply) apply(e gateway.Event) []chat.Event {
	switch e := e.(type) {
	case gateway.Delta:
		return r.stream(e.Segment, r.at(e.Segment)+e.Text)
	case gateway.Segment:
		return r.stream(e.Index, e.Text)
	case gateway.Commentary:
		return r.stream(e.Index, e.Text)
	}
	return nil
}

func (r *reply) at(segment int) string {
	if segment < len(r.segments) {
		return r.segments[segment]
	}
	return ""
}

// stream takes the text of a segment so far, says it as a step, and ends the message before it.
func (r *reply) stream(segment int, text string) []chat.Event {
	if segment < r.open || segment < r.done {
		return nil // of a message that is finished
	}
	var events []chat.Event
	if segment > r.open {
		events = r.finish()
		r.open = segment
	}
	for len(r.segments) <= segment {
		r.segments = append(r.segments, "")
	}
	r.segments[segment] = text
	if text = shown(text); text == "" || r.given < r.skip {
		return events
	}
	if r.id == "" {
		r.id = chat.NewID()
	}
	return append(events, r.turn.say(r.id, text, false))
}

// finish ends the message of the open segment with what it has. A segment without text is none.
func (r *reply) finish() []chat.Event {
	text := shown(r.at(r.open))
	if r.done > r.open || text == "" {
		return nil
	}
	r.done = r.open + 1
	return r.final(text)
}

// final says a message, and the images in it.
func (r *reply) final(text string) []chat.Event {
	id := r.id
	if id == "" {
		id = chat.NewID()
	}
	r.id = ""
	text, images := r.turn.images(text)
	var events []chat.Event
	if text != "" || len(images) == 0 {
		events = append(events, r.turn.say(id, text, true))
	}
	events = append(events, images...)
	past := min(max(r.skip-r.given, 0), len(events))
	r.given += len(events)
	return events[past:]
}

// end says what the outcome has and was not said. The outcome's segments are those that have text.
func (r *reply) end(o gateway.Outcome) []chat.Event {
	said := 0
	for _, s := range r.segments[:min(r.done, len(r.segments))] {
		if shown(s) != "" {
			said++
		}
	}
	rest := o.Segments
	if len(rest) == 0 {
		rest = r.segments
	}
	var events []chat.Event
	for _, s := range rest {
		if s = shown(s); s == "" {
			continue
		}
		if said--; said < 0 {
			events = append(events, r.final(s)...)
		}
	}
	if o.State != gateway.Completed && len(events) > 0 {
		if say, ok := events[len(events)-1].(chat.Say); ok { // the last one is what was cut
			say.Interrupted = true
			events[len(events)-1] = say
		}
	}
	return events
}

// elsewhere finds the lines by which Hermes names a file on its own machine: its API hands none over (api-facts §4.7).
var elsewhere = regexp.MustCompile(`(?m)^[ \t]*MEDIA:(\S.*?)[ \t]*$`)

// shown is a segment as a person reads it.
func shown(text string) string {
	text = strings.Trim(text, "\r\n")
	if strings.TrimSpace(text) == "" {
		return ""
	}
	if !strings.Contains(text, "MEDIA:") {
		return text
	}
	return elsewhere.ReplaceAllStringFunc(text, func(line string) string {
		path := elsewhere.FindStringSubmatch(line)[1]
		name := path[strings.LastIndexAny(path, `/\`)+1:]
		return "*The file " + strings.Trim(name, "`*_[]") + " is on the gateway's machine. Its HTTP API hands no files over.*"
	})
}
