#!/usr/bin/env bash
# Runs the black-box suite of the device protocol (test/conformance) against the built binary.
# Prints failures, skips and the summary. Arguments are passed on: scripts/conformance.sh --fast
set -euo pipefail
cd "$(dirname "$0")/.."
python=$(bash scripts/python.sh conformance 'websockets==15.0.1')
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
"$python" -B test/conformance/run.py --server './bin/hermes-mobile serve --agent demo' "$@" \
  >"$log" 2>&1 || status=$?
grep -avE '^(ok|#) ?' "$log" || true
exit "$status"
