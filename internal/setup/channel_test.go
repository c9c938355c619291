package setup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// channel returns the home channel in the files of a home.
func channel(t *testing.T, home string) Channel {
	t.Helper()
	c, err := ReadChannel(Home{Path: home}, false)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func writeChannel(t *testing.T, home, data, device string) {
	t.Helper()
	p, _, err := WriteChannel(data, Home{Path: home}, channel(t, home), device, "anna", time.Now())
	if err != nil || len(p.ByHand) > 0 {
		t.Fatal(err, p)
	}
	if got := channel(t, home).Device; got != device {
		t.Errorf("the home channel is %q", got)
	}
}

// TestChannel sets, replaces, and reverts the home channel in files of many forms. Nothing else may
// change.
func TestChannel(t *testing.T) {
	for file, text := range corpus(t) {
		if strings.HasPrefix(file, "broken-") || strings.HasPrefix(file, "hand-") {
			continue
		}
		for _, plugin := range []bool{false, true} {
			t.Run(strings.TrimSuffix(file, ".yaml")+map[bool]string{true: "+plugin"}[plugin], func(t *testing.T) {
				home, data := install(t, text, []byte("# mine\nRELAY_HOME_CHANNEL=old # kept\nMOBILE_HOME_CHANNEL='old'\n"))
				before := files(t, home)
				o := options(home)
				o.Plugin = plugin
				if file == "double-keys" { // which 0.22 does not read
					if o.Version = (Version{0, 19}); plugin {
						t.Skip("0.19 takes no plug-in")
					}
				}
				write(t, plan(t, o), data)
				connected := files(t, home)
				if c := channel(t, home); c.Plugin != plugin || c.Gateway != o.ID || c.Device != "old" {
					t.Errorf("%+v", c)
				}
				writeChannel(t, home, data, "tel-1")
				writeChannel(t, home, data, "tel:2@x")
				if p := plan(t, o); !p.Done() {
					t.Errorf("setup has to do %+v", p.Show())
				}
				if _, err := UndoChannel(data, home); err != nil {
					t.Fatal(err)
				}
				sameFiles(t, files(t, home), connected)
				writeChannel(t, home, data, "tel-3")
				if _, err := Undo(data, home); err != nil {
					t.Fatal(err)
				}
				sameFiles(t, files(t, home), before)
			})
		}
	}
}

// TestChannelAfterOthers checks that later changes by Hermes and by setup stay.
func TestChannelAfterOthers(t *testing.T) {
	home, data := install(t, []byte("a: 1 # x\n"), []byte("A=1\n"))
	o := options(home)
	o.Plugin = false
	write(t, plan(t, o), data)
	writeChannel(t, home, data, "tel-1")
	env := filepath.Join(home, envFile)
	put(t, env, append(read(t, env), "B=2\n"...), 0o600)
	o.Plugin = true
	write(t, plan(t, o), data) // from now on the other variable counts
	if c := channel(t, home); !c.Plugin || c.Device != "" {
		t.Errorf("%+v", c)
	}
	writeChannel(t, home, data, "tel-1")
	put(t, env, []byte(strings.Replace(string(read(t, env)), envPluginHome+"=tel-1", envPluginHome+"=tel-9", 1)), 0o600)
	list, err := UndoChannel(data, home)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, u := range list {
		left = append(left, u.Left...)
	}
	if got := strings.Join(left, " "); got != envPluginHome {
		t.Errorf("left are %q", got)
	}
	if got := channel(t, home).Device; got != "tel-9" {
		t.Errorf("the home channel is %q", got)
	}
	if text := string(read(t, env)); strings.Contains(text, envRelayHome) || !strings.Contains(text, "B=2\n") || !strings.Contains(text, envID) {
		t.Errorf(".env is %q", text)
	}
}

// TestChannelByHand checks that setup writes nothing if an edit would touch other keys.
func TestChannelByHand(t *testing.T) {
	home, data := install(t, []byte("plugins: {enabled: [mobile-platform]}\nx: &m {chat_id: a}\nplatforms: {mobile: {home_channel: *m}}\n"),
		[]byte("GATEWAY_RELAY_PLATFORMS=mobile\n"))
	put(t, filepath.Join(mkdir(t, home, "plugins", pluginName), "__init__.py"), nil, 0o600)
	before := files(t, home)
	p, _, err := WriteChannel(data, Home{Path: home}, channel(t, home), "tel-1", "anna", time.Now())
	if err != nil || len(p.ByHand) == 0 {
		t.Errorf("%v %+v", err, p)
	}
	sameFiles(t, files(t, home), before)
}

func mkdir(t *testing.T, parts ...string) string {
	t.Helper()
	dir := filepath.Join(parts...)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}
