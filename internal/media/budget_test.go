package media

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"pgregory.net/rapid"

	"hermes-mobile/internal/quota"
)

// bounded returns a new store with a budget.
func bounded(t testing.TB, limit int64) (*Store, *quota.Budget) {
	t.Helper()
	s, b := newStore(t), quota.NewBudget(quota.Options{Limit: limit})
	bind(t, s, b)
	return s, b
}

func bind(t interface{ Fatal(...any) }, s *Store, b *quota.Budget) {
	counted, err := s.Count(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	s.Bound(b, counted)
}

// onDisk returns what the budget must count for a folder: the cost of each file, and the bytes of
// temporary ones.
func onDisk(t interface{ Fatal(...any) }, s *Store) (sum int64) {
	err := filepath.WalkDir(s.dir, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // another goroutine removed it
		}
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return nil
		}
		if strings.HasSuffix(path, tempSuffix) {
			sum += info.Size()
		} else {
			sum += quota.Cost(info.Size())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// The budget counts exactly the files on the disk, whether uploads are stored, repeated, copied,
// abandoned, swept, or fail. A recount changes nothing.
func TestBudgetCountsWhatIsThere(t *testing.T) {
	full := fullDisk(t)
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "store")
		if err != nil {
			rt.Fatal(err)
		}
		s, err := OpenStore(dir)
		if err != nil {
			rt.Fatal(err)
		}
		b := quota.NewBudget(quota.Options{Limit: 256 << 10})
		bind(rt, s, b)
		a, now := NewAssembler(tiny, s), t0
		var hashes []string
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			s.create = os.CreateTemp
			broken := rapid.IntRange(0, 5).Draw(rt, "disk") == 0
			if broken {
				s.create = full
			}
			data := bytes.Repeat([]byte{byte(rapid.IntRange(0, 3).Draw(rt, "byte"))}, rapid.SampledFrom([]int{0, 1, 4096, 4097, 40_000, 300_000}).Draw(rt, "size"))
			var f File
			err := error(nil)
			switch rapid.IntRange(0, 5).Draw(rt, "what") {
			case 0:
				f, err = s.Put(data)
			case 1:
				r := io.Reader(bytes.NewReader(data))
				if rapid.Bool().Draw(rt, "broken") {
					r = io.MultiReader(r, iotest.ErrReader(errors.New("broken")))
				}
				f, err = s.PutReader(r, rapid.SampledFrom([]int64{0, 5000}).Draw(rt, "max"))
			case 2:
				if len(hashes) > 0 {
					_, err = s.LocalCopy(rapid.SampledFrom(hashes).Draw(rt, "hash"), rapid.SampledFrom([]string{"a.bin", "b.bin"}).Draw(rt, "name"))
				}
			case 3:
				_, _, err = s.Sweep(t.Context(), func(h string) bool { return h[0]&1 == 0 }, -time.Hour, time.Now())
			case 4:
				n := rapid.IntRange(0, 3).Draw(rt, "part")
				var up *Upload
				up, err = a.Add(Part{ID: rapid.SampledFrom([]string{"x", "y"}).Draw(rt, "id"), Data: bytes.Repeat([]byte{byte(n)}, 900), Part: n, Parts: 4}, now)
				if up != nil {
					f = up.File
				}
			case 5:
				now = now.Add(2 * time.Minute)
				a.Expire(now)
			}
			if err != nil && !broken && code(err) == "internal" && quota.Why(err) == "" && !errors.Is(err, fs.ErrNotExist) && !strings.Contains(err.Error(), "broken") {
				rt.Fatal(err)
			}
			if f.Hash != "" {
				hashes = append(hashes, f.Hash)
			}
			if got, want := b.Files(), onDisk(rt, s); got != want {
				rt.Fatalf("the budget counts %d bytes, %d are there", got, want)
			}
			if b.Files() > 256<<10 {
				rt.Fatalf("%d bytes are there", b.Files())
			}
			before := b.Files()
			if err := s.Recount(t.Context()); err != nil || b.Files() != before {
				rt.Fatalf("counting anew gives %d, it was %d (%v)", b.Files(), before, err)
			}
		}
		a.Free()
		if got, want := b.Files(), onDisk(rt, s); got != want || len(temps(t, s)) != 0 {
			rt.Fatalf("at the end the budget counts %d bytes, %d are there", got, want)
		}
	})
}

