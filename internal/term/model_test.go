package term

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"hermes-mobile/device"
	"hermes-mobile/frame"
)

// fake is a device that only records its calls.
type fake struct {
	asked  []string
	err    error
	status device.Status
	sent   int
}

func (f *fake) note(format string, args ...any) (*device.Outgoing, error) {
	if f.err != nil {
		return nil, f.err
	}
	f.asked = append(f.asked, fmt.Sprintf(format, args...))
	f.sent++
	return &device.Outgoing{ID: fmt.Sprint("m", f.sent)}, nil
}

func (f *fake) Send(_ context.Context, text string, opts ...device.SendOption) (*device.Outgoing, error) {
	if len(opts) > 0 {
		return f.note("send %s with %d options", text, len(opts))
	}
	return f.note("send %s", text)
}
func (f *fake) SendFile(_ context.Context, o device.FileOptions, _ ...device.SendOption) (*device.Outgoing, error) {
	return f.note("file %s %s %d %s", o.Name, o.Mime, o.Size, o.Caption)
}
func (f *fake) Answer(_ context.Context, card, option, text string) (*device.Outgoing, error) {
	return f.note("answer %s %s %s", card, option, text)
}
func (f *fake) Stop(context.Context) error  { f.asked = append(f.asked, "stop"); return nil }
func (f *fake) Reconnect()                  { f.asked = append(f.asked, "reconnect") }
func (f *fake) Status() device.Status       { return f.status }
func (f *fake) Activity() device.Activity   { return device.Activity{} }
func (f *fake) Pending() []*device.Outgoing { return nil }
func (f *fake) RevokeDevice(_ context.Context, id string) error {
	f.asked = append(f.asked, "revoke "+id)
	return f.err
}
func (f *fake) Profiles(context.Context) ([]device.Profile, error) {
	return []device.Profile{{Name: "default"}, {Name: "wo\x1b[2Jrk", Current: true}}, f.err
}
func (f *fake) ChooseProfile(_ context.Context, name string) error {
	f.asked = append(f.asked, "profile "+name)
	return f.err
}
func (f *fake) Download(_ context.Context, file device.File, w io.Writer) (int64, error) {
	n, err := w.Write(file.Data)
	return int64(n), err
}

// screen is a model under test with its own clock.
type screen struct {
	*model
	t     *testing.T
	fake  *fake
	clock time.Time
}

func newScreen(t *testing.T) *screen {
	f := &fake{status: device.Status{State: device.Online, Approved: true, Agent: frame.Online}}
	s := &screen{t: t, fake: f, clock: time.Date(2026, 1, 2, 15, 4, 5, 0, time.Local)}
	s.model = newModel(t.Context(), f, Options{Address: "ws://agent/ws", SaveDir: t.TempDir(), NoColor: true})
	s.now = func() time.Time { return s.clock }
	s.Init()
	s.Update(tea.WindowSizeMsg{Width: 80, Height: 30})
	return s
}

func (s *screen) event(ev device.Event) tea.Cmd {
	s.t.Helper()
	handled := false
	_, cmd := s.Update(eventMsg{ev: ev, handled: func() { handled = true }})
	if !handled {
		s.t.Fatal("the event was not handled")
	}
	return cmd
}

