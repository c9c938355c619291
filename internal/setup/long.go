package setup

import (
	"cmp"
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// Setup edits a long config.yaml in parts, because it parses and checks the text several times per
// edit. That takes too long for the whole file. A part is a top-level key and everything below it.

// part is a part of a file, with the wanted values in it.
type part struct {
	key      string
	from, to int // lines; equal if the key is new
	wants    []want
}

// applyLong is apply for a long file that is a block map without anchors. It returns false for any
// other file.
func (p *Plan) applyLong(d *document, f *File, list []want) (bool, error) {
	entries, flow := entriesOf(d.root)
	if flow || len(entries) < 2 || d.end != len(d.lines) || column(entries[0]) != 1 || strings.ContainsAny(string(f.After), "&*") {
		return false, nil
	}
	var parts []*part
	for _, w := range list {
		i := slices.IndexFunc(parts, func(p *part) bool { return p.key == w.path[0] })
		if i < 0 {
			at := &part{key: w.path[0], from: d.end, to: d.end}
			if j, e := find(entries, at.key); e != nil {
				if at.from = line(e) - 1; j+1 < len(entries) {
					at.to = line(entries[j+1]) - 1
				}
			}
			i, parts = len(parts), append(parts, at)
		}
		parts[i].wants = append(parts[i].wants, w)
	}
	// The parts are edited from the last to the first, so no edit moves another part. New keys keep
	// their order.
	slices.SortStableFunc(parts, func(a, b *part) int { return cmp.Compare(b.from, a.from) })
	lines, changes, end := d.lines, []Change{}, len(d.lines)
	for _, at := range parts {
		text := &File{After: []byte(strings.Join(lines[at.from:at.to], ""))}
		if at.from == at.to {
			text.After = nil
		}
		if err := p.applyEach(text, at.wants); err != nil {
			return true, err
		}
		for _, c := range text.Changes {
			if c.Line > 0 {
				c.Line += at.from
			}
			changes = append(changes, c)
		}
		var new []string
		if d.eol() == "\r\n" && at.from == at.to {
			text.After = []byte(strings.ReplaceAll(string(text.After), "\n", "\r\n"))
		}
		new = slices.Collect(strings.Lines(string(text.After)))
		if at.from == at.to { // a new key goes after the existing and the earlier new ones
			lines = (&document{lines: lines}).withLines(end, new)
			end += len(new)
			continue
		}
		lines = slices.Concat(lines[:at.from], new, lines[at.to:])
		end += len(new) - (at.to - at.from)
	}
	out := d.bytes(lines)
	after, err := parse(out)
	if err != nil {
		return true, err
	}
	if !slices.Equal(d.comments, after.comments) || !onlyIn(d.value, after.value, parts) || len(p.ByHand) == 0 && slices.ContainsFunc(list, func(w want) bool { return !after.has(w) }) {
		return true, errDiffers
	}
	slices.SortStableFunc(changes, func(a, b Change) int {
		at := func(c Change) int { return slices.IndexFunc(list, func(w want) bool { return w.key() == c.Key }) }
		return cmp.Compare(at(a), at(b))
	})
	f.After, f.Changes = out, append(f.Changes, changes...)
	return true, nil
}

// applyEach sets values one by one, and collects those that the owner must set by hand.
func (p *Plan) applyEach(f *File, list []want) error {
	for _, w := range list {
		out, c, err := apply(f.After, w)
		if hand := (*ByHand)(nil); errors.As(err, &hand) {
			p.ByHand = append(p.ByHand, hand)
			continue
		}
		if err != nil {
			return err
		}
		if f.After = out; c != nil {
			f.Changes = append(f.Changes, *c)
		}
	}
	return nil
}

// onlyIn reports whether two files differ only in some parts, including new parts at the end.
func onlyIn(before, after any, parts []*part) bool {
	a, _ := before.(yaml.MapSlice)
	b, _ := after.(yaml.MapSlice)
	if len(b) < len(a) {
		return false
	}
	mine := func(key any) bool {
		return slices.ContainsFunc(parts, func(p *part) bool { return any(p.key) == key })
	}
	for i := range a {
		if a[i].Key != b[i].Key || !mine(a[i].Key) && !reflect.DeepEqual(a[i].Value, b[i].Value) {
			return false
		}
	}
	return !slices.ContainsFunc(b[len(a):], func(e yaml.MapItem) bool { return !mine(e.Key) })
}
