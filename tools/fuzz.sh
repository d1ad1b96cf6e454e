#!/usr/bin/env bash
# Runs each fuzz target of the build folder of preset asan for SECONDS (default 10): no crash, no hang, no leak.
#   tools/fuzz.sh [SECONDS] [TARGET...]
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-10}
shift || true

build=build/asan
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
  for f in tests/fuzz/*.cpp; do targets+=("$(basename "${f%.cpp}")"); done
fi
cmake --preset asan -DCMAKE_MESSAGE_LOG_LEVEL=WARNING
cmake --build --preset asan --target "${targets[@]/#/fuzz_}"
mkdir -p $build/crashes
for target in "${targets[@]}"; do
  corpus=$build/corpus/$target
  seeds=()
  [ -d "tests/fuzz/seeds/$target" ] && seeds=("tests/fuzz/seeds/$target")
  mkdir -p "$corpus"
  echo "--- $target, $seconds s"
  "$build/bin/fuzz_$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -verbosity=0 -print_final_stats=1 \
    -artifact_prefix="$build/crashes/$target-" "$corpus" "${seeds[@]}" >"$build/$target.log" 2>&1 || {
    tail -60 "$build/$target.log"
    exit 1
  }
  grep number_of_executed_units "$build/$target.log"
done
