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
	current  int    // the segment that is being said
	sent     string // what of it stands in finished messages
	id       string // the message that is being streamed; empty where nothing of it was posted
	finished int    // messages and files that were finished
	stored   int    // of those, what an earlier life had stored
	gapped   bool   // events are missing, so that only the end tells which segment is which
}

// began reports whether anything was said.
func (r *reply) hasOutput() bool { return r.finished > 0 || r.stored > 0 || len(r.segments) > 0 }

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
		r.stored, r.finished = max(r.stored, r.finished), 0
		r.segments, r.current, r.sent, r.gapped = nil, 0, "", true
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
	if r.gapped || segment < r.current {
		return nil
	}
	var events []agent.Event
	if segment > r.current {
		events = r.finish()
		r.current, r.sent = segment, ""
	}
	for len(r.segments) <= segment {
		r.segments = append(r.segments, "")
	}
	r.segments[segment] = text
	if text = r.turn.visiblePartial(r.rest(text)); text == "" || r.finished < r.stored {
		return events
	}
	if r.id == "" {
		r.id = agent.NewID()
	}
	return append(events, r.turn.say(r.id, text, false))
}

// rest is what of the open segment is not said yet, as a person reads it. What was said cannot be taken back.
func (r *reply) rest(text string) string {
	if r.sent != "" {
		after, goesOn := strings.CutPrefix(strings.TrimSpace(text), r.sent)
		if !goesOn {
			return ""
		}
		text = after
	}
	return visible(text)
}

// finish ends the message of the open segment with what it has. A segment without text is none.
func (r *reply) finish() []agent.Event {
	whole := r.at(r.current)
	text := r.rest(whole)
	if text == "" {
		return nil
	}
	r.sent = strings.TrimSpace(whole)
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
	past := min(max(r.stored-r.finished, 0), len(events))
	r.finished += len(events)
	return events[past:]
}

// end says what the outcome has and was not said. The outcome's segments are those that have text.
func (r *reply) end(o gateway.Outcome) []agent.Event {
	before := 0 // segments that were said whole
	for _, s := range r.segments[:min(r.current, len(r.segments))] {
		if visible(s) != "" {
			before++
		}
	}
	list := o.Segments
	if len(list) == 0 {
		list = r.segments
	}
	var events []agent.Event
	for _, s := range list {
		if visible(s) == "" {
			continue
		}
		if before--; before >= 0 {
			continue
		}
		text := r.rest(s)
		r.sent = "" // it was of this segment
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
func visible(text string) string {
	if text = strings.Trim(text, "\r\n"); strings.TrimSpace(text) == "" {
		return ""
	}
	return text
}

// unfinished is a text that is still being written, as a person reads it: a file is not shown as the letters that name it.
func (t *turn) visiblePartial(text string) string {
	if t.agent.currentNeighbor() != nil {
		text = strings.TrimSpace(mediaLine.ReplaceAllString(text, ""))
	} else {
		text = replaceMedia(text)
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
