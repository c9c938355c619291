#!/usr/bin/env bash
# The TypeScript SDK: types made from the package frame, strict types, tests against the built server, size of the bundle, and its
# documentation without warnings. The tools are installed once, into the SDK's own folder.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! command -v npm >/dev/null || [ "$(node -p 'parseInt(process.versions.node)')" -lt 20 ]; then
  echo "sdk: npm and Node 20 or later are not here, left out"
  exit 0
fi
go test ./sdk/ts/generate | { grep -av '^ok' || true; }
[ -x bin/hermes-mobile ] || make -s build
cd sdk/ts
if grep -qE '"resolved"|"registry"' package-lock.json; then
  echo "sdk: package-lock.json names a registry: make it anew beside .npmrc, with npm install --package-lock-only"
  exit 1
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# quiet runs a command and shows what it said only where it failed.
quiet() {
  if ! "$@" >"$log" 2>&1; then
    echo "sdk: failed: $*"
    cat "$log"
    exit 1
  fi
}
if ! cmp -s package-lock.json node_modules/.installed; then
  quiet npm ci
  cp package-lock.json node_modules/.installed
fi
rm -rf dist
quiet npx tsc -p tsconfig.build.json
quiet npx tsc -p tsconfig.json
quiet npx tsc -p tsconfig.consumer.json
node build.mjs
if ! node --test --test-concurrency=2 --test-reporter=spec --enable-source-maps build/test/*.test.mjs >"$log" 2>&1; then
  sed -n '/failing tests:/,$p' "$log"
  exit 1
fi
echo "sdk: $(sed -n 's/^. pass //p' "$log") tests passed, $(sed -n 's/^. skipped //p' "$log") left out"
quiet npx typedoc --treatWarningsAsErrors
