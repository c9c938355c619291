package traps

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

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
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
