package media

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

const mib = 1 << 20

// rig adds parts and says what is expected of each.
type rig struct {
	t *testing.T
	*Assembler
	now time.Time
}

func newRig(t *testing.T) *rig {
	return &rig{t, NewAssembler(Limits{}, newStore(t)), t0}
}

func part(id string, data []byte, i, n int) Part {
	return Part{ID: id, Kind: "document", Mime: "application/octet-stream", Filename: "data.bin", Data: data, Part: i, Parts: n}
}

func (r *rig) taken(p Part) {
	r.t.Helper()
	u, err := r.Add(p, r.now)
	if u != nil || err != nil {
		r.t.Fatalf("part %d of %s: %v, %v, want taken", p.Part, p.ID, u, err)
	}
}

func (r *rig) refused(p Part, want string) {
	r.t.Helper()
	u, err := r.Add(p, r.now)
	if u != nil || code(err) != want {
		r.t.Fatalf("part %d of %s: %v, %v, want %s", p.Part, p.ID, u, err, want)
	}
}

func (r *rig) complete(p Part, want []byte) *Upload {
	r.t.Helper()
	u, err := r.Add(p, r.now)
	if u == nil || err != nil {
		r.t.Fatalf("part %d of %s: %v, %v, want complete", p.Part, p.ID, u, err)
	}
	if u.ID != p.ID {
		r.t.Fatalf("id %q, want %q", u.ID, p.ID)
	}
	wantContent(r.t, r.files, u.File, want)
	return u
}

// empty checks that nothing is held any more.
func (r *rig) empty() {
	r.t.Helper()
	if r.bytes != 0 || r.memory != 0 || r.files.unfinished.Load() != 0 || len(r.open) != 0 || len(temps(r.t, r.files)) != 0 {
		r.t.Fatalf("held: %d bytes, %d in memory, %d series, files %v", r.bytes, r.memory, len(r.open), temps(r.t, r.files))
	}
}

func TestSingle(t *testing.T) {
	r := newRig(t)
	u := r.complete(Part{Kind: "document", Mime: "text/plain", Filename: "/tmp/../a.txt", Caption: "Смотри", Data: []byte("words"), Parts: 1}, []byte("words"))
	if u.Kind != "document" || u.Mime != "text/plain" || u.Filename != "a.txt" || u.Caption != "Смотри" {
		t.Fatalf("%+v", u)
	}
	r.complete(part("m", pattern(8*mib), 0, 1), pattern(8*mib))
	r.refused(part("m2", pattern(8*mib+1), 0, 1), "too_big")
	r.complete(Part{Parts: 1}, nil)
	if r.open != nil || r.dropped != nil {
		t.Error("a file in one frame left something behind")
	}
}

func TestSeries(t *testing.T) {
	r := newRig(t)
	data := pattern(3*4096 + 5)
	for _, order := range [][]int{{0, 1, 2, 3}, {3, 2, 1, 0}, {2, 2, 0, 3, 0, 1}} {
		for i, n := range order {
			p := part("a", data[n*4096:min(len(data), (n+1)*4096)], n, 4)
			if i < len(order)-1 {
				r.taken(p)
			} else {
				r.complete(p, data)
			}
		}
		r.empty()
	}
}

func TestSpooledSeries(t *testing.T) {
	r := newRig(t)
	data := pattern(8 * mib)
	for i := range 7 {
		r.taken(part("a", data[i*mib:(i+1)*mib], i, 8))
	}
	if r.memory != 0 || len(temps(t, r.files)) != 1 {
		t.Fatalf("%d bytes in memory, files %v, want all in one file", r.memory, temps(t, r.files))
	}
	r.taken(part("a", data[mib:2*mib], 1, 8))
	r.complete(part("a", data[7*mib:], 7, 8), data)
	r.empty()

	r.taken(part("a", data[:mib], 0, 3))
	r.taken(part("a", data[mib:3*mib], 1, 3))
	other := pattern(mib)
	other[mib-1] ^= 1
	r.refused(part("a", other, 0, 3), "bad_frame")
	r.refused(part("a", data[3*mib:4*mib], 2, 3), "bad_frame")
	r.empty()
}

// Many devices that each hold little must not hold much together.
func TestSpooledForOthers(t *testing.T) {
	files := newStore(t)
	limits := Limits{SpoolAllAbove: 3 * mib}
	data := pattern(2 * mib)
	var devices []*rig
	for i := range 8 {
		r := &rig{t, NewAssembler(limits, files), t0}
		devices = append(devices, r)
		r.taken(part("a", data[:mib], 0, 3))
		if held := files.unfinished.Load(); held > 3*mib {
			t.Fatalf("after %d devices %d bytes are in memory, want %d at most", i+1, held, 3*mib)
		}
	}
	if n := len(temps(t, files)); n != 5 {
		t.Fatalf("%d series are in files, want the 5 for which there is no room in memory", n)
	}
	devices[0].Free() // its room is for whoever comes next
	again := &rig{t, NewAssembler(limits, files), t0}
	again.taken(part("a", data[:mib], 0, 3))
	if n := len(temps(t, files)); n != 5 || again.memory != mib {
		t.Fatalf("%d series are in files and %d bytes of the new one in memory", n, again.memory)
	}
	again.Free()
	for i, r := range devices[1:] {
		r.taken(part("a", data[mib:], 1, 3))
		whole := pattern(2*mib + i)
		r.complete(part("a", whole[2*mib:], 2, 3), whole)
	}
	devices[1].empty()
}

