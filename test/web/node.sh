#!/usr/bin/env bash
# Says whether there is a Node that the web page and its tests can do with.
set -euo pipefail
node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)' 2>/dev/null || {
  echo "there is no Node 20.19 or later" >&2
  exit 1
}
