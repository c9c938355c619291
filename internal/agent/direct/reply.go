package direct

import (
	"strings"

	"hermes-mobile/gateway"
	"hermes-mobile/internal/agent"
)

// reply turns the segments of a turn into messages: each segment is one, and ends where a tool or the next one begins. A
// turn of an earlier life is followed from its beginning again, and what that life had stored is passed over.
type reply struct {
	turn     *turn
	segments []string
	open     int    // the segment that is being said
	said     string // what of it stands in finished messages
	id       string // the message that is being streamed; empty where nothing of it was posted
	given    int    // messages and files that were finished
	skip     int    // of those, what an earlier life had stored
	blind    bool   // events are missing, so that only the end tells which segment is which
}

// began reports whether anything was said.
func (r *reply) began() bool { return r.given > 0 || r.skip > 0 || len(r.segments) > 0 }

// apply takes an event with text, and gives out what is to be said.
func (r *reply) apply(e gateway.Event) []agent.Event {
	switch e := e.(type) {
	case gateway.Delta:
		return r.stream(e.Segment, r.at(e.Segment)+e.Text)
	case gateway.Segment:
		return r.stream(e.Index, e.Text)
	case gateway.Commentary:
		return r.stream(e.Index, e.Text)
	case gateway.Gap:
		r.skip, r.given = max(r.skip, r.given), 0
		r.segments, r.open, r.said, r.blind = nil, 0, "", true
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
func (r *reply) stream(segment int, text string) []agent.Event {
	if r.blind || segment < r.open {
		return nil
	}
	var events []agent.Event
	if segment > r.open {
		events = r.finish()
		r.open, r.said = segment, ""
	}
	for len(r.segments) <= segment {
		r.segments = append(r.segments, "")
	}
	r.segments[segment] = text
	if text = r.turn.unfinished(r.rest(text)); text == "" || r.given < r.skip {
		return events
	}
	if r.id == "" {
		r.id = agent.NewID()
	}
	return append(events, r.turn.say(r.id, text, false))
}

// rest is what of the open segment is not said yet, as a person reads it. What was said cannot be taken back.
func (r *reply) rest(text string) string {
	if r.said != "" {
		after, goesOn := strings.CutPrefix(strings.TrimSpace(text), r.said)
		if !goesOn {
			return ""
		}
		text = after
	}
	return shown(text)
}

// finish ends the message of the open segment with what it has. A segment without text is none.
func (r *reply) finish() []agent.Event {
	whole := r.at(r.open)
	text := r.rest(whole)
	if text == "" {
		return nil
	}
	r.said = strings.TrimSpace(whole)
	return r.final(text)
}

// final says a message, and the files in it.
func (r *reply) final(text string) []agent.Event {
	id := r.id
	if id == "" {
		id = agent.NewID()
	}
	r.id = ""
	text, images := r.turn.images(text)
	text, files := r.turn.files(text)
	files = append(images, files...)
	var events []agent.Event
	if text != "" || len(files) == 0 {
		events = append(events, r.turn.say(id, text, true))
	}
	events = append(events, files...)
	past := min(max(r.skip-r.given, 0), len(events))
	r.given += len(events)
	return events[past:]
}

// end says what the outcome has and was not said. The outcome's segments are those that have text.
func (r *reply) end(o gateway.Outcome) []agent.Event {
	before := 0 // segments that were said whole
	for _, s := range r.segments[:min(r.open, len(r.segments))] {
		if shown(s) != "" {
			before++
		}
	}
	list := o.Segments
	if len(list) == 0 {
		list = r.segments
	}
	var events []agent.Event
	for _, s := range list {
		if shown(s) == "" {
			continue
		}
		if before--; before >= 0 {
			continue
		}
		text := r.rest(s)
		r.said = "" // it was of this segment
		if text != "" {
			events = append(events, r.final(text)...)
		}
	}
	if o.State != gateway.Completed && len(events) > 0 {
		if say, ok := events[len(events)-1].(agent.Say); ok { // the last one is what was cut
			say.Interrupted = true
			events[len(events)-1] = say
		}
	}
	return events
}

// shown is a segment as a person reads it, empty where there is nothing to read.
func shown(text string) string {
	if text = strings.Trim(text, "\r\n"); strings.TrimSpace(text) == "" {
		return ""
	}
	return text
}

// unfinished is a text that is still being written, as a person reads it: a file is not shown as the letters that name it.
func (t *turn) unfinished(text string) string {
	if t.agent.beside() != nil {
		text = strings.TrimSpace(named.ReplaceAllString(text, ""))
	} else {
		text = noted(text)
	}
	const mark = "](data:image/"
	if !strings.Contains(text, mark) {
		return text
	}
	text = inlined.ReplaceAllString(text, "")
	if at := strings.Index(text, mark); at >= 0 {
		if begin := strings.LastIndex(text[:at], "!["); begin >= 0 {
			text = text[:begin]
		}
	}
	return strings.TrimSpace(text)
}
