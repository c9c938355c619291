// Package quota bounds what the server stores for devices, senders of deliveries and the agent: the
// bytes below the data folder, the free space on its disk, and the bytes that one device or token
// may add in a day.
//
// A [Budget] counts files in memory and measures the database, so a new file costs a few system
// calls and no walk over the folder. [Shares] are counted in memory too. Their caller stores them.
package quota

import (
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"syscall"
	"time"
)

// Reason is the bound that was reached. Metrics use it as a label.
type Reason string

// The reasons.
const (
	Total Reason = "total" // the data folder has reached MOBILE_MAX_DATA
	Disk  Reason = "disk"  // the disk of the data folder is nearly full
	Share Reason = "share" // a device or token has used up its share of the day
	Inbox Reason = "inbox" // too many messages wait for the agent
)

// Full is the error for data that was not stored because a bound was reached.
type Full struct {
	Reason Reason
	// Retry is when the same data may fit, 0 if that isn't known.
	Retry time.Duration
	// Limit is the bound in bytes.
	Limit int64
}

// Error returns a sentence for people: what happened, and what to do.
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

// Why returns the bound that err is about, empty for any other error. The system's own error for a
// full disk counts too.
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

// DiskFull reports whether err is the system's error for a full disk or a user's exhausted disk
// quota.
func DiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

const (
	// DefaultLimit bounds the data folder if the settings don't and the disk has more room.
	DefaultLimit = 10 << 30
	// reserveShare is the fraction of the limit, 1 in so many, that files never take. Messages
	// still fit when files don't.
	reserveShare = 8
	// Free space below which new files are rejected: a fraction of the disk, up to a maximum.
	spareShare = 20
	spareMost  = 1 << 30
	// block is the minimum that a disk allocates, and entry the cost of a file besides its content.
	// A million files of one byte hold a megabyte, and still fill a disk or its table of files.
	block = 4 << 10
	entry = 12 << 10
)

// Cost returns how many bytes a file of a size counts.
func Cost(size int64) int64 {
	if size < 0 || size > math.MaxInt64-entry-2*block {
		return math.MaxInt64
	}
	return entry + max(size+block-1, block)/block*block
}

// Spare returns the free space on a disk of a size below which new files are rejected: 5 % of it,
// at most 1 GiB.
func Spare(total uint64) uint64 { return min(total/spareShare, spareMost) }

// Limit returns the default bound of a data folder: 10 GiB, or its content and half of the free
// space, whichever is less.
func Limit(path string, used int64) int64 {
	free, _, ok := Space(path)
	if !ok {
		return DefaultLimit
	}
	return max(min(DefaultLimit, used+int64(min(free/2, math.MaxInt64/2))), 1)
}

// Budget bounds the content of the data folder. A nil Budget has no bound. It is safe for
// concurrent use.
type Budget struct {
	limit    int64
	measure  func() (size, reusable int64)
	space    func() (free, total uint64, ok bool)
	files    atomic.Int64
	database atomic.Int64 // at the last measurement
	reusable atomic.Int64 // the free part of it
}

// Options configure a Budget. Limit is required.
type Options struct {
	Limit int64 // bytes
	// Database returns the size of the database, and how much of it is free inside. Nil: there is
	// none.
	Database func() (size, reusable int64)
	Space    func() (free, total uint64, ok bool) // of the disk; nil: unknown
}

// NewBudget returns a budget of which only the database is used.
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

// Use is the used part of a budget, in bytes.
type Use struct {
	Limit    int64 `json:"limit"`
	Files    int64 `json:"files"`    // stored files, copies for a gateway on this machine, and unfinished uploads
	Database int64 `json:"database"` // with its journal
	Reusable int64 `json:"reusable"` // free inside the database: messages use it before it grows
	// FilesLimit is the total beyond which new files are rejected.
	FilesLimit int64 `json:"files_limit"`
}

// Used returns the bytes of files and database together.
func (u Use) Used() int64 { return u.Files + u.Database }

// Full reports whether even messages don't fit.
func (u Use) Full() bool { return u.Used()-u.Reusable >= u.Limit }

// Use measures the database and returns the use.
func (b *Budget) Use() Use {
	if b == nil {
		return Use{}
	}
	b.Measure()
	return b.last()
}

// last returns the use at the last measurement of the database.
func (b *Budget) last() Use {
	return Use{Limit: b.limit, Files: b.files.Load(), Database: b.database.Load(), Reusable: b.reusable.Load(), FilesLimit: b.filesLimit()}
}

func (b *Budget) filesLimit() int64 { return b.limit - b.limit/reserveShare }

// Measure measures the database.
func (b *Budget) Measure() {
	if b != nil {
		size, reusable := b.measure()
		b.database.Store(size)
		b.reusable.Store(reusable)
	}
}

// Take counts n more bytes of new files. If they don't fit, it returns a *Full and counts nothing.
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

// TakeAccepted is Take for data of something that was already accepted: it may use the reserve for
// messages, and a nearly full disk doesn't hold it back.
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

// Recount corrects the count of files: before is the count when the walk began, found the result.
// Files stored or removed during the walk stay counted.
func (b *Budget) Recount(before, found int64) {
	if b != nil {
		b.files.Add(found - before)
	}
}

// Files returns the count of files in bytes.
func (b *Budget) Files() int64 {
	if b == nil {
		return 0
	}
	return b.files.Load()
}

// Full reports whether not even messages fit, by the last measurement of the database.
func (b *Budget) Full() bool { return b != nil && b.last().Full() }

// add counts n bytes if the total stays within a limit.
func (b *Budget) add(n, limit int64) bool {
	if n < 0 || n > limit { // so no sum overflows
		return false
	}
	if b.files.Add(n)+b.database.Load() > limit {
		b.files.Add(-n)
		return false
	}
	return true
}

// low reports whether n more bytes would leave too little free space on the disk.
func (b *Budget) low(n int64) bool {
	free, total, ok := b.space()
	if !ok || total == 0 {
		return false
	}
	spare := Spare(total)
	return free < spare || n < 0 || free-spare < uint64(n)
}

func (b *Budget) refuse(r Reason) error { return &Full{Reason: r, Limit: b.limit} }

// Size formats a number of bytes, such as 1.5 GiB.
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
