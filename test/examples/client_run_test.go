package examples

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// programs are those that doc/clients.md shows as they are. Those in TypeScript and Kotlin are run by the tests of the SDK.
var programs = map[string]string{"test/examples/client/main.go": "go", "sdk/ts/example/client.ts": "ts", "sdk/kotlin/src/Hermes.kt": "kotlin"}

func TestPrograms(t *testing.T) {
	shown := func(path string) string {
		return "```" + programs[path] + "\n" + source(t, strings.Split(path, "/")...) + "```\n"
	}
	if *update {
		rewrite(t, "clients.md", "file", shown)
	}
	found := blocks(t, "clients.md", "file")
	for path := range programs {
		if found[path] != shown(path) {
			t.Errorf("doc/clients.md does not show %s as it is; write it anew with -update", path)
		}
	}
}

// The Go program of doc/clients.md works.
func TestGoClient(t *testing.T) {
	s := startServer(t)
	var invitation struct{ Code string }
	if err := json.Unmarshal(s.command("pair", "--json"), &invitation); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "client")
	if out, err := exec.Command("go", "build", "-o", program, "./client").CombinedOutput(); err != nil {
		t.Fatalf("build the client: %v\n%s", err, out)
	}
	for _, code := range []string{invitation.Code, ""} { // the second time it has a token of its own
		client := exec.CommandContext(t.Context(), program)
		client.Dir = dir
		client.Env = append(os.Environ(), "HERMES_URL="+s.address, "HERMES_PAIR="+code)
		out, err := client.CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != "You said: What is the weather?" {
			t.Errorf("the client printed %q (%v)", out, err)
		}
	}
}

// Every library that go.mod asks for has its place in doc/decisions.md.
func TestDecisions(t *testing.T) {
	_, text := document(t, "decisions.md")
	n := 0
	for line := range strings.Lines(source(t, "go.mod")) {
		fields := strings.Fields(line)
		if len(fields) != 2 || !strings.HasPrefix(fields[1], "v") {
			continue // no requirement, or an indirect one
		}
		n++
		name := strings.TrimPrefix(fields[0], "github.com/")
		if i := strings.LastIndex(name, "/v"); i > 0 {
			name = name[:i]
		}
		if !strings.Contains(text, name) {
			t.Errorf("doc/decisions.md says nothing of %s", fields[0])
		}
	}
	if n == 0 {
		t.Error("no requirement was found in go.mod")
	}
}
