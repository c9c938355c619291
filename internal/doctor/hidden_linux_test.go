package doctor

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// The settings of a Hermes that belongs to another account are not judged, whether they cannot be read or, as within a
// service that hides the homes, are not there at all.
func TestHermesOfAnotherAccount(t *testing.T) {
	const other = 54601
	if dir := os.Getenv("TEST_HIDDEN"); dir != "" {
		h := &hermesHome{t, dir, os.Getenv("TEST_DATA")}
		list := Check(h.look("", "HERMES_HOME="+dir))
		_ = json.NewEncoder(os.Stdout).Encode(codes(list)) // the parent reads it
		mustFind(t, list, "hermes_hidden", dir, "setup --print")
		for _, line := range Checked(h.look("")) {
			if strings.Contains(line, "not running") {
				t.Error(line)
			}
		}
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can be somebody else")
	}
	for name, prepare := range map[string]func(h *hermesHome){
		"unreadable": func(h *hermesHome) {},
		"locked":     func(h *hermesHome) { ok(t, os.Chmod(h.path, 0o700)) },
		"empty": func(h *hermesHome) {
			ok(t, os.Remove(filepath.Join(h.path, "config.yaml")))
			ok(t, os.Remove(filepath.Join(h.path, ".env")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t, right(t), rightEnv)
			for dir := h.path; strings.HasPrefix(dir, os.TempDir()+"/"); dir = filepath.Dir(dir) {
				ok(t, os.Chmod(dir, 0o755))
			}
			prepare(h)
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHermesOfAnotherAccount$")
			cmd.Env = append(os.Environ(), "TEST_HIDDEN="+h.path, "TEST_DATA="+filepath.Join(t.TempDir(), "data"), "TMPDIR=/tmp")
			cmd.Dir = "/"
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: other, Gid: other}}
			exe, err := os.ReadFile(os.Args[0])
			ok(t, err)
			cmd.Path = filepath.Join(filepath.Dir(h.path), "test")
			ok(t, os.WriteFile(cmd.Path, exe, 0o755))
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for _, code := range []string{"relay_not_configured", "model_missing", "hermes_missing", "gateway_not_running", "hermes_unreadable"} {
				if strings.Contains(string(out), `"`+code+`"`) {
					t.Errorf("it finds %s: %s", code, out)
				}
			}
		})
	}
}
