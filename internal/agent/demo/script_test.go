package demo

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"hermes-mobile/internal/agent"
)

// The lines of doc/demo-agent.md that are streamed: their steps, exactly.
func TestStreamedLines(t *testing.T) {
	s := newStage(t)
	for _, tc := range []struct {
		text  string
		steps []string
		final string
	}{
		{"hello", []string{"You said: hello"}, "You said: hello"},
		{"one two three four five six", []string{"You said: one two", "You said: one two three four five six"}, "You said: one two three four five six"},
		{"/demo stream 3", []string{"w1", "w1 w2", "w1 w2 w3"}, "w1 w2 w3"},
		{"/demo stream 1", []string{"w1"}, "w1"},
		{"/demo rewrite", []string{"one", "one two", "one two three", "three two one"}, "three two one."},
		{"/demo pause 0", []string{"before", "before after"}, "before after"},
		{"/demo", []string{"You said: /demo"}, "You said: /demo"},
		{"/demo unknown thing", []string{"You said: /demo unknown", "You said: /demo unknown thing"}, "You said: /demo unknown thing"},
		{"/help", []string{"You said: /help"}, "You said: /help"},
		{" /demo twice", []string{"You said:  /demo", "You said:  /demo twice"}, "You said:  /demo twice"},
	} {
		t.Run(tc.text, func(t *testing.T) {
			s.t = t
			steps, finals := s.says(s.text(tc.text))
			if len(finals) != 1 || finals[0].Text != tc.final || finals[0].Interrupted {
				t.Errorf("finals %+v, want %q", finals, tc.final)
			}
			if !strings.HasPrefix(tc.text, "/demo ") || strings.Contains(tc.text, "unknown") {
				// The place of the first cut is open; each step but the last has four words more.
				for i, step := range steps {
					if n := strings.Count(step, " "); i < len(steps)-1 && n != (i+1)*4-1 {
						t.Errorf("step %d %q has %d blanks", i, step, n)
					}
				}
				if steps[len(steps)-1] != tc.final {
					t.Errorf("steps %q", steps)
				}
				return
			}
			if !slices.Equal(steps, tc.steps) {
				t.Errorf("steps %q, want %q", steps, tc.steps)
			}
		})
	}
	s.silent()
}

