package connect

import (
	"context"
	"errors"
	"fmt"
	"io"

	"charm.land/huh/v2"
	"charm.land/lipgloss/v2"
	"golang.org/x/term"

	"hermes-mobile/gateway"
)

// Screen is a Prompter for an interactive terminal.
type Screen struct {
	In  io.Reader
	Out io.Writer
}

// Show implements Prompter. It wraps lines between words.
func (s Screen) Show(text string) {
	width := narrow
	if f, ok := s.Out.(interface{ Fd() uintptr }); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			width = min(w, wide)
		}
	}
	fmt.Fprintln(s.Out, lipgloss.Wrap(text, width, ""))
}

// Columns of text: the default if the terminal's width is unknown, and the maximum.
const (
	narrow = 80
	wide   = 100
)

// Interactive implements Prompter.
func (s Screen) Interactive() bool { return true }

// Text implements Prompter.
func (s Screen) Text(ctx context.Context, title, help, now string) (string, error) {
	err := s.run(ctx, huh.NewInput().Title(title).Description(help).Value(&now))
	return now, err
}

// Secret implements Prompter.
func (s Screen) Secret(ctx context.Context, title, help string) (gateway.Secret, error) {
	var value string
	err := s.run(ctx, huh.NewInput().Title(title).Description(help).EchoMode(huh.EchoModePassword).Value(&value))
	return gateway.NewSecret(value), err
}

// Choose implements Prompter.
func (s Screen) Choose(ctx context.Context, title string, options []string, now int) (int, error) {
	var list []huh.Option[int]
	for i, text := range options {
		list = append(list, huh.NewOption(text, i))
	}
	err := s.run(ctx, huh.NewSelect[int]().Title(title).Options(list...).Value(&now))
	return now, err
}

func (s Screen) run(ctx context.Context, field huh.Field) error {
	err := huh.NewForm(huh.NewGroup(field)).WithInput(s.In).WithOutput(s.Out).RunWithContext(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, huh.ErrUserAborted) {
		return ErrCanceled
	}
	return err
}
