package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"hermes-mobile/internal/term"
)

// results is standard output. It remembers that a result could not be written: a command whose result nobody can have has failed,
// whatever it did.
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
		r.failure = fmt.Errorf("the result could not be written: %w", err)
	}
}

// stdout is standard output for those who need to know what it is. Where it is no file, as in a test, it is what it was set to.
func stdout(cmd *cobra.Command) io.Writer {
	if r, ok := cmd.OutOrStdout().(*results); ok {
		return r.File
	}
	return cmd.OutOrStdout()
}

// terminal reports whether w is a terminal that knows colours, rather than a file or a program.
func terminal(w io.Writer) bool {
	if r, ok := w.(*results); ok {
		w = r.File
	}
	f, ok := w.(*os.File)
	return ok && term.Capable(f)
}
