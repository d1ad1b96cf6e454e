#!/bin/sh
# Holds the includes of the tree against its layers, and every header against itself.
#
#   tools/check_includes.sh             who may include what (seconds)
#   tools/check_includes.sh --headers   also: each header compiles on its own (minutes)
set -eu
cd "$(dirname "$0")/.."
failed=0

# includes FILES: lines "file:line:what", without quotes or brackets.
includes() {
  grep -nHE '^[[:space:]]*#[[:space:]]*include[[:space:]]*["<]' "$@" /dev/null |
    sed -E 's/^([^:]*:[0-9]+):[[:space:]]*#[[:space:]]*include[[:space:]]*["<]([^">]*)[">].*/\1:\2/'
}
sources() { find "$@" -type f \( -name '*.c' -o -name '*.cpp' -o -name '*.h' -o -name '*.hpp' -o -name '*.cu' -o -name '*.hip' \) | sort; }

# forbid FOLDER PATTERN WHY
forbid() {
  [ -d "$1" ] || return 0
  found=$(includes $(sources "$1") | grep -E ":[0-9]+:($2)" || true)
  [ -z "$found" ] && return 0
  echo "$found" | while IFS= read -r line; do echo "$line: $3"; done
  failed=1
}
forbid plugins '(core|dsl|cli|plugins)/' "plugins may include the SDK, their own files and third-party libraries only"
forbid core '(dsl|cli|plugins)/' "core may not include dsl, cli or plugins"
forbid dsl '(cli|plugins)/' "dsl may not include cli or plugins"
forbid cli 'plugins/' "the program may not include plugins"
forbid examples '(core|dsl|cli|plugins)/' "examples see the SDK only"

# The SDK: its own headers and the standard library.
foreign=$(includes $(sources sdk/include) | grep -vE ':[0-9]+:(dsv4/[a-z_/]+\.(h|hpp)|[a-z_]+|std(def|int)\.h)$' || true)
if [ -n "$foreign" ]; then
  echo "$foreign" | while IFS= read -r line; do echo "$line: the SDK may include dsv4/ and the standard library only"; done
  failed=1
fi

# own PATTERN FILES...: a heavy or swappable library belongs to these files alone (shell patterns; tests are free).
own() {
  pattern=$1
  shift
  for line in $(includes $(sources core dsl cli plugins) | grep -E ":[0-9]+:($pattern)" || true); do
    file=${line%%:*}
    allowed=no
    for owner in "$@"; do
      case $file in $owner) allowed=yes ;; esac
    done
    [ $allowed = yes ] && continue
    echo "$line: this library belongs to $*"
    failed=1
  done
}
own 'boost/(beast|asio)' 'plugins/api-*'
own 'boost/spirit|boost/fusion' dsl/expression_grammar.cpp
own 'boost/dll|dlfcn\.h' core/plugin/library.cpp
own 'CLI/' cli/main.cpp
own 'toml\+\+/' dsl/toml_reader.cpp core/plugin/manifest.cpp
own 'spdlog/' core/host/log.cpp
own 'prometheus/' core/host/metrics.cpp
own 'pcre2\.h' 'core/tokenizer/*'
own 'zmq' 'plugins/transport-*'

if [ "${1:-}" = --headers ]; then
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  log=$work/log
  warnings="-Wall -Wextra -Wpedantic -Werror"
  # What dsv4_add_plugin defines.
  printf '#define DSV4_PLUGIN_NAME "parser-x"\n#define DSV4_MANIFEST_SHA256 ""\n' >"$work/plugin.h"
  plugin="-include $work/plugin.h"
  {
    for h in sdk/include/dsv4/*.h; do
      echo "cc -std=c11 -x c -fsyntax-only $warnings -I sdk/include -include $h /dev/null"
      echo "c++ -std=c++20 -x c++ -fsyntax-only $warnings -I sdk/include -include $h /dev/null"
    done
    for h in sdk/include/dsv4/sdk/*.hpp; do
      echo "c++ -std=c++20 -x c++ -fsyntax-only $warnings $plugin -I sdk/include -include $h /dev/null"
    done
    for h in $(sources core dsl cli | grep -E '\.(h|hpp)$'); do
      echo "c++ -std=c++20 -x c++ -fsyntax-only -Wall -Wextra -I . -I sdk/include -include $h /dev/null"
    done
    for h in $(sources plugins | grep -E '\.(h|hpp)$'); do
      folder=$(echo "$h" | cut -d/ -f1-2)
      echo "c++ -std=c++20 -x c++ -fsyntax-only -Wall -Wextra $plugin -I $folder -I sdk/include -include $h /dev/null"
    done
  } | xargs -P "$(nproc)" -I{} sh -c '{} 2>&1 || echo "not self-contained: {}"' >"$log"
  if grep -q 'not self-contained' "$log"; then
    cat "$log"
    failed=1
  fi
fi

[ $failed = 0 ] && echo "check_includes: clean"
exit $failed
