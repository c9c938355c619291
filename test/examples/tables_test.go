package examples

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"hermes-mobile/internal/audit"
	"hermes-mobile/internal/config"
)

// The tables of doc/operate.md are made from the code.
func TestTables(t *testing.T) {
	tables := map[string]string{"settings": settings(), "gateway events": gatewayEvents(t), "metrics": metrics(t), "audit actions": auditActions()}
	if *update {
		rewrite(t, "operate.md", "table", func(name string) string { return tables[name] })
	}
	there := blocks(t, "operate.md", "table")
	for name, want := range tables {
		if got, ok := there[name]; !ok {
			t.Errorf("doc/operate.md has no table %q", name)
		} else if got != want {
			t.Errorf("doc/operate.md: the table %q is not what the code says; write it anew with -update\n%s", name, firstDifference(got, want))
		}
	}
	for name := range there {
		if _, ok := tables[name]; !ok {
			t.Errorf("doc/operate.md: nobody makes the table %q", name)
		}
	}
}

func settings() string {
	var b strings.Builder
	b.WriteString("| setting | written as | default | meaning |\n| --- | --- | --- | --- |\n")
	for _, k := range config.Keys() {
		name := k.Env()
		if name == "" {
			name = k.YAML() + " (yaml only)"
		}
		kind, value := string(k.Kind), "–"
		if k.Kind == config.Choice {
			kind = strings.Join(k.Choices, ", ")
		}
		if k.Default != "" {
			value = "`" + k.Default + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", name, kind, value, k.Help)
	}
	return b.String()
}

func auditActions() string {
	var b strings.Builder
	b.WriteString("| action | meaning | subject |\n| --- | --- | --- |\n")
	for _, a := range audit.Actions() {
		subject := a.Subject
		if subject == "" {
			subject = "–"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", a.Name, a.Meaning, subject)
	}
	return b.String()
}

func source(t *testing.T, path ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(append([]string{"..", ".."}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// metrics reads the names out of the source: a registry shows only those that were counted already.
func metrics(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| metric | label | meaning |\n| --- | --- | --- |\n")
	found := regexp.MustCompile(`= (counter|vec|gauge)\("([a-z_]+)", "([^"]+)"(?:, "([a-z]+)")?\)`).FindAllStringSubmatch(source(t, "internal", "metrics", "metrics.go"), -1)
	if len(found) == 0 {
		t.Fatal("no metric was found in internal/metrics: has it changed its form?")
	}
	for _, m := range found {
		label := "–"
		if m[4] != "" {
			label = "`" + m[4] + "`"
		}
		fmt.Fprintf(&b, "| `hermes_mobile_%s` | %s | %s |\n", m[2], label, m[3])
	}
	return b.String()
}

// citation matches a reference to a page of doc/hermes at the end of a comment.
var citation = regexp.MustCompile(` \((relay-facts|doc/hermes/).*`)

// gatewayEvents are the values of the label of gateway_events_total.
func gatewayEvents(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| event | meaning |\n| --- | --- |\n")
	found := regexp.MustCompile(`Count[A-Z][a-z]+(?:[A-Z][a-z]+)? *= "([a-z_]+)" *// ([^\n]+)`).FindAllStringSubmatch(source(t, "internal", "agent", "relay", "metrics.go"), -1)
	if len(found) == 0 {
		t.Fatal("no event was found in internal/agent/relay: has it changed its form?")
	}
	for _, m := range found {
		text := citation.ReplaceAllString(m[2], "")
		fmt.Fprintf(&b, "| `%s` | %s |\n", m[1], text)
	}
	return b.String()
}

func firstDifference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("  document: %s\n  code:     %s", a[i], b[i])
		}
	}
	return fmt.Sprintf("  document: %d lines\n  code:     %d lines", len(a), len(b))
}
