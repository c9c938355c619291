#!/usr/bin/env bash
# End to end: the real Hermes of both versions, real reverse proxies, a real ACME server, real processes, kill -9. Never from the cache, which
# does not know the binary that these tests build. Most packages wait for other programs more than they work, so they run in pairs; the real Hermes
# with a browser, and the harness that breaks everything, have the machine to themselves.
set -euo pipefail
cd "$(dirname "$0")/.."
bash test/hermes/install.sh >/dev/null
bash test/proxy/install.sh >/dev/null
bash test/acme/install.sh >/dev/null
# Without these the tests of the web page are left out.
if ! why=$({ bash test/web/node.sh && bash test/web/packages.sh && bash test/web/install.sh; } 2>&1); then
  echo "e2e: the journeys of the web page are left out: $why"
fi
failed=0
go test -count=1 -timeout 20m -p 2 $(go list ./test/... | grep -vE '/test/(e2e|chaos)$') 2>&1 | { grep -av 'no test files' || true; } || failed=1
go test -count=1 -timeout 20m -p 1 ./test/chaos ./test/e2e || failed=1
exit $failed
