package setup

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// units writes the units of a service to a folder and returns their paths by name.
func units(t *testing.T, s *Service) map[string]string {
	t.Helper()
	list := map[string]string{}
	dir := t.TempDir()
	for _, u := range s.Units {
		path := filepath.Join(dir, filepath.Base(u.Path))
		put(t, path, []byte(u.Text), 0o644)
		list[filepath.Base(u.Path)] = path
	}
	return list
}

func sampleProgram(t *testing.T) Program {
	t.Helper()
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip(err)
	}
	return Program{Binary: sleep, Data: "/var/lib/hermes-mobile", HermesHome: "/home/a b/100%", User: "/tmp",
		Apart: &Apart{Account: "hermes-mobile", Pairing: "/home/a b/100%/platforms/pairing", Hermes: "daemon"}}
}

// TestUnits checks that systemd accepts the units without a warning.
func TestUnits(t *testing.T) {
	analyze := systemdAnalyze(t)
	p := sampleProgram(t)
	other := p
	other.Data, other.HermesHome, other.Apart = "/srv/mobile data", "/opt/hermes home", &Apart{Account: "hermes-mobile", Pairing: "/opt/hermes home/pairing", Hermes: "daemon"}
	for _, tc := range []struct {
		kind string
		p    Program
	}{{Systemd, p}, {Systemd, other}, {SystemdUser, p}} {
		s, err := NewService(tc.kind, tc.p)
		must(t, err)
		args := []string{"verify"}
		if tc.kind == SystemdUser {
			args = append(args, "--user")
		}
		for _, path := range units(t, s) {
			args = append(args, path)
		}
		out, err := exec.CommandContext(t.Context(), analyze, args...).CombinedOutput()
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, "hermes-mobile") && !strings.Contains(line, "is not an available") {
				t.Errorf("%s: %v %s", tc.kind, err, line)
			}
		}
	}
}

// TestUnitExposure checks that the system's unit is among the most confined by systemd's measure.
func TestUnitExposure(t *testing.T) {
	analyze := systemdAnalyze(t)
	for _, home := range []string{"/home/anna/.hermes", "/opt/hermes"} {
		p := sampleProgram(t)
		p.HermesHome, p.Apart.Pairing = home, home+"/platforms/pairing"
		s, err := NewService(Systemd, p)
		must(t, err)
		path := units(t, s)[serverUnit]
		out, err := exec.CommandContext(t.Context(), analyze, "security", "--offline=yes", "--no-pager", path).CombinedOutput()
		if err != nil {
			t.Skipf("this systemd cannot rate a file: %v\n%s", err, out)
		}
		m := regexp.MustCompile(`Overall exposure level for hermes-mobile.service: ([0-9.]+)`).FindSubmatch(out)
		if m == nil {
			t.Fatalf("it says\n%s", out)
		}
		if level, err := strconv.ParseFloat(string(m[1]), 64); err != nil || level > 1.5 {
			t.Errorf("the exposure level is %s:\n%s", m[1], out)
		}
	}
}

func systemdAnalyze(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("there is no systemd to check the unit")
	}
	return path
}

// TestUnitHidesHermes checks that the server sees only the pairing files of Hermes, wherever its home
// is.
func TestUnitHidesHermes(t *testing.T) {
	p := sampleProgram(t)
	for home, hide := range map[string]bool{"/home/anna/.hermes": false, "/root/.hermes": false, "/opt/hermes": true, "/home2/x": true} {
		p.HermesHome, p.Apart.Pairing = home, home+"/pairing"
		s, err := NewService(Systemd, p)
		must(t, err)
		text := s.Units[0].Text
		if strings.Contains(text, `TemporaryFileSystem="`+home+`:ro"`) != hide || !strings.Contains(text, "\nBindPaths=-\""+home+"/pairing\"\n") || !strings.Contains(text, "\nProtectHome=tmpfs\n") {
			t.Errorf("%s:\n%s", home, text)
		}
		if !strings.Contains(text, "\nRestart=always\n") || !strings.Contains(text, "\nUser=hermes-mobile\n") {
			t.Error(text)
		}
	}
}

// TestUnitInTheManual checks that the manual shows the unit that setup writes.
func TestUnitInTheManual(t *testing.T) {
	text, err := os.ReadFile("../../doc/service.md")
	must(t, err)
	s, err := NewService(Systemd, Program{Binary: "/usr/local/bin/hermes-mobile", Data: ServerData, HermesHome: "/home/anna/.hermes",
		Apart: &Apart{Account: ServerAccount, Pairing: "/home/anna/.hermes/platforms/pairing", Hermes: "anna"}})
	must(t, err)
	for _, u := range s.Units {
		if _, unit, _ := strings.Cut(u.Text, "\n"); !strings.Contains(string(text), "# "+u.Path+"\n"+unit) {
			t.Errorf("doc/service.md does not show %s as it is written:\n# %s\n%s", u.Path, u.Path, unit)
		}
	}
}
