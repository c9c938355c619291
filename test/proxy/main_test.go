package proxy

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"hermes-mobile/internal/leak"
	"hermes-mobile/test/e2e"
)

// atOnce is how many subtests may run at a time unless -parallel says otherwise: nearly all of their time is waiting.
const atOnce = "16"

func TestMain(m *testing.M) {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		_ = flag.Set("test.parallel", atOnce)
	}
	code := m.Run()
	e2e.Tidy()
	os.Exit(leak.Status(code))
}

// installed is what install.sh says of each proxy: its path, or "- " and why there is none.
var installed = sync.OnceValues(func() (map[string]string, error) {
	cmd := exec.Command("bash", "install.sh")
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("install.sh: %w\n%s", err, complaint.String())
	}
	found := map[string]string{}
	for line := range strings.Lines(string(out)) {
		name, where, _ := strings.Cut(strings.TrimSpace(line), " ")
		found[name] = where
	}
	return found, nil
})

// program is the path of a proxy. Where there is none to be had the test is left out, and says why.
func program(t *testing.T, name string) string {
	t.Helper()
	found, err := installed()
	if err != nil {
		t.Fatal(err)
	}
	if why, none := strings.CutPrefix(found[name], "- "); none {
		t.Skipf("%s: %s", name, why)
	}
	return found[name]
}

// each runs a test with Caddy and nginx, at the same time.
func each(t *testing.T, f func(t *testing.T, kind string)) {
	t.Helper()
	with(t, []string{"caddy", "nginx"}, f)
}

// every is each with HAProxy, too.
func every(t *testing.T, f func(t *testing.T, kind string)) {
	t.Helper()
	with(t, []string{"caddy", "nginx", "haproxy"}, f)
}

func with(t *testing.T, kinds []string, f func(t *testing.T, kind string)) {
	t.Helper()
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			program(t, kind)
			f(t, kind)
		})
	}
}
