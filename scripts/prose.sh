#!/usr/bin/env bash
# The words of the project: documents, comments, help, errors, log lines, the page's English, and the subjects of the last commits.
set -euo pipefail
cd "$(dirname "$0")/.."
vale() { go tool -modfile=tools/go.mod vale --output=line "$@"; }
source=$(git ls-files 'cmd/*.go' 'device/*.go' 'frame/*.go' 'gateway/*.go' 'internal/*.go' | grep -v _test.go)
said=$(mktemp -d)
trap 'rm -rf "$said"' EXIT
go build -C tools -o "$said/strings" ./strings
mkdir "$said/text"
# shellcheck disable=SC2086 # no name of a file has a space
"$said/strings" "$said/text" $source $(git ls-files 'web/src/i18n/en*')
status=0
# A subject is "scope: imperative", at most 72 characters. A clone without history has none.
git log -30 --no-merges --format=%s 2>/dev/null | grep -vE '^[a-z0-9/._-]+: [a-z].{2,}[^.]$' >"$said/subjects" || true
git log -30 --no-merges --format=%s 2>/dev/null | grep -E '^.{73,}$' >>"$said/subjects" || true
if [ -s "$said/subjects" ]; then
  echo 'subjects of commits that are not "scope: imperative" within 72 characters:'
  cat "$said/subjects"
  status=1
fi
# shellcheck disable=SC2046,SC2086
vale README.md CONTRIBUTING.md SECURITY.md $(git ls-files 'doc/*.md' 'test/conformance/*.md') $source || status=1
vale "$said/text" | sed "s|^$said/text/||" || status=1
exit $status
