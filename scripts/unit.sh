#!/usr/bin/env bash
# The Go tests that need nothing but Go, with the race detector.
set -euo pipefail
cd "$(dirname "$0")/.."
go test -race -timeout 10m $(go list ./... | grep -v '/test/') 2>&1 | { grep -v 'no test files' || true; }
