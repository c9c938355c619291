package access

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/asowner"
)

// Limits of pairing, the same as Hermes' (doc/protocol.md §8).
const (
	CodeLife     = time.Hour        // lifetime of a request and its code
	RequestEvery = 10 * time.Minute // one request per user
	MaxPending   = 3                // waiting requests
	MaxWrong     = 5                // wrong codes in a row that lock approval by code
	LockedFor    = time.Hour        // and for how long
)

// Reasons for rejecting a request or an approval. A *DelayError wraps those that end by themselves.
var (
	// ErrWait reports that this user made a request less than RequestEvery ago.
	ErrWait = errors.New("the last pairing request was too recent")
	// ErrTooMany reports that MaxPending requests are waiting.
	ErrTooMany = errors.New("too many pairing requests are waiting")
	// ErrLocked reports that somebody gave MaxWrong wrong codes: no codes are created or accepted.
	// Request ids still are.
	ErrLocked = errors.New("approving by code is locked after too many wrong codes")
	// ErrUnknownRequest reports that no request has this code or id, or that it has expired.
	ErrUnknownRequest = errors.New("no such pairing request or code, or it has expired")
	// ErrNotApproved reports that the user to revoke isn't approved.
	ErrNotApproved = errors.New("the user is not approved")
	// ErrDamaged reports that a pairing file isn't in Hermes' format. The file stays as it is and
	// approves nobody.
	ErrDamaged = errors.New("pairing file corrupt")
)

// DelayError is a rejection that ends by itself. It wraps ErrWait, ErrTooMany or ErrLocked.
type DelayError struct {
	Err        error
	RetryAfter time.Duration // more than 0
}

func (e *DelayError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *DelayError) Unwrap() error { return e.Err }

// Pending is a request that waits for approval. Its JSON is that of `pairing list --json`
// (doc/protocol.md §8).
type Pending struct {
	Platform string `json:"platform"`
	// RequestID is 16 hex digits. It is empty for an entry of an old Hermes, whose key is the code
	// itself and must not be shown.
	RequestID  string `json:"request_id"`
	UserID     string `json:"user_id"`
	UserName   string `json:"user_name"`
	AgeMinutes int    `json:"age_minutes"`
}

// User is an approved user.
type User struct {
	Platform   string    `json:"platform"`
	UserID     string    `json:"user_id"`
	UserName   string    `json:"user_name"`
	ApprovedAt time.Time `json:"approved_at,omitzero"`
}

// Pairing reads and writes Hermes' pairing files, so Hermes' own commands and ours see the same
// requests and approvals (doc/protocol.md §8).
//
// It is safe for concurrent use, also by several processes of ours. Hermes takes no lock between
// processes. If it writes a file during a change of ours, we read the file again, so neither side
// undoes the other.
type Pairing struct {
	dir, platform string
	now           func() time.Time // wall clock: compared with the times in the files
	mu            sync.Mutex       // held while files are changed
	approved      atomic.Pointer[approvals]
	watcher       watcher
}

// PairingDir returns the folder of the pairing files in a Hermes home: the old `pairing` if that is
// in use, else `platforms/pairing`, as Hermes chooses.
func PairingDir(home string) string {
	old := filepath.Join(home, "pairing")
	info, err := os.Stat(old)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil || !info.IsDir():
		return old // Hermes uses it, and the error shows what is wrong with it
	default:
		if entries, err := os.ReadDir(old); err != nil || len(entries) > 0 {
			return old
		}
	}
	return filepath.Join(home, "platforms", "pairing")
}

// OpenPairing opens the files of a platform in a folder, and creates the folder if it is missing.
// Unreadable files are no error here: they approve nobody, and List and the other methods report
// the cause.
func OpenPairing(dir, platform string) (*Pairing, error) {
	return openPairing(dir, platform, time.Now)
}

func openPairing(dir, platform string, now func() time.Time) (*Pairing, error) {
	// Hermes' commands lower-case the platform's name. Files with a leading underscore belong to
	// all platforms.
	if !ValidLabel(platform) || platform != strings.ToLower(platform) || strings.HasPrefix(platform, "_") || strings.HasPrefix(platform, ".") {
		return nil, fmt.Errorf("pairing: invalid platform name %q", platform)
	}
	if err := asowner.Do(dir, func() error { return os.MkdirAll(dir, 0o700) }); err != nil {
		return nil, fmt.Errorf("pairing: %w", err)
	}
	p := &Pairing{dir: dir, platform: platform, now: now}
	p.watcher.p, p.watcher.users = p, p.approvals().users
	return p, nil
}

func (p *Pairing) pendingPath() string  { return filepath.Join(p.dir, p.platform+"-pending.json") }
func (p *Pairing) approvedPath() string { return filepath.Join(p.dir, p.platform+"-approved.json") }
func (p *Pairing) limitsPath() string   { return filepath.Join(p.dir, "_rate_limits.json") }

