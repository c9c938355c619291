package quota

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hermes-mobile/internal/leak"
)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestMain(m *testing.M) { leak.Main(m) }

// reason is why there was no room, empty where there was.
func reason(t testing.TB, err error) Reason {
	t.Helper()
	var full *Full
	if err != nil && !errors.As(err, &full) {
		t.Fatalf("%v is no *Full", err)
	}
	if full == nil {
		return ""
	}
	return full.Reason
}

// Files stop before the limit, so that messages go on, and what was accepted goes up to it. What is
// given back can be taken again.
func TestBudget(t *testing.T) {
	database, reusable := int64(0), int64(0)
	b := NewBudget(Options{Limit: 8000, Database: func() (int64, int64) { return database, reusable }})
	for _, c := range []struct {
		take     int64
		database int64
		want     Reason
	}{{7000, 0, ""}, {1, 0, Total}, {0, 0, ""}, {0, 1, Total}, {math.MaxInt64, 0, Total}, {-1, 0, Total}, {math.MinInt64, 0, Total}} {
		database = c.database
		if got := reason(t, b.Take(c.take)); got != c.want {
			t.Errorf("%d beside a database of %d: %q, want %q", c.take, c.database, got, c.want)
		}
	}
	database = 0
	if err := b.Fits(1); reason(t, err) != Total || b.Files() != 7000 {
		t.Errorf("%v, %d counted", err, b.Files())
	}
	if b.Full() {
		t.Error("messages do not fit where files do not")
	}
	if err := b.TakeAccepted(1000); err != nil || !b.Full() {
		t.Errorf("%v, full %v", err, b.Full())
	}
	if reason(t, b.TakeAccepted(1)) != Total {
		t.Error("more than the limit was taken")
	}
	// What is free within the database is there for messages, and not for files.
	database, reusable = 4000, 3999
	b.Give(4000)
	if b.Measure(); b.Full() || reason(t, b.TakeAccepted(1)) != Total {
		t.Error("free pages of the database are not used again")
	}
	reusable = 0
	if b.Measure(); !b.Full() {
		t.Error("a database without free pages is not full")
	}
	database = 0
	b.Measure()
	ok(t, b.TakeAccepted(4000))
	b.Give(4000)
	if err := b.Take(3000); err != nil || b.Files() != 7000 {
		t.Errorf("%v, %d counted", err, b.Files())
	}
	database = 500
	if u := b.Use(); u != (Use{Limit: 8000, Files: 7000, Database: 500, FilesLimit: 7000}) || u.Used() != 7500 {
		t.Errorf("%+v", u)
	}
	// A file came while the folder was looked over, and one was found that nobody knew of.
	before := b.Files()
	b.Give(100)
	b.Recount(before, 7300)
	if b.Files() != 7200 {
		t.Errorf("%d counted", b.Files())
	}
}

// Nothing is bounded without a budget.
func TestNoBudget(t *testing.T) {
	var b *Budget
	if b.Take(math.MaxInt64) != nil || b.TakeAccepted(1) != nil || b.Fits(1) != nil || b.Full() || b.Files() != 0 || b.Use() != (Use{}) {
		t.Error("a nil budget refuses")
	}
	b.Give(1)
	b.Recount(1, 2)
	b.Measure()
}

// A disk with little free space takes no new files, whatever the limit is. How little depends on
// its size.
func TestDiskIsLow(t *testing.T) {
	for _, c := range []struct {
		free, total uint64
		n           int64
		want        Reason
	}{
		{2 << 30, 100 << 30, 1 << 20, ""}, {1 << 30, 100 << 30, 0, ""}, {1<<30 - 1, 100 << 30, 0, Disk}, {1 << 30, 100 << 30, 1, Disk},
		{410 << 20, 8 << 30, 0, ""}, {409 << 20, 8 << 30, 0, Disk}, {math.MaxUint64, math.MaxUint64, 5, ""}, {0, 0, 5, ""}, {5 << 30, 8 << 30, -1, Disk},
	} {
		b := NewBudget(Options{Limit: 1 << 40, Space: func() (uint64, uint64, bool) { return c.free, c.total, true }})
		if got := reason(t, b.Take(c.n)); got != c.want {
			t.Errorf("%d more with %d of %d free: %q, want %q", c.n, c.free, c.total, got, c.want)
		}
		if c.want == Disk && c.n >= 0 && b.TakeAccepted(c.n) != nil {
			t.Error("what was accepted is held back by a disk that is nearly full")
		}
	}
}

