package notify

import (
	"slices"
	"strings"
	"testing"

	"hermes-mobile/frame"
	"hermes-mobile/internal/push"
)

func TestWords(t *testing.T) {
	for _, tc := range []struct {
		name        string
		note        Note
		title, text string
	}{
		{"message", Note{Message: &frame.Message{Text: "# Done\n\n**All** [files](https://x) are there"}}, "Hermes", "Done All files are there"},
		{"job", Note{Message: &frame.Message{Text: "x", Job: "backup"}}, "backup", "x"},
		{"file", Note{Media: &frame.Media{Filename: "a.pdf"}}, "Hermes", "a.pdf"},
		{"caption", Note{Media: &frame.Media{Filename: "a.pdf", Caption: "the bill"}}, "Hermes", "the bill"},
		{"card", Note{Prompt: &frame.Prompt{Text: "Run this?", Command: "rm x"}}, "Hermes", "Run this?\nrm x"},
		{"notice", Note{Notice: &frame.Notice{Kind: frame.DeviceAdded, Device: frame.NoticeDevice{ID: "d", Name: "Phone"}}}, "Hermes", "Phone now has access to your agent. If you don't know it, revoke it."},
	} {
		if title, text := words(tc.note); title != tc.title || text != tc.text {
			t.Errorf("%s: %q, %q", tc.name, title, text)
		}
	}
}

func TestOffered(t *testing.T) {
	options := []frame.Option{{ID: "once", Label: "Once"}, {ID: frame.DenyOption, Label: "Deny"}}
	ids := func(p frame.Prompt) (list []string) {
		p.Options = options
		for _, o := range Offered(&p) {
			list = append(list, o.ID)
		}
		return list
	}
	for _, tc := range []struct {
		name   string
		prompt frame.Prompt
		want   []string
	}{
		{"whole", frame.Prompt{Kind: frame.ExecApproval, Text: "Run this?", Command: "rm x"}, []string{"once", frame.DenyOption}},
		{"long", frame.Prompt{Kind: frame.ExecApproval, Text: "Run this?", Command: strings.Repeat("x", maxWords+1)}, []string{frame.DenyOption}},
		{"two lines", frame.Prompt{Kind: frame.ExecApproval, Command: "ls\n\nrm"}, []string{frame.DenyOption}},
		{"odd", frame.Prompt{Kind: frame.ExecApproval, Command: "rm x", Odd: true}, []string{frame.DenyOption}},
		{"clarify", frame.Prompt{Kind: frame.Clarify, Text: "Which?"}, nil},
	} {
		if got := ids(tc.prompt); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

// The oldest ids are dropped first, then the actions.
func TestFit(t *testing.T) {
	ids := []string{"oldest", strings.Repeat("x", 1000), "newest"}
	got := string(fit(body{IDs: ids, Actions: []button{{Token: strings.Repeat("t", 3500)}}}))
	if strings.Contains(got, "oldest") || !strings.Contains(got, "newest") || !strings.Contains(got, "ttt") || len(got) > push.MaxBody {
		t.Errorf("%d bytes: %.200s", len(got), got)
	}
	got = string(fit(body{IDs: ids, Actions: []button{{Token: strings.Repeat("t", 5000)}}}))
	if !strings.Contains(got, "newest") || strings.Contains(got, "ttt") {
		t.Errorf("%d bytes: %.200s", len(got), got)
	}
}

func TestBounds(t *testing.T) {
	s := New(Options{})
	first, _ := s.begin("a")
	second, ok := s.begin("a")
	if !ok || s.newest("a", first) || !s.newest("a", second) {
		t.Error("a newer notification does not replace an older one")
	}
	for range maxSending - 2 {
		s.begin("b")
	}
	if _, ok := s.begin("c"); ok {
		t.Errorf("more than %d notifications are sent at once", maxSending)
	}
	s.end("a", first)
	if _, ok := s.begin("c"); !ok {
		t.Error("a notification that was sent still counts")
	}
	if len(s.latest) != 3 {
		t.Errorf("%d keys are remembered", len(s.latest))
	}
	s.end("a", second)
	for range maxSending - 2 {
		s.end("b", 0)
	}
	s.end("c", 0)
	s.Close(t.Context())
	if _, ok := s.begin("d"); ok {
		t.Error("a closed service accepts notifications")
	}
}
