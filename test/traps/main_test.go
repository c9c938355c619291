package traps

import (
	"flag"
	"os"
	"testing"

	"hermes-mobile/internal/leak"
	"hermes-mobile/test/e2e"
)

// atOnce is how many tests may run at a time unless -parallel says otherwise: most of their time is waiting.
const atOnce = "6"

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
