#!/usr/bin/env bash
# Packages, build and every test. Each stage has a budget in seconds; a stage over its budget fails.
#   tools/test.sh          what CI runs
#   tools/test.sh --full   the long runs too: ten minutes of fuzzing a target, the backend check in full width
set -euo pipefail
cd "$(dirname "$0")/.."

full=0
case "${1:-}" in
"") ;;
--full) full=1 ;;
*)
  echo "usage: test.sh [--full]" >&2
  exit 2
  ;;
esac

summary=()
stage() { # stage NAME BUDGET_SECONDS COMMAND...
  local name=$1 budget=$2 begin=$SECONDS
  shift 2
  echo
  echo "=== $name"
  "$@"
  local took=$((SECONDS - begin))
  summary+=("$(printf '%-10s %4d s of %4d s' "$name" "$took" "$budget")")
  if [ "$full" -eq 0 ] && [ "$took" -gt "$budget" ]; then
    echo "stage $name took $took s, its budget is $budget s" >&2
    exit 1
  fi
}

source_checks() {
  git ls-files '*.cpp' '*.hpp' '*.h' | xargs clang-format --dry-run --Werror
  tools/check_includes.sh
}
configure_and_build() {
  cmake --preset "$1" -DCMAKE_MESSAGE_LOG_LEVEL=WARNING "${@:2}"
  cmake --build --preset "$1"
}
packages() {
  tools/packages.sh test
  tools/fetch_v4_tokenizer.sh
  tools/test_venv.sh
}
unit_tests() { ctest --test-dir build/release -j2 --output-on-failure --no-tests=error; }
sdk() {
  tools/check_installed_sdk.sh build/release
  tools/check_abi.sh
}
# Everything under ASan and UBSan by clang, with the fuzz targets; whole-model runs stay with the release build.
asan() {
  cmake --preset asan -DCMAKE_MESSAGE_LOG_LEVEL=WARNING
  cmake --build --preset asan
  ctest --test-dir build/asan -j2 --output-on-failure --no-tests=error -LE 'slow|numerics|clients'
}
# What runs in several threads, under TSan.
tsan() {
  cmake --preset tsan -DCMAKE_MESSAGE_LOG_LEVEL=WARNING
  cmake --build --preset tsan --target dsv4_engine_tests dsv4_host_tests dsv4_api_openai_server_tests
  ctest --test-dir build/tsan -j2 --output-on-failure --no-tests=error -L threads
}

fuzz_seconds=10
[ "$full" -eq 1 ] && fuzz_seconds=600

full_width() { build/release/bin/dsv4 plugins check backend-cpu --geometry flash; }

stage packages 600 packages
stage sources 120 source_checks
stage build 1200 configure_and_build release
stage tests 900 unit_tests
stage sdk 180 sdk
stage asan 1500 asan
stage fuzz 300 tools/fuzz.sh "$fuzz_seconds"
stage tsan 1200 tsan
[ "$full" -eq 0 ] || stage flash 1200 full_width

echo
printf '%s\n' "${summary[@]}"
echo "all stages passed"
