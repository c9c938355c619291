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

// watchEvery is how often Watch looks at the file. A look is one stat.
const watchEvery = 200 * time.Millisecond

// unsettled is how long after a write the file's times are no proof that it is
// the same file: clocks of file systems tick coarsely (some in steps of two
// seconds), and numbers of deleted files are used again.
const unsettled = 3 * time.Second

// approvals is one reading of the approved file. It is not changed.
type approvals struct {
	info    fs.FileInfo // nil: the file is not there
	users   map[string]bool
	err     error
	settled bool
}

// Change is what happened to the approvals since the last report.
type Change struct {
	Approved []string // user ids, sorted
	Revoked  []string
	// Err says, once, why the file cannot be read; it is alone then. Nobody is
	// approved meanwhile, but nobody counts as revoked either: a fault of the
	// disk is no reason to drop what is kept for users.
	Err error
}

// Approved says whether a user is approved now. It costs one look at the
// file's times unless the file changed. A file that is damaged or cannot be
// read approves nobody.
func (p *Pairing) Approved(userID string) bool {
	return p.approvals().users[strings.TrimSpace(userID)]
}

// approvals gives the present approvals.
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
			// Hermes looks at the key only, whatever the value is.
			if id = strings.TrimSpace(id); id != "" {
				a.users[id] = true
			}
		}
		a.settled = a.info == nil || time.Since(a.info.ModTime()) > unsettled
	}
	// Where two readings end in the wrong order the older one is stored; the
	// next call sees that the file is another one.
	p.approved.Store(a)
	return a
}

// Watch calls report for every change of the approvals, whoever made it: this
// process, another of ours, or Hermes. It takes less than half a second to
// notice one. The first report has what changed since OpenPairing. What Revoke
// takes away is not reported: its caller carries it out. Report is called on
// the goroutine of Watch, one call at a time, and may use the Pairing but for
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

// watcher is what Watch knows.
type watcher struct {
	mu    sync.Mutex // held while there is a look, until what it found is reported
	p     *Pairing
	users map[string]bool // as last reported
	// Looks in a row that saw the file missing, or not to be read.
	missing, faults int
}

func (w *watcher) tell(report func(Change)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if change, ok := w.look(); ok {
		report(change)
	}
}

// look compares the file with the last one that could be read. What looks like
// a fault is believed when it is seen twice: whoever copies over the file, or
// edits it, empties or removes it for a moment.
func (w *watcher) look() (Change, bool) {
	a := w.p.approvals()
	err := a.err
	if err == nil && a.info == nil {
		// Hermes never removes the file, so its owner did; but where the
		// folder is gone too, a disk is not there.
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

// without gives the members of a that b lacks, sorted.
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

// Check says what is wrong with the pairing files, nil where all of them can be
// read: for the doctor and for a log line at the start.
func (p *Pairing) Check() error {
	_, _, pending := readDocument(p.pendingPath())
	_, limits := p.limits()
	return errors.Join(p.approvals().err, pending, limits)
}
