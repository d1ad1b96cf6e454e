#!/bin/sh
# Installs a build into an empty folder and builds the example plugins against it, out of tree, as their authors would.
#
#   tools/check_installed_sdk.sh [BUILD]     BUILD: a configured build folder, build/release when not given
#
# Where BUILD holds the program, the whole product is installed and the program looks at each plugin; else the SDK alone.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "${1:-$root/build/release}" && pwd)
[ -f "$build/CMakeCache.txt" ] || { echo "check_installed_sdk: $build is not a configured build folder" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix

quietly() {
  "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; echo "check_installed_sdk: failed: $*" >&2; exit 1; }
}

program=
if [ -x "$build/bin/dsv4" ]; then
  quietly cmake --install "$build" --prefix "$prefix"
  program=$prefix/bin/dsv4
  "$program" plugins list || { echo "check_installed_sdk: a bundled plugin is refused" >&2; exit 1; }
else
  echo "check_installed_sdk: $build holds no program; installing the SDK alone"
  quietly cmake --install "$build" --prefix "$prefix" --component sdk
fi

# A member appended to a struct must not break the build of a plugin.
warnings="-Wall -Wextra -Wno-missing-field-initializers -Werror"
checked=0
for example in "$root"/examples/plugins/*/; do
  [ -f "$example/manifest.toml" ] || continue # not a plugin: a driver, a host
  name=$(basename "$example")
  out=$work/$name
  # Copied, so that nothing outside the folder can be found by a relative path.
  cp -r "$example" "$work/source-$name"
  quietly cmake -S "$work/source-$name" -B "$out" -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$prefix" \
    -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF \
    "-DCMAKE_C_FLAGS=$warnings" "-DCMAKE_CXX_FLAGS=$warnings"
  quietly cmake --build "$out"
  if [ -f "$out/CTestTestfile.cmake" ]; then quietly ctest --test-dir "$out" --output-on-failure; fi
  library=$(find "$out" -maxdepth 1 -name '*.so')
  [ -n "$library" ] || { echo "check_installed_sdk: $name built no plugin" >&2; exit 1; }
  exports=$(nm -D --defined-only "$library" | awk '{print $3}')
  [ "$exports" = dsv4_plugin_entry ] || { echo "check_installed_sdk: $name exports: $exports" >&2; exit 1; }
  if [ -n "$program" ]; then
    quietly "$program" plugins inspect "$library"
    # The check of a backend holds its numbers against the reference, and an example backend computes nothing.
    case $library in */backend-*) ;; *) quietly "$program" plugins check "$library" ;; esac
  fi
  echo "check_installed_sdk: $name is right"
  checked=$((checked + 1))
done
[ "$checked" -ge 2 ] || { echo "check_installed_sdk: only $checked examples found" >&2; exit 1; }
echo "check_installed_sdk: $checked plugins built against the installed SDK"
