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
		Short:      "Say what is wrong, and what to do about it",
		Long: `Look at the server, its data folder, the Hermes of this machine and the connection between them, and at the public address as
it is seen from here: certificate, proxy, WebSocket. It changes nothing. What only follows from something else is left out.

It ends with status 0 when nothing needs doing (a note may be there), 1 when there is an error or a warning. Every code is
explained in doc/troubleshooting.md.`,
		Example: `  hermes-mobile doctor
  hermes-mobile doctor --json | jq -r '.findings[].code'`,
		Args: takes(),
		RunE: runDoctor,
	})
}

// doctorPatience bounds the whole, also where the server hangs.
const doctorPatience = time.Minute

// errUnwell ends the command with status 1 where all has been said.
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

// diagnose asks the server that runs and looks at the rest; without one it looks at all that can be seen.
func diagnose(cmd *cobra.Command) doctor.Report {
	cfg, _, err := settings(cmd)
	if err != nil {
		return doctor.Conclude(doctor.SettingsRefused(err), nil)
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), doctorPatience)
	defer cancel()
	client := server.NewClient(cfg.Data)
	f := &doctor.Facts{Now: time.Now(), Config: cfg, Warnings: cfg.Warnings}
	var found server.Diagnosis
	switch err := client.Get(ctx, "/doctor", &found); {
	case err == nil:
		outside(ctx, client, f, found)
		return doctor.Conclude(append(found.Findings, doctor.ExamineOutside(f)...), append(found.Checked, doctor.Checked(f)...))
	case errors.Is(err, server.ErrNotRunning):
		f.Gateways, f.Folder, f.Port = server.LetIn(cfg), doctor.LookFolder(cfg.Data), doctor.LookPort(cfg.Host, cfg.Port)
		if f.Port != nil {
			f.Port.Free = doctor.FreePort(cfg.Host, cfg.Port)
		}
		if cfg.Agent != "demo" {
			f.Hermes = doctor.LookHermes(ctx, cfg, doctor.AskVersion)
		}
		f.Pairing = server.CheckPairing(cfg)
		doctor.LookOutside(ctx, f, cfg.PublicURL, cfg.Path, nil)
		return doctor.Conclude(doctor.Examine(f), doctor.Checked(f))
	default:
		return doctor.Conclude([]doctor.Finding{doctor.NoAnswer(cfg.Data, err)}, nil)
	}
}

// outside looks at the public address with a probe of the running server.
func outside(ctx context.Context, client *server.Client, f *doctor.Facts, found server.Diagnosis) {
	if found.PublicURL == "" {
		return
	}
	var probe doctor.Probe
	if err := client.Post(ctx, "/doctor/probe", server.Command{}, &probe); err != nil {
		doctor.LookOutside(ctx, f, found.PublicURL, found.Path, nil)
		return
	}
	doctor.LookOutside(ctx, f, found.PublicURL, found.Path, &probe)
}

// printReport prints findings, and what was looked at.
func printReport(cmd *cobra.Command, w io.Writer, r doctor.Report) {
	printFindings(cmd, w, r.Findings)
	if r.Well {
		if len(r.Findings) > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintln(w, "All is well.")
	}
	if len(r.Checked) == 0 {
		return
	}
	fmt.Fprintln(w, "\nChecked:")
	for _, line := range r.Checked {
		fmt.Fprintln(w, "  "+clean(line))
	}
}

// printFindings prints findings, a severity at a time: what is wrong, and what to do.
// ours are commands of this program in a text.
var ours = regexp.MustCompile(`\bhermes-mobile (setup|serve|pair|pairing|status|doctor|devices|token|users|home|deliver|deliveries|backup)\b`)

// inUse names the data folder in the commands of a remedy, where it is not the usual one: typed as they stand they would speak
// to another server.
func inUse(cmd *cobra.Command, text string) string {
	data := os.Getenv("MOBILE_DATA") // the other terminal may not have it
	if f := cmd.Flags().Lookup("data"); f != nil && f.Changed {
		data = f.Value.String()
	}
	if data == "" {
		return text
	}
	return ours.ReplaceAllString(text, "hermes-mobile --data "+strings.ReplaceAll(shellquote.Word(data), "$", "$$")+" $1")
}

func printFindings(cmd *cobra.Command, w io.Writer, list []doctor.Finding) {
	last := doctor.Severity("")
	for _, f := range list {
		if last != "" && last != f.Severity {
			fmt.Fprintln(w)
		}
		last = f.Severity
		fmt.Fprintf(w, "%-9s %s\n", f.Severity, clean(f.Text))
		fmt.Fprintf(w, "%-9s %s\n", "  do", clean(inUse(cmd, f.Do)))
		fmt.Fprintf(w, "%-9s %s\n", "  see", f.See)
	}
}
