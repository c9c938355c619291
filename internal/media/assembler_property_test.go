package media

import (
	"bytes"
	"fmt"
	"os"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// tiny are limits that a random test reaches all the time.
var tiny = Limits{MaxFile: 4096, MaxUploads: 4, MaxParts: 12, MinPart: 8, SpoolAbove: 512, Idle: time.Minute}

// cutUp divides data at random places into parts of at least MinPart.
func cutUp(t *rapid.T, data []byte) [][]byte {
	var parts [][]byte
	for len(parts) < tiny.MaxParts-1 && len(data) > tiny.MinPart {
		n := rapid.IntRange(tiny.MinPart, min(len(data), 600)).Draw(t, "size")
		parts, data = append(parts, data[:n]), data[n:]
	}
	return append(parts, data)
}

// consistent checks the accounting against what is held.
func consistent(t *rapid.T, a *Assembler, tmp int) {
	var size, memory int64
	spools := 0
	for _, s := range a.open {
		var n, m int64
		for _, g := range s.parts {
			n += int64(g.size)
			m += int64(len(g.data))
		}
		if n != s.size || m != s.memory || s.spool != "" && m != 0 {
			t.Fatalf("series counts %d bytes, %d in memory; it holds %d and %d", s.size, s.memory, n, m)
		}
		size += n
		memory += m
		if s.spool != "" {
			spools++
		}
	}
	seen := map[string]bool{}
	for _, d := range a.dropped {
		if seen[d.id] || a.open[d.id] != nil {
			t.Fatalf("%s is dropped twice, or dropped and open", d.id)
		}
		seen[d.id] = true
	}
	if size != a.bytes || memory != a.memory || spools != tmp {
		t.Fatalf("counts %d bytes, %d in memory; holds %d and %d; %d files of %d", a.bytes, a.memory, size, memory, tmp, spools)
	}
	if a.bytes > a.limits.MaxFile || a.memory > a.limits.SpoolAbove || len(a.open) > a.limits.MaxUploads || len(a.dropped) > maxDropped {
		t.Fatalf("over a limit: %d bytes, %d in memory, %d series, %d dropped", a.bytes, a.memory, len(a.open), len(a.dropped))
	}
}

// TestAnyOrderGivesTheFile sends random files side by side, their parts in any
// order and some of them repeatedly.
func TestAnyOrderGivesTheFile(t *testing.T) {
	store := newStore(t)
	rapid.Check(t, func(rt *rapid.T) {
		a := NewAssembler(tiny, store)
		files := map[string][]byte{}
		var all []Part
		for i := range rapid.IntRange(1, tiny.MaxUploads).Draw(rt, "files") {
			id := fmt.Sprint("f", i)
			files[id] = rapid.SliceOfN(rapid.Byte(), 0, 1024).Draw(rt, "data")
			pieces := cutUp(rt, files[id])
			for n, b := range pieces {
				p := Part{ID: id, Data: bytes.Clone(b), Part: n, Parts: len(pieces)}
				if rapid.Bool().Draw(rt, "meta") {
					p.Kind, p.Filename = "document", id+".bin"
				}
				for range rapid.IntRange(1, 2).Draw(rt, "times") {
					all = append(all, p)
				}
			}
		}
		left, done := map[string]map[int]bool{}, map[string]bool{}
		for _, p := range rapid.Permutation(all).Draw(rt, "order") {
			if done[p.ID] {
				continue // the caller's duplicate detection
			}
			if left[p.ID] == nil {
				left[p.ID] = map[int]bool{}
			}
			left[p.ID][p.Part] = true
			u, err := a.Add(p, t0)
			if err != nil {
				rt.Fatal(err)
			}
			if whole := len(left[p.ID]) == p.Parts; whole != (u != nil) {
				rt.Fatalf("%d of %d parts and upload %v", len(left[p.ID]), p.Parts, u)
			}
			if u != nil {
				done[p.ID] = true
				got, err := os.ReadFile(store.Path(u.File.Hash))
				if err != nil || !bytes.Equal(got, files[p.ID]) {
					rt.Fatalf("%d bytes, want %d, %v", len(got), len(files[p.ID]), err)
				}
			}
			consistent(rt, a, len(temps(t, store)))
		}
		if a.bytes != 0 || a.memory != 0 || len(a.open) != 0 || len(done) != len(files) {
			rt.Fatalf("%d bytes, %d in memory, %d series left, %d files of %d", a.bytes, a.memory, len(a.open), len(done), len(files))
		}
	})
}

// TestAnythingKeepsTheAccount sends frames that are wrong in every way.
func TestAnythingKeepsTheAccount(t *testing.T) {
	store := newStore(t)
	rapid.Check(t, func(rt *rapid.T) {
		a, now := NewAssembler(tiny, store), t0
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 20).Draw(rt, "seconds")) * time.Second)
			p := Part{
				ID:       rapid.SampledFrom([]string{"", "a", "b", "c", "d", "e", "f"}).Draw(rt, "id"),
				Filename: rapid.SampledFrom([]string{"", "", "", "n", "m"}).Draw(rt, "name"),
				Data:     bytes.Repeat([]byte{byte(rapid.IntRange(0, 1).Draw(rt, "byte"))}, rapid.SampledFrom([]int{0, 7, 8, 300, 300, 600, 1500, 4096, 4097}).Draw(rt, "size")),
				Part:     rapid.IntRange(-1, 4).Draw(rt, "part"),
				Parts:    rapid.SampledFrom([]int{0, 1, 3, 3, 3, 4, 13}).Draw(rt, "parts"),
				Size:     rapid.SampledFrom([]int64{0, 0, 0, 900, 901}).Draw(rt, "whole"),
			}
			before := map[string]int{}
			for id, s := range a.open {
				before[id] = len(s.parts)
			}
			a.Expire(now)
			expired := map[string]bool{}
			for id := range before {
				expired[id] = a.open[id] == nil
			}
			if rapid.IntRange(0, 9).Draw(rt, "drop") == 0 { // it was refused before it came here
				a.Drop(p.ID, badFrame("spoiled"))
				if a.Has(p.ID) {
					rt.Fatalf("%s is dropped and open", p.ID)
				}
				before[p.ID] = 0
			}
			u, err := a.Add(p, now)
			if u != nil && err != nil || code(err) == "internal" {
				rt.Fatal(u, err)
			}
			for id, n := range before {
				if s := a.open[id]; id != p.ID && !expired[id] && (s == nil || len(s.parts) != n) {
					rt.Fatalf("a part of %s changed %s", p.ID, id)
				}
			}
			if err != nil && a.open[p.ID] != nil {
				rt.Fatalf("refused and still open: %v", err)
			}
			consistent(rt, a, len(temps(t, store)))
		}
		a.Free()
		consistent(rt, a, len(temps(t, store)))
		if a.bytes != 0 || a.memory != 0 {
			rt.Fatal("something left after Free")
		}
	})
}
