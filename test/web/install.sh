#!/usr/bin/env bash
# Installs Debian's Chromium for the browser tests of the web page, if it can. Quiet.
set -euo pipefail
for name in chromium chromium-browser google-chrome; do
  if command -v "$name" >/dev/null; then exit 0; fi
done
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
  echo "Chromium is missing: run test/web/install.sh as root, or set CHROMIUM to its path" >&2
  exit 1
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core fonts-noto-color-emoji; } >"$log" 2>&1; then
  tail -5 "$log" >&2
  exit 1
fi
