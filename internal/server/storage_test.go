package server

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/doctor"
	"hermes-mobile/internal/quota"
	"hermes-mobile/internal/store"
)

// upload sends a file of a size in one frame and returns the error that it got, nil where it was
// accepted.
func (d *device) upload(id string, size int) *frame.Error {
	d.t.Helper()
	d.send(&frame.Media{ID: id, Kind: "document", Filename: "x.bin", Data: bytes.Repeat([]byte(id+"."), size/(len(id)+1)+1)[:size], Parts: 1})
	for {
		f, err := d.read()
		ok(d.t, err)
		switch f := f.(type) {
		case *frame.Accepted:
			if f.ID == id {
				return nil
			}
		case *frame.Error:
			if f.Ref == id {
				return f
			}
		}
	}
}

// ask sends a text and waits for the demo agent's answer to it.
func (d *device) ask(id, text string) {
	d.t.Helper()
	d.send(&frame.Text{ID: id, Text: text})
	for {
		if m := d.message(); m.ReplyTo == id {
			return
		}
	}
}

// issues asks the doctor.
func (r *rig) issues() []doctor.Issue {
	r.t.Helper()
	var d Diagnosis
	ok(r.t, r.admin.Get(r.t.Context(), "/doctor", &d))
	return d.Issues
}

// onDisk is what lies below the data folder: files and database.
func (r *rig) onDisk() (sum int64) {
	r.t.Helper()
	ok(r.t, filepath.WalkDir(r.cfg.Data, func(_ string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil // a temporary file that is gone
		}
		if info, err := e.Info(); err == nil {
			sum += info.Size()
		}
		return nil
	}))
	return sum
}

// The limit is reached: files are refused and texts still go, the doctor, the status and the
// metrics say so, the disk holds no more than was allowed. After a sweep there is room again.
func TestStorageLimit(t *testing.T) {
	const limit = 32 << 20
	r := start(t, "MOBILE_TOKEN="+mainToken, "MOBILE_MAX_DATA=32MiB", "MOBILE_MAX_DEVICE_DATA=1GiB")
	d, other := r.connect("tel-1", mainToken), r.connect("tel-2", mainToken)
	mustNotFind(t, r.issues(), "data_quota_near")
	for i := range 5 {
		if e := d.upload(fmt.Sprint("f", i), 3<<20); e != nil {
			t.Fatalf("file %d: %+v", i, e)
		}
	}
	for i := 5; ; i++ {
		if list := r.issues(); slices.Contains(codesOf(list), "data_quota_near") {
			mustFind(t, list, "data_quota_near", "of 32 MiB", "MOBILE_MAX_DATA")
			mustNotFind(t, list, "data_quota_full")
			break
		}
		if e := d.upload(fmt.Sprint("f", i), 1<<20); e != nil {
			t.Fatalf("refused before it was near: %+v", e)
		}
	}
	refused := 0
	for i := range 10 {
		e := d.upload(fmt.Sprint("g", i), 1<<20)
		if e == nil {
			continue
		}
		refused++
		if e.Code != frame.NoSpace || !strings.Contains(e.Message, "no room for files") || !strings.Contains(e.Message, "MOBILE_MAX_DATA") {
			t.Errorf("refused with %+v", e)
		}
	}
	if refused < 3 {
		t.Errorf("%d files were refused", refused)
	}
	if n := r.onDisk(); n > limit {
		t.Errorf("%d bytes are on the disk", n)
	}
	list := r.issues()
	mustFind(t, list, "data_quota_full", "The server rejects files", "of 32 MiB", "MOBILE_MAX_DATA")
	mustNotFind(t, list, "data_full")
	if e := other.upload("o1", 1<<20); e == nil || e.Code != frame.NoSpace {
		t.Errorf("another device's file gets %+v", e)
	}
	other.ask("m1", "still here?")
	if refused := r.refused("/deliver", Command{Frame: &frame.Deliver{To: "tel-2", Data: make([]byte, 4<<20)}}); refused.Code != string(frame.NoSpace) {
		t.Errorf("the owner's delivery gets %+v", refused)
	}
	ok(t, r.admin.Post(t.Context(), "/deliver", Command{Frame: &frame.Deliver{To: "tel-2", Text: "texts go"}}, nil))

	var st Status
	ok(t, r.admin.Get(t.Context(), "/status", &st))
	if st.Storage.Limit != limit || st.Storage.Files < 20<<20 || st.Storage.Database == 0 || st.Storage.FilesLimit != limit-limit/8 || !st.Health.Ready {
		t.Errorf("status %+v, ready %v", st.Storage, st.Health.Ready)
	}
	metrics, err := r.admin.Text(t.Context(), "/metrics")
	ok(t, err)
	for _, want := range []string{"hermes_mobile_data_limit_bytes 3.3554432e+07", `hermes_mobile_no_space_total{reason="total"}`, "hermes_mobile_data_bytes 2"} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	if code, body := r.get("/readyz"); code != http.StatusOK || !strings.Contains(body, `"ready":true`) {
		t.Errorf("readyz %d %s: messages are taken", code, body)
	}

	// The demo agent has answered all, so nothing refers to the files of devices any more. While
	// room is short they go after two hours.
	until(t, "the turns to end", func() bool {
		used, err := r.server.store.Hashes(t.Context())
		return err == nil && len(used) == 0
	})
	r.server.maintenance.sweep(t.Context(), time.Now().Add(filesKeptCrowded-time.Minute))
	if used := r.server.storage.budget.Use(); used.Files < 20<<20 {
		t.Errorf("files went too soon: %+v", used)
	}
	r.server.maintenance.sweep(t.Context(), time.Now().Add(filesKeptCrowded+time.Minute))
	if used := r.server.storage.budget.Use(); used.Files > 1<<20 {
		t.Errorf("after the sweep %+v", used)
	}
	if e := other.upload("o1", 1<<20); e != nil {
		t.Errorf("after the sweep: %+v", e)
	}
	mustNotFind(t, r.issues(), "data_quota_near")
	r.server.maintenance.sweep(t.Context(), time.Now().Add(filesKept-time.Hour))
	if e := other.upload("o1", 1<<20); e != nil || r.server.storage.budget.Use().Files < 1<<20 {
		t.Error("a file went before its time where there is room")
	}
}

