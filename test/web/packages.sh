#!/usr/bin/env bash
# Installs the packages of the web page from its lock file, if they changed. Quiet.
set -euo pipefail
cd "$(dirname "$0")/../../web"
lock=$(sha256sum package-lock.json | cut -c1-64)
if [ "$(cat node_modules/.lock 2>/dev/null)" != "$lock" ]; then
  npm ci --silent --no-progress
  echo "$lock" >node_modules/.lock
fi
