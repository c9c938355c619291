package doctor

import (
	"cmp"
	"slices"
)

// Severity is the severity of an issue.
type Severity string

// The severities, the worst first.
const (
	Error   Severity = "error"   // messages are rejected or can't get through, or strangers have access
	Warning Severity = "warning" // something does not work, or soon will not
	Note    Severity = "note"    // worth knowing
)

func (s Severity) rank() int { return slices.Index([]Severity{Error, Warning, Note}, s) }

// Issue is a problem that the owner should know about.
type Issue struct {
	Code     string   `json:"code"`
	Severity Severity `json:"severity"`
	// About is the id of the gateway or device with the issue, if there can be several.
	About string `json:"about,omitempty"`
	// Text describes the problem, Do the fix, and See links to the documentation. They contain paths and
	// names, so they are for the owner only.
	Text string `json:"text,omitempty"`
	Do   string `json:"do,omitempty"`
	See  string `json:"see,omitempty"`
	// DependsOn lists the codes that may cause this issue.
	DependsOn []string `json:"depends_on,omitempty"`
}

// document has a section for each code.
const document = "doc/troubleshooting.md"

// issue makes an Issue with a code from the table.
func issue(code, about, text, do string) Issue {
	c := table[code]
	return Issue{Code: code, Severity: c.Severity, About: about, Text: text, Do: do, See: document + "#" + code, DependsOn: c.After}
}

// Shorten removes issues caused by another issue of the list, removes duplicates, and puts the worst first.
func Shorten(list []Issue) []Issue {
	short := []Issue{}
	for _, f := range list {
		again := slices.ContainsFunc(short, func(o Issue) bool { return o.Code == f.Code && o.About == f.About && o.Text == f.Text })
		if !again && !slices.ContainsFunc(list, func(cause Issue) bool { return explains(cause, f) }) {
			short = append(short, f)
		}
	}
	slices.SortStableFunc(short, func(a, b Issue) int {
		return cmp.Or(a.Severity.rank()-b.Severity.rank(), order(a.Code)-order(b.Code), cmp.Compare(a.About, b.About))
	})
	return short
}

// explains reports whether one issue causes another. An issue of one gateway does not explain an issue of
// another gateway.
func explains(cause, f Issue) bool {
	return cause.Code != f.Code && follows(f.Code, cause.Code) && (cause.About == "" || f.About == "" || cause.About == f.About)
}

// follows reports whether a code depends on another, directly or through others.
func follows(code, cause string) bool {
	return slices.ContainsFunc(table[code].After, func(c string) bool { return c == cause || follows(c, cause) })
}

// Ready reports whether the server accepts messages. The list must not be shortened.
func Ready(list []Issue) bool {
	return !slices.ContainsFunc(list, func(f Issue) bool { return table[f.Code].Refuses })
}

// Well reports whether a list has neither errors nor warnings.
func Well(list []Issue) bool {
	return !slices.ContainsFunc(list, func(f Issue) bool { return f.Severity != Note })
}

// ForStrangers returns the public part of issues: each code once, with its severity.
func ForStrangers(list []Issue) []Issue {
	out := []Issue{}
	for _, f := range list {
		bare := Issue{Code: f.Code, Severity: f.Severity}
		if !slices.ContainsFunc(out, func(o Issue) bool { return o.Code == bare.Code }) {
			out = append(out, bare)
		}
	}
	return out
}
