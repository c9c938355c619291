package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"hermes-mobile/internal/audit"
	"hermes-mobile/internal/server"
)

// auditLimit is the default of --limit without --since.
const auditLimit = 100

// followEvery is the polling interval of --follow.
const followEvery = time.Second

func auditCommand() *cobra.Command {
	var since, action, device string
	var limit int
	var follow bool
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Show the audit log: pairings, revocations, tokens, logins",
		Long: `Show the audit log: changes made on the command line and in the admin UI, uses of pairing codes, and
first connections of devices. Each entry shows who acted, from where, the action, and its subject. The
newest entry comes last.

WHO is one of:

  socket     a command on the server's machine
  admin      the admin UI
  code       whoever used a pairing code
  device:ID  a device
  user:ID    a user
  stranger   somebody whom the server rejected
  server     the server itself

Without --since and --limit, the command shows the newest ` + strconv.Itoa(auditLimit) + ` entries.`,
		Example: `  hermes-mobile audit
  hermes-mobile audit --since 24h --action 'device.*'
  hermes-mobile audit --json --limit 0 > audit.jsonl
  hermes-mobile audit --follow`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 0 {
				return misuse(cmd, "--limit %d: use 0 for all entries, or a positive number", limit)
			}
			if action != "" && !strings.Contains(action, "*") && !audit.Known(action) {
				return misuse(cmd, "--action %s: unknown action; use one of %s, or a pattern with *", action, strings.Join(actionNames(), ", "))
			}
			q := url.Values{"action": {action}, "device": {device}}
			if since != "" {
				from, err := parseSince(since, time.Now())
				if err != nil {
					return misuse(cmd, "--since %s: %v", since, err)
				}
				q.Set("since", from.UTC().Format(time.RFC3339))
			}
			if since == "" || cmd.Flags().Changed("limit") {
				q.Set("limit", strconv.Itoa(limit))
			}
			asJSON, _ := cmd.Flags().GetBool("json")
			out := auditRows
			if asJSON {
				out = auditLines
			}
			return showAudit(cmd, q, follow, out(cmd.OutOrStdout()))
		},
	}
	f := cmd.Flags()
	f.StringVar(&since, "since", "", "show entries since this `time`: 30m, 24h, 7d, 2026-01-31, or \"2026-01-31 12:00\"")
	f.StringVar(&action, "action", "", "show only this `action`, or a pattern such as 'device.*'")
	f.StringVar(&device, "device", "", "show only entries by or about this `device`")
	f.IntVar(&limit, "limit", auditLimit, "show at most this `number` of entries, the newest ones (0 for all)")
	f.BoolVarP(&follow, "follow", "f", false, "keep showing new entries until Ctrl-C")
	f.Bool("json", false, "print one JSON object per line")
	_ = cmd.RegisterFlagCompletionFunc("action", cobra.FixedCompletions(actionNames(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func actionNames() (names []string) {
	for _, a := range audit.Actions() {
		names = append(names, a.Name)
	}
	return names
}

// parseSince parses an age such as 24h, or a date in the local time zone.
func parseSince(text string, now time.Time) (time.Time, error) {
	for _, layout := range []string{time.DateOnly, "2006-01-02 15:04", time.DateTime, "2006-01-02T15:04", time.RFC3339} {
		if at, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return at, nil
		}
	}
	ago, err := time.ParseDuration(text)
	if days, isDays := strings.CutSuffix(text, "d"); isDays {
		var n uint64
		n, err = strconv.ParseUint(days, 10, 16)
		ago = time.Duration(n) * 24 * time.Hour
	}
	if err != nil || ago < 0 {
		return time.Time{}, errors.New("use an age such as 30m, 24h, or 7d, or a date such as 2026-01-31")
	}
	return now.Add(-ago), nil
}

// auditOutput writes entries, each given as its JSON line and decoded. first is true for the first batch.
type auditOutput func(lines [][]byte, entries []server.AuditEntry, first bool) error

// showAudit writes the entries that a query selects. With follow it keeps polling for new ones.
func showAudit(cmd *cobra.Command, q url.Values, follow bool, write auditOutput) error {
	c, err := running(cmd)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	for first := true; ; first = false {
		var lines [][]byte
		var entries []server.AuditEntry
		flush := func() error {
			defer func() { lines, entries = nil, nil }()
			return write(lines, entries, first)
		}
		err := c.Lines(ctx, "/audit/export?"+q.Encode(), func(line []byte) error {
			var e server.AuditEntry
			if err := json.Unmarshal(line, &e); err != nil {
				return fmt.Errorf("decode an audit log entry: %w", err)
			}
			lines, entries = append(lines, bytes.Clone(line)), append(entries, e)
			q.Set("after", strconv.FormatInt(e.Number, 10))
			if len(lines) < 1000 {
				return nil
			}
			err := flush()
			first = false
			return err
		})
		if err != nil {
			if follow && ctx.Err() != nil {
				return nil
			}
			return notRunning(cmd, err)
		}
		if err := flush(); err != nil || !follow {
			return err
		}
		q.Del("limit")
		if !pause(ctx, followEvery) {
			return nil
		}
	}
}

// pause waits for d and returns true, or returns false when ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// auditLines writes the server's JSON lines unchanged.
func auditLines(w io.Writer) auditOutput {
	return func(lines [][]byte, _ []server.AuditEntry, _ bool) error {
		if len(lines) == 0 {
			return nil
		}
		_, err := w.Write(append(bytes.Join(lines, []byte("\n")), '\n'))
		return err
	}
}

// auditRows writes a table. Columns grow as wider cells arrive and keep that width.
func auditRows(w io.Writer) auditOutput {
	head := []string{"TIME", "WHO", "FROM", "ACTION", "SUBJECT", "DETAIL"}
	widths := make([]int, len(head))
	return func(_ [][]byte, entries []server.AuditEntry, first bool) error {
		if len(entries) == 0 {
			if first {
				_, err := io.WriteString(w, "No matching entries in the audit log.\n")
				return err
			}
			return nil
		}
		var rows [][]string
		if widths[0] == 0 {
			rows = append(rows, head)
		}
		for _, e := range entries {
			rows = append(rows, []string{e.At.Local().Format(time.DateTime), clean(e.Actor), clean(e.Origin), clean(e.Action), clean(e.Subject), clean(e.Detail)})
		}
		for _, row := range rows {
			for i, cell := range row {
				widths[i] = max(widths[i], utf8.RuneCountInString(cell))
			}
		}
		var b strings.Builder
		for _, row := range rows {
			var line strings.Builder
			for i, cell := range row {
				line.WriteString(cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
			}
			b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
		}
		_, err := io.WriteString(w, b.String())
		return err
	}
}
