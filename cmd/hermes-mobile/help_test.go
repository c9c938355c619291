package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hermes-mobile/internal/config"
)

// each calls f with every command that a person may see, but cobra's own.
func each(cmd *cobra.Command, f func(*cobra.Command)) {
	f(cmd)
	for _, sub := range cmd.Commands() {
		if !sub.Hidden && sub.Name() != "help" && sub.Name() != "completion" {
			each(sub, f)
		}
	}
}

var argument = regexp.MustCompile(`^\[?[a-zA-Z_|]+\]?$`)

// Every command says what it does, shows how it is called, and names its arguments.
func TestHelpIsComplete(t *testing.T) {
	n := 0
	each(root(), func(cmd *cobra.Command) {
		n++
		name := cmd.CommandPath()
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") || strings.ToUpper(cmd.Short[:1]) != cmd.Short[:1] {
			t.Errorf("%s: Short is to be a phrase with a capital and no full stop: %q", name, cmd.Short)
		}
		if cmd.Args == nil {
			t.Errorf("%s does not check its arguments", name)
		}
		if cmd.Example == "" {
			t.Errorf("%s has no example", name)
		}
		for line := range strings.Lines(cmd.Example) {
			if !strings.HasPrefix(line, "  ") || !strings.Contains(line, name) {
				t.Errorf("%s: the example %q is of something else, or not indented", name, line)
			}
		}
		for line := range strings.Lines(cmd.Long) {
			if len(line) > 160 {
				t.Errorf("%s: a line of Long has %d characters", name, len(line))
			}
		}
		_, rest, _ := strings.Cut(cmd.Use, " ")
		for word := range strings.FieldsSeq(rest) {
			if !strings.Contains(rest, "--") && !argument.MatchString(word) {
				t.Errorf("%s: the argument %q has no plain name", name, word)
			}
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("%s --%s has no help", name, f.Name)
			}
		})
		if required := strings.Count(rest, " ") + 1 - strings.Count(rest, "["); rest != "" && !strings.Contains(rest, "--") && cmd.Args(cmd, make([]string, required)) != nil {
			t.Errorf("%s does not take the %d arguments that its help names", name, required)
		}
	})
	if n < 18 {
		t.Fatalf("only %d commands were looked at", n)
	}
}

// Every setting is described by the help of serve, as a flag or, if it is a secret, as none.
func TestEverySettingIsInTheHelp(t *testing.T) {
	serve := serveCommand()
	help := serve.Long + serve.Flags().FlagUsages()
	for _, k := range config.Keys() {
		if k.Name == "MOBILE_DATA" {
			continue // a flag of every command
		}
		if env := k.Env(); env != "" && !strings.Contains(help, env) {
			t.Errorf("%s is not in the help", env)
		}
		if k.Secret() && k.Flag() != "" {
			t.Errorf("the secret %s has a flag, which all users of the machine can see", k.Name)
		}
	}
}

// A device cannot steer the terminal by its name.
func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"Anna’s phone 📱": "Anna’s phone 📱", "a\x1b[31mb": "a[31mb", "a\nb\tc": "abc", "a\u009bb": "ab", "a\u202eb": "ab", "a\u200bb\U000e0041": "ab", "👩‍👩‍👧": "👩‍👩‍👧",
	} {
		if got := clean(in); got != want {
			t.Errorf("clean(%q) = %q, want %q", in, got, want)
		}
	}
}
