#!/usr/bin/env bash
# Every fuzz target for a while: FUZZTIME=30s make fuzz
set -euo pipefail
cd "$(dirname "$0")/.."
for pkg in $(go list ./...); do
  for target in $(go test -list '^Fuzz' "$pkg" | grep '^Fuzz' || true); do
    go test -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-30s}" -fuzzminimizetime 1x "$pkg"
  done
done
