package chaos

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hermes-mobile/internal/leak"
)

var (
	seedFlag = flag.Uint64("seed", 0, "repeat the plan of a run; 0: a new one")
	onlyFlag = flag.String("moments", "", "a comma list of the kinds of moments to hit, such as reply,card; empty: all")
	keepFlag = flag.String("keep", "", "copy the server's log and database of a failed test into this folder")
)

// The built server, and the phone that is a process of its own.
var binary, phoneBinary string

func TestMain(m *testing.M) {
	flag.Parse()
	if *onlyFlag != "" {
		kinds = strings.Split(*onlyFlag, ",")
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if status, ran := withOwnMounts(); ran {
		return status
	}
	dir, err := os.MkdirTemp("", "hermes-mobile-chaos-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := build(dir, "hermes-mobile/cmd/hermes-mobile", "hermes-mobile/test/chaos/phone"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	binary, phoneBinary = filepath.Join(dir, "hermes-mobile"), filepath.Join(dir, "phone")
	return leak.Status(m.Run())
}

// newRand returns the random numbers of a test and prints the seed.
func newRand(t *testing.T) (*rand.Rand, uint64) {
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d (repeat with: go test -race ./test/chaos -run %s -seed %d)", seed, t.Name(), seed)
	return rand.New(rand.NewPCG(seed, 0)), seed
}
