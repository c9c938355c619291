//go:build unix

// Package seam lets a test reach what a program takes from its machine: the clock on the wall, and how long a flush to the
// disk takes. No program of ours imports it. The harness of test/chaos builds the server and its phones with copies of their
// files (go build -overlay) in which the calls of time.Now and Sync, and commits of the store, go through here, so that nothing of it is in the
// product, and neither rights nor features of a system are needed.
//
// What is to happen stands in a small file that both sides have mapped into memory, named by [Variable].
package seam

import (
	"fmt"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// Variable of the environment names the file. Where it is not set nothing is changed.
const Variable = "HERMES_MOBILE_CHAOS_SEAM"

// Controls is what stands in the file. The harness writes it, the program reads it.
type Controls struct {
	offset   atomic.Int64 // seconds that the clock on the wall is ahead
	from, to atomic.Int64 // nanoseconds that a flush takes longer
}

const size = 4096 // of the file: one page

// Open maps a file, and makes it where it is not there.
func Open(path string) (*Controls, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := f.Truncate(size); err != nil {
		return nil, err
	}
	b, err := syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return (*Controls)(unsafe.Pointer(&b[0])), nil
}

// Close unmaps the file.
func (c *Controls) Close() error {
	return syscall.Munmap(unsafe.Slice((*byte)(unsafe.Pointer(c)), size))
}

// Step moves the clock on the wall by whole seconds.
func (c *Controls) Step(d time.Duration) { c.offset.Add(int64(d / time.Second)) }

// Offset is how far the clock on the wall is ahead.
func (c *Controls) Offset() time.Duration { return time.Duration(c.offset.Load()) * time.Second }

// SlowDown makes each flush take so much longer, drawn anew each time. Zeros: as it is.
func (c *Controls) SlowDown(from, to time.Duration) {
	c.from.Store(int64(from))
	c.to.Store(int64(to))
}

var controls = func() *Controls {
	path := os.Getenv(Variable)
	if path == "" {
		return &Controls{}
	}
	c, err := Open(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, "the seam of the chaos tests:", err)
		os.Exit(3)
	}
	return c
}()

// Now is time.Now of a machine whose clock was set: what the clock on the wall says is moved, and the clock by which
// durations are measured runs on.
func Now() time.Time { return shift(time.Now(), controls.offset.Load()) }

// Since is time.Since.
func Since(t time.Time) time.Duration { return Now().Sub(t) }

// Until is time.Until.
func Until(t time.Time) time.Duration { return t.Sub(Now()) }

// shift moves the wall part of a time and leaves the monotonic part. The package time has no way to do that, since it happens
// to a machine and not to a program: wall holds a bit that says that there is a monotonic part, 33 bits of seconds, and 30 of
// nanoseconds.
func shift(t time.Time, seconds int64) time.Time {
	type layout struct {
		wall uint64
		ext  int64
		loc  *time.Location
	}
	const monotonic, nanoseconds = 1 << 63, 30
	if l := (*layout)(unsafe.Pointer(&t)); l.wall&monotonic != 0 {
		l.wall += uint64(seconds << nanoseconds)
		return t
	}
	return t.Add(time.Duration(seconds) * time.Second)
}

// Sync flushes what f wrote, and takes as long as the disk does.
func Sync(f interface{ Sync() error }) error {
	Flush()
	return f.Sync()
}

// Commit is what became of a commit, when SQLite has flushed it: by then the system has it, and nobody was told.
func Commit(err error) error {
	Flush()
	return err
}

// Flush takes the time that a flush takes longer.
func Flush() {
	if from, to := controls.from.Load(), controls.to.Load(); to > from {
		time.Sleep(time.Duration(from + rand.Int64N(to-from)))
	}
}