// Many who take at once never hold more than the limit.
func TestBudgetAtOnce(t *testing.T) {
	b := NewBudget(Options{Limit: 800})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				if b.Take(100) == nil {
					if n := b.Files(); n > 700+7*100 { // those of others that are just taken back are seen, too
						t.Errorf("%d are taken", n)
					}
					b.Give(100)
				}
			}
		})
	}
	wg.Wait()
	if b.Files() != 0 {
		t.Errorf("%d are left", b.Files())
	}
}

func TestCost(t *testing.T) {
	for size, want := range map[int64]int64{0: 16 << 10, 1: 16 << 10, 4 << 10: 16 << 10, 4<<10 + 1: 20 << 10, 1 << 20: 1<<20 + 12<<10, -1: math.MaxInt64, math.MaxInt64: math.MaxInt64, math.MaxInt64 - 10<<10: math.MaxInt64} {
		if got := Cost(size); got != want {
			t.Errorf("a file of %d costs %d, want %d", size, got, want)
		}
	}
}

func TestLimit(t *testing.T) {
	free, total, known := Space(t.TempDir())
	if known && (total == 0 || free > total) {
		t.Errorf("%d of %d are free", free, total)
	}
	got := Limit(t.TempDir(), 1<<20)
	if got < 1 || got > DefaultLimit {
		t.Errorf("limit %d", got)
	}
	if known && free/2 < DefaultLimit/2 && got > int64(free/2)+1<<21 {
		t.Errorf("limit %d with %d free", got, free)
	}
	if got := Limit("/no/such/folder", 0); got != DefaultLimit {
		t.Errorf("limit %d where the disk is not known", got)
	}
}

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// A share is a day's, messages go on for a while when files do not, and one account does not use up
// another's.
func TestShares(t *testing.T) {
	s := NewShares(nil)
	phone, tablet, token := Account{"device:phone", 1000}, Account{"device:tablet", 1000}, Account{"token:main", 1600}
	if err := s.FileFits(1000, noon, phone, token); err != nil {
		t.Fatal(err)
	}
	rows := s.AddFile(1000, noon, phone, token)
	day := Day(noon)
	if len(rows) != 2 || rows[0] != (Row{"device:phone", day, 1000}) || rows[1] != (Row{"token:main", day, 1000}) {
		t.Errorf("to be stored: %+v", rows)
	}
	err := s.FileFits(1, noon, phone)
	var full *Full
	if !errors.As(err, &full) || full.Reason != Share || full.Retry != 12*time.Hour || full.Limit != 1000 || !strings.Contains(err.Error(), "in 12 hours") {
		t.Errorf("%v", err)
	}
	if s.MessageFits(250, noon, phone) != nil || s.MessageFits(251, noon, phone) == nil {
		t.Error("messages go on to a quarter above the share")
	}
	if s.FileFits(600, noon, tablet, token) != nil || s.FileFits(601, noon, tablet, token) == nil {
		t.Error("the devices of one token share its limit")
	}
	if s.FileFits(1<<62, noon, Account{"device:free", 0}) != nil {
		t.Error("an account without a limit is held back")
	}
	for _, n := range []int64{-1, math.MinInt64, math.MaxInt64} {
		if s.FileFits(n, noon, tablet) == nil {
			t.Errorf("%d bytes fit", n)
		}
	}
	s.Return(400, noon, phone, token)
	if s.FileFits(400, noon, phone) != nil || s.Used("device:phone", noon) != 600 {
		t.Error("what was taken back does not fit")
	}
	tomorrow := noon.Add(24 * time.Hour)
	if s.FileFits(1000, tomorrow, phone) != nil {
		t.Error("the share does not begin anew")
	}
}

