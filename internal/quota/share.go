package quota

import (
	"maps"
	"math"
	"sync"
	"time"
)

// Account is a device or a token whose bytes are counted. Limit is how many it may store in a day,
// 0 for any number.
type Account struct {
	Name  string
	Limit int64
}

// Row is the count of an account on one day, as the store keeps it. Days are counted since 1970 in
// UTC.
type Row struct {
	Account    string
	Day, Bytes int64
}

// saveEvery is how many bytes of messages are counted before the count is stored again. A row for
// each text would cost as much as the text. A crash loses at most that much of a count.
const saveEvery = 1 << 20

// Shares count what accounts store in a day. Counts are in memory and never read back while the
// process runs. The caller stores the rows. Messages may exceed a limit by a quarter, so a device
// that used up its share with files can still chat. Shares are safe for concurrent use.
type Shares struct {
	mu       sync.Mutex
	day      int64 // the newest day seen
	accounts map[string]*account
}

// account has the last two days, so a clock that is set back and forth over midnight gives nobody a
// fresh share.
type account struct{ days [2]count }

type count struct{ day, bytes, saved int64 }

// NewShares returns shares with stored counts.
func NewShares(stored []Row) *Shares {
	s := &Shares{accounts: map[string]*account{}}
	for _, r := range stored {
		c := s.account(r.Account).on(r.Day)
		c.bytes, c.saved = r.Bytes, r.Bytes
		s.day = max(s.day, r.Day)
	}
	return s
}

// Day returns the day of a time, in days since 1970.
func Day(t time.Time) int64 {
	seconds := t.Unix()
	if seconds < 0 {
		return 0
	}
	return seconds / 86400
}

// untilTomorrow returns how long the day of a time lasts.
func untilTomorrow(t time.Time) time.Duration {
	return time.Duration(86400-max(t.Unix(), 0)%86400) * time.Second
}

// FileFits returns a *Full if n more bytes of files exceed the share of one of the accounts.
func (s *Shares) FileFits(n int64, now time.Time, accounts ...Account) error {
	return s.fits(n, now, accounts, func(limit int64) int64 { return limit })
}

// MessageFits is FileFits for messages.
func (s *Shares) MessageFits(n int64, now time.Time, accounts ...Account) error {
	return s.fits(n, now, accounts, func(limit int64) int64 { return limit + limit/4 })
}

func (s *Shares) fits(n int64, now time.Time, accounts []Account, most func(int64) int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	day := Day(now)
	for _, a := range accounts {
		if a.Limit <= 0 {
			continue
		}
		used := int64(0)
		if known := s.accounts[a.Name]; known != nil {
			used = known.on(day).bytes
		}
		if limit := most(min(a.Limit, math.MaxInt64/2)); n < 0 || n > limit || used > limit-n {
			return &Full{Reason: Share, Limit: a.Limit, Retry: untilTomorrow(now)}
		}
	}
	return nil
}

// AddFile counts n bytes and returns the rows to store in the transaction that accepts the file.
func (s *Shares) AddFile(n int64, now time.Time, accounts ...Account) []Row {
	return s.add(n, 0, now, accounts)
}

// AddMessage counts n bytes and returns the rows to store, mostly none.
func (s *Shares) AddMessage(n int64, now time.Time, accounts ...Account) []Row {
	return s.add(n, saveEvery, now, accounts)
}

func (s *Shares) add(n, every int64, now time.Time, accounts []Account) (rows []Row) {
	s.mu.Lock()
	defer s.mu.Unlock()
	day := Day(now)
	if day > s.day {
		s.day = day
		maps.DeleteFunc(s.accounts, func(_ string, a *account) bool { return a.days[0].day < day-1 && a.days[1].day < day-1 })
	}
	for _, a := range accounts {
		if a.Limit <= 0 {
			continue
		}
		c := s.account(a.Name).on(day)
		c.bytes = sum(c.bytes, n)
		if c.bytes-c.saved >= every {
			c.saved = c.bytes
			rows = append(rows, Row{a.Name, day, c.bytes})
		}
	}
	return rows
}

// Return undoes AddFile or AddMessage of a time for data that was not stored.
func (s *Shares) Return(n int64, at time.Time, accounts ...Account) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range accounts {
		if known := s.accounts[a.Name]; known != nil {
			c := known.on(Day(at))
			c.bytes = max(c.bytes-n, 0)
			c.saved = min(c.saved, c.bytes)
		}
	}
}

// Used returns how many bytes an account has stored on the day of a time.
func (s *Shares) Used(name string, now time.Time) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.accounts[name]; known != nil {
		return known.on(Day(now)).bytes
	}
	return 0
}

func (s *Shares) account(name string) *account {
	a := s.accounts[name]
	if a == nil {
		a = &account{}
		s.accounts[name] = a
	}
	return a
}

// on returns the count of a day. A new day replaces the older one.
func (a *account) on(day int64) *count {
	older := &a.days[0]
	for i := range a.days {
		c := &a.days[i]
		if c.day == day {
			return c
		}
		if c.day < older.day {
			older = c
		}
	}
	*older = count{day: day}
	return older
}

// sum adds without overflow.
func sum(a, b int64) int64 {
	if b > math.MaxInt64-a {
		return math.MaxInt64
	}
	return a + b
}
