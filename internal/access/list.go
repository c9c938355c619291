package access

import "strings"

// List is a set of allowed ids: MOBILE_ALLOWED_DEVICES or MOBILE_ALLOWED_USERS
// (protocol §2). It is not changed after ParseList.
type List map[string]struct{}

// ParseList reads a comma list. Spaces around ids are dropped, and so are
// empty items. Ids are exact: upper and lower case differ.
func ParseList(list string) List {
	l := List{}
	for _, id := range strings.Split(list, ",") {
		if id = strings.TrimSpace(id); id != "" {
			l[id] = struct{}{}
		}
	}
	return l
}

// Has says whether the id is on the list.
func (l List) Has(id string) bool {
	_, ok := l[id]
	return ok
}

// Set says whether the list names anybody. What an empty list means is up to
// the caller: no filter for devices, nobody in advance for users.
func (l List) Set() bool { return len(l) > 0 }
