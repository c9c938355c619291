package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// What is said about a command line that is not understood. It ends with status 2, so that a script can tell a slip of
// its author from something that went wrong.

// misused is an error in how a command was written.
type misused struct {
	text string
	hint string
}

func (e *misused) Error() string { return e.text }

// misuse says what is wrong with a command line, and how it is written.
func misuse(cmd *cobra.Command, format string, args ...any) error {
	form := cmd.Use
	if cmd.HasParent() {
		form = cmd.Parent().CommandPath() + " " + form
	}
	return &misused{fmt.Sprintf(format, args...), "write it as: " + form}
}

// takes are the arguments of a command, by the names that its help has for them.
func takes(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return misuse(cmd, "%s is missing", strings.Join(names[len(args):], " and "))
		case len(args) > len(names):
			return misuse(cmd, "%q is one argument too many", args[len(names)])
		}
		return nil
	}
}

// strict makes what the arguments of a command, and of those below it, are refused for a misuse, whatever checks them.
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

// group makes a command that only holds others. Alone, or with a word that is none of them, it is an error: cobra would
// print its help and end with status 0, as if something had been done.
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
		return &misused{cmd.CommandPath() + " needs a command", "see " + cmd.CommandPath() + " --help"}
	}
	return cmd
}

// suggestion says which command was probably meant.
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

// flagMisuse is what cobra calls with an error in the flags.
func flagMisuse(cmd *cobra.Command, err error) error {
	e := &misused{err.Error(), "see " + cmd.CommandPath() + " --help"}
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return e
	}
	flags := &cobra.Command{SuggestionsMinimumDistance: 2} // for its way to find what is near
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		flags.AddCommand(&cobra.Command{Use: f.Name, Run: func(*cobra.Command, []string) {}})
	})
	if near := flags.SuggestionsFor(unknown.GetSpecifiedName()); len(near) > 0 {
		e.hint = "did you mean: --" + strings.Join(near, ", or: --")
	}
	return e
}

// alone marks a command that holds others and does something without one, too.
const alone = "alone"

// usageTemplate is cobra's, with what a terminal is wide, and without the line that groups have no use for.
const usageTemplate = `Usage:{{if and .HasAvailableSubCommands (not .Annotations.alone)}}
  {{.CommandPath}} COMMAND{{else}}
  {{.UseLine}}{{end}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}

Commands:{{range .Commands}}{{if (or .IsAvailableCommand (eq .Name "help"))}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{if .HasAvailableLocalFlags}}

Flags:
{{.LocalFlags.FlagUsagesWrapped 100 | trimTrailingWhitespaces}}{{end}}{{if .HasAvailableInheritedFlags}}

Flags of every command:
{{.InheritedFlags.FlagUsagesWrapped 100 | trimTrailingWhitespaces}}{{end}}{{if .HasAvailableSubCommands}}

More about one of them: {{.CommandPath}} COMMAND --help{{end}}
`
