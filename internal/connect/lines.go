package connect

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/term"

	"hermes-mobile/gateway"
	"hermes-mobile/internal/plaintext"
)

// Lines is a Prompter that reads one answer per line, from a script or a plain terminal.
type Lines struct {
	in     *bufio.Reader
	out    io.Writer
	hidden func() (string, error) // reads a line without echo; nil: a pipe, which has no echo
}

// NewLines returns a Prompter that reads answers from in.
func NewLines(in io.Reader, out io.Writer) *Lines {
	l := &Lines{in: bufio.NewReader(plaintext.Reader(in)), out: out}
	if f, ok := in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		l.hidden = func() (string, error) {
			text, err := term.ReadPassword(int(f.Fd()))
			return string(text), err
		}
	}
	return l
}

// Show implements Prompter.
func (l *Lines) Show(text string) { fmt.Fprintln(l.out, text) }

func (l *Lines) line(title string) (string, error) {
	fmt.Fprint(l.out, title, ": ")
	text, err := l.in.ReadString('\n')
	fmt.Fprintln(l.out)
	if text = strings.TrimRight(text, "\r\n"); text == "" && err != nil {
		return "", ErrCanceled
	}
	return text, nil
}

// Interactive implements Prompter.
func (l *Lines) Interactive() bool { return l.hidden != nil }

// Text implements Prompter.
func (l *Lines) Text(_ context.Context, title, _, now string) (string, error) {
	text, err := l.line(title)
	if text == "" {
		text = now
	}
	return text, err
}

// Secret implements Prompter.
func (l *Lines) Secret(_ context.Context, title, _ string) (gateway.Secret, error) {
	if l.hidden == nil || l.in.Buffered() > 0 {
		text, err := l.line(title)
		return gateway.NewSecret(text), err
	}
	fmt.Fprint(l.out, title, ": ")
	text, err := l.hidden()
	fmt.Fprintln(l.out)
	if err != nil {
		return gateway.Secret{}, ErrCanceled
	}
	return gateway.NewSecret(text), nil
}

// Choose implements Prompter.
func (l *Lines) Choose(_ context.Context, title string, options []string, now int) (int, error) {
	for {
		for i, text := range options {
			fmt.Fprintf(l.out, "  %d  %s\n", i+1, text)
		}
		text, err := l.line(title)
		if err != nil || text == "" {
			return now, err
		}
		if n, ok := chosen(text, options); ok {
			return n, nil
		}
		fmt.Fprintf(l.out, "Enter a number from 1 to %d, or a word from one option.\n", len(options))
	}
}

// chosen parses a number, or text that only one option contains.
func chosen(text string, options []string) (int, bool) {
	text = strings.ToLower(strings.TrimSpace(text))
	if n, err := strconv.Atoi(text); err == nil {
		return n - 1, 1 <= n && n <= len(options)
	}
	found := -1
	for i, option := range options {
		option = strings.ToLower(option)
		if option == text {
			return i, true
		}
		if strings.Contains(option, text) {
			if found >= 0 {
				return 0, false
			}
			found = i
		}
	}
	return found, text != "" && found >= 0
}

// Rest returns the input after the last answer.
func (l *Lines) Rest() io.Reader { return l.in }
