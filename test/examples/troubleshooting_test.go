package examples

import (
	"fmt"
	"strings"
	"testing"

	"hermes-mobile/internal/doctor"
)

// doc/troubleshooting.md is generated from the table of issues. Each code has a section, and is its anchor.
func TestTroubleshooting(t *testing.T) {
	const name = "troubleshooting.md"
	want := issues()
	if *update {
		rewrite(t, name, "table", func(string) string { return want })
	}
	if got := blocks(t, name, "table")["issues"]; got != want {
		t.Errorf("doc/%s is not what the code says; write it anew with -update\n%s", name, firstDifference(got, want))
	}
}

func issues() string {
	var b strings.Builder
	for _, area := range doctor.Areas() {
		fmt.Fprintf(&b, "\n## %s\n", area.Title)
		for _, c := range area.Codes {
			fmt.Fprintf(&b, "\n### %s\n\n**%s** (%s", c.Name, c.Title, c.Severity)
			if c.Refuses {
				b.WriteString(", messages are refused")
			}
			fmt.Fprintf(&b, "). %s\n\n**Fix:** %s\n", c.Why, c.Do)
			if len(c.After) > 0 {
				var links []string
				for _, cause := range c.After {
					links = append(links, fmt.Sprintf("[%s](#%s)", cause, cause))
				}
				fmt.Fprintf(&b, "\nHidden by: %s.\n", strings.Join(links, ", "))
			}
		}
	}
	b.WriteString("\n")
	return b.String()
}
