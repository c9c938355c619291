package access

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sort"
	"strings"
	"sync"
	"time"
)

// watchEvery is how often Watch checks the file. A check is one stat.
const watchEvery = 200 * time.Millisecond

// unsettled is how long after a write the file's times don't prove that it is unchanged: file
// systems have coarse clocks (some with steps of two seconds), and inode numbers of deleted files
// are reused.
const unsettled = 3 * time.Second

// approvals is one reading of the approved file. It never changes.
type approvals struct {
	info    fs.FileInfo // nil: the file is missing
	users   map[string]bool
	err     error
	settled bool
}

// Change is a change of the approvals since the last report.
type Change struct {
	Approved []string // user ids, sorted
	Revoked  []string
	// Err reports, once, why the file can't be read. The other fields are empty then. Nobody counts
	// as approved meanwhile, but nobody counts as revoked either: a disk fault is no reason to
	// delete users' data.
	Err error
}

// Approved reports whether a user is approved now. It costs one stat unless the file changed. A
// corrupt or unreadable file approves nobody.
func (p *Pairing) Approved(userID string) bool {
	return p.approvals().users[strings.TrimSpace(userID)]
}

// approvals returns the present approvals.
func (p *Pairing) approvals() *approvals {
	path := p.approvedPath()
	info, err := statFile(path)
	if last := p.approved.Load(); err == nil && last != nil && last.settled && sameFile(last.info, info) {
		return last
	}
	a := &approvals{}
	var d document
	if err != nil {
		a.err = fmt.Errorf("pairing: %w", err)
	} else if d, a.info, a.err = readDocument(path); a.err == nil {
		a.users = make(map[string]bool, len(d))
		for id := range d {
			// Hermes checks only the key, whatever the value is.
			if id = strings.TrimSpace(id); id != "" {
				a.users[id] = true
			}
		}
		a.settled = a.info == nil || time.Since(a.info.ModTime()) > unsettled
	}
	// If two readings finish in the wrong order, the older one is stored. The next call notices
	// that the file is another one.
	p.approved.Store(a)
	return a
}

// Watch calls report for every change of the approvals, whoever made it: this process, another of
// ours, or Hermes. It notices one in less than half a second. The first report has the changes
// since OpenPairing. Watch doesn't report the changes of Revoke, whose caller applies them. It
// calls report on its own goroutine, one call at a time. report may use the Pairing except for
// Revoke. Watch returns when the context ends.
func (p *Pairing) Watch(ctx context.Context, report func(Change)) {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for ctx.Err() == nil {
		p.watcher.tell(report)
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// watcher is the state of Watch.
type watcher struct {
	mu    sync.Mutex // held during a check, until its result is reported
	p     *Pairing
	users map[string]bool // as last reported
	// Checks in a row that found the file missing or unreadable.
	missing, faults int
}

func (w *watcher) tell(report func(Change)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if change, ok := w.look(); ok {
		report(change)
	}
}

// look compares the file with the last readable one. It reports a fault only if it finds it twice:
// a copy or an editor may empty or remove the file for a moment.
func (w *watcher) look() (Change, bool) {
	a := w.p.approvals()
	err := a.err
	if err == nil && a.info == nil {
		// Hermes never removes the file, so its owner did. If the folder is gone too, a disk is
		// missing.
		if _, e := os.Stat(w.p.dir); e != nil {
			err = fmt.Errorf("pairing: %w", e)
		}
	}
	if err != nil {
		w.missing, w.faults = 0, w.faults+1
		if w.faults != 2 {
			return Change{}, false
		}
		return Change{Err: err}, true
	}
	if w.faults = 0; a.info != nil {
		w.missing = 0
	} else if w.missing++; w.missing < 2 {
		return Change{}, false
	}
	change := Change{Approved: without(a.users, w.users), Revoked: without(w.users, a.users)}
	w.users = a.users
	return change, len(change.Approved)+len(change.Revoked) > 0
}

// without returns the members of a that b lacks, sorted.
func without(a, b map[string]bool) []string {
	var ids []string
	for id := range a {
		if !b[id] {
			ids = append(ids, id)
		}
	}
	sort.Strings(ids)
	return ids
}

// Check returns what is wrong with the pairing files, nil if all are readable: for the doctor and
// for a log line at the start.
func (p *Pairing) Check() error {
	_, _, pending := readDocument(p.pendingPath())
	_, limits := p.limits()
	return errors.Join(p.approvals().err, pending, limits)
}
