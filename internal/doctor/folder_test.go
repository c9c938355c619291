package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"hermes-mobile/internal/config"
	"hermes-mobile/internal/quota"
)

// asNobody makes the test binary look at a folder as a user who is not root.
const asNobody = "HERMES_DOCTOR_TEST_FOLDER"

func init() {
	folder := os.Getenv(asNobody)
	if folder == "" {
		return
	}
	if os.Geteuid() == 0 {
		if err := giveUpRoot(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	for _, f := range Shorten(Check(folderFacts(ProbeFolder(folder)))) {
		fmt.Println(f.Code, f.Text)
	}
	os.Exit(0)
}

func folderFacts(d *Folder) *Facts {
	return &Facts{Now: time.Now(), Config: &config.Config{Agent: "demo", AgentSet: true, Data: d.Path}, Folder: d}
}

func TestDataUnwritable(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes of folders say nothing there")
	}
	dir, err := os.MkdirTemp("", "doctor")
	ok(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	look := func() string {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), asNobody+"="+dir)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	ok(t, os.Chmod(dir, 0o777))
	if out := look(); strings.Contains(out, "data_unwritable") {
		t.Errorf("it may be written: %s", out)
	}
	ok(t, os.Chmod(dir, 0o555))
	if out := look(); !strings.Contains(out, "data_unwritable The data folder "+dir+" is not writable: permission denied.") {
		t.Errorf("it may not be written: %s", out)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("the try left %v", left)
	}

	list := Check(folderFacts(&Folder{Path: dir, Unwrit: syscall.EROFS}))
	mustFind(t, list, "data_unwritable", dir, "read-only", "Remount")
	if Ready(list) || !Ready(Check(folderFacts(&Folder{Path: dir}))) {
		t.Error("messages are refused while it cannot be written, and only then")
	}
	// One that the first start has yet to make is no fault.
	if d := ProbeFolder(filepath.Join(dir, "none")); d.Unwrit != nil {
		t.Error(d.Unwrit)
	}
}

func TestDiskLow(t *testing.T) {
	for _, tc := range []struct {
		free, total uint64
		low         bool
	}{
		{199 << 20, 1 << 30, true}, {201 << 20, 1 << 30, false}, {4 << 30, 100 << 30, true}, {6 << 30, 100 << 30, false}, {50 << 30, 2 << 40, false}, {100 << 20, 2 << 40, true}, {0, 0, false},
	} {
		list := Check(folderFacts(&Folder{Path: "/d", Free: tc.free, Total: tc.total}))
		if tc.low {
			mustFind(t, list, "disk_low", "/d", "MOBILE_DATA")
		} else {
			mustNotFind(t, list, "disk_low")
		}
	}
	if free, total, known := quota.Space(t.TempDir()); known && (total == 0 || free > total) {
		t.Errorf("%d of %d are free", free, total)
	}
}

// How much of the storage limit is used, and whether the disk is so full that files are refused.
func TestStorageIssues(t *testing.T) {
	const limit = 10 << 30
	all := []string{"data_quota_near", "data_quota_full", "data_full"}
	for _, tc := range []struct {
		files, database int64
		code            string
	}{
		{0, 1 << 20, ""}, {5 << 30, 1 << 30, ""}, {7 << 30, 1 << 20, "data_quota_near"}, {8 << 30, 700 << 20, "data_quota_near"}, {8 << 30, 765 << 20, "data_quota_full"},
		{9 << 30, 0, "data_quota_full"}, {9 << 30, 1 << 30, "data_full"}, {20 << 30, 0, "data_full"},
	} {
		f := &Facts{Now: time.Now(), Config: &config.Config{Agent: "demo", AgentSet: true, MaxMediaBytes: 8 << 20},
			Server: &Server{AgentOnline: true, Storage: &quota.Use{Limit: limit, Files: tc.files, Database: tc.database, FilesLimit: limit - limit/8}}}
		list := Check(f)
		for _, code := range all {
			if code == tc.code {
				mustFind(t, list, code, "of 10 GiB used", "MOBILE_MAX_DATA")
			} else {
				mustNotFind(t, list, code)
			}
		}
		f.Server.Storage.Reusable = 2 << 30 // that messages use before the database grows
		if tc.code == "data_full" && tc.files < limit && !Ready(Check(f)) {
			t.Errorf("%+v: messages are refused although the database has free pages", tc)
		}
		if Ready(list) != (tc.code != "data_full") {
			t.Errorf("%+v: ready is %v", tc, Ready(list))
		}
	}
	mustNotFind(t, Check(&Facts{Now: time.Now(), Config: &config.Config{Agent: "demo", AgentSet: true}, Server: &Server{AgentOnline: true}}), "data_full")
	for free, refuses := range map[uint64]bool{1<<30 - 1: true, 1 << 30: false} {
		f := mustFind(t, Check(folderFacts(&Folder{Path: "/d", Free: free, Total: 100 << 30})), "disk_low")
		if strings.Contains(f.Text, "rejects new files until 1.0 GiB") != refuses {
			t.Errorf("%d free: %s", free, f.Text)
		}
	}
}

func TestPushOff(t *testing.T) {
	f := &Facts{Now: time.Now(), Config: &config.Config{Agent: "demo", AgentSet: true}, Server: &Server{AgentOnline: true}}
	mustNotFind(t, Check(f), "push_off")
	f.Server.PushOff = "nobody is named"
	mustFind(t, Check(f), "push_off", "get no notifications: nobody is named.", "MOBILE_PUSH_CONTACT")
}

func TestSecretReadable(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes of files say nothing there")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "tokens")
	ok(t, os.WriteFile(path, []byte("app=x\n"), 0o600))
	mustNotFind(t, Check(folderFacts(ProbeFolder(dir))), "secret_readable")
	for _, mode := range []fs.FileMode{0o640, 0o604, 0o644} {
		ok(t, os.Chmod(path, mode))
		mustFind(t, Check(folderFacts(ProbeFolder(dir))), "secret_readable", path, "chmod 600 "+path)
	}
}

func TestClockIsObviouslyWrong(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "hermes-mobile.db")
	ok(t, os.WriteFile(path, nil, 0o600))
	mustNotFind(t, Check(folderFacts(ProbeFolder(dir))), "clock_skew")
	later := time.Now().Add(90 * time.Minute)
	ok(t, os.Chtimes(path, later, later))
	mustFind(t, Check(folderFacts(ProbeFolder(dir))), "clock_skew", "at least 5", "seconds behind", path)
	f := folderFacts(&Folder{Path: dir})
	f.Now = time.Unix(120, 0)
	mustFind(t, Check(f), "clock_skew", "1970-01-01 00:02:00")
}

