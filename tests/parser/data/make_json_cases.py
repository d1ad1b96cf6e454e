"""Writes json_cases.json: JSON texts with the one-line form that Python's json module gives them.

Each case is {"in": text, "out": json.dumps(json.loads(text), ensure_ascii=False)}, or {"in": text, "out": null} for text
that is not strict JSON. Run from any folder: python3 make_json_cases.py
"""
import json
import math
import pathlib
import random
import struct

rng = random.Random(20260731)


def refuse(name):
    raise ValueError(name)


def strict(text):
    value = json.loads(text, parse_constant=refuse)
    out = json.dumps(value, ensure_ascii=False, allow_nan=False)
    out.encode()  # lone surrogates have no UTF-8
    return out


def random_double():
    while True:
        value = struct.unpack("<d", rng.randbytes(8))[0]
        if math.isfinite(value):
            return value


cases = []
add = cases.append

# Floats: every decade, edges of fixed and exponent form, random bit patterns in several spellings.
for exponent in range(-12, 22):
    for digits in ("1", "1.5", "9.999999999999999", "1.2345678901234567", "-7"):
        add(f"{digits}e{exponent}")
for text in ("0.0", "-0.0", "0e5", "1E+2", "1e-4", "0.0001", "0.00001", "123456789012345.6", "9999999999999998.0",
             "9007199254740993.0", "1e15", "1e16", "1e17", "123456789012345678.0", "5e-324", "1.7976931348623157e308",
             "2.2250738585072014e-308", "0.1", "0.30000000000000004", "100.0", "1.10", "-2.50"):
    add(text)
for _ in range(60):
    add(rng.choice(("%.17g", "%.3e", "%.20e")) % random_double())
for _ in range(30):
    add("%.*f" % (rng.randint(1, 12), rng.uniform(-1e6, 1e6)))

# Integers, also wider than any machine type.
for text in ("0", "-0", "7", "-1", "9223372036854775807", "-9223372036854775808", "9223372036854775808",
             "18446744073709551615", "18446744073709551616", "-9223372036854775809", "12345678901234567890123", "1" + "0" * 200):
    add(text)

# Strings: every control character, escapes in all spellings, text from several scripts.
for code in range(0x21):
    add('"a\\u%04xb"' % code)
for text in ('"\\"\\\\\\/\\b\\f\\n\\r\\t"', '"\x7f"', '"\\u007f"', '"\u2028\u2029"', '"\\u2028"', '"\\u00e9é"', '"\\ud83d\\ude80"',
             '"🚀👩\u200d🚀"', '"日本\\u65e5"', '"<｜User｜></think>"', '""', '"\\u0000"', '"\ufeff"', '"\U0010ffff"', '"a/b"'):
    add(text)

# Structure: order, duplicates, blanks, nesting.
for text in ('{}', '[]', '[[]]', '{"a":{}}', '{"b":1,"a":2}', '{"a":1,"b":2,"a":3}', '{"a":{"x":1},"a":[2]}', ' {\n"a" :\t[ 1 ,2 ] } ',
             '[true,false,null]', '{"":""}', '{"é":{"\\u00e9":1}}', '[1,"x",{"k":"v"},[null]]', '[' * 100 + ']' * 100,
             '{"a":1.0,"b":1,"c":"1","d":[1.0]}', 'null', 'true', '{"a":1,"a":1,"b":2,"c":3,"b":4}'):
    add(text)

# Not strict JSON. Duplicates of what a lenient reader takes.
for text in ('', ' ', 'NaN', '-Infinity', 'Infinity', '[NaN]', '{"a":Infinity}', '1e400', '-1e400', '[1,]', '{"a":1,}', "{'a':1}", '01', '-',
             '+1', '.5', '1.', '1e', '0x10', '"\t"', '"a\nb"', '"\\x41"', '"\\ud800"', '"\\ude00\\ud83d"', '"abc', '{"a"}', '{"a":}', '[1 2]',
             '[1]]', '{} {}', 'nul', 'True', '// c\n1', '[1] x', '{1:2}', '\ufeff1', '[' * 3, '1\x00', '[1]\x00x', '\x00'):
    add(text)

out = []
for text in cases:
    try:
        result = strict(text)
        if "Infinity" in result and "Infinity" not in text:
            result = None
    except (ValueError, RecursionError):
        result = None
    out.append({"in": text, "out": result})

path = pathlib.Path(__file__).with_name("json_cases.json")
path.write_text("[\n" + ",\n".join(json.dumps(case) for case in out) + "\n]\n", encoding="utf-8")
print(len(out), "cases,", sum(case["out"] is None for case in out), "refused")
