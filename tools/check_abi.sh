#!/bin/sh
# Holds the C interface against its committed baseline: members stay where they are, structs grow at their end only.
#
#   tools/check_abi.sh            compare
#   tools/check_abi.sh --update   write a new baseline (a new major, or after appending)
#   tools/check_abi.sh --self-test  breaks the headers in known ways and expects each to be noticed
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
command -v abidw >/dev/null || { echo "check_abi: abidw is missing; install the package abigail-tools" >&2; exit 3; }

# Structs whose size travels beside them (row_bytes, slot_bytes, result_bytes, ...).
strided="dsv4_row dsv4_batch_slot dsv4_result"
# Structs that stand in arrays or inside others and grow into their reserved words only (dsv4/abi.h, struct rule).
fixed="dsv4_device_info dsv4_weight dsv4_state_layout dsv4_sampling"

# layout HEADERS XML MACROS
layout() {
  # Compiled from the root, so that the layout names no directory of this machine.
  (cd "$root" && cc -g -O0 -shared -fPIC -std=c11 -fdebug-prefix-map="$root"=. -I "$1" -o "$work/surface.so" tests/abi/abi_surface.c)
  abidw --no-corpus-path --no-comp-dir-path --no-show-locs --out-file "$2" "$work/surface.so"
  cc -std=c11 -I "$1" -dM -E "$root/tests/abi/abi_surface.c" |
    sed -n 's/^#define \(DSV4_[A-Z0-9_]*\) \(..*\)$/\1 \2/p' | sort >"$3"
}

compare() {
  python3 "$root/tests/abi/compare.py" "$root/tests/abi/baseline.xml" "$1" "$root/tests/abi/baseline_macros.txt" "$2" --strided $strided --fixed $fixed
}

headers=$root/sdk/include
for type in $(sed -nE 's/^(typedef )?(struct|enum) (dsv4_[a-z0-9_]+) \{$/\3/p' "$headers"/dsv4/*.h); do
  grep -q "const $type\*" "$root/tests/abi/abi_surface.c" ||
    { echo "check_abi: add $type to tests/abi/abi_surface.c" >&2; exit 1; }
done

case ${1:-} in
--update)
  layout "$headers" "$root/tests/abi/baseline.xml" "$root/tests/abi/baseline_macros.txt"
  echo "check_abi: baseline written"
  ;;
--self-test)
  # try WHAT FILE SED EXPECTED: EXPECTED is a part of the message, or "ok".
  try() {
    rm -rf "$work/h"
    cp -r "$headers" "$work/h"
    sed -i -E "$3" "$work/h/dsv4/$2"
    cmp -s "$headers/dsv4/$2" "$work/h/dsv4/$2" && { echo "check_abi: self-test \"$1\" changed nothing" >&2; exit 1; }
    layout "$work/h" "$work/new.xml" "$work/new.txt"
    said=$(compare "$work/new.xml" "$work/new.txt") || true
    if [ "$4" = ok ]; then
      [ -z "$said" ] || { echo "check_abi: \"$1\" was refused: $said" >&2; exit 1; }
    else
      case $said in *"$4"*) ;; *) echo "check_abi: \"$1\" was not noticed: $said" >&2; exit 1 ;; esac
    fi
  }
  try "append a function" parser.h 's/^\} dsv4_parser_table;/    void (*extra)(void* self);\n} dsv4_parser_table;/' ok
  try "append an enumerator" parser.h 's/(DSV4_FINISH_TOOL_CALLS = 3)/\1, DSV4_FINISH_NEW = 4/' ok
  try "use a reserved word" backend.h '/^typedef struct dsv4_weight \{/,/^\} dsv4_weight/s/uint64_t reserved\[4\]/uint64_t extra;\n    uint64_t reserved[3]/' ok
  try "grow a fixed struct with struct_size" backend.h 's/^\} dsv4_sampling;/    uint64_t extra;\n} dsv4_sampling;/' "dsv4_sampling is of fixed size"
  try "leave padding at the end" parser.h 's/^\} dsv4_parser_table;/    int32_t extra;\n} dsv4_parser_table;/' "dsv4_parser_table ends with 32 bits of padding"
  try "insert a member" parser.h 's/^(    int32_t malformed;)/    int32_t extra;\n\1/' "dsv4_completion_end.malformed moved"
  try "remove a member" spec.h '/needs_draft_window/d' "dsv4_spec_info.needs_draft_window is gone"
  try "change a parameter" parser.h 's/int32_t stopped_by, dsv4_delta_sink/int64_t stopped_by, dsv4_delta_sink/' "dsv4_parser_table.stream_finish was"
  try "renumber an enumerator" parser.h 's/DSV4_FINISH_LENGTH = 2/DSV4_FINISH_LENGTH = 5/' "DSV4_FINISH_LENGTH was 2"
  try "grow a fixed struct" abi.h 's/^\} dsv4_str;/    size_t extra;\n} dsv4_str;/' "dsv4_str is of fixed size"
  try "change a flag" backend.h 's/DSV4_ROW_PAD 8u/DSV4_ROW_PAD 32u/' "DSV4_ROW_PAD was 8u"
  echo "check_abi: self-test passed"
  ;;
"")
  layout "$headers" "$work/new.xml" "$work/new.txt"
  if ! compare "$work/new.xml" "$work/new.txt"; then
    echo "check_abi: the C interface changed in a way that breaks built plugins; append instead, or raise the major" >&2
    exit 1
  fi
  echo "check_abi: compatible with the baseline"
  ;;
*) sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
