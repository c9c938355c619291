package server

import (
	"os"
	"path/filepath"
	"testing"

	"hermes-mobile/internal/config"
	"hermes-mobile/internal/doctor"
	"hermes-mobile/internal/passhash"
)

// An admin token in a file is told of until its hash is in its place.
func TestDoctorAdminTokenInClear(t *testing.T) {
	hash := passhash.New(passhash.Cost{Memory: 64, Passes: 1, Lanes: 1}, adminSecret).String()
	for name, tt := range map[string]struct {
		yaml, dotenv string
		environ      []string
		says         string
	}{
		"in hermes-mobile.yaml":  {yaml: "admin_token: " + adminSecret + "\n", says: "hermes-mobile.yaml, line 1"},
		"in the .env of Hermes":  {dotenv: "MOBILE_ADMIN_TOKEN=" + adminSecret + "\n", says: ".env, line 1"},
		"as a hash":              {yaml: "admin_token: '" + hash + "'\n"},
		"in the environment":     {environ: []string{"MOBILE_ADMIN_TOKEN=" + adminSecret}},
		"in a file, of no use":   {yaml: "admin_token: " + adminSecret + "\nadmin: local\n"},
		"a hash that hides that": {yaml: "admin_token: " + adminSecret + "\n", environ: []string{"MOBILE_ADMIN_TOKEN=" + hash}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t)
			for path, text := range map[string]string{filepath.Join(dir, "data", "hermes-mobile.yaml"): tt.yaml, filepath.Join(dir, "none", ".env"): tt.dotenv} {
				if text != "" {
					ok(t, os.MkdirAll(filepath.Dir(path), 0o700))
					ok(t, os.WriteFile(path, []byte(text), 0o600))
				}
			}
			r := startIn(t, dir, append(tt.environ, "MOBILE_TOKEN="+mainToken)...)
			list := r.examined()
			if tt.says == "" {
				mustNotFind(t, list, "admin_token_in_clear")
				return
			}
			if f := mustFind(t, list, "admin_token_in_clear", tt.says, "hermes-mobile admin hash"); f.Severity != doctor.Note {
				t.Errorf("it is a %s", f.Severity)
			}
			// Without a server the settings alone tell it, too.
			cfg, _, err := config.Load(config.Sources{Environ: []string{"MOBILE_DATA=" + r.cfg.Data, "HERMES_HOME=" + r.cfg.HermesHome, "MOBILE_AGENT=demo"}, HomeDir: dir})
			ok(t, err)
			mustFind(t, doctor.Check(&doctor.Facts{Config: cfg}), "admin_token_in_clear", tt.says)
		})
	}
}
