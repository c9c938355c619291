#!/usr/bin/env bash
# Checks for a Node that is new enough for the web page and its tests.
set -euo pipefail
node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)' 2>/dev/null || {
  echo "Node 20.19 or later is missing" >&2
  exit 1
}
