package setup

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// install creates a Hermes home with some files.
func install(t *testing.T, config, env []byte) (home, data string) {
	t.Helper()
	home, data = filepath.Join(t.TempDir(), ".hermes"), filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{configFile: config, envFile: env} {
		if text != nil {
			put(t, filepath.Join(home, name), text, 0o640)
		}
	}
	return home, data
}

func put(t *testing.T, path string, text []byte, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, text, mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func options(home string) Options {
	return Options{Home: Home{Path: home}, Version: Version{0, 22}, URL: testURL, ID: "hermes-1", Secret: "s3cret-s3cret-s3cret", Plugin: true}
}

func plan(t *testing.T, o Options) *Plan {
	t.Helper()
	p, err := NewPlan(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func write(t *testing.T, p *Plan, data string) []string {
	t.Helper()
	p.Replace = true
	backups, err := p.Write(data, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return backups
}

// files returns everything below a folder, with content and mode.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	list := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			list[path+"/"] = ""
			return err
		}
		info, err := d.Info()
		if err == nil {
			list[path] = info.Mode().String() + string(read(t, path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func sameFiles(t *testing.T, got, want map[string]string) {
	t.Helper()
	for path := range want {
		if got[path] != want[path] {
			t.Errorf("%s is\n%q\nand was\n%q", path, got[path], want[path])
		}
	}
	for path := range got {
		if _, ok := want[path]; !ok {
			t.Errorf("%s is left", path)
		}
	}
}

// TestWriteAndUndo checks that a second run finds nothing to do, and that an undo restores every byte
// and mode.
func TestWriteAndUndo(t *testing.T) {
	for file, text := range corpus(t) {
		if strings.HasPrefix(file, "broken-") || strings.HasPrefix(file, "hand-") {
			home, data := install(t, text, nil)
			before := files(t, home)
			p, err := NewPlan(options(home))
			if err == nil {
				if _, err = p.Write(data, time.Now()); err == nil {
					t.Errorf("%s was written", file)
				}
			}
			sameFiles(t, files(t, home), before)
			continue
		}
		t.Run(file, func(t *testing.T) {
			home, data := install(t, text, []byte("# mine\nOPENAI_API_KEY=x\n"))
			before := files(t, home)
			o := options(home)
			if file == "double-keys" { // which 0.22 does not read
				o.Version, o.Plugin = Version{0, 19}, false
			}
			p := plan(t, o)
			shown := p.Show()
			if len(shown) == 0 {
				t.Error("nothing is shown")
			}
			for _, s := range shown {
				if strings.Contains(strings.Join(s.Lines, "\n"), p.Secret) {
					t.Errorf("the secret is shown: %q", s.Lines)
				}
			}
			backups := write(t, p, data)
			if len(backups) == 0 {
				t.Error("there is no backup")
			}
			if again := plan(t, o); !again.Done() {
				t.Errorf("the second time there is to do %+v", again.Show())
			}
			for _, name := range []string{configFile, envFile} {
				info, err := os.Stat(filepath.Join(home, name))
				if err != nil {
					t.Fatal(err)
				}
				if want := map[string]os.FileMode{configFile: 0o640, envFile: 0o600}[name]; info.Mode().Perm() != want && runtime.GOOS != "windows" {
					t.Errorf("%s has mode %v, want %v", name, info.Mode(), want)
				}
			}
			if _, err := Undo(data, home); err != nil {
				t.Fatal(err)
			}
			sameFiles(t, files(t, home), before)
			if left := files(t, data); len(left) > 1 {
				t.Errorf("the data folder has %v", left)
			}
		})
	}
}

// TestFreshHome checks that an undo removes everything that setup created.
func TestFreshHome(t *testing.T) {
	home, data := install(t, nil, nil)
	before := files(t, home)
	write(t, plan(t, options(home)), data)
	if info, err := os.Stat(filepath.Join(home, envFile)); err != nil || info.Mode().Perm() != 0o600 && runtime.GOOS != "windows" {
		t.Errorf("%v %v", info, err)
	}
	put(t, filepath.Join(home, "plugins", pluginName, "x"), nil, 0o600)
	if err := os.Remove(filepath.Join(home, "plugins", pluginName, "x")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(home, "plugins", pluginName, "__pycache__"), 0o700); err != nil { // as Python does
		t.Fatal(err)
	}
	if _, err := Undo(data, home); err != nil {
		t.Fatal(err)
	}
	sameFiles(t, files(t, home), before)
	if list, err := Undo(data, home); err != nil || len(list) != 0 {
		t.Errorf("a second undo says %v %v", list, err)
	}
}

// TestTwoRuns checks that one undo reverts two runs.
func TestTwoRuns(t *testing.T) {
	home, data := install(t, []byte("model: x # y\n"), []byte("A=b"))
	before := files(t, home)
	o := options(home)
	o.Plugin = false
	write(t, plan(t, o), data)
	write(t, plan(t, options(home)), data)
	o.URL = "http://127.0.0.1:9"
	write(t, plan(t, o), data)
	list, err := Undo(data, home)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range list {
		if len(u.Left) > 0 || u.Backup != "" {
			t.Errorf("%+v", u)
		}
	}
	sameFiles(t, files(t, home), before)
}

// TestUndoAfterOthers checks that an undo removes only our keys, and keeps the owner's later changes.
func TestUndoAfterOthers(t *testing.T) {
	home, data := install(t, []byte("display: # mine\n  busy_input_mode: steer\n  busy_ack_enabled: true\n"), []byte("A=1\nGATEWAY_RELAY_URL=http://127.0.0.1:8787\n"))
	write(t, plan(t, options(home)), data)
	config, env := filepath.Join(home, configFile), filepath.Join(home, envFile)
	text := append(read(t, config), "model: {default: x} # new\n"...)
	text = bytes.Replace(text, []byte("busy_ack_enabled: false"), []byte("busy_ack_enabled: 5"), 1)
	put(t, config, text, 0o640)
	put(t, env, append(read(t, env), "B=2\n"...), 0o600)
	list, err := Undo(data, home)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(read(t, config)), "display: # mine\n  busy_input_mode: steer\n  busy_ack_enabled: 5\nmodel: {default: x} # new\n"; got != want {
		t.Errorf("config.yaml is\n%s\nwant\n%s", got, want)
	}
	if got, want := string(read(t, env)), "A=1\nB=2\nGATEWAY_RELAY_URL=http://127.0.0.1:8787\n"; got != want {
		t.Errorf(".env is\n%s\nwant\n%s", got, want)
	}
	for _, u := range list {
		if filepath.Base(u.Path) == configFile && !slices.Equal(u.Left, []string{"display.busy_ack_enabled"}) {
			t.Errorf("%+v", u)
		}
	}
}

// TestConflicts checks that setup does not replace another connector's settings without consent.
func TestConflicts(t *testing.T) {
	for name, tc := range map[string]struct{ config, env string }{
		"config":   {"gateway: {relay_url: https://other.example.com}\n", ""},
		"platform": {"platforms: {relay: {extra: {relay_url: https://other.example.com}}}\n", ""},
		"env":      {"", "GATEWAY_RELAY_URL=https://other.example.com\n"},
		"id":       {"", "GATEWAY_RELAY_ID=gw-other\nGATEWAY_RELAY_SECRET=other\n"},
	} {
		t.Run(name, func(t *testing.T) {
			home, data := install(t, []byte(tc.config), []byte(tc.env))
			before := files(t, home)
			p := plan(t, options(home))
			if len(p.Conflicts) == 0 {
				t.Error("no conflict is named")
			}
			if _, err := p.Write(data, time.Now()); err == nil {
				t.Error("it was written")
			}
			sameFiles(t, files(t, home), before)
		})
	}
}

// TestKeptPair checks that an accepted id and secret stay, and that correct settings do not change.
func TestKeptPair(t *testing.T) {
	home, _ := install(t, nil, []byte("export GATEWAY_RELAY_ID='gw mine' # x\nGATEWAY_RELAY_SECRET=\"a b c\"\n"))
	o := options(home)
	o.Plugin, o.Accepted = false, map[string]string{"gw mine": "a b c"}
	p := plan(t, o)
	if p.ID != "gw mine" || len(p.Conflicts) > 0 || len(p.Files[0].Changes) > 0 || !bytes.Equal(p.Files[0].Before, p.Files[0].After) {
		t.Errorf("%+v %+v", p.ID, p.Files[0])
	}
}

// TestPluginRefused checks that setup rejects the plug-in for 0.19, which it would break, and for an
// unknown version.
func TestPluginRefused(t *testing.T) {
	home, _ := install(t, nil, nil)
	for _, v := range []Version{{0, 19}, {0, 21}, {}} {
		o := options(home)
		o.Version = v
		if _, err := NewPlan(o); err == nil || !strings.Contains(err.Error(), "0.22 or newer") {
			t.Errorf("with %v it says %v", v, err)
		}
	}
}

// TestMeanwhile checks that setup does not overwrite a file that changed after the plan.
func TestMeanwhile(t *testing.T) {
	home, data := install(t, []byte("a: 1\n"), nil)
	p := plan(t, options(home))
	put(t, filepath.Join(home, configFile), []byte("a: 2\n"), 0o600)
	if _, err := p.Write(data, time.Now()); err == nil || !strings.Contains(err.Error(), "meanwhile") {
		t.Errorf("it says %v", err)
	}
	if got := string(read(t, filepath.Join(home, configFile))); got != "a: 2\n" {
		t.Errorf("it is %q", got)
	}
}

func TestLinkStays(t *testing.T) {
	home, data := install(t, nil, nil)
	real := filepath.Join(t.TempDir(), "dotfiles.yaml")
	put(t, real, []byte("a: 1\n"), 0o600)
	if err := os.Symlink(real, filepath.Join(home, configFile)); err != nil {
		t.Skip(err)
	}
	write(t, plan(t, options(home)), data)
	if info, err := os.Lstat(filepath.Join(home, configFile)); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is %v %v", info, err)
	}
	if !bytes.Contains(read(t, real), []byte("relay_url")) {
		t.Error("the file behind the link was not written")
	}
	if _, err := Undo(data, home); err != nil || string(read(t, real)) != "a: 1\n" {
		t.Errorf("%v %q", err, read(t, real))
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestUndoAfterHermes checks that an undo also removes what Hermes' /sethome wrote for our devices, and
// keeps the settings of the owner.
func TestUndoAfterHermes(t *testing.T) {
	for name, tc := range map[string]struct{ config, env, added, wantConfig, wantEnv string }{
		"nothing before": {"model: x\n", "A=1\n", "platforms:\n  mobile:\n    home_channel:\n      platform: mobile\n      chat_id: tel-1\n", "model: x\n", "A=1\n"},
		"others":         {"platforms:\n  telegram: {enabled: true}\n", "A=1\n", "", "platforms:\n  telegram: {enabled: true}\n", "A=1\n"},
		"the owner's":    {"platforms:\n  mobile: {mine: 1}\n", "MOBILE_HOME_CHANNEL=mine\nMOBILE_PORT=1\n", "", "platforms:\n  mobile: {mine: 1}\n", "MOBILE_HOME_CHANNEL=mine\nMOBILE_PORT=1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			home, data := install(t, []byte(tc.config), []byte(tc.env))
			write(t, plan(t, options(home)), data)
			config, env := filepath.Join(home, configFile), filepath.Join(home, envFile)
			// As Hermes' own /sethome does, three times.
			for range 3 {
				writeChannel(t, home, data, "tel-1")
				text := string(read(t, config))
				if !strings.Contains(tc.config, "mobile:") && !strings.Contains(text, "  mobile:\n    home_channel") {
					text = strings.Replace(text, "platforms:\n", "platforms:\n  mobile:\n    home_channel:\n      platform: mobile\n      chat_id: tel-2\n", 1)
				}
				put(t, config, []byte(text+"# by somebody\n"), 0o640)
				put(t, env, append(read(t, env), "MOBILE_HOME_CHANNEL_NAME=tel-2\nRELAY_HOME_CHANNEL=tel-2\n"...), 0o600)
			}
			list, err := Undo(data, home)
			if err != nil {
				t.Fatal(err)
			}
			for _, u := range list {
				if len(u.Left) > 0 || u.Backup != "" {
					t.Errorf("%+v", u)
				}
			}
			if got := strings.ReplaceAll(string(read(t, config)), "# by somebody\n", ""); got != tc.wantConfig {
				t.Errorf("config.yaml is\n%s\nwant\n%s", got, tc.wantConfig)
			}
			if got := string(read(t, env)); got != tc.wantEnv {
				t.Errorf(".env is\n%s\nwant\n%s", got, tc.wantEnv)
			}
			entries, err := os.ReadDir(home)
			must(t, err)
			for _, e := range entries {
				if e.Name() != configFile && e.Name() != envFile {
					t.Errorf("%s is left", e.Name())
				}
			}
		})
	}
}

// TestCatalogHasThePlugin checks that the package for Hermes' plug-in catalog equals the plug-in that
// setup installs.
func TestCatalogHasThePlugin(t *testing.T) {
	folder := filepath.Join("..", "..", "contrib", "plugin-catalog", pluginName)
	files := map[string][]byte{"plugin.yaml": pluginManifest, "__init__.py": pluginCode}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		want, known := files[e.Name()]
		got, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if !known || err != nil || string(got) != string(want) {
			t.Errorf("%s differs from what setup installs: copy internal/setup/plugin (init.py is __init__.py there)", filepath.Join(folder, e.Name()))
		}
		delete(files, e.Name())
	}
	if len(files) > 0 {
		t.Errorf("%s lacks %d files", folder, len(files))
	}
}