// keys types text, or presses named keys in <>.
func (s *screen) keys(text string) tea.Cmd {
	var cmd tea.Cmd
	for text != "" {
		var k tea.KeyPressMsg
		if name, rest, ok := strings.Cut(text[1:], ">"); text[0] == '<' && ok {
			text = rest
			k = map[string]tea.KeyPressMsg{
				"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "tab": {Code: tea.KeyTab}, "up": {Code: tea.KeyUp},
				"down": {Code: tea.KeyDown}, "pgup": {Code: tea.KeyPgUp}, "pgdown": {Code: tea.KeyPgDown}, "bs": {Code: tea.KeyBackspace},
				"shift+up": {Code: tea.KeyUp, Mod: tea.ModShift}, "shift+down": {Code: tea.KeyDown, Mod: tea.ModShift},
				"ctrl+j": {Code: 'j', Mod: tea.ModCtrl}, "alt+enter": {Code: tea.KeyEnter, Mod: tea.ModAlt}, "ctrl+x": {Code: 'x', Mod: tea.ModCtrl},
				"ctrl+r": {Code: 'r', Mod: tea.ModCtrl}, "ctrl+c": {Code: 'c', Mod: tea.ModCtrl}, "ctrl+d": {Code: 'd', Mod: tea.ModCtrl},
			}[name]
		} else {
			r := []rune(text)[0]
			text = text[len(string(r)):]
			k = tea.KeyPressMsg{Code: r, Text: string(r)}
		}
		_, cmd = s.Update(k)
	}
	return cmd
}

func (s *screen) shows(want ...string) {
	s.t.Helper()
	got := strip(s.View().Content)
	for _, w := range want {
		if !strings.Contains(got, w) {
			s.t.Fatalf("%q is not on the screen:\n%s", w, got)
		}
	}
	if n := strings.Count(got, "\n") + 1; n != s.height {
		s.t.Fatalf("%d lines on a screen of %d", n, s.height)
	}
	safe(s.t, s.View().Content)
}

func (s *screen) hides(not ...string) {
	s.t.Helper()
	for _, w := range not {
		if got := strip(s.View().Content); strings.Contains(got, w) {
			s.t.Fatalf("%q is on the screen:\n%s", w, got)
		}
	}
}

func (s *screen) did(want ...string) {
	s.t.Helper()
	if fmt.Sprint(s.fake.asked) != fmt.Sprint(want) {
		s.t.Fatalf("asked %q, not %q", s.fake.asked, want)
	}
	s.fake.asked = nil
}

func TestMessagesAndReceipts(t *testing.T) {
	s := newScreen(t)
	s.keys("two<ctrl+j>lines<enter>")
	s.did("send two\nlines")
	s.shows("You", "two", "lines", "sending", "Friday, 2 January 2026")
	s.event(device.Receipt{ID: "m1", Queued: true})
	s.shows("✓ waiting for the agent")
	s.event(device.Receipt{ID: "m1"})
	s.hides("waiting for the agent")
	s.keys("again<enter>")
	s.event(device.Receipt{ID: "m2", Err: &frame.Error{Code: frame.TooBig, Message: "too long, cut it"}})
	s.shows("✗ too long, cut it")
	s.fake.err = errors.New("disk full")
	s.keys("kept<enter>")
	s.shows("Not sent: disk full", "› kept") // and still in the input
}

func TestReplyStreamsPlainAndEndsRendered(t *testing.T) {
	s := newScreen(t)
	s.event(device.Activity{Typing: true, Avatar: "thinking"})
	s.shows("The agent is thinking")
	s.event(device.Message{ID: "r", Text: "some **bo"})
	s.shows("some **bo")
	s.event(device.Message{ID: "r", Text: "some **bold** text\n\n- one\n- two", Final: true, Interrupted: true, Source: frame.SourceCron, Job: "daily\x1b"})
	s.event(device.Activity{Avatar: "idle"})
	s.shows("• one", "scheduled daily␛ · interrupted")
	s.hides("thinking")
	if n := len(s.entries); n != 1 {
		t.Fatal(n, "entries for one reply")
	}
	s.event(device.Message{ID: "evil", Text: "\x1b[2J\x1b]0;x\x07 &#27;[2J"})
	s.shows("␛[2J")
	s.event(device.Message{ID: "evil", Text: "\x1b[2J\x1b]0;x\x07 &#27;[2J", Final: true})
	s.shows("␛[2J")
}

