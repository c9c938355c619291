package e2e

import (
	"flag"
	"os"
	"testing"
)

// atOnce is how many subtests may run at a time unless -parallel says otherwise: nearly all of their time is waiting.
const atOnce = "24"

func TestMain(m *testing.M) {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		_ = flag.Set("test.parallel", atOnce)
	}
	code := m.Run()
	Tidy()
	os.Exit(code)
}
