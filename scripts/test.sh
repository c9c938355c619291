#!/usr/bin/env bash
# All tests, quiet: only summaries and failures. Each part can be run alone by its make target.
set -euo pipefail
cd "$(dirname "$0")/.."
failed=()
part() {
  local name=$1 began=$SECONDS
  shift
  if "$@"; then
    echo "== $name: ok ($((SECONDS - began)) s)"
  else
    echo "== $name: FAILED ($((SECONDS - began)) s)"
    failed+=("$name")
  fi
}
make --no-print-directory build
# The conformance suite does little but wait, so it runs beside others.
said=$(mktemp)
trap 'rm -f "$said"' EXIT
bash scripts/conformance.sh >"$said" 2>&1 &
conformance() {
  local status=0
  wait "$1" || status=$?
  cat "$said"
  return "$status"
}
beside=$!
part lint bash scripts/lint.sh
part unit bash scripts/unit.sh
part sdk bash scripts/sdk.sh
part conformance conformance "$beside"
part e2e bash scripts/e2e.sh
part web bash scripts/web.sh
if [ ${#failed[@]} -gt 0 ]; then
  echo "failed: ${failed[*]}"
  exit 1
fi