func TestLinkLossEndsWhatGrew(t *testing.T) {
	s := newScreen(t)
	s.event(device.Message{ID: "r", Text: "half"})
	s.shows("The agent is working")
	st := s.fake.status
	st.State, st.Until, st.Err, st.Unconfirmed = device.Waiting, s.clock.Add(7*time.Second), errors.New("dial tcp 1.2.3.4:5: connection refused"), 2
	s.event(device.StatusChanged{Status: st})
	s.shows("Offline", "ws://agent/ws", "reconnecting in 7 s (Ctrl+R: now)", "2 not sent yet", "connection refused")
	s.hides("The agent is working")
	s.keys("<ctrl+r>")
	s.did("reconnect")
}

func TestConnectionLine(t *testing.T) {
	now := time.Now()
	for want, st := range map[string]device.Status{
		"● Online · ws://agent/ws":                {State: device.Online, Approved: true, Agent: frame.Online},
		"Online, but the agent is offline":        {State: device.Online, Approved: true, Agent: frame.Away},
		"Your code is ABCD2345":                   {State: device.Online, Pairing: "Your code is\nABCD2345"},
		"get an approval code":                    {State: device.Online},
		"No access · the token is wrong · Ctrl+R": {State: device.NoAccess, Err: &device.NoAccessError{Code: frame.AuthFailed, Message: "the token is wrong"}},
		"connected elsewhere":                     {State: device.Replaced, Err: device.ErrReplaced},
		"Connecting ·":                            {State: device.Connecting, Until: now},
	} {
		s := newScreen(t)
		s.event(device.StatusChanged{Status: st})
		s.shows(want)
	}
}

// The connection line tells the known reason why the agent is offline. Somebody may intercept the
// connection.
func TestConnectionLineTellsTheCause(t *testing.T) {
	why := errors.New("the gateway's key has changed")
	text, level := connection(device.Status{State: device.Online, Approved: true, Agent: frame.Away}, Options{AgentOffline: func() error { return why }}, time.Now())
	if level != 1 || !strings.Contains(text, "The agent is offline: the gateway's key has changed") {
		t.Errorf("level %d: %s", level, text)
	}
}

func TestCardAnsweredByNumber(t *testing.T) {
	s := newScreen(t)
	show := device.CardShown{Prompt: frame.Prompt{ID: "p1", Kind: frame.ExecApproval, Command: "rm -rf \x1bbuild", Description: "Deletes it", TimeoutSeconds: 300,
		Options: []frame.Option{{ID: "once", Label: "Allow once", Style: "primary"}, {ID: "deny", Label: "Deny", Style: "danger"}}}}
	s.event(show)
	s.shows("Allow this command?", "$ rm -rf ␛build", "Deletes it", "1 Allow once", "2 Deny", "5:00 left")
	s.shows("▸ 2 Deny") // Enter alone allows nothing
	s.keys("2<enter>")
	s.did() // too soon: it was typed for something else
	s.clock = s.clock.Add(time.Second)
	s.event(show) // after a reconnect
	s.keys("2")
	s.did() // Enter confirms
	s.keys("<enter>")
	s.did("answer p1 deny ")
	s.shows("Sending: Deny")
	s.keys("1<enter>")
	s.did() // one answer
	s.event(device.Receipt{ID: "m1", Err: &frame.Error{Code: frame.Forbidden, Message: "not yours"}})
	s.shows("not yours", "Number or ↑↓, then Enter")
	s.keys("<up><enter>")
	s.did("answer p1 once ")
	s.event(device.CardDone{ID: "p1", OptionID: "once"})
	s.shows("Allow this command? rm -rf ␛build", "→ answered: Allow once")
	s.hides("5:00 left")
}

