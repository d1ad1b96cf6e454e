#!/usr/bin/env python3
"""Writes core/tokenizer/unicode_additions.cpp: the characters that Unicode 15.0 to 16.0 added to version 14.0.

Run with Python 3.11 (its unicodedata is version 14.0) in an environment that has unicodedata2==16.0.0:
    python3.11 -m venv V && V/bin/pip install unicodedata2==16.0.0 && V/bin/python tools/make_unicode_additions.py
"""
import pathlib
import unicodedata

import unicodedata2

assert unicodedata.unidata_version == "14.0.0", "run it with Python 3.11"
assert unicodedata2.unidata_version == "16.0.0", "install unicodedata2==16.0.0"

ranges = []
for code_point in range(0x110000):
    old, new = unicodedata.category(chr(code_point)), unicodedata2.category(chr(code_point))
    if old != "Cn" and old[0] != new[0]:
        raise SystemExit(f"U+{code_point:04X} moved from {old} to {new}: a table of additions cannot say that")
    if old == "Cn" and new[0] in "LMNPS":
        if ranges and ranges[-1][1] == code_point - 1 and ranges[-1][2] == new:
            ranges[-1][1] = code_point
        else:
            ranges.append([code_point, code_point, new])

rows = [f'    {{0x{first:X}, 0x{last:X}, "{category}"}},' for first, last, category in ranges]
target = pathlib.Path(__file__).parent.parent / "core/tokenizer/unicode_additions.cpp"
target.write_text(
    "// The table of unicode_additions.hpp; written by tools/make_unicode_additions.py.\n"
    '#include "core/tokenizer/unicode_additions.hpp"\n\n'
    "namespace dsv4::tokenizer {\nnamespace {\n\n// clang-format off\nconstexpr UnicodeAddition additions[] = {\n"
    + "\n".join(rows)
    + "\n};\n// clang-format on\n\n} // namespace\n\n"
    "std::span<const UnicodeAddition> unicode_additions() { return additions; }\n\n} // namespace dsv4::tokenizer\n"
)
print(f"{len(ranges)} ranges")
