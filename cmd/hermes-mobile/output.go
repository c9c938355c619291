package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"hermes-mobile/frame"
	"hermes-mobile/internal/config"
)

// Commands print results to standard output: as text, or with --json as one JSON value. Errors go to
// standard error, followed by a hint line where there is a fix. Messages begin with a lowercase letter
// and have no full stop.

// Exit statuses other than 0.
const (
	statusFailed  = 1 // the command failed
	statusMisused = 2 // the command line is invalid
)

// hinted is an error with a hint about its fix.
type hinted struct {
	err  error
	hint string
}

func (h *hinted) Error() string { return h.err.Error() }
func (h *hinted) Unwrap() error { return h.err }

// hint adds a hint to an error that has none yet.
func hint(err error, text string) error {
	var h *hinted
	if err == nil || errors.As(err, &h) {
		return err
	}
	return &hinted{err, text}
}

// fail prints an error and returns the exit status.
func fail(w io.Writer, err error) int {
	if errors.Is(err, errUnwell) {
		return statusFailed
	}
	status, hint := statusFailed, ""
	var (
		h   *hinted
		m   *misused
		bad *config.BadValue
	)
	switch {
	case errors.As(err, &m):
		status, hint = statusMisused, m.hint
	case errors.As(err, &h):
		hint = h.hint
	case errors.As(err, &bad):
		hint = "hermes-mobile serve --help describes every setting"
	}
	for line := range strings.SplitSeq(strings.TrimSpace(err.Error()), "\n") { // joined errors have one line each
		fmt.Fprintln(w, "error:", clean(line))
	}
	if hint != "" {
		fmt.Fprintln(w, "hint:", hint)
	}
	return status
}

// show prints a result: v as JSON with --json, otherwise the text that f writes.
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

// table prints aligned columns under a header line.
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

// clean removes control, bidirectional, and invisible characters, so that a device's name cannot steer
// the terminal or pass for another name.
func clean(s string) string { return frame.Strip(s) }
