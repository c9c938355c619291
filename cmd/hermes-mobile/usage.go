package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// An invalid command line exits with status 2, so that a script can tell its own mistake from a failure.

// misused is an error in the command line.
type misused struct {
	text string
	hint string
}

func (e *misused) Error() string { return e.text }

// misuse returns a misused error that hints at the command's usage line.
func misuse(cmd *cobra.Command, format string, args ...any) error {
	form := cmd.Use
	if cmd.HasParent() {
		form = cmd.Parent().CommandPath() + " " + form
	}
	return &misused{fmt.Sprintf(format, args...), "usage: " + form}
}

// takes requires exactly the named arguments.
func takes(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return misuse(cmd, "missing argument: %s", strings.Join(names[len(args):], " "))
		case len(args) > len(names):
			return misuse(cmd, "unexpected argument %q", args[len(names)])
		}
		return nil
	}
}

// strict turns every error of an argument check into a misused error, for a command and its subcommands.
func strict(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			err := check(cmd, args)
			if m := (*misused)(nil); err != nil && !errors.As(err, &m) {
				err = misuse(cmd, "%s", err)
			}
			return err
		}
	}
	for _, sub := range cmd.Commands() {
		strict(sub)
	}
}

// group makes a command that only has subcommands. Without one, or with an unknown one, it fails: cobra
// would print the help and exit with status 0, as if the command had done something.
func group(cmd *cobra.Command, sub ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(sub...)
	cmd.SuggestionsMinimumDistance = 2
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return &misused{fmt.Sprintf("unknown command %q for %s", args[0], cmd.CommandPath()), suggestion(cmd, args[0])}
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return &misused{cmd.CommandPath() + ": missing command", "see " + cmd.CommandPath() + " --help"}
	}
	return cmd
}

// suggestion returns a hint that names the commands the user probably meant.
func suggestion(cmd *cobra.Command, word string) string {
	var near []string
	for _, name := range cmd.SuggestionsFor(word) {
		near = append(near, cmd.CommandPath()+" "+name)
	}
	if len(near) == 0 {
		return "see " + cmd.CommandPath() + " --help"
	}
	return "did you mean: " + strings.Join(near, ", or: ")
}

// flagMisuse converts cobra's flag errors.
func flagMisuse(cmd *cobra.Command, err error) error {
	e := &misused{err.Error(), "see " + cmd.CommandPath() + " --help"}
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return e
	}
	flags := &cobra.Command{SuggestionsMinimumDistance: 2} // borrows cobra's search for similar names
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		flags.AddCommand(&cobra.Command{Use: f.Name, Run: func(*cobra.Command, []string) {}})
	})
	if near := flags.SuggestionsFor(unknown.GetSpecifiedName()); len(near) > 0 {
		e.hint = "did you mean: --" + strings.Join(near, ", or: --")
	}
	return e
}

// alone annotates a command with subcommands that also works without one.
const alone = "alone"

// usageTemplate is cobra's template, wrapped at 100 columns, with one usage line per command.
const usageTemplate = `Usage:{{if and .HasAvailableSubCommands (not .Annotations.alone)}}
  {{.CommandPath}} COMMAND{{else}}
  {{.UseLine}}{{end}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}

Commands:{{range .Commands}}{{if (or .IsAvailableCommand (eq .Name "help"))}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{if .HasAvailableLocalFlags}}

Flags:
{{.LocalFlags.FlagUsagesWrapped 100 | trimTrailingWhitespaces}}{{end}}{{if .HasAvailableInheritedFlags}}

Global flags:
{{.InheritedFlags.FlagUsagesWrapped 100 | trimTrailingWhitespaces}}{{end}}{{if .HasAvailableSubCommands}}

Run "{{.CommandPath}} COMMAND --help" for more about a command.{{end}}
`
