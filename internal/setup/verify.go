package setup

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/goccy/go-yaml"
)

var errDiffers = errors.New("the edit would change other settings")

// verify checks an edit. The new text must have the same settings and comments as the old one, and
// the wanted value.
func verify(before, after []byte, w want) error {
	a, err := parse(before)
	if err != nil {
		return err
	}
	b, err := parse(after)
	if err != nil {
		return err
	}
	if !slices.Equal(a.comments, b.comments) || !b.has(w) || !same(a.value, b.value, w.path, w) {
		return errDiffers
	}
	return nil
}

// same reports whether a and b are equal except for the value at the path. It compares duplicate
// keys one by one, because both have them.
func same(a, b any, path []string, w want) bool {
	if path == nil {
		return reflect.DeepEqual(a, b)
	}
	if len(path) == 0 {
		if !w.item {
			return true // the caller has checked it with has
		}
		old, _ := a.([]any)
		list, ok := b.([]any)
		return ok && len(list) == len(old)+1 && reflect.DeepEqual(slices.DeleteFunc(slices.Clone(list), func(v any) bool { return v == any(unquoted(w.text)) }),
			append([]any{}, old...))
	}
	// A key without a value, or an empty file, may become a map.
	old, isMap := a.(yaml.MapSlice)
	now, ok := b.(yaml.MapSlice)
	if !ok || !isMap && a != nil {
		return false
	}
	last := func(m yaml.MapSlice) int {
		for i, e := range slices.Backward(m) {
			if e.Key == any(path[0]) {
				return i
			}
		}
		return -1
	}
	i, j := last(old), last(now)
	if j < 0 {
		return false
	}
	if i < 0 {
		return len(now) == len(old)+1 && same(nil, now[j].Value, path[1:], w) && reflect.DeepEqual(normal(old), normal(slices.Delete(slices.Clone(now), j, j+1)))
	}
	if len(path) == 1 && len(now) == len(old)+1 {
		// A key that came from a merge gets its own value.
		return reflect.DeepEqual(normal(old), normal(slices.Delete(slices.Clone(now), j, j+1)))
	}
	if i != j || len(old) != len(now) {
		return false
	}
	for k := range old {
		if old[k].Key != now[k].Key {
			return false
		}
		below := path[1:]
		if k != i {
			below = nil
		}
		if !same(old[k].Value, now[k].Value, below, w) {
			return false
		}
	}
	return true
}

// normal returns a copy of a map that is never nil, so that all empty maps are equal.
func normal(m yaml.MapSlice) yaml.MapSlice { return append(yaml.MapSlice{}, m...) }

// lookup returns the value at a path. The last of several duplicate keys counts.
func lookup(v any, path []string) (any, bool) {
	for _, key := range path {
		m, ok := v.(yaml.MapSlice)
		if !ok {
			return nil, false
		}
		found := false
		for _, e := range slices.Backward(m) {
			if fmt.Sprint(e.Key) == key {
				v, found = e.Value, true
				break
			}
		}
		if !found {
			return nil, false
		}
	}
	return v, v != nil
}

// keysOf returns the keys of a map in their order.
func keysOf(v any) (keys []string) {
	m, _ := v.(yaml.MapSlice)
	for _, e := range m {
		keys = append(keys, fmt.Sprint(e.Key))
	}
	return keys
}
