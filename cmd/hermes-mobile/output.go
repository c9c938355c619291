package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"hermes-mobile/internal/config"
	"hermes-mobile/internal/server"
)

// What commands print: results go to standard output, in words or with --json as one JSON value; what went wrong goes to
// standard error as a cause and, where there is one, a hint line that says what to do. Nothing else is printed.

// hinted is an error with what to do about it.
type hinted struct {
	err  error
	hint string
}

func (h *hinted) Error() string { return h.err.Error() }
func (h *hinted) Unwrap() error { return h.err }

// fail prints an error and returns the exit status.
func fail(w io.Writer, err error) int {
	hint := ""
	var h *hinted
	switch {
	case errors.As(err, &h):
		hint = h.hint
	case errors.Is(err, server.ErrNotRunning):
		hint = "start it with: hermes-mobile serve"
	}
	var bad *config.BadValue
	if errors.As(err, &bad) {
		hint = "nothing was started; see the settings with: hermes-mobile serve --help"
	}
	for line := range strings.SplitSeq(strings.TrimSpace(err.Error()), "\n") {
		fmt.Fprintln(w, "error:", line)
	}
	if hint != "" {
		fmt.Fprintln(w, "hint:", hint)
	}
	return 1
}

// show prints a result: as JSON where that was asked for, else by f.
func show(cmd *cobra.Command, v any, f func(w io.Writer)) error {
	if asJSON, _ := cmd.Flags().GetBool("json"); asJSON {
		enc := json.NewEncoder(cmd.OutOrStdout())
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(v)
	}
	f(cmd.OutOrStdout())
	return nil
}

func jsonFlag(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().Bool("json", false, "print the result as JSON")
	return cmd
}

// table prints columns.
func table(w io.Writer, head string, rows func(row func(cells ...any))) {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, strings.ReplaceAll(head, " | ", "\t"))
	rows(func(cells ...any) {
		text := make([]string, len(cells))
		for i, c := range cells {
			text[i] = clean(fmt.Sprint(c))
		}
		fmt.Fprintln(t, strings.Join(text, "\t"))
	})
	_ = t.Flush()
}

// clean keeps what devices call themselves from steering the terminal.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f || 0x80 <= r && r < 0xa0 {
			return -1
		}
		return r
	}, s)
}
