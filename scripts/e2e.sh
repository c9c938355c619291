#!/usr/bin/env bash
# End to end: the real Hermes of both versions, real reverse proxies, a real ACME server, real processes, kill -9. Never from the cache, which
# does not know the binary that these tests build. Two packages at a time: they wait for other programs more than they work.
set -euo pipefail
cd "$(dirname "$0")/.."
bash test/hermes/install.sh >/dev/null
bash test/proxy/install.sh >/dev/null
bash test/acme/install.sh >/dev/null
# Without these the tests of the web page are left out.
if ! why=$({ bash test/web/node.sh && bash test/web/packages.sh && bash test/web/install.sh; } 2>&1); then
  echo "e2e: the journeys of the web page are left out: $why"
fi
go test -count=1 -timeout 20m -p 2 ./test/... 2>&1 | { grep -v 'no test files' || true; }
