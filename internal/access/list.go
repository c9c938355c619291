package access

import "strings"

// List is a set of allowed ids: MOBILE_ALLOWED_DEVICES or MOBILE_ALLOWED_USERS (doc/protocol.md
// §2). It never changes after ParseList.
type List map[string]struct{}

// ParseList parses a comma-separated list. It ignores spaces around ids and empty items. Ids are
// case-sensitive.
func ParseList(list string) List {
	l := List{}
	for _, id := range strings.Split(list, ",") {
		if id = strings.TrimSpace(id); id != "" {
			l[id] = struct{}{}
		}
	}
	return l
}

// Has reports whether the id is on the list.
func (l List) Has(id string) bool {
	_, ok := l[id]
	return ok
}

// Set reports whether the list names anybody. The caller decides what an empty list means: no
// filter for devices, no approval in advance for users.
func (l List) Set() bool { return len(l) > 0 }
