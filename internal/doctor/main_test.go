package doctor

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"hermes-mobile/internal/config"
	"hermes-mobile/internal/leak"
	"hermes-mobile/internal/setup"
)

func TestMain(m *testing.M) { leak.Main(m) }

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func codes(list []Issue) (out []string) {
	for _, f := range list {
		out = append(out, f.Code)
	}
	return out
}

// mustFind requires a complete issue whose text or fix contains says, and returns it.
func mustFind(t testing.TB, list []Issue, code string, says ...string) Issue {
	t.Helper()
	i := slices.IndexFunc(list, func(f Issue) bool { return f.Code == code })
	if i < 0 {
		t.Fatalf("no %s in %q", code, codes(list))
	}
	f := list[i]
	if f.Severity != table[code].Severity || f.Text == "" || f.Do == "" || f.See != "doc/troubleshooting.md#"+code || strings.Contains(f.Text+f.Do, "%!") || !strings.HasSuffix(f.Text, ".") {
		t.Errorf("%+v", f)
	}
	for _, s := range says {
		if !strings.Contains(f.Text+"\n"+f.Do, s) {
			t.Errorf("%s does not say %q: %s\n%s", code, s, f.Text, f.Do)
		}
	}
	return f
}

// mustNotFind demands that codes are missing.
func mustNotFind(t testing.TB, list []Issue, codes ...string) {
	t.Helper()
	for _, f := range list {
		if slices.Contains(codes, f.Code) {
			t.Errorf("%s: %s", f.Code, f.Text)
		}
	}
}

const gatewaySecret = "c3a7f0d1e2b4958677889900aabbccddeeff00112233445566778899aabbccdd"

// hermesHome is a Hermes home in a folder of its own.
type hermesHome struct {
	t    *testing.T
	path string
	data string
}

func newHome(t *testing.T, configYAML, env string) *hermesHome {
	t.Helper()
	dir := t.TempDir()
	h := &hermesHome{t, filepath.Join(dir, ".hermes"), filepath.Join(dir, "data")}
	ok(t, os.MkdirAll(h.path, 0o700))
	h.write("config.yaml", configYAML)
	h.write(".env", env)
	return h
}

func (h *hermesHome) write(name, text string) {
	h.t.Helper()
	path := filepath.Join(h.path, filepath.FromSlash(name))
	ok(h.t, os.MkdirAll(filepath.Dir(path), 0o700))
	ok(h.t, os.WriteFile(path, []byte(text), 0o600))
}

// runs makes this process the gateway of the home, by the file that a gateway leaves.
func (h *hermesHome) runs() *hermesHome {
	h.t.Helper()
	h.write("gateway.pid", `{"pid": `+strconv.Itoa(os.Getpid())+`, "kind": "hermes-gateway"}`)
	return h
}

// config are the settings of a server for this home.
func (h *hermesHome) config(environ ...string) *config.Config {
	h.t.Helper()
	base := []string{"MOBILE_DATA=" + h.data, "HERMES_HOME=" + h.path, "MOBILE_AGENT=relay", "MOBILE_RELAY_ID=gw-home", "MOBILE_RELAY_SECRET=" + gatewaySecret}
	cfg, _, err := config.Load(config.Sources{Environ: append(base, environ...), HomeDir: filepath.Dir(h.path)})
	ok(h.t, err)
	return cfg
}

// look is what the doctor sees of a home without a server.
func (h *hermesHome) look(version string, environ ...string) *Facts {
	h.t.Helper()
	cfg := h.config(environ...)
	v, _ := setup.ParseVersion(version)
	f := &Facts{Now: time.Now(), Config: cfg, Gateways: cfg.Gateways}
	f.Hermes = ProbeHermes(h.t.Context(), cfg, nil)
	f.Hermes.Version = v
	return f
}

func (h *hermesHome) examine(version string, environ ...string) []Issue {
	h.t.Helper()
	return Check(h.look(version, environ...))
}

// testdata is a config.yaml that setup is tested with.
func testdata(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "setup", "testdata", name))
	ok(t, err)
	return string(text)
}

const (
	rightEnv = "GATEWAY_RELAY_ID=gw-home\nGATEWAY_RELAY_SECRET=" + gatewaySecret + "\n"
	model    = "model: {default: some-model, provider: custom}\n"
)

// right is a config.yaml that has nothing wrong for 0.22, with the plug-in left out.
func right(t *testing.T) string {
	t.Helper()
	return model + strings.Replace(testdata(t, "relay-right.yaml"), "plugins: {enabled: [mobile-platform]}\n", "", 1)
}

// rightOld is the same for 0.19.
func rightOld(t *testing.T) string {
	t.Helper()
	return strings.Replace(right(t), "streaming: {enabled: true}", "streaming: {enabled: false}", 1)
}
