#!/usr/bin/env bash
# Makes the virtual environments that the end-to-end tests run the real Hermes gateway in.
#
# One folder a version below ${HERMES_TEST_CACHE:-$HOME/.cache/hermes-mobile-test}, named by the
# version and the hash of its requirements file, so a changed pin never meets an old environment.
# Prints the folders and nothing else; a second run finds them made and only prints.
#
# Usage: install.sh [VERSION...]     (default: all)      PYTHON=python3.12 install.sh
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${HERMES_TEST_CACHE:-$HOME/.cache/hermes-mobile-test}
python=${PYTHON:-python3}

"$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' || {
	echo "install.sh: Hermes needs Python 3.11 to 3.13; set PYTHON to one" >&2
	exit 1
}

install_one() {
	local version=$1 requirements hash dir log
	requirements=$here/requirements-$version.txt
	[ -f "$requirements" ] || {
		echo "install.sh: unknown version $version" >&2
		return 1
	}
	hash=$(sha256sum "$requirements" | cut -c1-12)
	dir=$cache/$version-$hash
	log=$dir.log
	mkdir -p "$cache"
	(
		# A second run waits here and then finds the finished environment.
		flock 9
		if [ ! -e "$dir/.complete" ]; then
			rm -rf "$dir"
			{
				"$python" -m venv "$dir"
				# --no-deps: the file lists everything, so there is nothing to resolve.
				"$dir/bin/python" -m pip install --quiet --disable-pip-version-check --no-input \
					--no-compile --no-deps --requirement "$requirements"
				"$dir/bin/python" -m pip check --quiet --disable-pip-version-check
				# Compiled here, by all cores, and not in the first gateway's start-up time.
				"$dir/bin/python" -m compileall -q -j 0 "$dir/lib" || true
			} >"$log" 2>&1 || {
				cat "$log" >&2
				return 1
			}
			touch "$dir/.complete"
			rm -f "$log"
		fi
	) 9>"$dir.lock"
	echo "$dir"
}

[ $# -gt 0 ] || set -- 0.19.0 0.22.2 0.20.0 0.20.6 0.21.5
for version in "$@"; do
	install_one "$version"
done
