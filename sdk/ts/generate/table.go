package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// classLetters maps the class names of the table to the letters that the SDK uses. P is a character
// that shows as itself.
var classLetters = map[string]byte{"hidden": 'H', "unassigned": 'U', "blank": 'B', "combining": 'C', "joiner": 'J', "selector": 'S', "rtl": 'R', "jamo": 'K'}

type span struct {
	first, last int
	class       byte
}

// generateTable writes the character classes as one string of runs from U+0000 on: the letter of a
// class and, in base 36, the number of code points.
func generateTable(path string) ([]byte, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var table struct {
		Unicode string
		Classes map[string][][2]int
		Sets    map[string][][2]int
	}
	if err := json.Unmarshal(content, &table); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var spans []span
	for name, ranges := range table.Classes {
		letter := classLetters[name]
		if letter == 0 {
			return nil, fmt.Errorf("%s: class %s is not in classLetters of table.go: add it", path, name)
		}
		for _, r := range ranges {
			spans = append(spans, span{r[0], r[1], letter})
		}
	}
	slices.SortFunc(spans, func(a, b span) int { return a.first - b.first })
	var runs strings.Builder
	run := func(class byte, length int) {
		if length > 0 {
			runs.WriteString(string(class) + strconv.FormatInt(int64(length), 36))
		}
	}
	at := 0
	for _, s := range spans {
		if s.first < at {
			return nil, fmt.Errorf("%s: U+%04X has two classes", path, s.first)
		}
		run('P', s.first-at)
		run(s.class, s.last-s.first+1)
		at = s.last + 1
	}
	run('P', unicode.MaxRune+1-at)

	var out strings.Builder
	fmt.Fprintf(&out, "// Made from testdata/visible/table.json by `go run ./sdk/ts/generate`. Do not edit.\n\n")
	fmt.Fprintf(&out, "/** The classes of all characters of Unicode %s as runs: the letter of a class and, in base 36, the number of code points. */\n", table.Unicode)
	fmt.Fprintf(&out, "export const CLASSES =\n  '%s'\n", runs.String())
	names := make([]string, 0, len(table.Sets))
	for name := range table.Sets {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		text, err := json.Marshal(table.Sets[name])
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&out, "\n/** First and last of each range. */\nexport const %s: readonly (readonly [number, number])[] = %s\n", strings.ToUpper(name), strings.ReplaceAll(string(text), ",", ", "))
	}
	return []byte(out.String()), nil
}
