package access

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// hermesPairing runs one method of Hermes' own PairingStore, taken out of a
// wheel. Only what the module imports from the rest of Hermes is stood in for.
const hermesPairing = `
import json, os, sys, types
wheel, home, method, *args = sys.argv[1:]
os.environ["HERMES_HOME"] = home
sys.path.insert(0, wheel)
gateway = types.ModuleType("gateway")
gateway.__path__ = [wheel + "/gateway"]
sys.modules["gateway"] = gateway
same = types.ModuleType("gateway.whatsapp_identity")
same.expand_whatsapp_aliases = lambda i: {i}
same.normalize_whatsapp_identifier = lambda i: i
sys.modules[same.__name__] = same
for name in ("yaml", "hermes_yaml"):
    try:
        __import__(name)
    except ImportError:
        sys.modules[name] = types.ModuleType(name)
from gateway.pairing import PairingStore
out, sys.stdout = sys.stdout, sys.stderr
json.dump(getattr(PairingStore(), method)(*args), out)
`

// TestWithHermes runs the pairing code of real Hermes wheels against ours.
// HERMES_WHEELS is a glob of them; without it the test is skipped.
func TestWithHermes(t *testing.T) {
	wheels, _ := filepath.Glob(os.Getenv("HERMES_WHEELS"))
	if len(wheels) == 0 {
		t.Skip("HERMES_WHEELS is not set")
	}
	for _, wheel := range wheels {
		t.Run(strings.TrimSuffix(filepath.Base(wheel), "-py3-none-any.whl"), func(t *testing.T) {
			home := t.TempDir()
			hermes := func(method string, args ...string) string {
				t.Helper()
				cmd := exec.Command("python3", append([]string{"-c", hermesPairing, wheel, home, method}, args...)...)
				var stderr strings.Builder
				cmd.Stderr = &stderr
				out, err := cmd.Output()
				if err != nil {
					t.Fatal(err, stderr.String())
				}
				return string(out)
			}
			expect := func(said string, parts ...string) {
				t.Helper()
				for _, part := range parts {
					if !strings.Contains(said, part) {
						t.Fatalf("%s lacks %s", said, part)
					}
				}
			}
			p := must[*Pairing](t)(OpenPairing(PairingDir(home), "mobile"))
			again := strings.Contains(wheel, "agent_iot") // takes request ids and more

			// Ours asks, Hermes approves and revokes.
			code := must[string](t)(p.Request("tel-1", "Anna é"))
			expect(hermes("list_pending"), `"tel-1"`, `"Anna \u00e9"`)
			expect(hermes("generate_code", "mobile", "tel-1"), "null") // the same limit
			expect(hermes("approve_code", "mobile", strings.ToLower(code)), `"tel-1"`)
			if !p.Approved("tel-1") || len(pending(t, p)) != 0 {
				t.Error("Hermes' approval is not seen")
			}
			expect(hermes("revoke", "mobile", "tel-1"), "true")
			if p.Approved("tel-1") {
				t.Error("Hermes' revocation is not seen")
			}

			// Hermes asks, ours approves and revokes.
			code = strings.Trim(hermes("generate_code", "mobile", "tel-2", "Bob"), `"`)
			must[User](t)(p.Approve(FormatCode(code)))
			expect(hermes("list_approved"), `"tel-2"`, `"Bob"`)
			expect(hermes("is_approved", "mobile", "tel-2"), "true")
			if err := p.Revoke("tel-2"); err != nil {
				t.Fatal(err)
			}
			expect(hermes("is_approved", "mobile", "tel-2"), "false")
			if again {
				must[string](t)(p.Request("tel-3", ""))
				expect(hermes("approve_request", "mobile", pending(t, p)[0].RequestID), `"tel-3"`)
			}

			// Wrong codes count together, and lock both.
			must[string](t)(p.Request("tel-4", ""))
			id := pending(t, p)[0].RequestID
			for range 3 {
				expect(hermes("approve_code", "mobile", "ZZZZZZZZ"), "null")
			}
			p.Approve("ZZZZZZZZ")
			_, err := p.Approve("ZZZZZZZZ")
			wantErr(t, err, ErrLocked)
			expect(hermes("_is_locked_out", "mobile"), "true")
			must[User](t)(p.Approve(id))
			expect(hermes("is_approved", "mobile", "tel-4"), "true")

			hermes("clear_pending")
			if err := p.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}
