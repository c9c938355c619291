#!/usr/bin/env bash
# End to end: the real Hermes of both versions, real processes, kill -9.
set -euo pipefail
cd "$(dirname "$0")/.."
bash test/hermes/install.sh >/dev/null
go test -timeout 20m -p 1 ./test/... 2>&1 | { grep -v 'no test files' || true; }
