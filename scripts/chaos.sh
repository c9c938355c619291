#!/usr/bin/env bash
# Lets everything go wrong at once (test/chaos) and prints a table of what was done and how it ended. The short form is a test
# like any other; by hand it takes as long as you say.
#
# CHAOS_OPS   end after so many operations of phones and senders
# CHAOS_TIME  end after so long, such as 10m
# CHAOS_SEED  repeat the plan of a run
# CHAOS_KEEP  a folder for the log and the database of a run that failed
set -euo pipefail
cd "$(dirname "$0")/.."
flags=()
[ -z "${CHAOS_SEED:-}" ] || flags+=(-seed "$CHAOS_SEED")
if [ -n "${CHAOS_KEEP:-}" ]; then
  mkdir -p "$CHAOS_KEEP"
  flags+=(-keep "$(cd "$CHAOS_KEEP" && pwd)")
fi
go test -count=1 -v -timeout 24h ./test/chaos -run '^TestChaos$' "${flags[@]}"
