package direct

import (
	"strings"

	"hermes-mobile/gateway"
	"hermes-mobile/internal/agent"
)

// reply converts the segments of a turn into messages. Each segment is one message, which ends when
// a tool or the next segment starts. A turn from before a restart is read from its start again, and
// reply skips what is stored already.
type reply struct {
	turn     *turn
	segments []string
	current  int    // the segment that is being streamed
	sent     string // its text in finished messages
	id       string // the message that is being streamed; empty if nothing of it was posted
	finished int    // finished messages and files
	stored   int    // of those, stored before a restart
	gapped   bool   // events are missing, so only the end tells which segment is which
}

// hasOutput reports whether there is any output.
func (r *reply) hasOutput() bool { return r.finished > 0 || r.stored > 0 || len(r.segments) > 0 }

// apply adds an event with text, and returns the events for the conversation.
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

// stream sets the text of a segment so far, emits it as an edit, and finishes the message before
// it.
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

// rest returns the unsent text of the current segment, as the user reads it. Sent text cannot be
// taken back.
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

// finish ends the message of the current segment. A segment without text is no message.
func (r *reply) finish() []agent.Event {
	whole := r.at(r.current)
	text := r.rest(whole)
	if text == "" {
		return nil
	}
	r.sent = strings.TrimSpace(whole)
	return r.final(text)
}

// final emits a message, and the files in it.
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

// end emits what the outcome has and was not sent. The segments of an outcome always have text.
func (r *reply) end(o gateway.Outcome) []agent.Event {
	before := 0 // segments that were sent in full
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
		r.sent = "" // belonged to this segment
		if text != "" {
			events = append(events, r.final(text)...)
		}
	}
	if o.State != gateway.Completed && len(events) > 0 {
		if say, ok := events[len(events)-1].(agent.Say); ok { // the last one was cut off
			say.Interrupted = true
			events[len(events)-1] = say
		}
	}
	return events
}

// visible returns a segment as the user reads it, empty if there is nothing to read.
func visible(text string) string {
	if text = strings.Trim(text, "\r\n"); strings.TrimSpace(text) == "" {
		return ""
	}
	return text
}

// visiblePartial returns a text that is still being written, as the user reads it: without the
// markup of files.
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