func TestSeveralCardsAndOwnWords(t *testing.T) {
	s := newScreen(t)
	s.event(device.CardShown{Prompt: frame.Prompt{ID: "a", Kind: frame.SlashConfirm, Text: "Sure?", Options: []frame.Option{{ID: "once", Label: "Yes"}}}})
	s.event(device.CardShown{Prompt: frame.Prompt{ID: "b", Kind: frame.Clarify, Text: "Which format?", TimeoutSeconds: 5,
		Options: []frame.Option{{ID: "c0", Label: "CSV"}, {ID: "other", Label: "Own"}}}})
	s.clock = s.clock.Add(6 * time.Second)
	s.shows("Sure?", "card 1 of 2")
	s.keys("<tab>")
	s.shows("Which format?", "time is up")
	s.keys("/help<enter>") // a command is none, also with a card open
	s.did("send /help")
	s.keys("o")
	s.shows("Write your own answer below")
	s.keys("<esc>TSV please, 1<enter>")
	s.did("answer b other TSV please, 1")
	s.event(device.CardDone{ID: "b", OptionID: "other"})
	s.shows("→ answered: TSV please, 1", "Sure?")
	s.event(device.CardDone{ID: "a", OptionID: "once"})
	s.shows("→ answered elsewhere: Yes")
	s.event(device.CardShown{Prompt: frame.Prompt{ID: "c", Kind: "newkind", Text: "Hm?"}})
	s.event(device.CardDone{ID: "c", Expired: true})
	s.shows("→ expired")
}

func TestSharedConversation(t *testing.T) {
	s := newScreen(t)
	from := frame.Peer{ID: "tab-1", Name: "Tab\x1blet"}
	s.event(device.Echo{Echo: frame.Echo{ID: "m1", From: from, Text: "from the other"}})
	s.event(device.Echo{Echo: frame.Echo{From: frame.Peer{ID: "tab-2"}, Text: "look", File: &frame.EchoFile{Kind: "image", Filename: "../a.png", Size: 3}}})
	s.shows("You on Tab␛let", "from the other", "You on tab-2", "image a.png, 3 B", "look")
	s.event(device.CardShown{Prompt: frame.Prompt{ID: "a", Kind: frame.SlashConfirm, Text: "Sure?", Options: []frame.Option{{ID: "once", Label: "Yes"}}}})
	s.event(device.CardDone{ID: "a", OptionID: "once", By: &from})
	s.shows("→ answered on Tab␛let: Yes")
}

func TestStop(t *testing.T) {
	s := newScreen(t)
	s.keys("<esc>")
	s.did()
	s.event(device.Activity{Typing: true})
	run(s.keys("<esc>"))
	run(s.keys("<ctrl+x>"))
	run(s.keys("/stop<enter>"))
	s.did("stop", "stop", "stop")
}

// run runs a command and its parts, except those that wait for a timer.
func run(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	done := make(chan tea.Msg, 1)
	go func() { done <- cmd() }()
	select {
	case msg := <-done:
		if batch, ok := msg.(tea.BatchMsg); ok {
			for _, c := range batch {
				run(c)
			}
		}
	case <-time.After(time.Second):
	}
}

func TestCommands(t *testing.T) {
	s := newScreen(t)
	s.keys("/help<enter>")
	s.did("send /help") // the agent's
	s.keys("/steer and milk<enter>")
	s.did("send and milk with 1 options")
	s.keys("/steer<enter>")
	s.did("send /steer")
	s.keys("/keys<enter>")
	s.shows("PgUp")
	s.keys("/send nowhere.txt<enter>")
	s.shows("Not sent: nowhere.txt: no such file")
	dir := t.TempDir()
	os.WriteFile(filepath.Join(dir, "a file.txt"), []byte("12345"), 0o600)
	s.keys("<ctrl+c>/send " + dir + "/a<tab>")
	if got := s.input.Value(); got != "/send "+dir+`/a\ file.txt` {
		t.Fatal(got)
	}
	if cmd := s.keys("<ctrl+c>"); cmd != nil && fmt.Sprintf("%T", cmd()) == "tea.QuitMsg" {
		t.Fatal("the first Ctrl+C clears the input")
	}
	if _, ok := s.keys("/quit<enter>")().(tea.QuitMsg); !ok {
		t.Fatal("no quit")
	}
	if _, ok := s.keys("<ctrl+c><ctrl+c>")().(tea.QuitMsg); !ok {
		t.Fatal("no quit")
	}
}

