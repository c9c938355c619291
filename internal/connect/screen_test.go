package connect

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// at is a screen on which keys are pressed, and what it shows.
func at(t *testing.T, keys string) (Screen, *bytes.Buffer, context.Context) {
	t.Helper()
	r, w := io.Pipe()
	go func() {
		_, _ = io.WriteString(w, keys) // until the screen reads no more
	}()
	t.Cleanup(func() { _ = w.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	out := &bytes.Buffer{}
	return Screen{In: r, Out: out}, out, ctx
}

func TestScreen(t *testing.T) {
	s, _, ctx := at(t, "x\r")
	if text, err := s.Text(ctx, "Title", "help", "https://gateway.example.org/"); err != nil || text != "https://gateway.example.org/x" {
		t.Errorf("Text: %q %v", text, err)
	}
	s, out, ctx := at(t, token+"\r")
	if secret, err := s.Secret(ctx, "Token", ""); err != nil || secret.Reveal() != token {
		t.Errorf("Secret: %v", err)
	}
	if strings.Contains(out.String(), token) {
		t.Error("the secret was shown")
	}
	s, _, ctx = at(t, "\x1b[B\r")
	if n, err := s.Choose(ctx, "Which", []string{"a", "b", "c"}, 1); err != nil || n != 2 {
		t.Errorf("Choose: %d %v", n, err)
	}
	s, _, ctx = at(t, "\x03")
	if _, err := s.Text(ctx, "Title", "", ""); !errors.Is(err, ErrCanceled) {
		t.Errorf("Ctrl-C: %v", err)
	}
	s, _, _ = at(t, "")
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Text(ended, "Title", "", ""); !errors.Is(err, context.Canceled) {
		t.Errorf("the program ends: %v", err)
	}
}

// What is told is broken between words, also where the terminal does not say how wide it is.
func TestTellBreaksBetweenWords(t *testing.T) {
	s, out, _ := at(t, "")
	s.Show(strings.Repeat("credentials ", 20))
	for line := range strings.Lines(out.String()) {
		if len(line) > narrow+1 || strings.TrimSpace(strings.ReplaceAll(line, "credentials", "")) != "" || strings.HasPrefix(line, " ") || !strings.HasPrefix(line, "credentials") {
			t.Errorf("the line %q", line)
		}
	}
}