// lock keeps other processes of ours out until unlock.
func (p *Pairing) lock() (unlock func(), err error) {
	p.mu.Lock()
	release, err := lockFile(filepath.Join(p.dir, "."+p.platform+"-pairing.lock"))
	if err != nil {
		p.mu.Unlock()
		return nil, fmt.Errorf("pairing: %w", err)
	}
	return func() { release(); p.mu.Unlock() }, nil
}

// Request creates a pairing request and returns its code, of which only a salted hash is stored.
// Show it to the user now, without a dash (Hermes' own approve command rejects one). A rejection is
// a *DelayError that wraps ErrLocked, ErrWait or ErrTooMany, in this order, as with Hermes.
func (p *Pairing) Request(userID, userName string) (code string, err error) {
	userID = strings.TrimSpace(userID)
	if userID == "" {
		return "", errors.New("pairing: a request needs a user id")
	}
	unlock, err := p.lock()
	if err != nil {
		return "", err
	}
	defer unlock()

	now := p.now()
	limits, err := p.limits()
	if err != nil {
		return "", err
	}
	if left := limits.lockedUntil.Sub(now); left > 0 {
		return "", &DelayError{ErrLocked, left}
	}
	asked, err := limits.time(p.platform + ":" + userID)
	if err != nil {
		return "", err
	}
	if left := asked.Add(RequestEvery).Sub(now); left > 0 {
		return "", &DelayError{ErrWait, left}
	}

	var full *DelayError
	code = NewCode()
	err = edit(p.pendingPath(), func(d document) (bool, error) {
		pruned, oldest := d.prune(now)
		if full = nil; len(d) >= MaxPending {
			full = &DelayError{ErrTooMany, max(oldest.Add(CodeLife).Sub(now), time.Second)}
			return pruned, nil
		}
		var random [24]byte
		rand.Read(random[:])
		id, salt := random[:8], random[8:]
		return true, d.set(hex.EncodeToString(id), map[string]any{
			"hash": hashCode(code, salt), "salt": hex.EncodeToString(salt),
			"user_id": userID, "user_name": userName, "created_at": seconds(now),
		})
	})
	if err != nil {
		return "", err
	}
	if full != nil {
		return "", full
	}
	err = edit(p.limitsPath(), func(d document) (bool, error) {
		d.forget(p.platform+":", now.Add(-RequestEvery))
		return true, d.setValue(p.platform+":"+userID, seconds(now))
	})
	if err != nil {
		return "", err
	}
	return code, nil
}

// hashCode returns Hermes' hash of a code: SHA-256 of salt and code in hex.
func hashCode(code string, salt []byte) string {
	sum := sha256.Sum256(append(append([]byte(nil), salt...), code...))
	return hex.EncodeToString(sum[:])
}

// List returns the waiting requests, oldest first, and the approved users, sorted by id. It changes
// nothing, and shows no codes.
func (p *Pairing) List() (pending []Pending, approved []User, err error) {
	d, _, err := readDocument(p.pendingPath())
	if err != nil {
		return nil, nil, err
	}
	now := p.now()
	type request struct {
		Pending
		created time.Time
	}
	var requests []request
	for id := range d {
		e := d.entry(id)
		created, ok := e.time("created_at")
		if !ok || now.Sub(created) > CodeLife {
			continue
		}
		if !e.hashed() {
			id = ""
		}
		age := max(0, int(now.Sub(created)/time.Minute))
		requests = append(requests, request{Pending{p.platform, id, e.text("user_id"), frame.CleanName(e.text("user_name")), age}, created})
	}
	slices.SortFunc(requests, func(a, b request) int {
		return cmp.Or(a.created.Compare(b.created), cmp.Compare(a.RequestID, b.RequestID))
	})
	pending, approved = []Pending{}, []User{} // never null in JSON
	for _, r := range requests {
		pending = append(pending, r.Pending)
	}

	if d, _, err = readDocument(p.approvedPath()); err != nil {
		return nil, nil, err
	}
	for id := range d {
		e := d.entry(id)
		at, _ := e.time("approved_at")
		approved = append(approved, User{p.platform, id, frame.CleanName(e.text("user_name")), at})
	}
	slices.SortFunc(approved, func(a, b User) int { return cmp.Compare(a.UserID, b.UserID) })
	return pending, approved, nil
}

// Approve approves the user of a request. The argument is its id (16 hex digits) or its code, in
// any case, with or without dash and spaces. The error for a wrong code is ErrUnknownRequest. For
// the MaxWrong-th in a row, and any code within LockedFor after it, it is a *DelayError that wraps
// ErrLocked. Ids are neither counted nor locked, as with Hermes.
func (p *Pairing) Approve(arg string) (User, error) {
	arg = strings.TrimSpace(arg)
	if arg == "" {
		return User{}, ErrUnknownRequest
	}
	unlock, err := p.lock()
	if err != nil {
		return User{}, err
	}
	defer unlock()

	now := p.now()
	matches := func(id string, _ entry) bool { return strings.EqualFold(id, arg) }
	byCode := !isRequestID(arg)
	if byCode {
		limits, err := p.limits()
		if err != nil {
			return User{}, err
		}
		// Check the lock first, so a locked guesser doesn't learn which code is right.
		if left := limits.lockedUntil.Sub(now); left > 0 {
			return User{}, &DelayError{ErrLocked, left}
		}
		code := NormalizeCode(arg)
		matches = func(_ string, e entry) bool { return e.hasCode(code) }
	}
	d, _, err := readDocument(p.pendingPath())
	if err != nil {
		return User{}, err
	}
	d.prune(now)
	found := ""
	for id := range d { // always all of them
		if e := d.entry(id); e.hashed() && strings.TrimSpace(e.text("user_id")) != "" && matches(id, e) {
			found = id
		}
	}
	if found == "" {
		if byCode {
			return User{}, p.countWrong(now)
		}
		return User{}, ErrUnknownRequest
	}
	e := d.entry(found)
	return p.approve(e.text("user_id"), e.text("user_name"), now)
}