func TestMetadata(t *testing.T) {
	r := newRig(t)
	data := pattern(4096)
	// What one frame leaves out another may say, whichever comes first.
	r.taken(Part{ID: "a", Kind: "document", Filename: "lean.bin", Data: data, Part: 1, Parts: 3})
	r.taken(Part{ID: "a", Data: data, Part: 0, Parts: 3, Caption: "all of it"})
	r.taken(Part{ID: "a", Data: data, Part: 0, Parts: 3, Mime: "application/x-lean"})
	u := r.complete(Part{ID: "a", Data: data, Part: 2, Parts: 3}, []byte(strings.Repeat(string(data), 3)))
	if u.Filename != "lean.bin" || u.Caption != "all of it" || u.Kind != "document" || u.Mime != "application/x-lean" {
		t.Fatalf("%+v", u)
	}
	for name, change := range map[string]func(*Part){
		"parts":    func(p *Part) { p.Parts = 5 },
		"single":   func(p *Part) { p.Part, p.Parts = 0, 1 },
		"kind":     func(p *Part) { p.Kind = "image" },
		"mime":     func(p *Part) { p.Mime = "text/plain" },
		"filename": func(p *Part) { p.Filename = "other.bin" },
		"repeated": func(p *Part) { p.Part, p.Caption = 0, "other" },
		"odd":      func(p *Part) { p.Part = 4 },
		"negative": func(p *Part) { p.Part = -1 },
		"short":    func(p *Part) { p.Data = data[:4095] },
		"bytes":    func(p *Part) { p.Part, p.Data = 0, append([]byte{1}, data[1:]...) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			good, bad := part("good", data, 0, 2), part("bad", data, 0, 4)
			good.Caption, bad.Caption = "first", "first"
			r.taken(good)
			r.taken(bad)
			bad.Part = 1
			change(&bad)
			r.refused(bad, "bad_frame")
			for i := 1; i < 4; i++ {
				r.refused(part("bad", data, i, 4), "bad_frame")
			}
			r.taken(part("bad", data, 0, 3))
			r.taken(part("bad", data, 1, 3))
			r.complete(part("bad", nil, 2, 3), append(pattern(4096), data...))
			r.complete(part("good", []byte("x"), 1, 2), append(pattern(4096), 'x'))
			r.empty()
		})
	}
}

func TestShape(t *testing.T) {
	for _, n := range [][2]int{{1, 1}, {-1, 2}, {4, 4}, {0, 0}, {0, -1}, {0, 2049}, {2049, 2049}} {
		r := newRig(t)
		r.refused(part("a", pattern(4096), n[0], n[1]), "bad_frame")
		r.empty()
	}
	r := newRig(t)
	r.refused(part("", pattern(4096), 0, 2), "bad_frame")
	r.refused(part("short", pattern(4095), 0, 2), "bad_frame")
	r.taken(part("many", pattern(1), 2047, 2048))
	long := part("long", pattern(4096), 0, 2)
	long.Caption = strings.Repeat("x", maxMeta)
	r.refused(long, "too_big")
	r.taken(part("pieces", pattern(4096), 0, 3))
	long.ID, long.Part, long.Parts, long.Filename, long.Caption = "pieces", 1, 3, "", long.Caption[:maxMeta-39]
	r.refused(long, "too_big")
}

func TestCount(t *testing.T) {
	r := newRig(t)
	for i := range 8 {
		r.taken(part(fmt.Sprint(i), pattern(4096), 0, 2))
	}
	r.refused(part("ninth", pattern(4096), 0, 2), "bad_frame")
	r.refused(part("ninth", pattern(1), 1, 2), "bad_frame")
	r.complete(part("single", pattern(5), 0, 1), pattern(5))
	r.complete(part("0", nil, 1, 2), pattern(4096))
	r.taken(part("ninth", pattern(4096), 0, 2))
	r.complete(part("ninth", nil, 1, 2), pattern(4096))
}

