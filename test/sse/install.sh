#!/usr/bin/env bash
# Installs what reads streams beside our own reader into ${HERMES_TEST_CACHE:-$HOME/.cache/hermes-mobile-test} and prints its folder and
# nothing else; a second run finds it made and only prints. It is no dependency of the module.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${HERMES_TEST_CACHE:-$HOME/.cache/hermes-mobile-test}
dir=$cache/sse-$(cat "$here/package-lock.json" "$here/parse.mjs" | sha256sum | cut -c1-12)
mkdir -p "$cache"
(
	flock 9 # a second run waits here
	if [ ! -e "$dir/done" ]; then
		mkdir -p "$dir"
		cp "$here/package.json" "$here/package-lock.json" "$here/.npmrc" "$here/parse.mjs" "$dir/"
		(cd "$dir" && npm ci --ignore-scripts --no-audit --no-fund >&2)
		touch "$dir/done"
	fi
) 9>"$dir.lock"
echo "$dir"
