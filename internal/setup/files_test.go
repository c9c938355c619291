package setup

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestReadFiles(t *testing.T) {
	home := Home{Path: t.TempDir()}
	f, err := ReadFiles(home)
	if err != nil || f.Broken != nil || f.Text("a.b") != "" || !f.Changed.IsZero() {
		t.Errorf("an empty home: %+v, %v", f, err)
	}
	write := func(name, text string, at time.Time) {
		t.Helper()
		path := filepath.Join(home.Path, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	first, second := time.Unix(1_700_000_000, 0), time.Unix(1_700_000_100, 0)
	write("config.yaml", "a: {b: ' text ', n: 3, on: true}\nlist: [one, mobile-platform]\nplugins: {enabled: [mobile-platform]}\n", second)
	write(".env", "export X='a b'\nEMPTY=\nX=last # a comment\nGATEWAY_RELAY_PLATFORMS=relay, mobile\n", first)
	write("plugins/mobile-platform/plugin.yaml", "name: x\n", first)
	if f, err = ReadFiles(home); err != nil || f.Broken != nil {
		t.Fatalf("%v, %v", err, f.Broken)
	}
	v, _ := f.Value("a.on")
	x, hasX := f.Env("X")
	_, hasEmpty := f.Env("EMPTY")
	if f.Text("a.b") != "text" || f.Text("a.n") != "" || v != any(true) || !slices.Equal(f.Keys("a"), []string{"b", "n", "on"}) || f.Keys("list") != nil ||
		!f.Has("list", "one") || f.Has("list", "two") || x != "last" || !hasX || hasEmpty || !f.Changed.Equal(second) {
		t.Errorf("%+v", f)
	}
	if p := f.Plugin(); p != (Plugin{Name: "mobile-platform", Platform: "mobile", Manifest: true, Enabled: true, Named: true, Old: true}) {
		t.Errorf("%+v", p)
	}
	write("config.yaml", "a:\n\tb: 1\n", second)
	if f, err = ReadFiles(home); err != nil || f.Broken == nil || !strings.Contains(f.Broken.Error(), "line ") {
		t.Errorf("%v, %+v", err, f)
	}
}

// A gateway runs if a process holds its lock, or if the recorded process exists.
func TestRunning(t *testing.T) {
	home := Home{Path: t.TempDir()}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(home.Path, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	none := func(why string) {
		t.Helper()
		if p, ok := Running(home); ok {
			t.Errorf("%s: %+v", why, p)
		}
	}
	none("no files")
	me := strconv.Itoa(os.Getpid())
	gone := exec.Command(os.Args[0], "-test.run=^$")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "x", "{}", "[1]", `{"pid": "1"}`, "-5", "0", strconv.Itoa(gone.Process.Pid), `{"pid": ` + strconv.Itoa(gone.Process.Pid) + `, "start_time": null}`} {
		write("gateway.pid", text)
		none(text)
	}
	for _, text := range []string{me, me + "\n", `{"pid": ` + me + `, "start_time": null, "argv": ["hermes"]}`} {
		write("gateway.pid", text)
		if p, ok := Running(home); !ok || p.PID != os.Getpid() || time.Since(p.Since) > time.Hour {
			t.Errorf("%s: %+v, %v", text, p, ok)
		}
	}
	if runtime.GOOS == "linux" {
		write("gateway.pid", `{"pid": `+me+`, "start_time": 1}`)
		none("another process has its number now")
		zombie := exec.Command(os.Args[0], "-test.run=^$")
		if err := zombie.Start(); err != nil {
			t.Fatal(err)
		}
		pid := strconv.Itoa(zombie.Process.Pid)
		write("gateway.pid", pid)
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			stat, _ := os.ReadFile("/proc/" + pid + "/stat")
			if strings.Contains(string(stat), ") Z ") {
				break
			}
			if time.Now().After(end) {
				t.Fatal("it does not end")
			}
		}
		none("it has ended and nobody waited for it")
		_ = zombie.Wait()
	}
	// One whose process cannot be seen, in a container, holds the lock.
	write("gateway.pid", strconv.Itoa(gone.Process.Pid))
	write("gateway.lock", "{}")
	none("nobody holds the lock")
	release := hold(t, filepath.Join(home.Path, "gateway.lock"))
	if p, ok := Running(home); !ok || p.PID != 0 {
		t.Errorf("%+v, %v", p, ok)
	}
	release()
	none("the lock is free again")
}
