#!/usr/bin/env bash
# Measures the built binary on this machine and prints one table. It is no test: it fails when something is lost or not
# answered, never because of a time.
#
#   scripts/bench.sh [small|idle|stream|latency|bytes|accepts|fanout|slow|upload|start|storm|page|gateway …]
#
# BENCH_N        connections of idle and fanout (15000)
# BENCH_STORM    devices of storm (5000)
# BENCH_FRAMES   stored frames of start (1000000)
# BENCH_MINUTES  how long the server of small rests before it is weighed (10)
# BENCH_REPEAT   how often most of them are measured (3)
# BENCH_DIR      where the data goes: on the disk that is to be measured (the temporary folder)
# BENCH_BIN      the server (bin/hermes-mobile)
# BENCH_PROFILE  a folder: then a server of the same code with pprof is measured, and its profiles are put there
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bin=${BENCH_BIN:-bin/hermes-mobile}
go build -C test/bench -trimpath -o "$work/bench" .
profile=()
if [ -n "${BENCH_PROFILE:-}" ]; then
  mkdir -p "$BENCH_PROFILE"
  bin=$work/profiled
  go build -C test/bench -trimpath -o "$bin" ./profiled
  profile=(-profile "$(cd "$BENCH_PROFILE" && pwd)")
elif [ ! -x "$bin" ]; then
  make -s build
fi
wants() { # NAME ARGUMENT…
  local name=$1
  shift
  [ $# -eq 0 ] || [[ " $* " == *" $name "* ]]
}
n=${BENCH_N:-15000}
files=$(ulimit -Hn)
for part in idle fanout; do
  if wants $part "$@" && [ "$files" != unlimited ] && [ "$files" -lt $((n + 200)) ]; then
    echo "$part: $n connections need $((n + 200)) open files at each end, and this machine allows $files: set BENCH_N to less" >&2
    exit 1
  fi
done
if wants gateway "$@"; then # the clients that are compared, each in a program of its own
  go build -C test/bench -trimpath -o "$work/reader" ./reader
  export BENCH_READER=$work/reader
  if (cd test/bench/openai && go build -trimpath -o "$work/openai" .) 2>"$work/why"; then
    export BENCH_OPENAI_GO=$work/openai
  else
    echo "gateway: without the OpenAI client for Go: $(tail -1 "$work/why")"
  fi
  if python=$(bash scripts/python.sh openai openai==3.57.0 2>"$work/why"); then
    export BENCH_OPENAI_PYTHON="$python $PWD/test/bench/openai/reader.py"
  else
    echo "gateway: without the OpenAI client for Python: $(tail -1 "$work/why")"
  fi
fi
if [ -z "${BENCH_PROFILE:-}" ] && { wants idle "$@" || wants stream "$@" || wants fanout "$@"; }; then # servers that ours is compared with
  yard=test/bench/yardstick
  if (cd $yard/go && go build -trimpath -o "$work/yardstick" .) 2>"$work/why"; then
    export BENCH_YARDSTICK_GO=$work/yardstick
  else
    echo "idle, stream, fanout: without the yardsticks in Go: $(tail -1 "$work/why")"
  fi
  if cp -R $yard/node "$work/node" && (cd "$work/node" && npm ci --ignore-scripts --no-audit --no-fund) >"$work/why" 2>&1; then
    export BENCH_YARDSTICK_NODE="node $work/node/server.mjs"
  else
    echo "idle, stream, fanout: without the yardstick in Node: $(tail -1 "$work/why")"
  fi
  aiohttp=aiohttp==3.14.5
  if python=$(bash scripts/python.sh yardstick $aiohttp uvloop==0.23.0 2>"$work/why"); then
    export BENCH_YARDSTICK_PYTHON="$python $PWD/$yard/python/server.py"
    export BENCH_YARDSTICK_UVLOOP=$BENCH_YARDSTICK_PYTHON
  elif python=$(bash scripts/python.sh yardstick $aiohttp 2>>"$work/why"); then
    echo "idle, stream, fanout: without the yardstick in Python on uvloop, which cannot be installed here"
    export BENCH_YARDSTICK_PYTHON="$python $PWD/$yard/python/server.py"
  else
    echo "idle, stream, fanout: without the yardsticks in Python: $(tail -1 "$work/why")"
  fi
fi
ulimit -n "$files"
"$work/bench" -bin "$bin" -n "$n" -storm "${BENCH_STORM:-5000}" \
  -frames "${BENCH_FRAMES:-1000000}" -minutes "${BENCH_MINUTES:-10}" -repeat "${BENCH_REPEAT:-3}" -dir "${BENCH_DIR:-}" "${profile[@]}" "$@"
