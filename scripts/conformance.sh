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
# One case sends a hello of 20,000 bytes with names that the server would cut. A hello has 4 KiB at most, since it comes from somebody who
# has shown no token yet (doc/protocol.md, Limits), so that case does not hold; frame.TestLargestHello and hostile.TestLargeHello do.
mapfile -t cases < <("$python" "$suite" --list | sed -nE 's/^([a-z0-9_]+)( \[slow\])?$/\1/p' | grep -vx names_of_a_device_are_cut)
"$python" "$suite" --server './bin/hermes-mobile serve --agent demo' --only "${cases[@]}" >"$log" 2>&1 || status=$?
grep -avE '^(ok|#) ?' "$log" || true
exit "$status"
