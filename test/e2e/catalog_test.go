package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"hermes-mobile/test/hermes"
)

// TestCatalogEntry: the newer Hermes admits the plug-in of contrib/plugin-catalog to its catalog, and reads the entry that the script
// makes for it.
func TestCatalogEntry(t *testing.T) {
	python, err := hermes.Python(hermes.Versions[1])
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("../../contrib/plugin-catalog")
	if err != nil {
		t.Fatal(err)
	}
	run := func(name string, arguments ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, arguments...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "HERMES_HOME=" + t.TempDir(), "PYTHONDONTWRITEBYTECODE=1"}
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s %v: %v\n%s", name, arguments, err, out)
		}
		return string(out)
	}
	plugin := t.TempDir() + "/mobile-platform" // a copy, for the probe writes beside what it loads
	if err := os.CopyFS(plugin, os.DirFS(filepath.Join(root, "mobile-platform"))); err != nil {
		t.Fatal(err)
	}
	if said := run(filepath.Join(filepath.Dir(python), "hermes"), "plugins", "validate", plugin); !strings.Contains(said, "Validation passed") {
		t.Errorf("hermes plugins validate says\n%s", said)
	}

	const commit = "0123456789abcdef0123456789abcdef01234567"
	catalog := t.TempDir()
	entry := run(filepath.Join(root, "entry.sh"), "https://github.com/somebody/hermes-mobile.git", commit)
	if err := os.WriteFile(filepath.Join(catalog, "mobile-platform.yaml"), []byte(entry), 0o600); err != nil {
		t.Fatal(err)
	}
	var got []struct {
		Name, Repo, SHA, Subdir, Maintainer, Tier string
		Requires                                  string `json:"requires_hermes"`
	}
	out := run(python, "-c", `
import json, pathlib, sys
from hermes_cli.plugin_catalog import load_catalog
print(json.dumps([e.to_dict() for e in load_catalog(pathlib.Path(sys.argv[1]))]))`, catalog)
	if err := json.Unmarshal([]byte(out[strings.LastIndex(strings.TrimSpace(out), "\n")+1:]), &got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if len(got) != 1 || got[0].Name != "mobile-platform" || got[0].Repo != "https://github.com/somebody/hermes-mobile" || got[0].SHA != commit || got[0].Maintainer != "somebody" ||
		got[0].Tier != "community" || got[0].Requires != ">=0.22" {
		t.Errorf("Hermes reads the entry as %+v\n%s", got, out)
	} else if _, err := os.Stat(filepath.Join(root, "..", "..", got[0].Subdir, "plugin.yaml")); err != nil {
		t.Errorf("the entry names a folder without a plug-in: %v", err)
	}
	for _, wrong := range [][]string{{"git@github.com:somebody/x"}, {"https://github.com/somebody/x", "main"}, {"https://github.com/somebody/x", strings.ToUpper(commit)}} {
		if out, err := exec.CommandContext(t.Context(), filepath.Join(root, "entry.sh"), wrong...).CombinedOutput(); err == nil {
			t.Errorf("%v makes an entry:\n%s", wrong, out)
		}
	}
}