func TestHistoryOfInputs(t *testing.T) {
	s := newScreen(t)
	s.keys("one<enter>two<enter>draft<up>")
	if s.input.Value() != "two" {
		t.Fatal(s.input.Value())
	}
	s.keys("<up><up>")
	if s.input.Value() != "one" {
		t.Fatal(s.input.Value())
	}
	s.keys("<down><down>")
	if s.input.Value() != "draft" {
		t.Fatal(s.input.Value())
	}
}

func TestFilesAndTools(t *testing.T) {
	s := newScreen(t)
	s.Update(eventMsg{ev: device.File{ID: "f", Kind: "image", Filename: "../x.png", Size: 2048, Caption: "look"}, path: "/tmp/x.png"})
	s.shows("image x.png, 2.0 KiB", "look", "saved as /tmp/x.png")
	s.event(device.File{ID: "g", Kind: "video", URL: "/x", Data: []byte("abc"), Filename: "v.mp4"})
	s.shows("downloading")
	s.Update(savedMsg{id: "g", path: "/tmp/v.mp4"})
	s.shows("saved as /tmp/v.mp4")
	for _, state := range []string{"started", "progress", "done"} {
		s.event(device.Tool{Tool: frame.Tool{ID: "t1", Name: "terminal", State: state, Title: "ls\nrm"}})
	}
	s.shows("⚙ terminal · done · ls rm")
	s.hides("started", "progress")
}

func TestFollowsUnlessScrolledUp(t *testing.T) {
	s := newScreen(t)
	for i := range 40 {
		s.event(device.Message{ID: fmt.Sprint("r", i), Text: fmt.Sprint("reply ", i), Final: true})
	}
	s.shows("reply 39")
	s.keys("<pgup>")
	s.event(device.Message{ID: "new", Text: "the newest", Final: true})
	s.hides("the newest")
	s.shows("New messages below")
	s.keys("<pgdown><pgdown><pgdown>")
	s.shows("the newest")
	s.hides("New messages below")
	s.Update(tea.WindowSizeMsg{Width: 30, Height: 8}) // small, and still itself
	s.shows("the newest")
	s.Update(tea.WindowSizeMsg{Width: 1, Height: 1})
	s.View()
}

// With several profiles, /profile lists and chooses them. Otherwise /profile goes to the agent.
func TestProfile(t *testing.T) {
	f := &fake{status: device.Status{Capabilities: frame.Capabilities{Call: []string{"profiles.list", "profiles.choose"}}}}
	for text, want := range map[string]string{"/profile": "Profiles: default, wo␛[2Jrk (in use). Choose one with /profile NAME.", "/profile work": "The conversation now uses the profile work."} {
		c, ours := own(text, f)
		if got := profile(t.Context(), f, c.arg); !ours || got != want {
			t.Errorf("%s: %v %q", text, ours, got)
		}
	}
	if !slices.Equal(f.asked, []string{"profile work"}) {
		t.Errorf("asked %q", f.asked)
	}
	f.err = &frame.CallError{Code: "not_found", Message: "there is no profile of that name"}
	if got := profile(t.Context(), f, "x"); got != "Could not choose x: there is no profile of that name" {
		t.Errorf("%q", got)
	}
	f.status.Capabilities.Call = nil
	if _, ours := own("/profile work", f); ours {
		t.Error("/profile is a command although there are no profiles")
	}
	if _, ours := own("/stop", f); !ours {
		t.Error("/stop is not taken")
	}
}

