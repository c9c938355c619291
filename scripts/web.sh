#!/usr/bin/env bash
# Checks the web page: lint, types, unit tests, whether the committed build matches the source, its
# size, and the page in a real Chromium against the built server. Arguments name the browser tests
# to run, such as: scripts/web.sh security. scripts/web.sh lint only lints web/ and sdk/ts.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
if ! why=$(bash test/web/node.sh 2>&1); then
  echo "web: skipped, $why"
  exit 0
fi
cd web
if grep -q '"resolved"' package-lock.json; then
  echo "web/package-lock.json names a registry: install again with web/.npmrc"
  exit 1
fi
bash "$root/test/web/packages.sh"
(cd "$root" && web/node_modules/.bin/biome ci --error-on-warnings --colors=off)
if [ "${1:-}" = lint ]; then exit 0; fi
npx tsc --noEmit
node test/run.mjs unit
built=$(mktemp -d)
trap 'rm -rf "$built"' EXIT
node build.mjs "$built"
if ! diff -rq "$built" "$root/internal/web/dist"; then
  echo "internal/web/dist doesn't match web/: run make web-build and commit it"
  exit 1
fi
node test/size.mjs "$built"
if ! why=$(bash "$root/test/web/install.sh" 2>&1); then
  echo "web: the browser tests are skipped: $why"
  exit 0
fi
if [ $# -gt 0 ]; then node test/run.mjs "$@"; else node test/run.mjs e2e; fi
