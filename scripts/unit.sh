#!/usr/bin/env bash
# The Go tests that need nothing but Go, with the race detector. It leaves alone what would take many times as long and runs in one goroutine
# at a time: SQLite, which is a translated C program, its memory, and scrypt. Not more: a package with generic code of its own makes such
# code for all packages, and the detector would see races where there are none.
set -euo pipefail
cd "$(dirname "$0")/.."
plain=()
for package in modernc.org/sqlite/lib modernc.org/memory golang.org/x/crypto/scrypt; do
  plain+=("-gcflags=$package=-race=false")
done
go test -race "${plain[@]}" -timeout 10m $(go list ./... | grep -v '/test/') 2>&1 | { grep -av 'no test files' || true; }
