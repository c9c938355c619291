#!/bin/sh
# Prints the entry of the plugin mobile-platform for the plugin catalog of Hermes.
# Usage: entry.sh https://github.com/OWNER/REPO [COMMIT]
#
# The catalog pins a commit. By default it is the one that is checked out.
set -eu
cd "$(dirname "$0")"
repo=${1:?missing the https address of the repository, such as https://github.com/OWNER/REPO}
case $repo in
https://*/*/*) ;;
*)
	echo "$repo: must be the https address of a repository, such as https://github.com/OWNER/REPO" >&2
	exit 1
	;;
esac
commit=${2:-$(git rev-parse HEAD)}
if [ "${#commit}" != 40 ] || [ -n "$(printf %s "$commit" | tr -d 0-9a-f)" ]; then
	echo "$commit: must be a whole commit id of 40 hex digits" >&2
	exit 1
fi
value() { sed -n "s/^$1: *//p" mobile-platform/plugin.yaml; }
owner=${repo#https://*/}
cat <<END
name: $(value name)
repo: ${repo%.git}
sha: $commit
subdir: contrib/plugin-catalog/$(value name)
tier: community
category: platform
maintainer: ${owner%%/*}
version: "$(value version)"
description: Gives the relay of a Hermes Mobile server the platform name mobile, for /sethome and scheduled jobs.
requires_hermes: ">=0.22"
docs_url: ${repo%.git}/blob/$commit/doc/connect.md
platforms: []
capabilities:
  provides_tools: []
  provides_hooks: []
  provides_middleware: []
  requires_env: []
END
