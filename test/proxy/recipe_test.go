package proxy

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// name is the host of the recipes. Nothing resolves it: the tests dial the proxy wherever it leads.
const name = "agent.example.com"

var fenced = regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)^```$")

// recipe reads the one block of a language in the section on proxies of doc/internet.md.
func recipe(t *testing.T, language string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "doc", "internet.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## Put it behind a reverse proxy\n")
	if !found {
		t.Fatal("doc/internet.md has no section Put it behind a reverse proxy")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	block := ""
	for _, m := range fenced.FindAllStringSubmatch(section, -1) {
		if m[1] != language {
			continue
		}
		if block != "" {
			t.Fatalf("doc/internet.md has two blocks %s on proxies", language)
		}
		block = m[2]
	}
	if block == "" {
		t.Fatalf("doc/internet.md has no block %s on proxies", language)
	}
	return block
}

// change makes another setting out of that of a recipe.
type change func(t *testing.T, text string) string

// swap replaces what stands in a recipe exactly once.
func swap(old, new string) change {
	return func(t *testing.T, text string) string {
		t.Helper()
		if n := strings.Count(text, old); n != 1 {
			t.Fatalf("the recipe has %q %d times, not once:\n%s", old, n, text)
		}
		return strings.Replace(text, old, new, 1)
	}
}

// without takes away the one line that has a text.
func without(part string) change {
	return func(t *testing.T, text string) string {
		t.Helper()
		var kept []string
		lines := strings.SplitAfter(text, "\n")
		for _, line := range lines {
			if !strings.Contains(line, part) {
				kept = append(kept, line)
			}
		}
		if len(kept) != len(lines)-1 {
			t.Fatalf("the recipe has %d lines with %q, not one:\n%s", len(lines)-len(kept), part, text)
		}
		return strings.Join(kept, "")
	}
}

// relayLine takes away what the recipe says to leave out where a gateway dials in from outside.
func relayLine(kind string) change {
	return without(map[string]string{"caddy": "respond /relay*", "nginx": "location /relay", "haproxy": "path_beg /relay"}[kind])
}
