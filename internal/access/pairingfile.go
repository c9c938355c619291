package access

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strconv"
	"strings"
	"time"

	"hermes-mobile/internal/plaintext"
)

// The formats of Hermes' pairing files, the same in 0.19 and 0.22; each is one
// JSON object, indented by two:
//
//	mobile-pending.json   {"<16 hex>": {"hash", "salt", "user_id", "user_name", "created_at"}}
//	mobile-approved.json  {"<user id>": {"user_name", "approved_at"}}
//	_rate_limits.json     {"mobile:<user id>": time of the last request, "_failures:mobile": count, "_lockout:mobile": until}
//
// Times are seconds since 1970 with a fraction. The last file is one for all
// platforms. Keys and fields of others are kept as they stand.

// document is the object of a pairing file, with values not decoded.
type document map[string]json.RawMessage

// entry is one value of a document, nil if it isn't an object.
type entry map[string]json.RawMessage

// readDocument reads a pairing file. A missing one is empty. The info identifies the file, nil if
// there was none. Anything that Hermes wouldn't have written is ErrDamaged: Hermes treats such a
// file as empty and overwrites it, but then a disk fault would lose all approvals.
func readDocument(path string) (document, fs.FileInfo, error) {
	data, info, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return document{}, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("pairing: %w", err)
	}
	if data, err = plaintext.Trim(data); err != nil {
		return nil, info, fmt.Errorf("%w: %s: %w", ErrDamaged, path, err)
	}
	var d document
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, info, damaged(path, err)
	}
	if d == nil { // null
		return nil, info, damaged(path, nil)
	}
	return d, info, nil
}

// damaged returns the error for a corrupt file. It reports only the position, since a type error
// may quote the file.
func damaged(path string, err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("%w: %s at byte %d; repair or move it", ErrDamaged, path, syntax.Offset)
	}
	return fmt.Errorf("%w: %s; repair or move it", ErrDamaged, path)
}

// editTries is how often a change is retried because Hermes wrote the file at the same time. Hermes
// writes only when a person runs a command.
const editTries = 10

// edit reads a pairing file, changes it, and replaces it if change reports true. It may call change
// again with newer content. The caller holds the lock.
func edit(path string, change func(document) (bool, error)) error {
	for range editTries {
		d, info, err := readDocument(path)
		if err != nil {
			return err
		}
		changed, err := change(d)
		if err != nil || !changed {
			return err
		}
		data, err := d.encode()
		if err != nil {
			return fmt.Errorf("pairing: %w", err)
		}
		err = replaceFile(path, data, keepMode, func() error {
			if now, err := statFile(path); err != nil || !sameFile(info, now) {
				return errors.Join(errChanged, err)
			}
			return nil
		})
		switch {
		case errors.Is(err, errChanged):
		case err != nil:
			return fmt.Errorf("pairing: %w", err)
		default:
			return nil
		}
	}
	return fmt.Errorf("pairing: %s: %w", path, ErrBusy)
}

func (d document) encode() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(d); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// entry returns the fields of a value. Their names are case-sensitive, unlike those of a Go struct.
func (d document) entry(key string) entry {
	var e entry
	if json.Unmarshal(d[key], &e) != nil {
		return nil
	}
	return e
}

// set sets fields of a value and keeps its other fields.
func (d document) set(key string, fields map[string]any) error {
	e := d.entry(key)
	if e == nil {
		e = entry{}
	}
	for name, value := range fields {
		raw, err := marshal(value)
		if err != nil {
			return err
		}
		e[name] = raw
	}
	raw, err := marshal(e)
	if err != nil {
		return err
	}
	d[key] = raw
	return nil
}

func (d document) setValue(key string, value any) error {
	raw, err := marshal(value)
	if err != nil {
		return err
	}
	d[key] = raw
	return nil
}

// marshal is json.Marshal without escapes for HTML.
func marshal(value any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(value)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}

// prune removes expired requests, and invalid ones, as Hermes does. It returns when the oldest of
// the others was made.
func (d document) prune(now time.Time) (changed bool, oldest time.Time) {
	for id := range d {
		created, ok := d.entry(id).time("created_at")
		if !ok || now.Sub(created) > CodeLife {
			delete(d, id)
			changed = true
			continue
		}
		if oldest.IsZero() || created.Before(oldest) {
			oldest = created
		}
	}
	return changed, oldest
}

// forget removes the times of requests before a time, so the record doesn't grow forever.
func (d document) forget(prefix string, before time.Time) {
	for key, raw := range d {
		if n, ok := number(raw); ok && strings.HasPrefix(key, prefix) && fromSeconds(n).Before(before) {
			delete(d, key)
		}
	}
}

func (e entry) text(name string) string {
	var s string
	if json.Unmarshal(e[name], &s) != nil {
		return ""
	}
	return s
}

func (e entry) time(name string) (time.Time, bool) {
	n, ok := number(e[name])
	return fromSeconds(n), ok
}

// hashed reports whether a request has the hash of a code. Entries of an old Hermes have the code
// itself as key.
func (e entry) hashed() bool { return e.text("hash") != "" && e.text("salt") != "" }

// limits is the part of _rate_limits.json for a platform.
type limits struct {
	path        string
	record      document
	lockedUntil time.Time
}

// limits reads the record. An unreadable one is an error: without it, it is unknown whether
// approving is locked.
func (p *Pairing) limits() (limits, error) {
	d, _, err := readDocument(p.limitsPath())
	if err != nil {
		return limits{}, err
	}
	l := limits{path: p.limitsPath(), record: d}
	l.lockedUntil, err = l.time("_lockout:" + p.platform)
	return l, err
}

// time returns a time of the record, or zero if the record lacks it.
func (l limits) time(key string) (time.Time, error) {
	raw, found := l.record[key]
	if !found {
		return time.Time{}, nil
	}
	n, ok := number(raw)
	if !ok {
		return time.Time{}, damaged(l.path, nil)
	}
	return fromSeconds(n), nil
}

// number decodes a JSON number that float64 can represent.
func number(raw json.RawMessage) (float64, bool) {
	n, err := strconv.ParseFloat(string(raw), 64)
	return n, err == nil && json.Valid(raw)
}

// seconds converts a time to Hermes' format.
func seconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

// fromSeconds is the inverse. It limits invalid times to about 250 years around 1970, where
// durations don't overflow.
func fromSeconds(s float64) time.Time {
	const limit = 250 * 365 * 24 * 3600
	return time.UnixMicro(int64(math.Max(-limit, math.Min(limit, s)) * 1e6))
}
