#!/usr/bin/env bash
# Formatting, vet and staticcheck; govulncheck where its database can be reached.
set -euo pipefail
cd "$(dirname "$0")/.."
unformatted=$(gofmt -l cmd device frame gateway internal sdk/ts/generate test)
if [ -n "$unformatted" ]; then
  echo "not formatted with gofmt:"
  echo "$unformatted"
  exit 1
fi
go vet ./...
go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...
for module in test/bench test/bench/openai test/bench/yardstick/go; do # of their own, so that the product needs nothing of theirs
  if ! (cd $module && go mod download) 2>/dev/null; then
    echo "$module: what it needs cannot be had here, left out"
    continue
  fi
  (cd $module && go vet ./... && go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...)
done
if ! out=$(timeout 120 go run golang.org/x/vuln/cmd/govulncheck@v1.9.0 ./... 2>&1); then
  case "$out" in
    *"vuln.go.dev"* | *"dial tcp"* | *"no such host"* | *"connection refused"* | "") echo "govulncheck: its database cannot be reached from here, left out" ;;
    *)
      echo "$out"
      exit 1
      ;;
  esac
fi
