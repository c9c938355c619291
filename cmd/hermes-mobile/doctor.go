package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hermes-mobile/internal/doctor"
	"hermes-mobile/internal/server"
	"hermes-mobile/internal/shellquote"
)

func doctorCommand() *cobra.Command {
	return jsonFlag(&cobra.Command{
		Use:        "doctor",
		SuggestFor: []string{"check", "diagnose", "health", "test"},
		Short:      "Find problems and show how to fix them",
		Long: `Check the server, its data folder, Hermes on this machine, and the connection between them. If a public
address is set, check it from here: certificate, proxy, WebSocket. The command changes nothing. Issues
caused by another issue are hidden.

The exit status is 1 if there is an error or a warning, and 0 otherwise. doc/troubleshooting.md explains
every issue.`,
		Example: `  hermes-mobile doctor
  hermes-mobile doctor --json | jq -r '.findings[].code'`,
		Args: takes(),
		RunE: runDoctor,
	})
}

// doctorTimeout bounds the whole run, even if the server hangs.
const doctorTimeout = time.Minute

// errUnwell makes the command exit with status 1 without another message.
var errUnwell = errors.New("")

func runDoctor(cmd *cobra.Command, _ []string) error {
	result := diagnose(cmd)
	if err := show(cmd, result, func(w io.Writer) { printReport(cmd, w, result) }); err != nil {
		return err
	}
	if !result.Well {
		return errUnwell
	}
	return nil
}

// diagnose asks the running server and checks the rest. Without a server it checks everything it can.
func diagnose(cmd *cobra.Command) doctor.Report {
	cfg, _, err := settings(cmd)
	if err != nil {
		return doctor.Conclude(doctor.SettingsRefused(err), nil)
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), doctorTimeout)
	defer cancel()
	client := server.NewClient(cfg.Data)
	f := &doctor.Facts{Now: time.Now(), Config: cfg, Warnings: cfg.Warnings}
	var found server.Diagnosis
	switch err := client.Get(ctx, "/doctor", &found); {
	case err == nil:
		outside(ctx, client, f, found)
		return doctor.Conclude(append(found.Issues, doctor.CheckPublic(f)...), append(found.Checked, doctor.Checked(f)...))
	case errors.Is(err, server.ErrNotRunning):
		f.Gateways, f.Folder, f.Port = server.LetIn(cfg), doctor.ProbeFolder(cfg.Data), doctor.ProbePort(cfg.Host, cfg.Port)
		if f.Port != nil {
			f.Port.Free = doctor.FreePort(cfg.Host, cfg.Port)
		}
		if cfg.Agent != "demo" {
			f.Hermes = doctor.ProbeHermes(ctx, cfg, doctor.AskVersion)
		}
		f.Pairing = server.CheckPairing(cfg)
		doctor.ProbePublic(ctx, f, cfg.PublicURL, cfg.Path, nil)
		return doctor.Conclude(doctor.Check(f), doctor.Checked(f))
	default:
		return doctor.Conclude([]doctor.Issue{doctor.NoAnswer(cfg.Data, err)}, nil)
	}
}

// outside checks the public address with a probe of the running server.
func outside(ctx context.Context, client *server.Client, f *doctor.Facts, found server.Diagnosis) {
	if found.PublicURL == "" {
		return
	}
	var probe doctor.Probe
	if err := client.Post(ctx, "/doctor/probe", server.Command{}, &probe); err != nil {
		doctor.ProbePublic(ctx, f, found.PublicURL, found.Path, nil)
		return
	}
	doctor.ProbePublic(ctx, f, found.PublicURL, found.Path, &probe)
}

// printReport prints the issues and the list of what was checked.
func printReport(cmd *cobra.Command, w io.Writer, r doctor.Report) {
	printIssues(cmd, w, r.Issues)
	if r.Well {
		if len(r.Issues) > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintln(w, "No problems found.")
	}
	if len(r.Checked) == 0 {
		return
	}
	fmt.Fprintln(w, "\nChecked:")
	for _, line := range r.Checked {
		fmt.Fprintln(w, "  "+clean(line))
	}
}

// ours matches the commands of this program in a text.
var ours = regexp.MustCompile(`\bhermes-mobile (setup|serve|pair|pairing|status|doctor|devices|token|users|home|deliver|deliveries|backup)\b`)

// inUse adds the data folder to the commands of a fix if it is not the default one. Without it the
// commands would talk to another server.
func inUse(cmd *cobra.Command, text string) string {
	data := os.Getenv("MOBILE_DATA") // another terminal may not have the variable
	if f := cmd.Flags().Lookup("data"); f != nil && f.Changed {
		data = f.Value.String()
	}
	if data == "" {
		return text
	}
	return ours.ReplaceAllString(text, "hermes-mobile --data "+strings.ReplaceAll(shellquote.Word(data), "$", "$$")+" $1")
}

// printIssues prints the issues, grouped by severity: the problem, the fix, and where to read more.
func printIssues(cmd *cobra.Command, w io.Writer, list []doctor.Issue) {
	last := doctor.Severity("")
	for _, f := range list {
		if last != "" && last != f.Severity {
			fmt.Fprintln(w)
		}
		last = f.Severity
		fmt.Fprintf(w, "%-9s %s\n", f.Severity, clean(f.Text))
		fmt.Fprintf(w, "%-9s %s\n", "  fix", clean(inUse(cmd, f.Do)))
		fmt.Fprintf(w, "%-9s %s\n", "  see", f.See)
	}
}
