package term

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hermes-mobile/device/devicetest"
	"hermes-mobile/frame"
)

// tmux is a real terminal of 80 by 24, with the chat in it.
type tmux struct {
	t      *testing.T
	socket string
}

func newTmux(t *testing.T, server string) *tmux {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed")
	}
	dir, err := os.MkdirTemp("", "hm-tmux-") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	x := &tmux{t, filepath.Join(dir, "s")}
	t.Cleanup(func() {
		_ = exec.Command("tmux", "-S", x.socket, "kill-server").Run()
		_ = os.RemoveAll(dir)
	})
	x.do("-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "-e", childServer+"="+server, "-e", "LANG=C.UTF-8", os.Args[0])
	return x
}

func (x *tmux) do(args ...string) string {
	x.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-u", "-S", x.socket}, args...)...)
	cmd.Env = append(os.Environ(), "LANG=C.UTF-8", "LC_ALL=C.UTF-8")
	out, err := cmd.CombinedOutput()
	if err != nil {
		x.t.Fatalf("tmux %q: %v: %s", args, err, out)
	}
	return string(out)
}

func (x *tmux) keys(keys ...string) { x.do(append([]string{"send-keys"}, keys...)...) }

// shows waits until the screen shows all texts, and returns it without the border of the card.
func (x *tmux) shows(want ...string) string {
	x.t.Helper()
	for deadline := time.Now().Add(devicetest.Timeout); ; time.Sleep(20 * time.Millisecond) {
		var lines []string
		for l := range strings.Lines(x.do("capture-pane", "-p")) {
			lines = append(lines, strings.TrimSpace(strings.Trim(strings.TrimSpace(l), "│")))
		}
		screen, all := strings.Join(lines, "\n"), true
		for _, w := range want {
			all = all && strings.Contains(screen, w)
		}
		if all {
			return screen
		}
		if time.Now().After(deadline) {
			x.t.Fatalf("the screen does not show %q:\n%s", want, screen)
		}
	}
}

// On a real terminal, a hostile command shows what it is, and the user can allow nothing before its
// end was on the screen.
func TestHostileCommandsInARealTerminal(t *testing.T) {
	srv := devicetest.New(t)
	x := newTmux(t, srv.URL)
	c := srv.Accept(nil)
	seq := int64(0)
	ask := func(command string) string {
		seq++
		p := approval(command)
		p.ID, p.Seq = fmt.Sprint("p", seq), seq
		c.Send(&p)
		return p.ID
	}
	done := func(id, option string) {
		if a := devicetest.Expect[*frame.Answer](c); a.PromptID != id || a.OptionID != option {
			t.Fatalf("%+v", a)
		}
		seq++
		c.Send(&frame.PromptDone{PromptID: id, ID: id, OptionID: option, Seq: seq})
	}
	for _, tc := range hostile {
		id := ask(tc.command)
		screen := x.shows(append(strings.Split(tc.shown, "\n"), "3 Deny")...)
		if !strings.Contains(screen, tc.shown) {
			t.Errorf("%s: shown as\n%s", tc.name, screen)
		}
		for _, hidden := range []string{"\u202e", "\u200b", "\u2060"} {
			if strings.Contains(screen, hidden) {
				t.Errorf("%s: %q reached the terminal", tc.name, hidden)
			}
		}
		x.press("3")
		done(id, "deny")
		x.shows("→ answered: Deny")
	}
	id := ask(numbered(30) + "\nrm -rf ~")
	x.shows("$ echo 1", "Read to the end to allow")
	x.keys("1", "Enter")
	x.shows("▸ 1 Allow once (read to the end first)")
	c.Silent(500 * time.Millisecond) // longer than a card takes no keys
	for !strings.Contains(x.shows("3 Deny"), "> rm -rf ~") {
		x.keys("PageDown")
	}
	x.keys("PageDown")
	x.shows("> rm -rf ~", "Reason", "▸ 1 Allow once")
	x.press("1")
	done(id, "once")
	x.shows("→ answered: Allow once")
	x.keys("C-d")
	c.Gone()
}

// press answers with a number until the card accepts it, because a new card ignores keys.
func (x *tmux) press(number string) {
	x.t.Helper()
	for deadline := time.Now().Add(devicetest.Timeout); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		x.keys(number, "Enter")
		if strings.Contains(x.do("capture-pane", "-p"), "Sending: ") {
			return
		}
	}
	x.t.Fatalf("no answer was sent:\n%s", x.shows(""))
}
