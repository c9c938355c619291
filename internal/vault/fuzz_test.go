package vault

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzVault: a vault that was damaged gives no credential that was not saved in it, and what is
// wrong with it quotes nothing of it.
func FuzzVault(f *testing.F) {
	for _, text := range []string{"", "age-encryption.org/v1\n-> X25519 a\nb\n--- c\n", "-----BEGIN AGE ENCRYPTED FILE-----\n", "AGE-SECRET-KEY-1AAAA", `{"schema":1}`, "age-encryption.org/v1\n-> scrypt AAAA 60\nA\n--- A\n"} {
		f.Add([]byte(text), []byte(text))
	}
	f.Fuzz(func(t *testing.T, keyText, secretText []byte) {
		dir := t.TempDir()
		for name, text := range map[string][]byte{keyFile: keyText, secretFile: secretText} {
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		v, err := Open(Options{Dir: dir, Key: key})
		if err == nil {
			var s Secrets
			if s, err = v.Load(home); err == nil && len(s) > 0 {
				t.Fatalf("credentials come out of %q", secretText)
			}
		}
		if err != nil && len(secretText) > 20 && strings.Contains(err.Error(), string(secretText)) {
			t.Fatalf("it is quoted: %v", err)
		}
	})
}
