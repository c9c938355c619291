// Package quota bounds what the server stores on behalf of devices, senders of deliveries and the agent: the bytes below the
// data folder, the space that stays free on its disk, and the bytes that one device or token may add in a day.
//
// A [Budget] counts files in memory and measures the database, so a new file costs a few system calls and no walk over the
// folder. [Shares] are counted in memory, too, and stored by their caller.
package quota

import (
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"syscall"
	"time"
)

// Reason tells which bound was reached. Metrics use it as a label.
type Reason string

// The reasons.
const (
	Total Reason = "total" // what is stored below the data folder has reached MOBILE_MAX_DATA
	Disk  Reason = "disk"  // the disk of the data folder is nearly full
	Share Reason = "share" // a device or token has stored as much as it may in one day
	Inbox Reason = "inbox" // as many messages wait for the agent as may
)

// Full is the error for what was not stored because a bound was reached. Nothing of it was kept.
type Full struct {
	Reason Reason
	// Retry is how long it takes until the same thing may fit; zero where nobody knows.
	Retry time.Duration
	// Limit is the bound in bytes.
	Limit int64
}

// Error is a sentence for a person: what happened, and what to do.
func (e *Full) Error() string {
	switch e.Reason {
	case Total:
		return "the server has no room for files right now, its storage limit is reached (MOBILE_MAX_DATA): send it again later, or ask the owner to raise the limit"
	case Disk:
		return "the server has no room for files right now, its disk is nearly full: send it again later, or ask the owner to free space; messages without files still go"
	case Share:
		return fmt.Sprintf("the server takes %s a day from one sender, and that is used up (MOBILE_MAX_DEVICE_DATA): send it again %s", Size(e.Limit), in(e.Retry))
	}
	return "too many messages wait for the agent, this one was not taken: send it again when the agent has answered some"
}

func in(d time.Duration) string {
	switch {
	case d <= time.Minute:
		return "in a minute"
	case d < 2*time.Hour:
		return fmt.Sprintf("in %d minutes", d/time.Minute+1)
	}
	return fmt.Sprintf("in %d hours", (d+time.Hour-1)/time.Hour)
}

// Why returns the reason for which there was no room, empty where err is something else. The system's own error for a full
// disk counts, too.
func Why(err error) Reason {
	var full *Full
	switch {
	case errors.As(err, &full):
		return full.Reason
	case DiskFull(err):
		return Disk
	}
	return ""
}

// DiskFull reports whether err is the system's error for a full disk or a user's exhausted disk quota.
func DiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

const (
	// DefaultLimit bounds the data folder where the owner sets nothing and the disk has more room than that.
	DefaultLimit = 10 << 30
	// reserveShare is the part of the limit, 1 in so many, that files never take: messages go on when files do not.
	reserveShare = 8
	// Free space below which new files are refused: a part of the disk, and at most so many bytes.
	spareShare = 20
	spareMost  = 1 << 30
	// block is what disks allot at least, and entry what a file costs besides its content: a million files of one byte
	// fill a disk, or its table of files, although they hold a megabyte.
	block = 4 << 10
	entry = 12 << 10
)

// Cost is what a file of some bytes counts, in bytes.
func Cost(size int64) int64 {
	if size < 0 || size > math.MaxInt64-entry-2*block {
		return math.MaxInt64
	}
	return entry + max(size+block-1, block)/block*block
}

// Spare is the free space on a disk of some size below which new files are refused: 5 % of it, and 1 GiB at most.
func Spare(total uint64) uint64 { return min(total/spareShare, spareMost) }

// Limit is the bound of a data folder for which the owner set none: 10 GiB, or what it holds already and half of the free
// space, whichever is less.
func Limit(path string, used int64) int64 {
	free, _, ok := Space(path)
	if !ok {
		return DefaultLimit
	}
	return max(min(DefaultLimit, used+int64(min(free/2, math.MaxInt64/2))), 1)
}

// Budget bounds what the data folder holds. A nil Budget has no bound. Safe for concurrent use.
type Budget struct {
	limit    int64
	measure  func() (size, reusable int64)
	space    func() (free, total uint64, ok bool)
	files    atomic.Int64
	database atomic.Int64 // as it was last measured
	reusable atomic.Int64 // the part of it that is free within
}

// Options are the parts of a Budget. Limit is needed.
type Options struct {
	Limit int64 // bytes
	// Database tells the size of the database now, and how much of that is free within; nil: there is none.
	Database func() (size, reusable int64)
	Space    func() (free, total uint64, ok bool) // of the disk; nil: not known
}

