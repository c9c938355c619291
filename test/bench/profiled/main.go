// Profiled is the server with net/http/pprof on the address BENCH_PPROF: the product has no such
// door. It takes its settings from the environment only.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	_ "net/http/pprof"
	"os"
	"os/signal"
	"syscall"
	"time"

	"hermes-mobile/internal/config"
	"hermes-mobile/internal/server"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "profiled:", err)
		os.Exit(1)
	}
}

func run() error {
	cfg, _, err := config.Load(config.FromOS())
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s, err := server.New(ctx, cfg, "profiled", slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	if err != nil {
		return err
	}
	if addr := os.Getenv("BENCH_PPROF"); addr != "" {
		profiles := &http.Server{Addr: addr, ReadHeaderTimeout: 10 * time.Second}
		defer func() { _ = profiles.Close() }()
		go func() { _ = profiles.ListenAndServe() }()
	}
	return s.Run(ctx)
}
