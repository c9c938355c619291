#!/usr/bin/env bash
# Builds Pebble, the ACME server of the tests, into ${HERMES_TEST_CACHE:-$HOME/.cache/hermes-mobile-test} and prints its
# path and nothing else; a second run finds it made and only prints. It is no dependency of the module.
set -euo pipefail
version=v2.10.3
cache=${HERMES_TEST_CACHE:-$HOME/.cache/hermes-mobile-test}
dir=$cache/pebble-$version
mkdir -p "$cache"
(
	flock 9 # a second run waits here
	[ -x "$dir/pebble" ] || GOBIN=$dir GOFLAGS= CGO_ENABLED=0 go install "github.com/letsencrypt/pebble/v2/cmd/pebble@$version" >&2
) 9>"$dir.lock"
echo "$dir/pebble"
