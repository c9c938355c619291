#!/usr/bin/env bash
# Format, faults and words: gofmt, golangci-lint, Biome, the prose check, and govulncheck where its database can be reached. The linters are
# pinned in tools/go.mod, Biome in web/package.json.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
tool() { go tool -modfile="$root/tools/go.mod" "$@"; }
unformatted=$(gofmt -l cmd device frame gateway internal sdk/ts/generate test tools)
if [ -n "$unformatted" ]; then
  echo "not formatted with gofmt:"
  echo "$unformatted"
  exit 1
fi
tool golangci-lint run ./...
for module in tools test/bench test/bench/openai test/bench/yardstick/go; do # of their own, so that the product needs nothing of theirs
  if ! (cd $module && go mod download) 2>/dev/null; then
    echo "$module: its dependencies cannot be downloaded, skipped"
    continue
  fi
  (cd $module && go vet ./... && tool golangci-lint run --enable-only staticcheck,unused,ineffassign ./...)
done
bash scripts/prose.sh
bash scripts/web.sh lint
if ! out=$(timeout 120 go tool -modfile=tools/go.mod govulncheck ./... 2>&1); then
  case "$out" in
    *"vuln.go.dev"* | *"dial tcp"* | *"no such host"* | *"connection refused"* | "") echo "govulncheck: its database cannot be reached from here, skipped" ;;
    *)
      echo "$out"
      exit 1
      ;;
  esac
fi
