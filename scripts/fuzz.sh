#!/usr/bin/env bash
# Every fuzz target for a while, ten seconds unless FUZZTIME says otherwise: FUZZTIME=10m make fuzz
set -euo pipefail
cd "$(dirname "$0")/.."
for pkg in $(go list ./...); do
  for target in $(go test -list '^Fuzz' "$pkg" | grep '^Fuzz' || true); do
    seeds=$(go test -run "^$target\$" -v "$pkg" | grep -c "=== RUN   $target/" || true)
    if [ "$seeds" -eq 0 ]; then
      echo "$pkg: $target has no seeds" >&2
      exit 1
    fi
    go test -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-10s}" -fuzzminimizetime 1x "$pkg"
  done
done
