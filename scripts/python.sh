#!/usr/bin/env bash
# A virtual environment with the given packages, made once; prints its python. Usage: python.sh NAME PACKAGE==VERSION…
set -euo pipefail
name=$1
shift
key=$(printf '%s\n' "$@" | sha256sum | cut -c1-12)
dir=${HERMES_TEST_CACHE:-$HOME/.cache/hermes-mobile-test}/$name-$key
mkdir -p "$(dirname "$dir")"
exec 9>"$dir.lock"
flock 9
if [ ! -f "$dir/complete" ]; then
  rm -rf "$dir"
  "${PYTHON:-python3}" -m venv "$dir"
  "$dir/bin/pip" install --quiet --disable-pip-version-check "$@" >&2
  touch "$dir/complete"
fi
echo "$dir/bin/python"
