#!/usr/bin/env bash
# CPU, allocation and heap profiles of the server under a part of scripts/bench.sh, for go tool pprof.
#
#   scripts/profile.sh [NAME …]   (stream)
#
# BENCH_PROFILE  the folder for them (.cache/profile)
set -euo pipefail
cd "$(dirname "$0")/.."
export BENCH_PROFILE=${BENCH_PROFILE:-.cache/profile} BENCH_REPEAT=${BENCH_REPEAT:-1}
bash scripts/bench.sh "${@:-stream}"
echo
echo "Profiles, to be read with go tool pprof:"
ls "$BENCH_PROFILE"/*