// A notice about a new device tells how to revoke it. The name of that device cannot control the
// terminal.
func TestNewDeviceIsTold(t *testing.T) {
	s := newScreen(t)
	s.event(device.Notice{Notice: frame.Notice{Kind: frame.DeviceAdded, Device: frame.NoticeDevice{ID: "tab-2", Name: "Tab\x1b[2Jlet\u202e", Platform: "ios"}, Revocable: true}})
	seen := func() string { return strings.Join(strings.Fields(s.View().Content), " ") }
	if v := seen(); !strings.Contains(v, "You have a new device: Tab␛[2Jlet") || !strings.Contains(v, "enter /revoke tab-2") || strings.Contains(v, "\u202e") {
		t.Errorf("%s", v)
	}
	s.event(device.Notice{Notice: frame.Notice{Kind: frame.DeviceJoined, Device: frame.NoticeDevice{ID: "tab-2"}, Conversation: "tel-1"}})
	s.event(device.Notice{Notice: frame.Notice{Kind: frame.RightsChanged, Device: frame.NoticeDevice{ID: "tab-2"}, Rights: []string{"write", "answer"}}})
	s.event(device.Notice{Notice: frame.Notice{Kind: "teleported", Device: frame.NoticeDevice{ID: "tab-2"}}})
	for _, want := range []string{"tab-2 joined the conversation of tel-1.", "got more rights: write, answer.", "Notice about your device tab-2: teleported.", "ask the owner"} {
		if v := seen(); !strings.Contains(v, want) {
			t.Errorf("%q is not in %s", want, v)
		}
	}
	run := func(text string) {
		t.Helper()
		s.input.SetValue(text)
		_, cmd := s.Update(tea.KeyPressMsg{Code: tea.KeyEnter})
		if cmd != nil {
			if msg, is := cmd().(revokedMsg); is {
				s.Update(msg)
			}
		}
	}
	s.asked(t, "/revoke tab-2", run, "revoke tab-2")
	if v := seen(); !strings.Contains(v, "Revoked tab-2") {
		t.Errorf("%s", v)
	}
	s.asked(t, "/revoke", run, "send /revoke")
	s.asked(t, "/revoke the plan", run, "send /revoke the plan")
	s.fake.err = &frame.CallError{Code: "forbidden", Message: "only those that came after it"}
	run("/revoke tel-9")
	if v := seen(); !strings.Contains(v, "Could not revoke tel-9") || !strings.Contains(v, "came after it") {
		t.Errorf("%s", v)
	}
}

// asked enters a line, which must result in this call.
func (s *screen) asked(t *testing.T, text string, run func(string), want string) {
	t.Helper()
	before := len(s.fake.asked)
	run(text)
	if got := s.fake.asked[before:]; len(got) != 1 || got[0] != want {
		t.Errorf("%q came to %q, want %q", text, got, want)
	}
}

// A new device cannot answer cards yet, and tells for how long.
func TestNewDeviceWaitsToAnswer(t *testing.T) {
	s := newScreen(t)
	status := s.fake.status
	status.AnswersAt = s.clock.Add(42 * time.Second)
	s.event(device.StatusChanged{Status: status})
	s.event(device.CardShown{Prompt: frame.Prompt{ID: "c1", Kind: frame.ExecApproval, Command: "rm", Options: []frame.Option{{ID: "once", Label: "Allow"}, {ID: "deny", Label: "Deny", Style: "danger"}}}})
	s.clock = s.clock.Add(time.Second)
	if v := s.View().Content; !strings.Contains(v, "it can answer cards in 41 s") {
		t.Errorf("%s", v)
	}
	s.Update(tea.KeyPressMsg{Code: tea.KeyEnter})
	if len(s.fake.asked) != 0 {
		t.Errorf("it was answered: %q", s.fake.asked)
	}
	s.clock = s.clock.Add(42 * time.Second)
	s.Update(tea.KeyPressMsg{Code: tea.KeyEnter})
	if len(s.fake.asked) != 1 || s.fake.asked[0] != "answer c1 deny " {
		t.Errorf("answered %q", s.fake.asked)
	}
}