func TestSettings(t *testing.T) {
	dir := t.TempDir()
	load := func(environ ...string) (*config.Config, error) {
		cfg, _, err := config.Load(config.Sources{Environ: append([]string{"MOBILE_DATA=" + dir}, environ...), HomeDir: dir})
		return cfg, err
	}
	_, err := load("MOBILE_PORT=x", "MOBILE_OUTBOX_DAYS=-1")
	list := SettingsRefused(err)
	mustFind(t, list, "settings_refused", "MOBILE_PORT")
	if len(list) != 2 || len(Shorten(append(list, issue("server_not_running", "", "x.", "y")))) != 2 {
		t.Errorf("%q", codes(list))
	}
	cfg, err := load("MOBILE_PROT=1")
	ok(t, err)
	mustFind(t, Check(&Facts{Config: cfg, Warnings: cfg.Warnings}), "settings_warning", "MOBILE_PROT", "MOBILE_PORT")
	cfg, err = load("MOBILE_HOST=0.0.0.0")
	ok(t, err)
	list = Check(&Facts{Config: cfg, Warnings: cfg.Warnings})
	mustFind(t, list, "unencrypted", "MOBILE_HOST")
	mustNotFind(t, list, "settings_warning")

	if runtime.GOOS != "windows" { // what was put right while the server runs is not said again
		file := filepath.Join(dir, "hermes-mobile.yaml")
		ok(t, os.WriteFile(file, []byte("token: 0123456789abcdef0123456789abcdef\n"), 0o644))
		cfg, err = load()
		ok(t, err)
		mustFind(t, Check(&Facts{Config: cfg, Warnings: StillTrue(cfg.Warnings)}), "settings_warning", "hermes-mobile.yaml", "chmod 600 "+file)
		ok(t, os.Chmod(file, 0o600))
		mustNotFind(t, Check(&Facts{Config: cfg, Warnings: StillTrue(cfg.Warnings)}), "settings_warning")
	}
	mustFind(t, []Issue{NoAnswer(dir, errors.New("permission denied"))}, "server_silent", dir, "permission denied.")
}
