#!/usr/bin/env bash
# Builds every fuzz target with clang and runs each for SECONDS (default 10): no crash, no hang, no leak.
#   tools/fuzz.sh [SECONDS] [TARGET...]
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-10}
shift || true

cmake -S . -B build/fuzz -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DDSV4_FUZZ=ON -DDSV4_TESTS=OFF -DDSV4_WERROR=OFF \
  -DCMAKE_C_COMPILER=clang-19 -DCMAKE_CXX_COMPILER=clang++-19 -DCMAKE_MESSAGE_LOG_LEVEL=WARNING
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
  for f in tests/fuzz/*.cpp; do targets+=("$(basename "${f%.cpp}")"); done
fi
cmake --build build/fuzz --target "${targets[@]/#/fuzz_}"
for target in "${targets[@]}"; do
  corpus=build/fuzz/corpus/$target
  seeds=tests/fuzz/seeds/$target
  mkdir -p "$corpus" build/fuzz/crashes
  echo "--- $target, $seconds s"
  "build/fuzz/bin/fuzz_$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -verbosity=0 -print_final_stats=1 \
    -artifact_prefix="build/fuzz/crashes/$target-" "$corpus" $([ -d "$seeds" ] && echo "$seeds") 2>&1 |
    { grep -E "number_of_executed_units|ERROR|SUMMARY|runtime error" || true; }
  [ "${PIPESTATUS[0]}" -eq 0 ]
done
