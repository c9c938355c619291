#!/usr/bin/env bash
# The black-box suite of the device protocol against the built binary, where the suite lies beside the project.
set -euo pipefail
cd "$(dirname "$0")/.."
suite=../shared/tools/conformance/conformance.py
if [ ! -f "$suite" ]; then
  echo "conformance: the suite is not here, left out"
  exit 0
fi
python=$(bash scripts/python.sh conformance 'websockets==15.0.1')
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
"$python" "$suite" --server './bin/hermes-mobile serve --agent demo' >"$log" 2>&1 || status=$?
grep -avE '^(ok|#) ?' "$log" || true
exit "$status"