// NewBudget makes a budget of which nothing is used but for the database.
func NewBudget(o Options) *Budget {
	b := &Budget{limit: max(o.Limit, 1), measure: o.Database, space: o.Space}
	if b.measure == nil {
		b.measure = func() (int64, int64) { return 0, 0 }
	}
	if b.space == nil {
		b.space = func() (uint64, uint64, bool) { return 0, 0, false }
	}
	b.Measure()
	return b
}

// Use is how much of a budget is used, in bytes.
type Use struct {
	Limit    int64 `json:"limit"`
	Files    int64 `json:"files"`    // stored files, copies for a gateway on this machine, and unfinished uploads
	Database int64 `json:"database"` // with its journal
	Reusable int64 `json:"reusable"` // of the database: what messages use before it grows
	// FilesLimit is the bound for everything together beyond which new files are refused.
	FilesLimit int64 `json:"files_limit"`
}

// Used is what files and database take together.
func (u Use) Used() int64 { return u.Files + u.Database }

// Full reports whether not even messages fit.
func (u Use) Full() bool { return u.Used()-u.Reusable >= u.Limit }

// Use measures the database and returns what is used.
func (b *Budget) Use() Use {
	if b == nil {
		return Use{}
	}
	b.Measure()
	return b.last()
}

// last is what was used when the database was last measured.
func (b *Budget) last() Use {
	return Use{Limit: b.limit, Files: b.files.Load(), Database: b.database.Load(), Reusable: b.reusable.Load(), FilesLimit: b.filesLimit()}
}

func (b *Budget) filesLimit() int64 { return b.limit - b.limit/reserveShare }

// Measure looks how large the database is now.
func (b *Budget) Measure() {
	if b != nil {
		size, reusable := b.measure()
		b.database.Store(size)
		b.reusable.Store(reusable)
	}
}

// Take counts n more bytes of new files. The error is a *Full, and then nothing is counted.
func (b *Budget) Take(n int64) error {
	if b == nil {
		return nil
	}
	if b.low(n) {
		return b.refuse(Disk)
	}
	b.Measure()
	if !b.add(n, b.filesLimit()) {
		return b.refuse(Total)
	}
	return nil
}

// TakeAccepted is Take for what belongs to something that was accepted already: it may use what is kept for messages, and is
// not held back by a disk that is nearly full.
func (b *Budget) TakeAccepted(n int64) error {
	if b == nil {
		return nil
	}
	b.Measure()
	if !b.add(n, b.limit) {
		return b.refuse(Total)
	}
	return nil
}

// Fits is Take without counting.
func (b *Budget) Fits(n int64) error {
	err := b.Take(n)
	if err == nil {
		b.Give(n)
	}
	return err
}

// Give counts n bytes of files less.
func (b *Budget) Give(n int64) {
	if b != nil {
		b.files.Add(-n)
	}
}

// Recount replaces what is counted for files: before is what was counted when somebody began to look, found what was there.
// What was stored or removed meanwhile stays counted.
func (b *Budget) Recount(before, found int64) {
	if b != nil {
		b.files.Add(found - before)
	}
}

// Files returns what is counted for files.
func (b *Budget) Files() int64 {
	if b == nil {
		return 0
	}
	return b.files.Load()
}

// Full reports whether not even messages fit, by the last measurement of the database.
func (b *Budget) Full() bool { return b != nil && b.last().Full() }

// add counts n bytes where everything together stays within a limit.
func (b *Budget) add(n, limit int64) bool {
	if n < 0 || n > limit { // and so no sum overflows
		return false
	}
	if b.files.Add(n)+b.database.Load() > limit {
		b.files.Add(-n)
		return false
	}
	return true
}

// low reports whether n bytes more would leave too little free space on the disk.
func (b *Budget) low(n int64) bool {
	free, total, ok := b.space()
	if !ok || total == 0 {
		return false
	}
	spare := Spare(total)
	return free < spare || n < 0 || free-spare < uint64(n)
}

func (b *Budget) refuse(r Reason) error { return &Full{Reason: r, Limit: b.limit} }

// Size is a number of bytes in words, such as 1.5 GiB.
func Size(n int64) string {
	for _, u := range []struct {
		name string
		of   int64
	}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if n >= 10*u.of {
			return fmt.Sprintf("%d %s", n/u.of, u.name)
		}
		if n >= u.of {
			return fmt.Sprintf("%.1f %s", float64(n)/float64(u.of), u.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}
