package gateway

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Input is something a person sent.
type Input struct {
	Chat      string
	MessageID string
	Text      string
	Arrived   int    // how often it came
	Acted     int    // how often it was acted on
	SHA       string // of the file that came with it
	url       string
}

// Decision is what became of a prompt. Text is what it asked, unique to it.
type Decision struct {
	Chat     string
	PromptID string
	Text     string
	Options  []string
	Shown    bool   // the server said success
	Dead     bool   // its result was lost: another one was asked instead
	Option   string // the answer that counted, or that came for a dead one
	Answers  int    // how many came, repeats of one message_id not counted
}

// Reply is a message that the gateway sent, or a file.
type Reply struct {
	Chat      string
	Text      string // without prefix; of a file its name
	File      string // sha256 of a file
	ReplyTo   string
	Sent      int  // how often it was written to a link
	Confirmed bool // the server said success
	Given     bool // a file whose result was lost: it is not sent again
	Refusals  []string
}

type key struct{ chat, id string }

type record struct {
	start      time.Time
	seen       map[key]*Input
	inputs     []*Input // in the order they came
	acted      []*Input // in the order they were acted on
	prompts    map[string]*Decision
	order      []*Decision
	replies    []*Reply
	faults     []string
	closes     map[int]int
	links      int
	duplicates int
	resent     int
	strangers  int // answers to prompts of earlier processes
	notes      []note
}

type note struct {
	at         time.Duration
	chat, text string
}

func newRecord() record {
	return record{start: time.Now(), seen: map[key]*Input{}, prompts: map[string]*Decision{}, closes: map[int]int{}}
}

// maxNotes bounds the trace.
const maxNotes = 60_000

func (g *Gateway) traceLocked(chat, text string) {
	if len(g.rec.notes) >= maxNotes {
		g.rec.notes = slices.Delete(g.rec.notes, 0, maxNotes/4)
	}
	g.rec.notes = append(g.rec.notes, note{time.Since(g.rec.start), chat, text})
}

func (g *Gateway) trace(chat, text string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.traceLocked(chat, text)
}

// fault records what no server may do.
func (g *Gateway) fault(text string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.traceLocked("", "!! "+text)
	if len(g.rec.faults) < 100 {
		g.rec.faults = append(g.rec.faults, text)
	}
}

// Note puts a line of the test's own into the trace.
func (g *Gateway) Note(text string) { g.trace("", "-- "+text) }

// NoteIn is Note for a chat.
func (g *Gateway) NoteIn(chat, text string) { g.trace(chat, "-- "+text) }

// Trace returns the lines about a chat that lie around those with a word, and what happened to the link meanwhile.
func (g *Gateway) Trace(chat, word string, around int) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var mine []note
	for _, n := range g.rec.notes {
		if n.chat == chat || n.chat == "" {
			mine = append(mine, n)
		}
	}
	keep := map[int]bool{}
	for i, n := range mine {
		if strings.Contains(n.text, word) {
			for j := max(0, i-around); j <= min(len(mine)-1, i+around); j++ {
				keep[j] = true
			}
		}
	}
	var lines []string
	for _, i := range slices.Sorted(maps.Keys(keep)) {
		lines = append(lines, fmt.Sprintf("%8.3fs %s", mine[i].at.Seconds(), mine[i].text))
	}
	return lines
}

// Gaps returns, for each time between two moments in which nothing happened in a chat for so long, the line before it, what
// happened to others meanwhile, and the line after it.
func (g *Gateway) Gaps(chat string, from, to time.Time, least time.Duration) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	begin, end := from.Sub(g.rec.start), to.Sub(g.rec.start)
	line := func(n note) string { return fmt.Sprintf("%8.3fs %s", n.at.Seconds(), n.text) }
	lines := []string{line(note{begin, chat, "-- the time in question begins"})}
	last := note{at: begin}
	var others []string
	for _, n := range append(slices.Clone(g.rec.notes), note{end, chat, "-- it ends"}) {
		switch {
		case n.at < begin || n.at > end:
		case n.chat == "":
			others = append(others, line(n))
		case n.chat == chat:
			if d := n.at - last.at; d >= least {
				lines = append(lines, line(last))
				lines = append(append(lines, others...), fmt.Sprintf("          nothing happened for %s", d.Round(time.Millisecond)), line(n))
			}
			last, others = n, nil
		}
	}
	return lines
}

// Inputs returns everything that came, in order.
func (g *Gateway) Inputs() []Input { return copied(g, func() []*Input { return g.rec.inputs }) }

// Acted returns what was acted on, in order: an input stands there as often as that happened.
func (g *Gateway) Acted() []Input { return copied(g, func() []*Input { return g.rec.acted }) }

// Decisions returns all prompts, in the order they were asked.
func (g *Gateway) Decisions() []Decision {
	return copied(g, func() []*Decision { return g.rec.order })
}

// Replies returns everything that was sent, in the order it was begun.
func (g *Gateway) Replies() []Reply { return copied(g, func() []*Reply { return g.rec.replies }) }

func copied[T any](g *Gateway, list func() []*T) []T {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []T
	for _, v := range list() {
		out = append(out, *v)
	}
	return out
}

// Faults returns what the server did that no server may do.
func (g *Gateway) Faults() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.rec.faults)
}

// Counts is a summary for people.
type Counts struct {
	Links, Inputs, Duplicates, Prompts, Replies, Resent int
	Strangers                                           int         // answers to prompts of an earlier process
	Closes                                              map[int]int // of links, by close code; -1: without one
}

// Counts returns a summary.
func (g *Gateway) Counts() Counts {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := &g.rec
	return Counts{Links: r.links, Inputs: len(r.inputs), Duplicates: r.duplicates, Prompts: len(r.order), Replies: len(r.replies), Resent: r.resent, Strangers: r.strangers,
		Closes: maps.Clone(r.closes)}
}

// Idle reports whether no turn runs and none waits.
func (g *Gateway) Idle() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.chats {
		if c.busy || len(c.queue) > 0 {
			return false
		}
	}
	return true
}