// ApproveUser approves a user without a request: one who redeemed a pairing code (doc/protocol.md
// §8). For an approved user it only renews the entry.
func (p *Pairing) ApproveUser(userID, userName string) (User, error) {
	if strings.TrimSpace(userID) == "" {
		return User{}, errors.New("pairing: an approval needs a user id")
	}
	unlock, err := p.lock()
	if err != nil {
		return User{}, err
	}
	defer unlock()
	return p.approve(userID, userName, p.now())
}

// approve writes the approval, then removes the user's requests. In this order a crash in between
// leaves a request too many, and doesn't lose a user.
func (p *Pairing) approve(userID, userName string, now time.Time) (User, error) {
	userID = strings.TrimSpace(userID)
	if err := p.Check(); err != nil { // before anything is written
		return User{}, err
	}
	err := edit(p.approvedPath(), func(d document) (bool, error) {
		fields := map[string]any{"user_name": userName, "approved_at": seconds(now)}
		for id := range d {
			if id != userID && strings.TrimSpace(id) == userID {
				delete(d, id)
			}
		}
		return true, d.set(userID, fields)
	})
	if err != nil {
		return User{}, err
	}
	err = edit(p.pendingPath(), func(d document) (bool, error) {
		changed, _ := d.prune(now)
		for id := range d {
			if strings.TrimSpace(d.entry(id).text("user_id")) == userID {
				delete(d, id)
				changed = true
			}
		}
		return changed, nil
	})
	if err != nil {
		return User{}, err
	}
	// A success resets the count of wrong codes, as in Hermes 0.22.
	err = edit(p.limitsPath(), func(d document) (bool, error) {
		key := "_failures:" + p.platform
		if n, ok := number(d[key]); d[key] == nil || ok && n == 0 {
			return false, nil
		}
		return true, d.setValue(key, 0)
	})
	if err != nil {
		return User{}, err
	}
	return User{p.platform, userID, userName, now}, nil
}

// countWrong counts a wrong code in Hermes' own record, and returns the error of the approval.
func (p *Pairing) countWrong(now time.Time) error {
	locked := false
	err := edit(p.limitsPath(), func(d document) (bool, error) {
		key := "_failures:" + p.platform
		n, ok := number(d[key])
		if !ok && d[key] != nil {
			return false, damaged(p.limitsPath(), nil)
		}
		n = max(n, 0) + 1
		if locked = n >= MaxWrong; locked {
			n = 0
			if err := d.setValue("_lockout:"+p.platform, seconds(now.Add(LockedFor))); err != nil {
				return false, err
			}
		}
		return true, d.setValue(key, int(n))
	})
	if err != nil {
		return err
	}
	if locked {
		return &DelayError{ErrLocked, LockedFor}
	}
	return ErrUnknownRequest
}

// Revoke removes the approval of a user. The error for a user without one is ErrNotApproved. Watch
// doesn't report the change, because that would disconnect a device that has already come back.
func (p *Pairing) Revoke(userID string) error {
	userID = strings.TrimSpace(userID)
	p.watcher.mu.Lock()
	defer p.watcher.mu.Unlock()
	unlock, err := p.lock()
	if err != nil {
		return err
	}
	defer unlock()
	found := false
	err = edit(p.approvedPath(), func(d document) (bool, error) {
		found = false
		for id := range d {
			if userID != "" && strings.TrimSpace(id) == userID {
				delete(d, id)
				found = true
			}
		}
		return found, nil
	})
	if err == nil && !found {
		err = ErrNotApproved
	}
	if err == nil {
		p.watcher.users = maps.Clone(p.watcher.users) // others read it
		delete(p.watcher.users, userID)
	}
	return err
}

// isRequestID reports whether an argument has the form of a request id. Codes are shorter, so it
// can't be both.
func isRequestID(s string) bool {
	if len(s) != 16 {
		return false
	}
	_, err := hex.DecodeString(s)
	return err == nil
}

// hasCode compares a code with the entry's hash in constant time.
func (e entry) hasCode(code string) bool {
	salt, err := hex.DecodeString(e.text("salt"))
	return err == nil && subtle.ConstantTimeCompare([]byte(hashCode(code, salt)), []byte(e.text("hash"))) == 1
}