// What lies there already counts when the server starts: with a limit below it nothing new is
// taken, and all else works.
func TestStorageLimitBelowWhatIsThere(t *testing.T) {
	dir := folder(t)
	r := startIn(t, dir, "MOBILE_TOKEN="+mainToken)
	d := r.connect("tel-1", mainToken)
	for i := range 8 {
		if e := d.upload(fmt.Sprint("f", i), 6<<20); e != nil {
			t.Fatalf("file %d: %+v", i, e)
		}
	}
	ok(t, r.stop())
	r = startIn(t, dir, "MOBILE_TOKEN="+mainToken, "MOBILE_MAX_DATA=32MiB", "MOBILE_MAX_DEVICE_DATA=1GiB")
	if !strings.Contains(r.log.String(), "new files are rejected") {
		t.Error("the log does not say so")
	}
	list := r.issues()
	mustFind(t, list, "data_full", "The server rejects messages", "of 32 MiB")
	mustNotFind(t, doctor.Shorten(list), "data_quota_full")
	if doctor.Ready(list) {
		t.Error("messages are refused, and the server is ready")
	}
	d = r.connect("tel-1", mainToken)
	d.send(&frame.Text{ID: "m1", Text: "hello"})
	if e := find[*frame.Error](d); e.Code != frame.Internal || e.Ref != "m1" {
		t.Errorf("a text gets %+v", e)
	}
	ok(t, r.stop())
	r = startIn(t, dir, "MOBILE_TOKEN="+mainToken, "MOBILE_MAX_DATA=1GiB")
	d = r.connect("tel-1", mainToken)
	d.ask("m1", "hello")
	if e := d.upload("g", 1<<20); e != nil {
		t.Errorf("with a larger limit: %+v", e)
	}
}

// Shares of a day are a tenth of the limit for a device, half of it for the devices of one token,
// and at least one file.
func TestShares(t *testing.T) {
	for _, c := range []struct {
		environ       []string
		device, token int64
	}{
		{[]string{"MOBILE_MAX_DATA=1000MiB"}, 100 << 20, 500 << 20},
		{[]string{"MOBILE_MAX_DATA=32MiB"}, quota.Cost(8 << 20), 16 << 20},
		{[]string{"MOBILE_MAX_DATA=100MiB", "MOBILE_MAX_DEVICE_DATA=70MiB"}, 70 << 20, 70 << 20},
	} {
		r := start(t, c.environ...)
		if device, token := r.server.storage.shares(); device != c.device || token != c.token {
			t.Errorf("%v: %d and %d, want %d and %d", c.environ, device, token, c.device, c.token)
		}
		ok(t, r.stop())
	}
}

// Without a setting the limit is 10 GiB or half of the free space, and never below what is there.
func TestDefaultLimit(t *testing.T) {
	r := start(t)
	free, _, known := quota.Space(r.cfg.Data)
	if u := r.server.storage.budget.Use(); u.Limit > quota.DefaultLimit || known && u.Limit < min(quota.DefaultLimit, int64(free/2)*9/10) || u.Used() > u.Limit {
		t.Errorf("%+v with %d free", u, free)
	}
}

// A database that a flood has blown up gives its room back to files when the flood is over.
func TestSweepCompactsTheDatabase(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken)
	r.connect("tel-1", mainToken)
	dev, err := r.server.store.Device(t.Context(), "tel-1")
	ok(t, err)
	for i := range int64(100) {
		ok(t, r.server.store.Do(func(tx *store.Tx) error {
			return tx.Append(dev.N, 1000+i, store.KindMessage, make([]byte, 1<<20), "", time.Now())
		}))
	}
	before := r.server.storage.budget.Use().Database
	ok(t, r.server.store.Do(func(tx *store.Tx) error { return tx.Forget(dev.N, 2000) }))
	r.server.maintenance.sweep(t.Context(), time.Now())
	if after := r.server.storage.budget.Use().Database; before < 100<<20 || after > 30<<20 {
		t.Errorf("the database has %d bytes, %d before", after, before)
	}
	r.connect("tel-2", mainToken).ask("m1", "still here?")
}