func TestSizes(t *testing.T) {
	r := newRig(t)
	big := pattern(9 * mib)
	for i := range 2 {
		r.taken(part("large", big[i*3*mib:(i+1)*3*mib], i, 4))
	}
	r.refused(part("large", big[6*mib:], 2, 4), "too_big")
	r.refused(part("large", big[:5000], 3, 4), "too_big")
	r.empty()
	r.complete(part("large", big[:100], 0, 1), big[:100])

	for i := range 3 {
		r.taken(part(fmt.Sprint(i), big[:2*mib], 0, 2))
	}
	r.refused(part("over", big[:3*mib], 0, 2), "too_big")
	r.refused(part("over", big[:1], 1, 2), "too_big")
	r.taken(part("fits", big[:2*mib], 0, 3))
	r.refused(part("fits", big[:4096], 1, 3), "too_big")
	r.complete(part("single", big[:8*mib], 0, 1), big[:8*mib])
	// What completes a series leaves less unfinished, not more.
	r.complete(part("0", big[:6*mib], 1, 2), append(pattern(2*mib), big[:6*mib]...))
	r.Free()
	r.empty()
	if !r.Next().IsZero() || r.open != nil || r.dropped != nil {
		t.Error("something left after Free")
	}
	r.taken(part("1", big[:100], 1, 2))
}

func TestIdle(t *testing.T) {
	r := newRig(t)
	if !r.Next().IsZero() {
		t.Fatal("an idle assembler wants to be woken")
	}
	r.taken(part("a", pattern(4096), 0, 3))
	r.taken(part("b", pattern(2*mib), 0, 3))
	r.now = t0.Add(9 * time.Minute)
	r.taken(part("b", pattern(2*mib), 0, 3)) // a repeated part is a sign of life
	if want := t0.Add(10 * time.Minute); !r.Next().Equal(want) {
		t.Fatalf("next %v, want %v", r.Next(), want)
	}
	r.Expire(t0.Add(10*time.Minute - 1))
	if len(r.open) != 2 {
		t.Fatal("dropped too early")
	}
	r.Expire(t0.Add(10 * time.Minute))
	if len(r.open) != 1 || r.open["b"] == nil {
		t.Fatalf("open: %v", r.open)
	}
	r.now = t0.Add(time.Hour) // nobody called Expire
	r.refused(part("a", pattern(4096), 1, 3), "bad_frame")
	r.refused(part("b", pattern(4096), 1, 3), "bad_frame")
	r.empty()
	r.complete(part("a", pattern(3), 0, 1), pattern(3))
}

func TestDroppedAreBounded(t *testing.T) {
	r := newRig(t)
	for i := range 1000 {
		r.refused(part(fmt.Sprint(i), nil, 0, 2), "bad_frame")
		r.refused(part(fmt.Sprint(i), pattern(1), 1, 2), "bad_frame")
		if len(r.dropped) > maxDropped {
			t.Fatal("too many remembered")
		}
	}
	r.refused(part("936", pattern(1), 1, 2), "bad_frame")
	r.taken(part("935", pattern(1), 1, 2))
}

// fullDisk makes a temporary file that takes no byte.
func fullDisk(t *testing.T) func(dir, pattern string) (*os.File, error) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("no /dev/full")
	}
	return func(dir, _ string) (*os.File, error) {
		fd, err := syscall.Open("/dev/full", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
		// Another name: ours must not be what removes the device.
		return os.NewFile(uintptr(fd), dir+"/full"+tempSuffix), err
	}
}

func TestFullDiskDropsTheSeries(t *testing.T) {
	r := newRig(t)
	r.taken(part("other", pattern(4096), 0, 2))
	r.taken(part("a", pattern(mib/2), 0, 3))
	r.files.create = fullDisk(t)
	_, err := r.Add(part("a", pattern(mib), 1, 3), t0)
	if !errors.Is(err, syscall.ENOSPC) || code(err) != "internal" {
		t.Fatalf("%v, want a wrapped ENOSPC", err)
	}
	r.refused(part("a", pattern(1), 2, 3), "internal")
	r.refused(part("s", pattern(1), 0, 1), "internal")
	r.taken(part("b", pattern(4096), 0, 2))
	r.refused(part("b", pattern(1), 1, 2), "internal")
	r.files.create = os.CreateTemp
	r.complete(part("other", nil, 1, 2), pattern(4096))
	r.taken(part("a", pattern(4096), 0, 2))
	r.complete(part("a", nil, 1, 2), pattern(4096))
	r.empty()
}

func TestLostSpoolFile(t *testing.T) {
	for name, p := range map[string]Part{
		"repeated": part("a", pattern(2*mib), 0, 3),
		"next":     part("a", pattern(4096), 1, 3),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.taken(part("a", pattern(2*mib), 0, 3))
			if err := os.Remove(r.open["a"].spool); err != nil {
				t.Fatal(err)
			}
			r.refused(p, "internal")
			r.empty()
		})
	}
	r := newRig(t)
	r.taken(part("a", pattern(2*mib), 0, 2))
	if err := os.Truncate(r.open["a"].spool, 5); err != nil {
		t.Fatal(err)
	}
	r.refused(part("a", nil, 1, 2), "internal")
	r.empty()
}
