#!/usr/bin/env bash
# What to run before each commit, in less than two minutes: build, vet, the unit tests without the race detector, and the types of the page.
set -euo pipefail
cd "$(dirname "$0")/.."
go build ./...
go vet ./...
go test $(go list ./... | grep -v '/test/') 2>&1 | { grep -av 'no test files\|^ok' || true; }
if [ -d web/node_modules ]; then (cd web && npx tsc --noEmit); else echo "types of the page: skipped, run make web-build once"; fi