// A file that exceeds the budget leaves nothing behind. A file that fits is still accepted, and so is
// one that is already stored.
func TestNoRoom(t *testing.T) {
	const limit = 8 * 64 << 10 // seven eighths of it are for files
	for name, put := range map[string]func(s *Store, data []byte) (File, error){
		"at once": func(s *Store, data []byte) (File, error) { return s.Put(data) },
		"as it comes": func(s *Store, data []byte) (File, error) {
			return s.PutReader(iotest.HalfReader(bytes.NewReader(data)), 0)
		},
		"in parts": func(s *Store, data []byte) (File, error) {
			a := NewAssembler(Limits{MaxFile: 1 << 20, SpoolAbove: 1}, s)
			defer a.Free()
			const size = 32 << 10
			parts := (len(data) + size - 1) / size
			for i := range parts {
				up, err := a.Add(Part{ID: "f", Data: bytes.Clone(data[i*size : min(len(data), (i+1)*size)]), Part: i, Parts: parts}, t0)
				if err != nil || up != nil {
					if up == nil {
						return File{}, err
					}
					return up.File, err
				}
			}
			return File{}, errors.New("the upload has no end")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, b := bounded(t, limit)
			first := mustPut(t, s, pattern(100<<10))
			before := b.Files()
			if _, err := put(s, pattern(400<<10)); quota.Why(err) != quota.Total || !strings.HasPrefix(err.Error(), "media: ") {
				t.Errorf("too much gives %v", err)
			}
			if left := temps(t, s); len(left) != 0 || b.Files() != before {
				t.Errorf("left: %v, and %d bytes are counted, %d before", left, b.Files(), before)
			}
			if f, err := put(s, pattern(60<<10)); err != nil || !s.Has(f.Hash) {
				t.Errorf("what fits gives %v", err)
			}
			if err := b.Take(b.Use().FilesLimit - b.Files()); err != nil { // the budget is used up
				t.Fatal(err)
			}
			if f, err := s.Put(pattern(100 << 10)); f != first || err != nil {
				t.Errorf("what is there already gives %v", err)
			}
		})
	}
}

// If a device announces the size of a file that does not fit, the first part is rejected. A size that
// is too small gains nothing, and an invalid size does no harm.
func TestAnnouncedSize(t *testing.T) {
	a := NewAssembler(Limits{MaxFile: 64 << 10}, newStore(t))
	if _, err := a.Add(Part{ID: "f", Data: pattern(4096), Parts: 20, Size: 64<<10 + 1}, t0); code(err) != "too_big" {
		t.Errorf("%v", err)
	}
	if _, err := a.Add(Part{ID: "f", Data: pattern(4096), Part: 1, Parts: 20}, t0); code(err) != "too_big" {
		t.Errorf("its next part gives %v", err)
	}
	for _, size := range []int64{0, 1, -1, -1 << 62} {
		p := Part{ID: "g", Data: pattern(5000), Parts: 20, Size: size}
		if _, err := a.Add(p, t0); err != nil || a.Size(Part{ID: "g", Data: pattern(10), Part: 1, Parts: 20, Size: size}) != 5010 {
			t.Errorf("%d: %v", size, err)
		}
		for i := 1; i < 20; i++ {
			if _, err := a.Add(Part{ID: "g", Data: pattern(5000), Part: i, Parts: 20, Size: size}, t0); err != nil {
				if code(err) != "too_big" || i != 13 {
					t.Errorf("part %d gives %v", i, err)
				}
				break
			}
		}
	}
	if n := a.Size(Part{ID: "h", Data: pattern(10), Size: 1 << 40}); n != 1<<40 {
		t.Errorf("%d are announced", n)
	}
	broken := errors.New("no room")
	if _, err := a.Add(Part{ID: "h", Data: pattern(4096), Parts: 3}, t0); err != nil {
		t.Fatal(err)
	}
	if err := a.Refuse(Part{ID: "h", Data: pattern(4096), Part: 1, Parts: 3}, broken); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	if _, err := a.Add(Part{ID: "h", Data: pattern(4096), Part: 2, Parts: 3}, t0); !errors.Is(err, broken) {
		t.Errorf("a later part of a refused upload gives %v", err)
	}
}