// The end of the process, and a clock that is set over midnight and back, give nobody a fresh
// share.
func TestSharesLast(t *testing.T) {
	phone := Account{"device:phone", 1000}
	var stored []Row
	s := NewShares(nil)
	stored = append(stored, s.AddFile(900, noon, phone)...)
	tomorrow := noon.Add(24 * time.Hour)
	stored = append(stored, s.AddFile(800, tomorrow, phone)...)
	for range 3 {
		for now, left := range map[time.Time]int64{noon: 100, tomorrow: 200} {
			if s.FileFits(left, now, phone) != nil || s.FileFits(left+1, now, phone) == nil {
				t.Errorf("on %s there is not exactly %d left", now, left)
			}
		}
	}
	s = NewShares(stored)
	if s.FileFits(200, tomorrow, phone) != nil || s.FileFits(201, tomorrow, phone) == nil || s.FileFits(101, noon, phone) == nil {
		t.Error("a restart gives a fresh share")
	}
	before1970 := time.Unix(-100000, 0)
	if s.FileFits(1000, before1970, phone) != nil || s.FileFits(1001, before1970, phone) == nil || untilTomorrow(before1970) != 24*time.Hour {
		t.Error("a clock before 1970 breaks the count")
	}
}

// Messages are stored once for a megabyte, not with each of them.
func TestMessagesAreStoredNowAndThen(t *testing.T) {
	s := NewShares(nil)
	phone := Account{"device:phone", 1 << 30}
	stores, last := 0, Row{}
	for range 10_000 {
		for _, r := range s.AddMessage(1000, noon, phone) {
			stores++
			last = r
		}
	}
	if stores != 9 || last.Bytes < 9<<20 {
		t.Errorf("%d rows, the last %+v", stores, last)
	}
	if rows := s.AddFile(1, noon, phone); len(rows) != 1 || rows[0].Bytes != 10_000_001 {
		t.Errorf("a file stores %+v", rows)
	}
	if s.AddMessage(5, noon) != nil {
		t.Error("no account has a row")
	}
}

// Accounts that stored nothing lately leave memory.
func TestOldAccountsAreDropped(t *testing.T) {
	s := NewShares(nil)
	for i := range 100 {
		s.AddMessage(1, noon, Account{fmt.Sprint(i), 10})
	}
	s.AddMessage(1, noon.Add(72*time.Hour), Account{"new", 10})
	if len(s.accounts) != 1 {
		t.Errorf("%d accounts are kept", len(s.accounts))
	}
}

// Whatever is counted and returned, an account never holds more than its limit, and a sum never
// overflows.
func TestSharesProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := NewShares(nil)
		limit := rapid.Int64Range(1, math.MaxInt64).Draw(t, "limit")
		a := Account{"a", limit}
		now, held := noon, int64(0)
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			n := rapid.OneOf(rapid.Int64Range(0, 1000), rapid.Int64Range(0, limit), rapid.Int64()).Draw(t, "bytes")
			switch err := s.FileFits(n, now, a); {
			case err == nil && (n < 0 || n > limit-held):
				t.Fatalf("%d fit beside %d of %d", n, held, limit)
			case err == nil:
				s.AddFile(n, now, a)
				held += n
			case n >= 0 && n <= min(limit, math.MaxInt64/2)-held:
				t.Fatalf("%d do not fit beside %d of %d", n, held, limit)
			}
			if back := rapid.Int64Range(0, held).Draw(t, "back"); rapid.Bool().Draw(t, "returns") {
				s.Return(back, now, a)
				held -= back
			}
			if got := s.Used("a", now); got != held {
				t.Fatalf("%d are counted, want %d", got, held)
			}
		}
	})
}

func TestWords(t *testing.T) {
	for n, want := range map[int64]string{0: "0 bytes", 1023: "1023 bytes", 1536: "1.5 KiB", 1 << 20: "1.0 MiB", 10 << 30: "10 GiB", 3 << 40: "3.0 TiB"} {
		if got := Size(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
	for _, r := range []Reason{Total, Disk, Share, Inbox} {
		for _, d := range []time.Duration{0, time.Minute, 90 * time.Minute, 23 * time.Hour} {
			if text := (&Full{Reason: r, Retry: d, Limit: 1 << 30}).Error(); !strings.Contains(text, "again") || strings.Contains(text, "%") {
				t.Errorf("%s: %q", r, text)
			}
		}
	}
	for want, err := range map[Reason]error{Disk: fmt.Errorf("write: %w", syscall.ENOSPC), Share: fmt.Errorf("x: %w", &Full{Reason: Share}), "": errors.New("x")} {
		if got := Why(err); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
	if Why(nil) != "" || DiskFull(&Full{Reason: Disk}) {
		t.Error("no error is none of a full disk")
	}
}
