package term

import (
	"context"
	"fmt"
	"os"
	"testing"

	"hermes-mobile/device"
	"hermes-mobile/frame"
	"hermes-mobile/internal/leak"
)

// childServer names the server with which the test binary chats in its terminal.
const childServer = "TERM_TEST_SERVER"

func TestMain(m *testing.M) {
	if url := os.Getenv(childServer); url != "" {
		if err := Run(context.Background(), Options{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, SaveDir: os.TempDir(), NoColor: true,
			Config: device.Config{URL: url, Token: "t", Device: frame.Device{ID: "term-1"}}}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	leak.Main(m)
}
