#!/usr/bin/env bash
# The web page: types, unit tests, the committed build against the source, its size, and the page in a real Chromium against the built
# server. Words given are names of tests to run in the browser, such as: scripts/web.sh security
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
if ! why=$(bash test/web/node.sh 2>&1); then
  echo "web: left out, $why"
  exit 0
fi
cd web
if grep -q '"resolved"' package-lock.json; then
  echo "web/package-lock.json names where packages come from: install again, with the .npmrc of this folder"
  exit 1
fi
bash "$root/test/web/packages.sh"
npx tsc --noEmit
node test/run.mjs unit
built=$(mktemp -d)
trap 'rm -rf "$built"' EXIT
node build.mjs "$built"
if ! diff -rq "$built" "$root/internal/web/dist"; then
  echo "internal/web/dist is not what web/ builds: run make web-build and commit it"
  exit 1
fi
node test/size.mjs "$built"
if ! why=$(bash "$root/test/web/install.sh" 2>&1); then
  echo "web: the tests in a browser are left out: $why"
  exit 0
fi
if [ $# -gt 0 ]; then node test/run.mjs "$@"; else node test/run.mjs e2e; fi
