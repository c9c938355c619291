package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"hermes-mobile/internal/term"
)

// results is standard output. It remembers the first write error: a command whose result is lost has
// failed, whatever else it did.
type results struct {
	*os.File
	failure error
}

// Write implements io.Writer.
func (r *results) Write(p []byte) (int, error) {
	n, err := r.File.Write(p)
	r.note(err)
	return n, err
}

// WriteString implements io.StringWriter.
func (r *results) WriteString(s string) (int, error) {
	n, err := r.File.WriteString(s)
	r.note(err)
	return n, err
}

func (r *results) note(err error) {
	if err != nil && r.failure == nil {
		r.failure = fmt.Errorf("write the result: %w", err)
	}
}

// stdout returns the file behind standard output, for callers that inspect it. A test may have set a
// writer that is not a file.
func stdout(cmd *cobra.Command) io.Writer {
	if r, ok := cmd.OutOrStdout().(*results); ok {
		return r.File
	}
	return cmd.OutOrStdout()
}

// terminal reports whether w is a terminal that supports colors.
func terminal(w io.Writer) bool {
	if r, ok := w.(*results); ok {
		w = r.File
	}
	f, ok := w.(*os.File)
	return ok && term.Capable(f)
}