// A file of one byte takes a whole block of the disk, and an inode.
func TestTinyFilesCount(t *testing.T) {
	s, _ := bounded(t, 8<<20)
	for i := range 10_000 {
		if _, err := s.Put([]byte(fmt.Sprint(i))); err != nil {
			if quota.Why(err) != quota.Total || i > 1000 {
				t.Errorf("after %d files: %v", i, err)
			}
			return
		}
	}
	t.Error("files of one byte cost nothing")
}

// A copy for the agent may use the space reserved for messages, but not exceed the limit, even if the
// same content gets ever new names.
func TestCopiesCount(t *testing.T) {
	s, b := bounded(t, 800<<10)
	f := mustPut(t, s, pattern(60<<10))
	if err := b.Take(b.Use().FilesLimit - b.Files()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(pattern(10)); quota.Why(err) != quota.Total {
		t.Fatal("there is room")
	}
	made := 0
	for i := range 100 {
		if _, err := s.LocalCopy(f.Hash, fmt.Sprint(i, ".bin")); err != nil {
			if quota.Why(err) != quota.Total {
				t.Error(err)
			}
			break
		}
		made++
	}
	if made != 1 || b.Files() > 800<<10 || len(temps(t, s)) != 0 {
		t.Errorf("%d copies, %d bytes are counted", made, b.Files())
	}
}

// A store that opens counts the files of earlier processes. Their unfinished uploads are removed.
func TestBudgetAfterARestart(t *testing.T) {
	s, b := bounded(t, 1<<30)
	mustPut(t, s, pattern(1000))
	if _, err := s.LocalCopy(mustPut(t, s, pattern(50_000)).Hash, "a.bin"); err != nil {
		t.Fatal(err)
	}
	done := b.Files()
	a := NewAssembler(Limits{SpoolAbove: 1}, s)
	if _, err := a.Add(part("a", pattern(100_000), 0, 2), t0); err != nil || b.Files() != done+100_000 {
		t.Fatalf("%v, %d bytes are counted", err, b.Files())
	}
	again, err := OpenStore(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	b = quota.NewBudget(quota.Options{Limit: 1 << 30})
	if bind(t, again, b); b.Files() != done {
		t.Errorf("%d bytes are counted after a restart, want %d", b.Files(), done)
	}
}

// Concurrent uploads never exceed the limit on the disk, and every file that was reported as stored
// exists.
func TestBudgetManyAtOnce(t *testing.T) {
	const limit = 4 << 20
	s, b := bounded(t, limit)
	stop := make(chan struct{})
	var peak atomic.Int64
	var watch, workers sync.WaitGroup
	watch.Go(func() {
		for {
			peak.Store(max(peak.Load(), onDisk(t, s)))
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	var stored, refused atomic.Int64
	for w := range 8 {
		workers.Go(func() {
			for i := range 40 {
				data := append(pattern(200<<10), byte(w), byte(i))
				f, err := s.PutReader(bytes.NewReader(data), 0)
				switch {
				case err == nil:
					stored.Add(1)
					if !s.Has(f.Hash) {
						t.Error("a stored file is not there")
					}
				case quota.Why(err) != quota.Total:
					t.Error(err)
				default:
					refused.Add(1)
				}
			}
		})
	}
	workers.Wait()
	close(stop)
	watch.Wait()
	if peak.Load() > limit || stored.Load() < 10 || refused.Load() == 0 || b.Files() != onDisk(t, s) {
		t.Errorf("%d stored and %d refused, %d bytes at most, %d of %d counted", stored.Load(), refused.Load(), peak.Load(), b.Files(), onDisk(t, s))
	}
}
