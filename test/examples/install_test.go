package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What doc/clients.md says about taking the libraries into a project of one's own works, line by line.
func TestInstall(t *testing.T) {
	t.Parallel()
	found := blocks(t, "clients.md", "run")
	for name, project := range map[string]struct {
		tool   string
		files  map[string]string // of the project before
		checks string            // that it can be used
	}{
		"go": {
			tool: "go",
			files: map[string]string{
				"go.mod":  "module example.com/mine\n\ngo 1.26\n",
				"main.go": "package main\n\nimport \"hermes-mobile/device\"\n\nfunc main() { _ = device.NewMemoryStore() }\n",
			},
			checks: "go vet ./...",
		},
		"npm": {
			tool:   "npm",
			files:  map[string]string{"package.json": `{"name": "mine", "version": "1.0.0", "type": "module"}`},
			checks: `node -e "import('@hermes-mobile/sdk').then(({ open }) => process.exit(typeof open === 'function' ? 0 : 1))"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(project.tool); err != nil {
				t.Skipf("there is no %s here", project.tool)
			}
			lines, fenced := strings.CutPrefix(strings.TrimSuffix(strings.TrimSpace(found[name]), "```"), "```sh\n")
			if !fenced || lines == "" {
				t.Fatal("doc/clients.md does not say how")
			}
			dir := t.TempDir()
			mine := filepath.Join(dir, "mine")
			run := func(where, script string) {
				t.Helper()
				cmd := exec.Command("sh", "-ec", script)
				cmd.Dir = where
				cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "npm_config_update_notifier=false")
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%s: %v\n%s", script, err, out)
				}
			}
			if err := os.MkdirAll(mine, 0o700); err != nil {
				t.Fatal(err)
			}
			root, err := filepath.Abs("../..")
			if err != nil {
				t.Fatal(err)
			}
			run(dir, "git clone -q --shared '"+root+"' hermes-mobile")
			for file, text := range project.files {
				if err := os.WriteFile(filepath.Join(mine, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			run(mine, lines)
			run(mine, project.checks)
		})
	}
}