// The lines that are answered by one text.
func TestPlainLines(t *testing.T) {
	s := newStage(t)
	for text, want := range map[string]string{
		"/demo slow 0":                    "done after 0 s",
		"/demo stream":                    "That needs a whole number from 1 to 100000.",
		"/demo stream x":                  "That needs a whole number from 1 to 100000.",
		"/demo long 0":                    "That needs a whole number from 1 to 5000000.",
		"/demo long -1":                   "That needs a whole number from 1 to 5000000.",
		"/demo slow 1e3":                  "That needs a whole number from 0 to 86400.",
		"/demo file 99999999999999999999": "That needs a whole number from 0 to 268435456.",
	} {
		if got := s.final(s.text(text)); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	if got := s.final(s.text("/demo fail")); !strings.Contains(got, "failed") || !strings.Contains(got, ".") {
		t.Errorf("/demo fail says %q", got)
	}
	_, finals := s.says(s.text("/demo twice"))
	if len(finals) != 2 || finals[0].Text != "one" || finals[1].Text != "two" || finals[0].ID == finals[1].ID {
		t.Errorf("/demo twice: %+v", finals)
	}
	s.silent()
}

func TestSethome(t *testing.T) {
	s := newStage(t)
	s.text("/sethome")
	next[agent.Home](s)
	if say := next[agent.Say](s); say.Text != "home: mobile:d" || !say.Final {
		t.Errorf("%+v", say)
	}
	next[agent.Done](s)
}

func TestTool(t *testing.T) {
	s := newStage(t)
	in := s.text("/demo tool")
	id := ""
	for _, want := range []string{"started", "progress", "done"} {
		step := next[agent.ToolStep](s)
		if step.State != want || step.Name != "terminal" || step.N != in.N || step.ID == "" || id != "" && id != step.ID {
			t.Errorf("%+v, want %s", step, want)
		}
		id = step.ID
	}
	if got := s.final(in); got != "tool: done" {
		t.Errorf("%q", got)
	}
}

// TEXT comes N seconds later, unasked, with a turn in between.
func TestSay(t *testing.T) {
	s := newStage(t)
	began := time.Now()
	if got := s.final(s.text("/demo say 1 good morning")); got != "in 1 s" {
		t.Errorf("%q", got)
	}
	if got := s.final(s.text("/demo slow 0")); got != "done after 0 s" {
		t.Errorf("%q", got)
	}
	say := next[agent.Say](s)
	if say.Text != "good morning" || !say.Final || say.N != 0 || say.ReplyTo != "" {
		t.Errorf("%+v", say)
	}
	if d := time.Since(began); d < 800*time.Millisecond || d > 5*time.Second {
		t.Errorf("it came after %v", d)
	}
}

func TestAway(t *testing.T) {
	s := newStage(t)
	if got := s.final(s.text("/demo away 1")); got != "away" {
		t.Errorf("%q", got)
	}
	if st := receive(t, s.host.moved, "the agent to be away"); st.Online || st.Detail == "" {
		t.Errorf("status %+v", st)
	}
	taken := make(chan error, 1)
	s.agent.Hand(agent.Input{N: 9, Device: "d", Text: "x"}, func(err error) { taken <- err })
	if err := <-taken; !errors.Is(err, agent.ErrAway) {
		t.Errorf("an input is taken while it is away: %v", err)
	}
	if st := receive(t, s.host.moved, "the agent to be back"); !st.Online {
		t.Errorf("status %+v", st)
	}
	s.says(s.text("back"))
}

// A voice message and files are described by what is in them.
func TestReceived(t *testing.T) {
	s := newStage(t)
	data := []byte("some bytes")
	hash, size, err := s.files.Put(strings.NewReader(string(data)), 100)
	if err != nil {
		t.Fatal(err)
	}
	sum := fmt.Sprintf("%d sha256:%x", size, sha256.Sum256(data))
	for _, tc := range []struct {
		in   agent.Input
		want string
	}{
		{agent.Input{Kind: agent.Voice, File: &agent.File{Kind: "voice", Name: "voice.wav", Hash: hash}}, "received audio voice.wav " + sum},
		{agent.Input{Kind: agent.Voice, Text: "hi there", File: &agent.File{Kind: "voice", Name: "voice.ogg", Hash: hash}}, "received audio voice.ogg " + sum + " text:hi there"},
		{agent.Input{Kind: agent.Media, File: &agent.File{Kind: "image", Name: "a b.png", Hash: hash}}, "received image a b.png " + sum},
		{agent.Input{Kind: agent.Media, Text: "/demo twice", File: &agent.File{Kind: "document", Name: "x", Hash: hash}}, "received document x " + sum + " text:/demo twice"},
	} {
		if got := s.final(s.hand(tc.in)); got != tc.want {
			t.Errorf("%q, want %q", got, tc.want)
		}
	}
	if got := s.final(s.hand(agent.Input{Kind: agent.Media, File: &agent.File{Kind: "image", Hash: "gone"}})); !strings.Contains(got, "could not be read") {
		t.Errorf("a lost file: %q", got)
	}
}

// Stop in the middle of each line that takes its time: what there was, interrupted, and the turn ends.
func TestStop(t *testing.T) {
	for _, tc := range []struct {
		text  string
		after int // events of the turn before the stop
		want  string
	}{
		{"one two three four five six seven eight nine ten eleven twelve thirteen", 1, ""},
		{"/demo stream 500", 3, ""},
		{"/demo pause 600", 1, "before"},
		{"/demo rewrite", 3, ""},
		{"/demo slow 600", 0, "stopped"},
		{"/demo tool", 1, "stopped"},
		{"/demo approval", 1, "stopped"},
		{"/demo odd", 4, "stopped"},
		{"/demo confirm", 1, "stopped"},
		{"/demo clarify", 1, "stopped"},
		{"/demo two-cards", 2, "stopped"},
	} {
		t.Run(tc.text, func(t *testing.T) {
			s := newStage(t)
			s.agent.Stop("d") // with no turn, or another device's: nothing
			in := s.text(tc.text)
			s.agent.Stop("e")
			said, cards := "", map[string]bool{}
			for range tc.after {
				switch e := s.event().(type) {
				case agent.Say:
					said = e.Text
				case agent.Ask:
					cards[e.Card.ID] = true
				}
			}
			s.agent.Stop("d")
			s.agent.Stop("d")
			var last agent.Say
			for _, e := range s.turn(in) {
				switch e := e.(type) {
				case agent.Say:
					if last.Final {
						t.Errorf("after its end: %+v", e)
					}
					if last = e; !e.Final {
						said = e.Text
					}
				case agent.CloseCard:
					if !cards[e.ID] || !e.Expired {
						t.Errorf("closed %+v", e)
					}
					delete(cards, e.ID)
				}
			}
			want := tc.want
			if want == "" {
				want = said
			}
			if !last.Final || !last.Interrupted || last.Text != want || last.ReplyTo != in.ID {
				t.Errorf("the end is %+v, want %q interrupted", last, want)
			}
			if len(cards) != 0 {
				t.Errorf("cards stay open: %v", cards)
			}
			s.silent()
			s.says(s.text("still there?"))
		})
	}
}

// The agent ends in the middle of turns: it leaves them as they are, for the next life, and leaves no goroutine.
func TestEndInMidTurn(t *testing.T) {
	for _, text := range []string{"/demo stream 1000", "/demo slow 600", "/demo approval", "/demo tool", "/demo say 600 x", "/demo away 600"} {
		t.Run(text, func(t *testing.T) {
			s := newStage(t)
			s.text(text)
			if text != "/demo slow 600" {
				s.event()
			}
			t.Cleanup(func() { // after Run returned
				for {
					select {
					case e := <-s.host.events:
						if say, is := e.(agent.Say); is && say.Interrupted {
							t.Errorf("the end of the server is no stop: %+v", say)
						}
					default:
						return
					}
				}
			})
		})
	}
}
