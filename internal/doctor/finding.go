package doctor

import (
	"cmp"
	"slices"
)

// Severity says how bad a finding is.
type Severity string

// The severities, the worst first.
const (
	Error   Severity = "error"   // messages are refused or cannot get through, or strangers get what is not for them
	Warning Severity = "warning" // something does not work, or soon will not
	Note    Severity = "note"    // worth knowing
)

func (s Severity) rank() int { return slices.Index([]Severity{Error, Warning, Note}, s) }

// Finding is something that an owner should know.
type Finding struct {
	Code     string   `json:"code"`
	Severity Severity `json:"severity"`
	// About names whom it is about, a gateway or a device, where there can be several.
	About string `json:"about,omitempty"`
	// Text says what is wrong, Do what to do about it, See where more is written. They name paths and people, and are for this
	// machine only.
	Text string `json:"text,omitempty"`
	Do   string `json:"do,omitempty"`
	See  string `json:"see,omitempty"`
	// DependsOn are the codes of which this may be a mere consequence.
	DependsOn []string `json:"depends_on,omitempty"`
}

// document is where each code has a section.
const document = "doc/troubleshooting.md"

// finding makes one of the table's findings.
func finding(code, about, text, do string) Finding {
	c := table[code]
	return Finding{Code: code, Severity: c.Severity, About: about, Text: text, Do: do, See: document + "#" + code, DependsOn: c.After}
}

// Shorten takes out what follows from something else in the list, drops repeats, and puts the worst first.
func Shorten(list []Finding) []Finding {
	short := []Finding{}
	for _, f := range list {
		again := slices.ContainsFunc(short, func(o Finding) bool { return o.Code == f.Code && o.About == f.About && o.Text == f.Text })
		if !again && !slices.ContainsFunc(list, func(cause Finding) bool { return explains(cause, f) }) {
			short = append(short, f)
		}
	}
	slices.SortStableFunc(short, func(a, b Finding) int {
		return cmp.Or(a.Severity.rank()-b.Severity.rank(), order(a.Code)-order(b.Code), cmp.Compare(a.About, b.About))
	})
	return short
}

// explains reports whether one finding is enough to explain another: what is about one gateway says nothing of the next.
func explains(cause, f Finding) bool {
	return cause.Code != f.Code && follows(f.Code, cause.Code) && (cause.About == "" || f.About == "" || cause.About == f.About)
}

// follows reports whether a code depends on another, directly or through others.
func follows(code, cause string) bool {
	return slices.ContainsFunc(table[code].After, func(c string) bool { return c == cause || follows(c, cause) })
}

// Ready reports whether messages are taken, to judge by a whole list that was not shortened.
func Ready(list []Finding) bool {
	return !slices.ContainsFunc(list, func(f Finding) bool { return table[f.Code].Refuses })
}

// Well reports whether nothing in a list needs doing.
func Well(list []Finding) bool {
	return !slices.ContainsFunc(list, func(f Finding) bool { return f.Severity != Note })
}

// ForStrangers leaves of findings what anybody may know.
func ForStrangers(list []Finding) []Finding {
	out := []Finding{}
	for _, f := range list {
		bare := Finding{Code: f.Code, Severity: f.Severity}
		if !slices.ContainsFunc(out, func(o Finding) bool { return o.Code == bare.Code }) {
			out = append(out, bare)
		}
	}
	return out
}
