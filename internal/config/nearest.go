package config

import "strings"

// nearest returns the known name with the fewest edits from name, and whether a typing error is likely. If
// several names are equally near, it returns the first.
func nearest(name string, known []string) (best string, likely bool) {
	least := -1
	for _, k := range known {
		if d := edits(plain(name), plain(k)); least < 0 || d < least {
			best, least = k, d
		}
	}
	return best, least <= max(2, len(plain(best))/3)
}

// plain removes the differences between the three spellings of a setting (MOBILE_PORT, port, --port), so
// that they do not count as edits.
func plain(name string) string {
	name = strings.ToLower(strings.ReplaceAll(name, "-", "_"))
	return strings.TrimPrefix(name, "mobile_")
}

// edits counts insertions, deletions, replacements, and swaps of adjacent characters (optimal string
// alignment distance).
func edits(a, b string) int {
	s, t := []rune(a), []rune(b)
	before, last := make([]int, len(t)+1), make([]int, len(t)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(s); i++ {
		row := make([]int, len(t)+1)
		row[0] = i
		for j := 1; j <= len(t); j++ {
			cost := 1
			if s[i-1] == t[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && s[i-1] == t[j-2] && s[i-2] == t[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(t)]
}
